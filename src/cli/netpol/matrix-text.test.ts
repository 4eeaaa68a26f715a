import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { builtinCatalogue } from '../../engine/network-policy/index.ts';
import { matrixMarkdown } from './matrix-text.ts';
import { allProviders } from './provider-flags.ts';

it('the matrix of docs/network-policy.md is that of the catalogue', () => {
  const page = readFileSync(new URL('../../../docs/network-policy.md', import.meta.url), 'utf8');
  const matrix = matrixMarkdown(allProviders(builtinCatalogue()));
  assert.ok(page.includes(`\n${matrix}<!-- end of matrix -->`), 'run node tools/netpol-matrix.ts');
});
