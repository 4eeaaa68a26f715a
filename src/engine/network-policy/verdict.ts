import type { ConditionStatus } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { worseEffect } from './feature.ts';
import type { Effect, Feature } from './feature.ts';
import type { Evidence, PortLimit, SupportRow } from './catalogue.ts';
import { featureUses, portsByPeer } from './feature-uses.ts';
import type { ClusterFacts, FeatureUse } from './feature-uses.ts';
import type { NetworkPolicy } from './network-policy.ts';
import { unknownText, unsupportedText } from './sentence.ts';
import { SEVERITY, worseSupport } from './support.ts';
import type { ProviderSupport, Support, SupportReason } from './support.ts';

/** The condition of what this version cannot read: fields of later versions of the API, values of no known type. */
export const UNREAD_FIELDS = 'UnreadFields';

/** What a provider does with one feature that a policy uses: a condition, for people and programs. */
export interface FeatureVerdict {
  readonly type: Feature | typeof UNREAD_FIELDS;
  readonly status: ConditionStatus;
  readonly reason: SupportReason;
  readonly effect?: Effect;
  /** A sentence. */
  readonly message: string;
  /** Where the policy uses it; of many, the first ones. */
  readonly paths: readonly string[];
  readonly evidence?: Evidence;
  readonly sources?: readonly string[];
}

/** What a provider does with a policy. */
export interface ProviderVerdict {
  readonly provider: string;
  readonly version?: string;
  readonly controllerName: string;
  readonly accepted: ConditionStatus;
  readonly reason: SupportReason;
  /** The most dangerous effect of what is not supported. */
  readonly effect?: Effect;
  /** A sentence for each feature that is not certainly supported, or one that all are. */
  readonly message: string;
  readonly features: readonly FeatureVerdict[];
  readonly warnings: readonly ProviderWarning[];
}

/** What depends on the cluster, or is good to know, although it is supported. */
export interface ProviderWarning {
  readonly type: Feature;
  readonly message: string;
}

/** Paths of a condition, as in the schema of statuses. */
export const MAX_PATHS = 20;
/** Characters of a message: a kibibyte, far below the limit of conditions, which is 32 KiB. */
export const MAX_MESSAGE = 1024;
/**
 * Peers that a policy map should have room for, while their number is not known: a selector of a namespace matches
 * hundreds of identities in a cluster of medium size.
 */
const EXPECTED_IDENTITIES = 256;

/** The uses of a policy, which all providers share. */
export interface AnalysedPolicy {
  readonly policy: NetworkPolicy;
  readonly facts: ClusterFacts;
  readonly uses: ReadonlyMap<Feature, readonly FeatureUse[]>;
  /** The first paths of each feature. */
  readonly paths: ReadonlyMap<Feature, readonly string[]>;
  readonly limits: readonly PortTotal[];
}

/** The port entries for one peer. */
interface PortTotal {
  readonly path: string;
  readonly peer: string;
  readonly entries: number;
}

export function analysePolicy(policy: NetworkPolicy, facts: ClusterFacts = {}): AnalysedPolicy {
  const uses = Map.groupBy(featureUses(policy, facts), ({ feature }) => feature);
  const limits = [...policy.directions].flatMap(([direction, path]) =>
    [...portsByPeer(policy, direction)].map(([peer, entries]) => ({ path, peer, entries: entries.size })),
  );
  const paths = new Map([...uses].map(([feature, all]) => [feature, all.slice(0, MAX_PATHS).map(({ path }) => path)]));
  return { policy, facts, uses, paths, limits };
}

/** What a provider does with a policy. Accepted only if every part of the policy is known and supported. */
export function judgePolicy(analysed: AnalysedPolicy, support: ProviderSupport): ProviderVerdict {
  const { provider, instance } = support;
  const judged = [...analysed.uses].map(([feature, uses]) => judgeFeature(feature, uses, analysed, support));
  const enforcement = judged.find(({ verdict }) => verdict?.type === 'Enforcement');
  const isInert = enforcement?.verdict?.status === 'False' && enforcement.verdict.effect === 'Inert';
  const limits = isInert ? {} : judgeLimits(analysed, support);
  const features = isInert
    ? [enforcement.verdict]
    : [
        ...judged.flatMap(({ verdict }) =>
          verdict?.type === limits.verdict?.type ? (limits.verdict ?? []) : (verdict ?? []),
        ),
        ...unreadFields(analysed.policy, support),
      ];
  const warnings = isInert ? [] : [...judged, limits].flatMap((one) => one.warnings ?? []);
  const effect = features.reduce<Effect | undefined>(
    (worst, one) => (one.status === 'False' ? worseEffect(worst, one.effect) : worst),
    undefined,
  );
  const worst = worstOf(features);
  return {
    provider: provider.name,
    ...(instance.version === undefined ? {} : { version: instance.version }),
    controllerName: provider.controllerName,
    accepted: worst.status,
    reason: worst.reason,
    ...(effect === undefined ? {} : { effect }),
    message: summary(features, support),
    features,
    warnings,
  };
}

/** The verdict when the catalogue has no such provider, or none was found. */
export function unknownProvider(name: string, version: string | undefined, message: string): ProviderVerdict {
  return {
    provider: name,
    ...(version === undefined ? {} : { version }),
    controllerName: '',
    accepted: 'Unknown',
    reason: 'ProviderNotFound',
    message,
    features: [],
    warnings: [],
  };
}

interface Judged {
  readonly verdict?: FeatureVerdict;
  readonly warnings?: readonly ProviderWarning[];
}

/** The worst of all uses decides; what depends on an unknown cluster only warns. */
function judgeFeature(
  feature: Feature,
  uses: readonly FeatureUse[],
  { paths: allPaths }: AnalysedPolicy,
  support: ProviderSupport,
): Judged {
  const supports = uses.map((use) => support.of(feature, use.traits));
  const worst = supports.reduce<Support | undefined>(
    (one, other) => (one ? worseSupport(one, other) : other),
    undefined,
  );
  if (worst === undefined) {
    return {};
  }
  const isPossible = uses[0]?.isPossible === true;
  if (worst.status === 'True') {
    const paths = allPaths.get(feature) ?? [];
    return isPossible ? {} : judged(feature, worst, 'supported', paths, uses, support);
  }
  const concerned = uses.filter((_, index) => supports[index]?.status === worst.status);
  const message = reasonsText(feature, concerned, support);
  if (isPossible) {
    return worst.status === 'False' ? { warnings: [{ type: feature, message }] } : {};
  }
  const paths = concerned.slice(0, MAX_PATHS).map(({ path }) => path);
  return judged(feature, worst, message, paths, uses, support);
}

/** A sentence for each row and each fault that uses meet. */
function reasonsText(feature: Feature, uses: readonly FeatureUse[], support: ProviderSupport): string {
  const supportOf = ({ traits }: FeatureUse): Support => support.of(feature, traits);
  const groups = Map.groupBy(uses, (use) => supportOf(use).defect);
  const texts = [...groups.values()].flatMap((group) => {
    const one = group.map(supportOf).reduce(worseSupport);
    return featureMessage(feature, one, group, support);
  });
  return texts.join('; ');
}

/** The verdict, with what is to know about the uses that it is about. */
function judged(
  feature: Feature,
  one: Support,
  message: string,
  paths: readonly string[],
  uses: readonly FeatureUse[],
  support: ProviderSupport,
): Judged {
  const verdict = featureVerdict(feature, one, message, paths);
  const cautions = new Set(uses.flatMap(({ traits }) => support.cautions(feature, traits)));
  return { verdict, warnings: [...cautions].map((text) => ({ type: feature, message: shortened(text, MAX_MESSAGE) })) };
}

function featureVerdict(
  type: FeatureVerdict['type'],
  { status, reason, effect, row, defect }: Support,
  message: string,
  paths: readonly string[],
): FeatureVerdict {
  const source = defect ?? row;
  return {
    type,
    status,
    reason,
    ...(effect === undefined ? {} : { effect }),
    message: shortened(message, MAX_MESSAGE),
    paths,
    ...(source === undefined ? {} : { evidence: source.evidence, sources: source.sources }),
  };
}

function featureMessage(
  feature: Feature,
  one: Support,
  uses: readonly FeatureUse[],
  { label }: ProviderSupport,
): string {
  switch (one.status) {
    case 'True':
      return 'supported';
    case 'False':
      return `${label} ${unsupportedText(feature, one, uses)}`;
    case 'Unknown':
      return unknownText(feature, one, uses, label);
    default:
      return one.status satisfies never;
  }
}

/** The limit of port entries: certainly exceeded by one policy, or warned about with the figures. */
function judgeLimits({ limits, facts }: AnalysedPolicy, support: ProviderSupport): Judged {
  const row = support.row('PortCount');
  if ('status' in row || row.limit === undefined) {
    return {};
  }
  const { per, setting } = row.limit;
  const configured = Number(setting === undefined ? undefined : support.setting(setting));
  const entries = Number.isSafeInteger(configured) && configured > 0 ? configured : row.limit.entries;
  const limit: PortLimit = { ...row.limit, entries };
  if (per === 'Endpoint') {
    return fullMap(limits, limit, facts, support);
  }
  const tooMany = limits.filter((total) => total.entries > entries);
  return tooMany.length === 0 ? {} : exceeded(tooMany, limit, row, support);
}

function exceeded(totals: readonly PortTotal[], limit: PortLimit, row: SupportRow, { label }: ProviderSupport): Judged {
  const [first] = totals;
  const more = totals.length === 1 ? '' : `, and of ${totals.length - 1} more`;
  const name = shortened(first?.peer ?? '', MAX_PEER);
  const message = `${label} allows at most ${limit.entries} of the ${first?.entries ?? 0} port entries for ${name}${more}`;
  const support = { status: 'False', reason: 'LimitExceeded', effect: row.effect ?? 'FailClosed', row } as const;
  const paths = [...new Set(totals.map(({ path }) => path))].slice(0, MAX_PATHS);
  return { verdict: featureVerdict('PortCount', support, message, paths) };
}

/** Characters of a peer in a message. */
const MAX_PEER = 120;

/** The map of an endpoint holds every port for every peer identity. */
function fullMap(
  limits: readonly PortTotal[],
  { entries, setting }: PortLimit,
  { identities }: ClusterFacts,
  { label }: ProviderSupport,
): Judged {
  const most = Math.max(0, ...limits.map((total) => total.entries));
  const fits = Math.floor(entries / Math.max(1, most));
  const expected = identities ?? EXPECTED_IDENTITIES;
  if (most * expected < entries) {
    return {};
  }
  const name = setting === undefined ? '' : ` (${setting})`;
  const figures = `${most} port entries fit ${fits} peer identities${identities === undefined ? '' : `, and there are ${identities}`}`;
  return {
    warnings: [{ type: 'PortCount', message: `${label} has ${entries} entries for each pod${name}: ${figures}` }],
  };
}

function unreadFields({ unread }: NetworkPolicy, { label }: ProviderSupport): readonly FeatureVerdict[] {
  const [first] = unread;
  if (first === undefined) {
    return [];
  }
  const more = unread.length === 1 ? '' : `, and ${unread.length - 1} more`;
  const message = `it is unknown what ${label} does with ${first.path}: ${first.message}${more}`;
  const support = { status: 'Unknown', reason: 'NotInCatalogue' } as const;
  return [
    featureVerdict(
      UNREAD_FIELDS,
      support,
      message,
      unread.map(({ path }) => path),
    ),
  ];
}

/** The first of the worst conditions. Settings that turn a provider off come first: they are the first feature. */
function worstOf(features: readonly FeatureVerdict[]): Pick<FeatureVerdict, 'status' | 'reason'> {
  return features.reduce<Pick<FeatureVerdict, 'status' | 'reason'>>(
    (worst, one) => (SEVERITY[one.status] > SEVERITY[worst.status] ? one : worst),
    { status: 'True', reason: 'Accepted' },
  );
}

/** What is not supported, then what is unknown. While enforcement is unknown, that is the only unknown that matters. */
export function unsupportedFeatures(features: readonly FeatureVerdict[]): readonly FeatureVerdict[] {
  const unknown = features.filter(({ status }) => status === 'Unknown');
  const enforcement = unknown.filter(({ type }) => type === 'Enforcement');
  return [...features.filter(({ status }) => status === 'False'), ...(enforcement.length > 0 ? enforcement : unknown)];
}

function summary(features: readonly FeatureVerdict[], { label }: ProviderSupport): string {
  const text = unsupportedFeatures(features)
    .map(({ message }) => message)
    .join('; ');
  return shortened(text === '' ? `${label} does what the policy says` : text, MAX_MESSAGE);
}
