// Writes what docs/network-policy.md has from the catalogue: the matrix of network providers, their faults, and the uses. `--check` writes nothing, and fails when it
// is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtinCatalogue, FEATURE_TRAITS, TRAIT_TEXTS } from '../src/engine/network-policy/index.ts';
import { allProviders } from '../src/cli/netpol/provider-flags.ts';
import { defectsMarkdown, matrixMarkdown } from '../src/cli/netpol/matrix-text.ts';

const PAGE = fileURLToPath(new URL('../docs/network-policy.md', import.meta.url));
const PARTS: Readonly<Record<string, () => string>> = {
  matrix: () => matrixMarkdown(allProviders(builtinCatalogue())),
  defects: () => defectsMarkdown(builtinCatalogue().providers),
  uses: () => `| use | meaning | of |\n|---|---|---|\n${usesTable()}`,
};

function usesTable(): string {
  return Object.entries(TRAIT_TEXTS)
    .map(([trait, text]) => `| \`${trait}\` | ${text} | ${featuresWith(trait)} |\n`)
    .join('');
}

function featuresWith(trait: string): string {
  return Object.entries(FEATURE_TRAITS)
    .filter(([, traits]) => traits.some((one) => one === trait))
    .map(([feature]) => feature)
    .join(', ');
}

const text = readFileSync(PAGE, 'utf8');
const current = Object.entries(PARTS).reduce(
  (page, [name, write]) =>
    page.replace(
      new RegExp(`(<!-- ${name}: written by tools/netpol-matrix\\.ts -->\n).*?(<!-- end of ${name} -->)`, 's'),
      (_, head: string, end: string) => `${head}${write()}${end}`,
    ),
  text,
);
if (process.argv.includes('--check')) {
  if (current !== text) {
    console.error('docs/network-policy.md is stale: run node tools/netpol-matrix.ts');
    process.exit(1);
  }
} else {
  writeFileSync(PAGE, current);
}
