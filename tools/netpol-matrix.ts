// Writes the matrix of network providers in docs/network-policy.md from the catalogue. `--check` writes nothing, and fails when it
// is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtinCatalogue } from '../src/engine/network-policy/index.ts';
import { allProviders } from '../src/cli/netpol/provider-flags.ts';
import { matrixMarkdown } from '../src/cli/netpol/matrix-text.ts';

const PAGE = fileURLToPath(new URL('../docs/network-policy.md', import.meta.url));
const MATRIX = /(<!-- matrix: written by tools\/netpol-matrix\.ts -->\n).*?(<!-- end of matrix -->)/s;

const text = readFileSync(PAGE, 'utf8');
const current = text.replace(
  MATRIX,
  (_, head: string, end: string) => `${head}${matrixMarkdown(allProviders(builtinCatalogue()))}${end}`,
);
if (process.argv.includes('--check')) {
  if (current !== text) {
    console.error('docs/network-policy.md is stale: run node tools/netpol-matrix.ts');
    process.exit(1);
  }
} else {
  writeFileSync(PAGE, current);
}
