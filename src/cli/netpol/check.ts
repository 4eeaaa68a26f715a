// `portcullis netpol check`: which NetworkPolicies a provider does not implement as they are written.
import { Command, Option } from 'commander';
import type { ProviderVerdict } from '../../engine/network-policy/index.ts';
import { dataText } from '../output.ts';
import { githubAnnotations } from '../problems/github-annotations.ts';
import { sarifText } from '../problems/sarif.ts';
import { oneLine, table } from '../table.ts';
import { checkPolicies, type CheckResult } from './check-policies.ts';
import { exitCodeOf, type FailOn, failOnOption } from './fail-on.ts';
import { junitText } from './junit.ts';
import { POLICY_RULES, problemsOf } from './policy-problems.ts';
import type { PolicyFile } from './policy-places.ts';
import { addNetpolFlags, type NetpolFlags, readPolicies } from './policy-flags.ts';
import { printNotes } from './print-notes.ts';
import {
  addCatalogueFlag,
  allProviders,
  type CatalogueFlags,
  PROVIDER_HELP,
  providersOf,
  readCatalogue,
} from './provider-flags.ts';

const OUTPUTS = ['table', 'json', 'yaml', 'markdown', 'junit', 'sarif', 'github'] as const;
/** Formats that contain the verdict of each feature. */
const DETAILED: readonly string[] = ['json', 'yaml', 'sarif', 'github'];

interface CheckFlags extends NetpolFlags, CatalogueFlags {
  readonly provider?: readonly string[];
  readonly failOn?: FailOn;
  readonly output: (typeof OUTPUTS)[number];
}

export function checkCommand(): Command {
  return addNetpolFlags(
    addCatalogueFlag(
      new Command('check')
        .description('check NetworkPolicies of files, of a Git diff, or of a cluster against network providers')
        .option('--provider <spec...>', `${PROVIDER_HELP} (default: all of the catalogue, in their newest versions)`)
        .addOption(failOnOption())
        .addOption(
          new Option('-o, --output <format>', 'output format; github: annotations of GitHub Actions')
            .choices(OUTPUTS)
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
  portcullis netpol check -f policies/ --provider cilium@1.15.4 -o sarif > netpol.sarif
  portcullis netpol check -A --provider aws-vpc-cni@1.4.1,enable-network-policy=true

Exit code: 0; 1 if a named provider does not support a policy (see --fail-on), or after an error; 2 for wrong usage.`,
    )
    .action(check);
}

async function check(flags: CheckFlags): Promise<void> {
  const catalogue = await readCatalogue(flags);
  const providers = flags.provider === undefined ? allProviders(catalogue) : providersOf(flags.provider, catalogue);
  const { policies, files, facts } = await readPolicies(flags);
  const results = checkPolicies(policies, providers, DETAILED.includes(flags.output), facts);
  process.stdout.write(await checkText(results, flags.output, files));
  printNotes(policies, flags.provider === undefined ? [] : providers);
  const failOn = flags.failOn ?? (flags.provider === undefined ? 'never' : 'unsupported');
  process.exitCode = exitCodeOf(
    results.flatMap(({ verdicts }) => verdicts.map(({ accepted }) => accepted)),
    failOn,
  );
}

async function checkText(
  results: readonly CheckResult[],
  output: CheckFlags['output'],
  files: readonly PolicyFile[],
): Promise<string> {
  switch (output) {
    case 'table':
      return tableText(results);
    case 'markdown':
      return markdownText(results);
    case 'junit':
      return junitText(results);
    case 'json':
    case 'yaml':
      return dataText({ results: results.map(({ policy, verdicts }) => ({ policy, verdicts })) }, output, {
        pretty: true,
      });
    case 'sarif':
      return sarifText(await problemsOf(results, files), POLICY_RULES);
    case 'github':
      return githubAnnotations(await problemsOf(results, files));
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
  const checked = `${countOf(results.length, 'policy', 'policies')}, ${countOf(providers, 'provider', 'providers')}`;
  return `${checked}: ${count('True')} accepted, ${count('False')} not, ${count('Unknown')} unknown`;
}

function countOf(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
