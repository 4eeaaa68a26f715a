import type { ConditionStatus } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { EFFECTS, worseEffect } from './feature.ts';
import type { Effect, Feature } from './feature.ts';
import type { Evidence, PortLimit, SupportRow } from './catalogue.ts';
import { featureUses } from './feature-uses.ts';
import type { ClusterFacts, FeatureUse } from './feature-uses.ts';
import type { NetworkPolicy } from './network-policy.ts';
import { portTotals } from './port-totals.ts';
import type { PortTotal } from './port-totals.ts';
import { byDefaultText, unknownText, unsupportedText } from './sentence.ts';
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
  /** The provider and its version, for people. */
  readonly label: string;
  readonly controllerName: string;
  readonly accepted: ConditionStatus;
  readonly reason: SupportReason;
  /** The most dangerous effect of what is not supported. */
  readonly effect?: Effect;
  /** A sentence for each feature that is not certainly supported; else the warnings; else one that all are supported. */
  readonly message: string;
  readonly features: readonly FeatureVerdict[];
  readonly warnings: readonly ProviderWarning[];
}

/** What depends on the cluster, or is good to know, although it is supported. */
export interface ProviderWarning {
  readonly type: Feature;
  readonly message: string;
  /** Where the policy uses it; of many, the first ones. */
  readonly paths: readonly string[];
  /**
   * What the verdict would be if the policy certainly used it, with the defaults of settings that are not known. `True`: it is
   * supported, with a caution.
   */
  readonly status: ConditionStatus;
  readonly effect?: Effect;
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
  readonly limits: readonly PortTotal[];
}

export function analysePolicy(policy: NetworkPolicy, facts: ClusterFacts = {}): AnalysedPolicy {
  const uses = Map.groupBy(featureUses(policy, facts), ({ feature }) => feature);
  return { policy, facts, uses, limits: portTotals(policy) };
}

/** What a provider does with a policy. Accepted only if every part of the policy is known and supported. */
export function judgePolicy(analysed: AnalysedPolicy, support: ProviderSupport): ProviderVerdict {
  const { provider, instance } = support;
  const judged = [...analysed.uses].map(([feature, uses]) => judgeFeature(feature, uses, support));
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
  // While enforcement is unknown, that is the only unknown that matters.
  const isWorthWarning = ({ status }: ProviderWarning): boolean =>
    !isInert && (enforcement?.verdict?.status === 'True' || status !== 'Unknown');
  const warnings = [...judged, limits].flatMap((one) => one.warnings ?? []).filter(isWorthWarning);
  const effect = features.reduce<Effect | undefined>(
    (worst, one) => (one.status === 'False' ? worseEffect(worst, one.effect) : worst),
    undefined,
  );
  const worst = worstOf(features);
  return {
    provider: provider.name,
    ...(instance.version === undefined ? {} : { version: instance.version }),
    label: support.label,
    controllerName: provider.controllerName,
    accepted: worst.status,
    reason: worst.reason,
    ...(effect === undefined ? {} : { effect }),
    message: summary(features, warnings, support),
    features,
    warnings,
  };
}

/** Larger is worse: the status decides, then the effect. */
export function severityOf({ accepted, effect }: Pick<ProviderVerdict, 'accepted' | 'effect'>): number {
  return SEVERITY[accepted] + (accepted === 'False' && effect !== undefined ? EFFECTS.indexOf(effect) + 1 : 0);
}

/** The verdict when the catalogue has no such provider, or none was found. */
export function unknownProvider(name: string, version: string | undefined, message: string): ProviderVerdict {
  return {
    provider: name,
    ...(version === undefined ? {} : { version }),
    label: name,
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

/** What a policy certainly uses has a verdict; what it may use, depending on the cluster, only warns. */
function judgeFeature(feature: Feature, uses: readonly FeatureUse[], support: ProviderSupport): Judged {
  const [certain, possible] = [uses.filter((use) => use.isPossible !== true), uses.filter((use) => use.isPossible)];
  const judged = worstUses(feature, certain, support);
  const warned = worstUses(feature, possible, support);
  return {
    ...(judged === undefined ? {} : { verdict: verdictOf(judged, support) }),
    warnings: [
      ...(warned === undefined || warned.worst.status === 'True' ? [] : [possibleWarning(warned, support)]),
      ...cautions(feature, uses, support),
    ],
  };
}

/** The uses of a feature that are supported worst. */
interface WorstUses {
  readonly feature: Feature;
  readonly worst: Support;
  readonly uses: readonly FeatureUse[];
}

function worstUses(feature: Feature, uses: readonly FeatureUse[], provider: ProviderSupport): WorstUses | undefined {
  const supports = uses.map((use) => provider.of(feature, use.traits));
  if (supports.length === 0) {
    return undefined;
  }
  const worst = supports.reduce(worseSupport);
  return { feature, worst, uses: uses.filter((_, index) => supports[index]?.status === worst.status) };
}

function verdictOf({ feature, worst, uses }: WorstUses, support: ProviderSupport): FeatureVerdict {
  const message = worst.status === 'True' ? 'supported' : reasonsText(feature, uses, support);
  return featureVerdict(feature, worst, message, pathsOf(uses));
}

/** A setting that is not known is taken to have the default that the provider documents, and the text says so. */
function possibleWarning({ feature, worst, uses }: WorstUses, support: ProviderSupport): ProviderWarning {
  const isByDefault = worst.reason === 'SettingUnknown';
  return {
    type: feature,
    message: isByDefault
      ? `${support.label} ${byDefaultText(feature, worst, uses)}`
      : reasonsText(feature, uses, support),
    paths: pathsOf(uses),
    status: isByDefault ? 'False' : worst.status,
    ...(worst.effect === undefined ? {} : { effect: worst.effect }),
  };
}

/** A sentence for each row and each fault that uses meet. */
function reasonsText(feature: Feature, uses: readonly FeatureUse[], support: ProviderSupport): string {
  const supportOf = ({ traits }: FeatureUse): Support => support.of(feature, traits);
  const groups = Map.groupBy(uses, (use) => supportOf(use).defect);
  const texts = [...groups.values()].map((group) => {
    const one = group.map(supportOf).reduce(worseSupport);
    return featureMessage(feature, one, group, support.label);
  });
  return texts.join('; ');
}

/** What to know about uses although they are supported: each text once, with all its uses. */
function cautions(feature: Feature, uses: readonly FeatureUse[], support: ProviderSupport): readonly ProviderWarning[] {
  const byText = Map.groupBy(
    uses.flatMap((use) => support.cautions(feature, use.traits).map((text) => ({ text, use }))),
    ({ text }) => text,
  );
  return [...byText].map(([text, concerned]) => ({
    type: feature,
    message: shortened(text, MAX_MESSAGE),
    paths: pathsOf(concerned.map(({ use }) => use)),
    status: 'True',
  }));
}

function pathsOf(uses: readonly FeatureUse[]): readonly string[] {
  return uses.slice(0, MAX_PATHS).map(({ path }) => path);
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

function featureMessage(feature: Feature, one: Support, uses: readonly FeatureUse[], label: string): string {
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
  const most = limits.reduce((max, total) => Math.max(max, total.entries), 0);
  const fits = Math.floor(entries / Math.max(1, most));
  const expected = identities ?? EXPECTED_IDENTITIES;
  if (most * expected < entries) {
    return {};
  }
  const name = setting === undefined ? '' : ` (${setting})`;
  const figures = `${most} port entries fit ${fits} peer identities${identities === undefined ? '' : `, and there are ${identities}`}`;
  const message = `${label} has ${entries} entries for each pod${name}: ${figures}`;
  const paths = limits.filter((total) => total.entries === most).map(({ path }) => path);
  return { warnings: [{ type: 'PortCount', message, paths: [...new Set(paths)], status: 'Unknown' }] };
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

function summary(
  features: readonly FeatureVerdict[],
  warnings: readonly ProviderWarning[],
  { label }: ProviderSupport,
): string {
  const unsupported = unsupportedFeatures(features);
  if (unsupported.length === 0 && warnings.length === 0) {
    return `${label} does what the policy says`;
  }
  const texts = (unsupported.length === 0 ? warnings : unsupported).map(({ message }) => message).join('; ');
  return shortened(unsupported.length === 0 ? `accepted with a warning: ${texts}` : texts, MAX_MESSAGE);
}
