// `portcullis netpol what-if`: what a change of the network provider fixes and breaks.
import { Command, Option } from 'commander';
import {
  analysePolicy,
  compareVerdicts,
  type ClusterFacts,
  type FeatureChange,
  judgePolicy,
  type NetworkPolicy,
  type ProviderSupport,
  unsupportedFeatures,
} from '../../engine/network-policy/index.ts';
import { EXIT, usageError } from '../errors.ts';
import { type DataFormat, dataText } from '../output.ts';
import { oneLine, table } from '../table.ts';
import { ChosenProviders } from './chosen-providers.ts';
import { exitCodeOf, type FailOn, failOnOption } from './fail-on.ts';
import { addNetpolFlags, type NetpolFlags, readPolicies } from './policy-flags.ts';
import { printNotes, printRefusals } from './print-notes.ts';
import { addCatalogueFlag, type CatalogueFlags, PROVIDER_HELP, readCatalogue } from './provider-flags.ts';

interface WhatIfFlags extends NetpolFlags, CatalogueFlags {
  readonly provider?: string;
  readonly to?: string;
  readonly failOn: FailOn;
  readonly output: 'table' | DataFormat;
}

interface PolicyChange extends FeatureChange {
  readonly policy: string;
}

export function whatIfCommand(): Command {
  return addNetpolFlags(
    addCatalogueFlag(
      new Command('what-if')
        .description('say what an upgrade or a change of the network provider fixes and breaks')
        .option('--provider <spec>', `${PROVIDER_HELP} (default: that of the cluster)`)
        .option('--to <spec>', 'the provider and version to change to; what it does not say stays as it is')
        .addOption(failOnOption().default('unsupported'))
        .addOption(
          new Option('-o, --output <format>', 'output format').choices(['table', 'json', 'yaml']).default('table'),
        ),
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis netpol what-if -f policies/ --provider cilium@1.15.4 --to cilium@1.16.0
  portcullis netpol what-if -A --to cilium@1.20.0
  portcullis netpol what-if -A --to cilium,policy-cidr-match-mode=pods

Exit code: 0; 1 if something breaks, with --fail-on unknown also if it may, if API servers refuse a policy, or after an error;
2 for wrong usage.`,
    )
    .action(whatIf);
}

async function whatIf(flags: WhatIfFlags): Promise<void> {
  if (flags.to === undefined || (flags.provider === undefined && isOffline(flags))) {
    throw usageError('expected --provider and --to', 'As in: --provider cilium@1.15.4 --to calico@3.28');
  }
  const catalogue = await readCatalogue(flags);
  const { policies, facts, providers } = await readPolicies(flags, catalogue);
  const [from, to] = new ChosenProviders(providers).change(flags.provider, flags.to);
  const accepted = policies.filter(({ refusals }) => refusals.length === 0).map(({ policy }) => policy);
  const comparisons = accepted.map((policy) => compare(policy, from, to, facts));
  const changes = comparisons.flatMap((one) => one.changes);
  const uncertain = comparisons.filter(({ isCertain }) => !isCertain).map(({ policy }) => policy);
  process.stdout.write(
    flags.output === 'table'
      ? changesText(changes, uncertain.length, accepted.length)
      : dataText({ changes, uncertain }, flags.output, { pretty: true }),
  );
  printNotes(policies, [to]);
  const statuses = changes.map(({ change }) =>
    change === 'Breaks' ? 'False' : change === 'MayBreak' ? 'Unknown' : 'True',
  );
  process.exitCode = printRefusals(policies) ? EXIT.failed : exitCodeOf(statuses, flags.failOn);
}

/** Whether policies are those of files, so that no provider is detected. */
function isOffline({ filename, diff }: WhatIfFlags): boolean {
  return filename !== undefined || diff !== undefined;
}

interface Comparison {
  /** `namespace/name` */
  readonly policy: string;
  readonly changes: readonly PolicyChange[];
  /** Whether all of the policy is certainly supported afterwards. */
  readonly isCertain: boolean;
}

function compare(source: NetworkPolicy, from: ProviderSupport, to: ProviderSupport, facts: ClusterFacts): Comparison {
  const policy = `${source.namespace}/${source.name}`;
  const analysed = analysePolicy(source, facts);
  const after = judgePolicy(analysed, to);
  return {
    policy,
    changes: compareVerdicts(judgePolicy(analysed, from), after).map((change) => ({ policy, ...change })),
    isCertain: unsupportedFeatures(after.features).length + after.warnings.length === 0,
  };
}

/** @param uncertain of how many policies something is not certainly supported: it stays so where nothing changes */
function changesText(changes: readonly PolicyChange[], uncertain: number, total: number): string {
  if (changes.length === 0) {
    const rest = `; before and after, ${uncertain} of ${total} policies are not certainly supported: see portcullis netpol check`;
    return `nothing changes${uncertain === 0 ? '' : rest}\n`;
  }
  const columns = [
    { header: 'POLICY', cell: ({ policy }: PolicyChange) => oneLine(policy) },
    { header: 'CHANGE', cell: ({ change }: PolicyChange) => change },
    { header: 'FEATURE', cell: ({ type }: PolicyChange) => type },
    { header: 'MESSAGE', cell: messageOf },
  ];
  return `${table(columns, changes)}\n`;
}

/** What no longer happens, or what happens then. */
function messageOf({ change, before, after }: PolicyChange): string {
  return oneLine(change === 'Fixes' ? `no longer: ${before.message}` : after.message);
}
