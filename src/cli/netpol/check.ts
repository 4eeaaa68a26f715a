// `portcullis netpol check`: which NetworkPolicies a provider does not implement as they are written.
import { Command, Option } from 'commander';
import type { ProviderVerdict } from '../../engine/network-policy/index.ts';
import { dataText, type DataFormat } from '../output.ts';
import { oneLine, table } from '../table.ts';
import { checkPolicies, type CheckResult } from './check-policies.ts';
import { exitCodeOf, type FailOn, failOnOption } from './fail-on.ts';
import { junitText } from './junit.ts';
import { addPolicyFlags, type PolicyFlags, readPolicies } from './policy-flags.ts';
import { printNotes } from './print-notes.ts';
import {
  addCatalogueFlag,
  allProviders,
  type CatalogueFlags,
  PROVIDER_HELP,
  providersOf,
  readCatalogue,
} from './provider-flags.ts';

interface CheckFlags extends PolicyFlags, CatalogueFlags {
  readonly provider?: readonly string[];
  readonly failOn?: FailOn;
  readonly output: 'table' | 'markdown' | 'junit' | DataFormat;
}

export function checkCommand(): Command {
  return addPolicyFlags(
    addCatalogueFlag(
      new Command('check')
        .description('check NetworkPolicies of files, of a Git diff, or of a cluster against network providers')
        .option('--provider <spec...>', `${PROVIDER_HELP} (default: all of the catalogue, in their newest versions)`)
        .addOption(failOnOption())
        .addOption(
          new Option('-o, --output <format>', 'output format')
            .choices(['table', 'json', 'yaml', 'markdown', 'junit'])
            .default('table'),
        ),
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis netpol check -f policies/ --provider cilium@1.15.4
  portcullis netpol check --diff origin/main --provider calico@3.28 --fail-on unknown
  portcullis netpol check -A --provider aws-vpc-cni@1.4.1,enable-network-policy=true

Exit code: 0; 1 if a named provider does not support a policy (see --fail-on), or after an error; 2 for wrong usage.`,
    )
    .action(check);
}

async function check(flags: CheckFlags): Promise<void> {
  const catalogue = await readCatalogue(flags);
  const providers = flags.provider === undefined ? allProviders(catalogue) : providersOf(flags.provider, catalogue);
  const { policies } = await readPolicies(flags);
  const isData = flags.output === 'json' || flags.output === 'yaml';
  const results = checkPolicies(policies, providers, isData);
  process.stdout.write(checkText(results, flags.output));
  printNotes(policies, flags.provider === undefined ? [] : providers);
  const failOn = flags.failOn ?? (flags.provider === undefined ? 'never' : 'unsupported');
  process.exitCode = exitCodeOf(
    results.flatMap(({ verdicts }) => verdicts.map(({ accepted }) => accepted)),
    failOn,
  );
}

function checkText(results: readonly CheckResult[], output: CheckFlags['output']): string {
  switch (output) {
    case 'table':
      return tableText(results);
    case 'markdown':
      return markdownText(results);
    case 'junit':
      return junitText(results);
    case 'json':
    case 'yaml':
      return dataText({ results }, output, { pretty: true });
    default:
      return output satisfies never;
  }
}

interface Row extends ProviderVerdict {
  readonly policy: string;
}

/** The verdicts that need attention. */
function rowsOf(results: readonly CheckResult[]): readonly Row[] {
  return results.flatMap(({ policy, verdicts }) =>
    verdicts.filter(({ accepted }) => accepted !== 'True').map((verdict) => ({ ...verdict, policy })),
  );
}

function tableText(results: readonly CheckResult[]): string {
  const rows = rowsOf(results);
  const columns = [
    { header: 'POLICY', cell: ({ policy }: Row) => oneLine(policy) },
    { header: 'ACCEPTED', cell: ({ accepted }: Row) => accepted },
    { header: 'EFFECT', cell: ({ effect }: Row) => effect ?? '' },
    { header: 'MESSAGE', cell: ({ message }: Row) => oneLine(message) },
  ];
  return `${rows.length === 0 ? '' : `${table(columns, rows)}\n\n`}${summaryText(results)}\n`;
}

function markdownText(results: readonly CheckResult[]): string {
  const cell = (text: string): string => oneLine(text).replaceAll(/[\\|<>`*_[\]]/g, String.raw`\$&`);
  const lines = rowsOf(results).map(
    ({ policy, accepted, effect = '', message }) => `| ${cell(policy)} | ${accepted} | ${effect} | ${cell(message)} |`,
  );
  const head = '| policy | accepted | effect | message |\n|---|---|---|---|\n';
  return `${lines.length === 0 ? '' : `${head}${lines.join('\n')}\n\n`}${summaryText(results)}\n`;
}

function summaryText(results: readonly CheckResult[]): string {
  const verdicts = results.flatMap((one) => one.verdicts);
  const count = (status: string): number => verdicts.filter(({ accepted }) => accepted === status).length;
  const providers = results[0]?.verdicts.length ?? 0;
  return `${results.length} policies, ${providers} providers: ${count('True')} accepted, ${count('False')} not, ${count('Unknown')} unknown`;
}
