import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { REJECTIONS, WARNINGS } from './rule-codes.ts';

const PAGE = readFileSync(new URL('../../../docs/policy-validation.md', import.meta.url), 'utf8');

/** The first column of the tables of a section. */
function codesOf(heading: string): readonly string[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return Array.from(section.matchAll(/^\| `([a-z-]+)` \|/gm), ([, code = '']) => code);
}

describe('rules of the webhook for our own kinds', () => {
  it('are all in the documentation, and nothing else is', () => {
    assert.deepEqual(codesOf('Refused').toSorted(), REJECTIONS.toSorted());
    assert.deepEqual(codesOf('Warned of').toSorted(), WARNINGS.toSorted());
  });

  it('are all asked for', () => {
    const cwd = fileURLToPath(new URL('.', import.meta.url));
    const sources = globSync('*.ts', { cwd }).filter((file) => !/\.test\.ts$|^rule-codes\.ts$/.test(file));
    const text = sources.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
    assert.deepEqual(
      [...REJECTIONS, ...WARNINGS].filter((code) => !text.includes(`'${code}'`)),
      [],
    );
  });
});
