// `portcullis netpol what-if`: what a change of the network provider fixes and breaks.
import { Command, Option } from 'commander';
import {
  analysePolicy,
  type ClusterFacts,
  compareVerdicts,
  type FeatureChange,
  judgePolicy,
  type NetworkPolicy,
  type ProviderSupport,
} from '../../engine/network-policy/index.ts';
import { usageError } from '../errors.ts';
import { type DataFormat, dataText } from '../output.ts';
import { oneLine, table } from '../table.ts';
import { exitCodeOf, type FailOn, failOnOption } from './fail-on.ts';
import { addNetpolFlags, type NetpolFlags, readPolicies } from './policy-flags.ts';
import { printNotes } from './print-notes.ts';
import { addCatalogueFlag, type CatalogueFlags, PROVIDER_HELP, providersOf, readCatalogue } from './provider-flags.ts';

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
        .option('--provider <spec>', PROVIDER_HELP)
        .option('--to <spec>', 'the provider and version to change to')
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
  portcullis netpol what-if -A --provider cilium@1.15.4 --to calico@3.28

Exit code: 0; 1 if something breaks, with --fail-on unknown also if it may, or after an error; 2 for wrong usage.`,
    )
    .action(whatIf);
}

async function whatIf(flags: WhatIfFlags): Promise<void> {
  if (flags.provider === undefined || flags.to === undefined) {
    throw usageError('expected --provider and --to', 'As in: --provider cilium@1.15.4 --to calico@3.28');
  }
  const [from, to] = providersOf([flags.provider, flags.to], await readCatalogue(flags));
  if (from === undefined || to === undefined) {
    return;
  }
  const { policies, facts } = await readPolicies(flags);
  const changes = policies.flatMap((policy) => changesOf(policy, facts, from, to));
  process.stdout.write(
    flags.output === 'table' ? changesText(changes) : dataText({ changes }, flags.output, { pretty: true }),
  );
  printNotes(policies, [to]);
  process.exitCode = exitCodeOf(
    changes.map(({ change }) => (change === 'Breaks' ? 'False' : change === 'MayBreak' ? 'Unknown' : 'True')),
    flags.failOn,
  );
}

function changesOf(
  policy: NetworkPolicy,
  facts: ClusterFacts,
  from: ProviderSupport,
  to: ProviderSupport,
): readonly PolicyChange[] {
  const analysed = analysePolicy(policy, facts);
  const changes = compareVerdicts(judgePolicy(analysed, from), judgePolicy(analysed, to));
  return changes.map((change) => ({ policy: `${policy.namespace}/${policy.name}`, ...change }));
}

function changesText(changes: readonly PolicyChange[]): string {
  if (changes.length === 0) {
    return 'nothing changes\n';
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
