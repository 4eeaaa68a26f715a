// The status of a NetworkPolicy: a function of the policy, the providers and the catalogue.
import {
  analysePolicy,
  type AnalysedPolicy,
  EFFECTS,
  type NetworkPolicyFinding,
  findingsOf,
  judgePolicy,
  MAX_MESSAGE,
  MAX_PATHS,
  type ProviderVerdict,
  readNetworkPolicy,
  SEVERITY,
  severityOf,
  unknownProvider,
} from '../engine/network-policy/index.ts';
import {
  type Condition,
  type FeatureEntry,
  findCondition,
  isJsonObject,
  type KubernetesObject,
  NETWORK_POLICY_STATUS_MANAGER,
  type ProviderEntry,
  setCondition,
  timeText,
} from '../resources/index.ts';
import { shortened } from '../values/index.ts';
import type { PresentProvider, ClusterProviders } from './cluster-providers.ts';
import { countedEntries } from './reported-entries.ts';
import { ACCEPTED, FAILURE, PARTIAL_FAILURE, type StatusFields } from './status-terms.ts';

type WarningEntry = NonNullable<ProviderEntry['warnings']>[number];
type FindingEntry = NonNullable<StatusFields['findings']>[number];

const NO_PROVIDER = 'ProviderNotFound';
const UNGUARDED_NODES = 'ProviderMissingOnNodes';
/** Entries of `warnings`, as in the schema. */
const MAX_WARNINGS = 16;

/**
 * The status to apply: our entries, and a summary that counts those of reporters, which replace ours.
 * @param previous the status before, for the times of conditions and the entries of reporters
 * @param now milliseconds since 1970
 * @param redundancy that another policy of the namespace allows the same
 * @param analysed the policy, where that has been done already
 */
export function networkPolicyStatusFields(
  policy: KubernetesObject,
  known: ClusterProviders,
  previous: StatusFields | undefined,
  now: number,
  redundancy?: NetworkPolicyFinding,
  analysed = analysePolicy(readNetworkPolicy(isJsonObject(policy) ? policy : {})),
): StatusFields {
  const generation = policy.metadata.generation ?? 0;
  const findings = [...findingsOf(analysed.policy), ...(redundancy === undefined ? [] : [redundancy])];
  const reported = countedEntries(previous, known.reporting, generation);
  const names = new Set(reported.map(({ controllerName }) => controllerName));
  const inferred = known.providers.filter(({ controllerName }) => !names.has(controllerName));
  const entries = inferred.map((present) => {
    const verdict = verdictOf(present, analysed);
    const before = previous?.providers?.find(({ controllerName }) => controllerName === verdict.controllerName);
    return { verdict, entry: providerEntry(present, verdict, known, before, generation, now) };
  });
  const ours = entries.map(({ entry }) => entry);
  const all = [...ours, ...reported];
  const effect = worstEffect(
    entries.map(({ verdict }) => verdict),
    reported,
  );
  return {
    observedGeneration: generation,
    catalogue: known.digest,
    summary: {
      providers: providersText(all),
      ...optionalText('unsupported', featuresText(all.flatMap(unsupportedFeatures))),
      ...optionalText('effect', effect ?? ''),
      ...optionalText('warnings', featuresText(all.flatMap(({ warnings = [] }) => warnings))),
      ...optionalText('findings', findings.map(({ type }) => type).join(', ')),
    },
    providers: ours,
    ...(findings.length === 0 ? {} : { findings: findings.map(findingEntry) }),
    conditions: rollup(all, known.unguardedNodes > 0, previous?.conditions, generation, now),
  };
}

function verdictOf({ instance, support, controllerName }: PresentProvider, analysed: AnalysedPolicy): ProviderVerdict {
  const message = `it is unknown what ${instance.name} does with this NetworkPolicy: the catalogue has no such provider`;
  return support === undefined
    ? { ...unknownProvider(instance.name, instance.version, message), controllerName }
    : judgePolicy(analysed, support);
}

function providerEntry(
  { os }: PresentProvider,
  verdict: ProviderVerdict,
  known: ClusterProviders,
  before: ProviderEntry | undefined,
  generation: number,
  now: number,
): ProviderEntry {
  const { controllerName, provider, version, warnings } = verdict;
  return {
    controllerName,
    name: provider,
    ...(version === undefined ? {} : { version }),
    ...(os === undefined ? {} : { os }),
    reporter: NETWORK_POLICY_STATUS_MANAGER,
    conditions: conditionsOf(verdict, known.unguardedNodes > 0, before?.conditions, generation, now),
    features: verdict.features.map((feature) => {
      const old = before?.features?.find(({ type }) => type === feature.type);
      return featureEntry(feature, old, generation, now);
    }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.slice(0, MAX_WARNINGS).map(warningEntry) }),
  };
}

function warningEntry({ type, message }: ProviderVerdict['warnings'][number]): WarningEntry {
  return { type, message: shortened(message, MAX_MESSAGE) };
}

function findingEntry({ type, message, paths }: NetworkPolicyFinding): FindingEntry {
  return {
    type,
    message: shortened(message, MAX_MESSAGE),
    paths: paths.slice(0, MAX_PATHS).map((path) => shortened(path, MAX_MESSAGE)),
  };
}

function featureEntry(
  { type, status, reason, message, effect, paths, evidence, sources }: ProviderVerdict['features'][number],
  before: FeatureEntry | undefined,
  observedGeneration: number,
  now: number,
): FeatureEntry {
  const [source] = sources ?? [];
  return {
    type,
    status,
    reason,
    message: shortened(message, MAX_MESSAGE),
    observedGeneration,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : timeText(now),
    ...(effect === undefined || status === 'True' ? {} : { effect }),
    ...(paths.length === 0 ? {} : { paths: paths.slice(0, MAX_PATHS).map((path) => shortened(path, MAX_MESSAGE)) }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(source === undefined ? {} : { source: shortened(source, MAX_MESSAGE) }),
  };
}

type State = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

function conditionsOf(
  { accepted, reason, message, effect }: ProviderVerdict,
  hasUnguardedNodes: boolean,
  before: readonly Condition[] | undefined,
  generation: number,
  now: number,
): readonly Condition[] {
  const isWhole = effect === 'Inert' || effect === 'PolicyDropped';
  const failed: readonly State[] =
    accepted === 'False' ? [{ type: isWhole ? FAILURE : PARTIAL_FAILURE, status: 'True', reason, message }] : [];
  const states: readonly State[] = [{ type: ACCEPTED, status: accepted, reason, message }, ...failed];
  return conditions(states, hasUnguardedNodes, before, generation, now);
}

/** Conditions that are absent otherwise replace those before, so that none is left over. */
function conditions(
  states: readonly State[],
  hasUnguardedNodes: boolean,
  before: readonly Condition[] | undefined,
  generation: number,
  now: number,
): readonly Condition[] {
  const isFailed = states.some(({ type }) => type !== ACCEPTED);
  const unguarded: State = {
    type: PARTIAL_FAILURE,
    status: 'True',
    reason: UNGUARDED_NODES,
    message: 'nodes without an agent of a provider do not enforce it: see NetworkPolicyProviders for their number',
  };
  return [...states, ...(hasUnguardedNodes && !isFailed ? [unguarded] : [])].flatMap(({ message, ...state }) => {
    const update = { ...state, message: shortened(message, MAX_MESSAGE), observedGeneration: generation };
    const old = before?.filter(({ type }) => type === state.type);
    return setCondition(old, update, now);
  });
}

/** The worst of all providers: each is responsible for its own nodes. */
function rollup(
  entries: readonly ProviderEntry[],
  hasUnguardedNodes: boolean,
  before: readonly Condition[] | undefined,
  generation: number,
  now: number,
): readonly Condition[] {
  const accepted = entries.flatMap((entry) => findCondition(entry.conditions, ACCEPTED) ?? []);
  const [worst] = [...accepted].sort((one, other) => SEVERITY[other.status] - SEVERITY[one.status]);
  const same = accepted.filter(({ status }) => status === worst?.status);
  const state: State =
    worst === undefined
      ? { type: ACCEPTED, status: 'Unknown', reason: NO_PROVIDER, message: NO_PROVIDER_MESSAGE }
      : {
          type: ACCEPTED,
          status: worst.status,
          reason: worst.reason,
          message: [...new Set(same.map(({ message }) => message))].join('; '),
        };
  const failures = [FAILURE, PARTIAL_FAILURE].flatMap((type) => {
    const found = entries.flatMap((entry) => findCondition(entry.conditions, type) ?? []);
    const [first] = found.filter(({ status }) => status === 'True');
    return first === undefined ? [] : [{ type, status: first.status, reason: first.reason, message: first.message }];
  });
  return conditions([state, ...failures], hasUnguardedNodes, before, generation, now);
}

const NO_PROVIDER_MESSAGE =
  'no network provider was found, so it is unknown whether this NetworkPolicy is enforced: declare one with a NetworkPolicyProvider';

function worstEffect(
  verdicts: readonly ProviderVerdict[],
  reported: readonly ProviderEntry[],
): ProviderVerdict['effect'] {
  const failed = verdicts.filter(({ accepted }) => accepted === 'False');
  const effects = [...failed, ...reported.flatMap(unsupportedFeatures)].flatMap(({ effect }) => effect ?? []);
  return effects.toSorted((one, other) => EFFECTS.indexOf(other) - EFFECTS.indexOf(one))[0];
}

function providersText(entries: readonly ProviderEntry[]): string {
  const texts = entries.map(({ name, controllerName, version }) =>
    [name ?? controllerName, version?.replace(/^v(?=\d)/, '')].filter(Boolean).join(' '),
  );
  return shortened(texts.join(', '), MAX_MESSAGE);
}

function unsupportedFeatures({ features = [] }: ProviderEntry): readonly FeatureEntry[] {
  return features.filter(({ status }) => status === 'False');
}

/** Features as fields of the API write them: `endPort`, `SCTP`. */
function featuresText(features: readonly { readonly type: string }[]): string {
  const types = features.map(({ type }) => type.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase()));
  return shortened([...new Set(types)].join(', '), MAX_MESSAGE);
}

function optionalText<Name extends string>(name: Name, text: string): Partial<Record<Name, string>> {
  return (text === '' ? {} : { [name]: text }) as Partial<Record<Name, string>>;
}

/** The severity of a status, for events: larger is worse; 0 without a status. */
export function statusSeverity(status: StatusFields | undefined): number {
  const accepted = findCondition(status?.conditions, ACCEPTED)?.status ?? 'True';
  const effect = EFFECTS.find((name) => name === status?.summary?.effect);
  return severityOf({ accepted, ...(effect === undefined ? {} : { effect }) });
}
