// `portcullis netpol explain`: what a provider does with each part of NetworkPolicies, and how that is known.
import { Command, Option } from 'commander';
import { styled } from '../../values/index.ts';
import {
  analysePolicy,
  FEATURE_TEXTS,
  type FeatureVerdict,
  type NetworkPolicyFinding,
  findingsOf,
  judgePolicy,
  type NetworkPolicy,
  NetworkPolicySet,
  type ProviderSupport,
  type ProviderVerdict,
  UNREAD_FIELDS,
} from '../../engine/network-policy/index.ts';
import { CliError, EXIT, usageError } from '../errors.ts';
import { type DataFormat, dataText } from '../output.ts';
import { oneLine } from '../table.ts';
import { ChosenProviders } from './chosen-providers.ts';
import { addNetpolFlags, type NetpolFlags, type PolicyInput, type InputPolicy, readPolicies } from './policy-flags.ts';
import { printNotes, printRefusals } from './print-notes.ts';
import { addCatalogueFlag, type CatalogueFlags, PROVIDER_HELP, readCatalogue } from './provider-flags.ts';

interface ExplainFlags extends NetpolFlags, CatalogueFlags {
  readonly provider?: readonly string[];
  readonly output: 'text' | DataFormat;
}

interface Explanation {
  readonly policy: string;
  readonly findings: readonly NetworkPolicyFinding[];
  readonly verdicts: readonly ProviderVerdict[];
}

export function explainCommand(): Command {
  return addNetpolFlags(
    addCatalogueFlag(
      new Command('explain')
        .description('explain what network providers do with each part of NetworkPolicies')
        .argument('[name...]', 'names of policies (default: all)')
        .option('--provider <spec...>', `${PROVIDER_HELP} (default: those of the cluster)`)
        .addOption(
          new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'),
        ),
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis netpol explain -f policy.yaml --provider cilium@1.15.4 --provider calico@3.28
  portcullis netpol explain metrics -n shop

Exit code: 0; 1 if API servers refuse a policy, or after an error; 2 for wrong usage.`,
    )
    .action(explain);
}

async function explain(names: readonly string[], flags: ExplainFlags): Promise<void> {
  const catalogue = await readCatalogue(flags);
  const input = await readPolicies(flags, catalogue);
  const providers = explainingProviders(new ChosenProviders(input.providers), flags);
  const chosen = chosenPolicies(names, input.policies);
  const accepted = chosen.filter(({ refusals }) => refusals.length === 0);
  const set = new NetworkPolicySet(input.policies.map(({ policy }) => policy));
  const explanations = accepted.map(({ policy }) => explanationOf(policy, providers, set, input));
  process.stdout.write(
    flags.output === 'text'
      ? explanations.map(explanationText).join('\n')
      : dataText(explanations, flags.output, { pretty: true }),
  );
  printNotes(chosen, providers);
  if (printRefusals(chosen)) {
    process.exitCode = EXIT.failed;
  }
}

/** @throws CliError when none is known */
function explainingProviders(chosen: ChosenProviders, { provider }: ExplainFlags): readonly ProviderSupport[] {
  const providers = provider === undefined ? chosen.detected : chosen.named(provider);
  if (providers === undefined) {
    throw usageError('expected at least one provider', 'Name it, as in: --provider cilium@1.15.4');
  }
  return providers;
}

/** @throws CliError when there is none of a name */
function chosenPolicies(names: readonly string[], policies: readonly InputPolicy[]): readonly InputPolicy[] {
  const missing = names.filter((name) => !policies.some(({ policy }) => policy.name === name));
  if (missing.length > 0) {
    throw new CliError(`there is no NetworkPolicy ${missing.map((name) => oneLine(name, 80)).join(', ')}`);
  }
  return policies.filter(({ policy }) => names.length === 0 || names.includes(policy.name));
}

function explanationOf(
  policy: NetworkPolicy,
  providers: readonly ProviderSupport[],
  set: NetworkPolicySet,
  { pods, facts }: PolicyInput,
): Explanation {
  const analysed = analysePolicy(policy, facts);
  const redundancy = set.redundancy(policy);
  return {
    policy: `${policy.namespace}/${policy.name}`,
    findings: [...findingsOf(policy, pods), ...(redundancy === undefined ? [] : [redundancy])],
    verdicts: providers.map((support) => judgePolicy(analysed, support)),
  };
}

function explanationText({ policy, findings, verdicts }: Explanation): string {
  const lines = [
    styled('bold', oneLine(`NetworkPolicy ${policy}`)),
    ...findings.map(({ message }) => `  ${oneLine(message)}`),
    ...verdicts.flatMap((verdict) => ['', ...verdictLines(verdict)]),
  ];
  return `${lines.join('\n')}\n`;
}

function verdictLines({
  provider,
  version,
  accepted,
  reason,
  features,
  warnings,
  effect,
}: ProviderVerdict): readonly string[] {
  const name = version === undefined ? provider : `${provider}@${version}`;
  const state = [accepted, reason, effect].filter((text) => text !== undefined && text !== 'Accepted').join(', ');
  return [
    oneLine(`${name}: Accepted=${state}`),
    ...features.flatMap(featureLines),
    ...warnings.map(({ message }) => `  warning: ${oneLine(message)}`),
  ];
}

const SYMBOLS = { True: '✔', False: '✘', Unknown: '?' } as const;

/** What is supported on one line; what is not with the reason, the places and the sources. */
function featureLines({ type, status, message, paths, sources = [], evidence }: FeatureVerdict): readonly string[] {
  const text = type === UNREAD_FIELDS ? 'fields that are not known' : FEATURE_TEXTS[type];
  const head = `  ${SYMBOLS[status]} ${type}: ${text}`;
  if (status === 'True') {
    return [head];
  }
  return [
    head,
    `      ${oneLine(message)}`,
    `      at ${oneLine(paths.join(', '), 400)}`,
    ...(evidence === undefined ? [] : [`      evidence: ${[evidence, ...sources].join(' ')}`]),
  ];
}
