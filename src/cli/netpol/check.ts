// `portcullis netpol check`: which NetworkPolicies a provider does not implement as they are written.
import { Command, Option } from 'commander';
import { dataText } from '../output.ts';
import { githubAnnotations } from '../problems/github-annotations.ts';
import { sarifText } from '../problems/sarif.ts';
import { EXIT } from '../errors.ts';
import { markdownTable } from '../markdown-table.ts';
import { type Column, table } from '../table.ts';
import { checkPolicies, type CheckResult } from './check-policies.ts';
import { exitCodeOf, type FailOn, failOnOption } from './fail-on.ts';
import { junitText } from './junit.ts';
import { POLICY_RULES, problemsOf } from './policy-problems.ts';
import { addNetpolFlags, type NetpolFlags, readPolicies } from './policy-flags.ts';
import { printNotes } from './print-notes.ts';
import { addCatalogueFlag, type CatalogueFlags, PROVIDER_HELP, readCatalogue } from './provider-flags.ts';
import { ChosenProviders } from './chosen-providers.ts';
import { type Remark, remarksOf } from './remarks.ts';

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
        .option(
          '--provider <spec...>',
          `${PROVIDER_HELP} (default: those of the cluster; for files all of the catalogue, in their newest versions)`,
        )
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

Exit code: 0; 1 if API servers refuse a policy, if a provider that is named or runs in the cluster does not support one (see
--fail-on), if files have no NetworkPolicies, or after an error; 2 for wrong usage.`,
    )
    .action(check);
}

async function check(flags: CheckFlags): Promise<void> {
  const catalogue = await readCatalogue(flags);
  const input = await readPolicies(flags, catalogue);
  const chosen = new ChosenProviders(input.providers);
  const named = flags.provider === undefined ? chosen.detected : chosen.named(flags.provider);
  const providers = named ?? chosen.all;
  const results = checkPolicies(input.policies, providers, input.facts, DETAILED.includes(flags.output));
  process.stdout.write(checkText(results, flags.output, providers.length));
  printNotes(input.policies, named ?? []);
  if (named === undefined && input.isCluster) {
    process.stderr.write('note: no provider of the cluster is known, so that all of the catalogue are shown\n');
  }
  const failOn = flags.failOn ?? (named === undefined ? 'never' : 'unsupported');
  const statuses = results.flatMap(({ verdicts }) => verdicts.map(({ accepted }) => accepted));
  const isRefused = results.some(({ refusals }) => refusals.length > 0);
  process.exitCode = isRefused ? EXIT.failed : exitCodeOf(statuses, failOn);
}

function checkText(results: readonly CheckResult[], output: CheckFlags['output'], providers: number): string {
  switch (output) {
    case 'table':
      return tableText(results, providers);
    case 'markdown':
      return markdownText(results, providers);
    case 'junit':
      return junitText(results);
    case 'json':
    case 'yaml':
      return dataText({ results: results.map(resultData) }, output, { pretty: true });
    case 'sarif':
      return sarifText(problemsOf(results), POLICY_RULES);
    case 'github':
      return githubAnnotations(problemsOf(results));
    default:
      return output satisfies never;
  }
}

function resultData({ policy, refusals, mistakes, verdicts, placeOf }: CheckResult): object {
  const withPlace = (part: { readonly path?: string; readonly paths?: readonly string[] }): object => ({
    ...part,
    ...placeOf?.(part.path ?? part.paths?.[0] ?? ''),
  });
  return {
    policy,
    ...placeOf?.(''),
    ...(refusals.length === 0 ? {} : { refusals: refusals.map(withPlace) }),
    ...(mistakes.length === 0 ? {} : { warnings: mistakes.map(withPlace) }),
    verdicts: verdicts.map((verdict) => ({
      ...withPlace(verdict),
      features: verdict.features.map((feature) => (feature.status === 'True' ? feature : withPlace(feature))),
      warnings: verdict.warnings.map(withPlace),
    })),
  };
}

function columnsOf(remarks: readonly Remark[]): readonly Column<Remark>[] {
  return [
    { header: 'POLICY', cell: ({ policy }) => policy },
    ...(remarks.some(({ place }) => place !== '') ? [{ header: 'PLACE', cell: ({ place }: Remark) => place }] : []),
    { header: 'ACCEPTED', cell: ({ accepted }) => accepted },
    { header: 'EFFECT', cell: ({ effect }) => effect },
    { header: 'MESSAGE', cell: ({ message }) => message },
  ];
}

function tableText(results: readonly CheckResult[], providers: number): string {
  const remarks = results.flatMap(remarksOf);
  return `${remarks.length === 0 ? '' : `${table(columnsOf(remarks), remarks)}\n\n`}${summaryText(results, providers)}\n`;
}

function markdownText(results: readonly CheckResult[], providers: number): string {
  const remarks = results.flatMap(remarksOf);
  const rows = markdownTable(columnsOf(remarks), remarks);
  return `${rows === '' ? '' : `${rows}\n`}${summaryText(results, providers)}\n`;
}

function summaryText(results: readonly CheckResult[], providers: number): string {
  const verdicts = results.flatMap((one) => one.verdicts);
  const count = (status: string): number => verdicts.filter(({ accepted }) => accepted === status).length;
  const warned = verdicts.filter(({ accepted, warnings }) => accepted === 'True' && warnings.length > 0).length;
  const refused = results.filter(({ refusals }) => refusals.length > 0).length;
  const checked = `${countOf(results.length, 'policy', 'policies')}, ${countOf(providers, 'provider', 'providers')}`;
  return [
    `${checked}: ${count('True')} accepted${warned === 0 ? '' : ` (${warned} with warnings)`}`,
    `${count('False')} not`,
    `${count('Unknown')} unknown`,
    ...(refused === 0 ? [] : [`${countOf(refused, 'policy', 'policies')} refused by API servers`]),
  ].join(', ');
}

function countOf(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
