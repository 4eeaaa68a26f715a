// `portcullis netpol matrix`: network providers by features of NetworkPolicies.
import { Command, Option } from 'commander';
import type { DataFormat } from '../output.ts';
import { dataText } from '../output.ts';
import { matrixData, matrixMarkdown, matrixText, providerText } from './matrix-text.ts';
import {
  addCatalogueFlag,
  allProviders,
  type CatalogueFlags,
  providerToShow,
  readCatalogue,
} from './provider-flags.ts';

interface MatrixFlags extends CatalogueFlags {
  readonly provider?: readonly string[];
  readonly output: 'table' | 'markdown' | DataFormat;
}

export function matrixCommand(): Command {
  return addCatalogueFlag(
    new Command('matrix')
      .description('show what network providers support, by feature of NetworkPolicies')
      .option(
        '--provider <spec...>',
        'show these in words, for all versions or for NAME@VERSION (default: all, as symbols)',
      )
      .addOption(
        new Option('-o, --output <format>', 'output format')
          .choices(['table', 'json', 'yaml', 'markdown'])
          .default('table'),
      ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis netpol matrix
  portcullis netpol matrix --provider cilium
  portcullis netpol matrix -o markdown > matrix.md`,
    )
    .action(matrix);
}

async function matrix(flags: MatrixFlags): Promise<void> {
  const catalogue = await readCatalogue(flags);
  const named = flags.provider?.map((spec) => providerToShow(spec, catalogue));
  const providers = named ?? allProviders(catalogue);
  process.stdout.write(textOf());

  function textOf(): string {
    switch (flags.output) {
      case 'table':
        return named === undefined ? matrixText(providers) : named.map(providerText).join('\n');
      case 'markdown':
        return matrixMarkdown(providers);
      case 'json':
      case 'yaml':
        return dataText(matrixData(providers), flags.output, { pretty: true });
      default:
        return flags.output satisfies never;
    }
  }
}
