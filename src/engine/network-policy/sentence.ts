// What a provider does with the uses of a feature, as a sentence after its name.
import { shortened } from '../../values/index.ts';
import { isMeant, usesText } from './feature.ts';
import type { Effect, Feature, UsePattern } from './feature.ts';
import { portText } from './feature-uses.ts';
import type { FeatureUse } from './feature-uses.ts';
import { defectText } from './support.ts';
import type { Support } from './support.ts';

/** Uses that a sentence names. */
const MAX_NAMED = 2;
/** Characters of a name or a path from outside. */
const MAX_NAME = 80;

/** The feature as the subject or object of a sentence. */
export const FEATURE_NOUNS: Readonly<Record<Feature, string>> = {
  Enforcement: 'NetworkPolicies',
  Ingress: 'rules for ingress',
  Egress: 'rules for egress',
  NamespaceSelector: 'namespaceSelector',
  NamespaceAndPodSelector: 'namespaceSelector and podSelector in one peer',
  PortWithoutNumber: 'ports without a number',
  NamedPort: 'named ports',
  EndPort: 'endPort',
  PortCount: 'so many ports',
  SCTP: 'SCTP',
  IPBlock: 'ipBlock',
  IPBlockExcept: 'except in an ipBlock',
  IPBlockOfPods: 'ipBlock for IPs of pods',
  IPBlockOfNodes: 'ipBlock for IPs of nodes',
  IPv6: 'IPv6',
  HostNetworkPods: 'pods in the network of their host',
};

/** The predicate of a sentence whose subject is the provider. */
export function unsupportedText(feature: Feature, support: Support, uses: readonly FeatureUse[]): string {
  const { effect = 'FailClosed', reason, because, defect } = support;
  if (defect !== undefined) {
    return because === undefined ? defectText(defect) : `${defectText(defect)}; ${because}`;
  }
  if (reason === 'ProviderDisabled') {
    return `enforces no NetworkPolicy: ${because ?? 'a setting turns it off'}`;
  }
  if (feature === 'Enforcement' && effect === 'PolicyDropped') {
    return droppedText(usesText(meantPatterns(support, uses)));
  }
  const text = EXCEPTIONS[`${feature}/${effect}`]?.(uses) ?? effectText(feature, effect, uses);
  return because === undefined ? text : `${text}: ${because}`;
}

/** The predicate where a setting decides that is not known: what happens by default, and what the setting would have to be. */
export function byDefaultText(
  feature: Feature,
  { because = '', ...support }: Support,
  uses: readonly FeatureUse[],
): string {
  return `${unsupportedText(feature, support, uses)}, ${because.replace(/^only if/, 'unless')}`;
}

/** The whole sentence, where what is known does not suffice. */
export function unknownText(
  feature: Feature,
  { because = 'nobody has examined it', effect = 'FailClosed', reason }: Support,
  uses: readonly FeatureUse[],
  provider: string,
): string {
  const subject = subjects(feature, uses);
  const about = subject === FEATURE_NOUNS[feature] ? '' : ` (${subject})`;
  const supports =
    feature === 'Enforcement' ? 'enforces NetworkPolicies' : `supports ${FEATURE_NOUNS[feature]}${about}`;
  switch (reason) {
    case 'SettingUnknown':
      return `${provider} ${supports} ${because}; otherwise it ${CONSEQUENCES[effect]}`;
    case 'DependsOnCluster':
      return `${provider} ${supports}, but ${because}: then it ${CONSEQUENCES[effect]}`;
    default:
      return `it is unknown whether ${provider} ${supports}: ${because}`;
  }
}

const CONSEQUENCES: Readonly<Record<Effect, string>> = {
  FailClosed: 'allows less than written',
  RuleDropped: 'ignores the rule',
  FailOpen: 'allows more than written',
  PolicyDropped: 'ignores the whole policy',
  Inert: 'enforces nothing',
};

type Sentence = (uses: readonly FeatureUse[]) => string;

/** Where more can be said than the effect. */
const EXCEPTIONS: Readonly<Record<string, Sentence>> = {
  'Enforcement/Inert': () => 'enforces no NetworkPolicy',
  'Ingress/FailOpen': () => 'does not restrict ingress',
  'Egress/FailOpen': () => 'does not restrict egress',
  'EndPort/FailClosed': (uses) => `allows only ${listed(uses, firstPortText)}`,
  'NamedPort/FailOpen': (uses) =>
    `allows ${listed(uses, (use) => `all ${use.port?.protocol ?? 'TCP'} ports, not only ${named(use)}`)}`,
  'NamespaceAndPodSelector/FailOpen': () => 'allows more pods than namespaceSelector and podSelector select together',
  'IPBlock/FailOpen': (uses) => `allows everything, not only ${listed(uses, named)}`,
  'IPBlockExcept/FailOpen': (uses) =>
    `allows ${listed(uses, ({ block, path }) => shortened(block ?? path, MAX_NAME))}, which except excludes`,
  'IPBlockExcept/FailClosed': (uses) => `does not allow all of an ipBlock with ${listed(uses, named)}`,
  'IPBlockOfPods/FailClosed': (uses) =>
    `does not match IPs of pods with an ipBlock: pods in ${listed(uses, named)} are not allowed`,
  'IPBlockOfNodes/FailClosed': (uses) =>
    `does not match IPs of nodes with an ipBlock: nodes in ${listed(uses, named)} are not allowed`,
  'HostNetworkPods/Inert': () => 'does not isolate pods in the network of their host',
};

/** Of the uses that the provider does not support, those that a policy has. */
function meantPatterns({ row }: Support, uses: readonly FeatureUse[]): readonly UsePattern[] {
  return (row?.when ?? []).filter((pattern) => uses.some(({ traits }) => isMeant([pattern], traits)));
}

function droppedText(cause: string): string {
  return `ignores the whole policy because of ${cause}: its pods are open unless another policy isolates them`;
}

function effectText(feature: Feature, effect: Effect, uses: readonly FeatureUse[]): string {
  const subject = subjects(feature, uses);
  switch (effect) {
    case 'FailClosed':
      return `does not allow ${subject}`;
    case 'FailOpen':
      return `allows more than ${subject}`;
    case 'RuleDropped':
      return `ignores ${rulesText(uses)} because of ${subject}`;
    case 'PolicyDropped':
      return droppedText(subject);
    case 'Inert':
      return `does nothing for ${subject}`;
    default:
      return effect satisfies never;
  }
}

function firstPortText({ port }: FeatureUse): string {
  return port === undefined ? 'the first port' : `port ${port.port}, not ${port.port} to ${port.endPort}`;
}

function rulesText(uses: readonly FeatureUse[]): string {
  const rules = [...new Set(uses.map(({ rule, path }) => rule ?? path))];
  return listed(rules, (rule) => rule);
}

/** What of the policy the uses are about; the feature itself when they name nothing. */
function subjects(feature: Feature, uses: readonly FeatureUse[]): string {
  const isNamed = uses.some(({ port, block }) => port !== undefined || block !== undefined);
  return isNamed ? listed(uses, named) : FEATURE_NOUNS[feature];
}

function named({ feature, port, block, path }: FeatureUse): string {
  const text = port === undefined ? (block ?? path) : portText(port);
  return shortened(feature === 'IPBlockExcept' && port === undefined ? `the exception ${text}` : text, MAX_NAME);
}

/** The first two different ones, and the number of the others. */
function listed<T>(items: readonly T[], textOf: (item: T) => string): string {
  const texts = [...new Set(items.map(textOf))];
  const shown = texts.slice(0, MAX_NAMED).map((text) => shortened(text, MAX_NAME * 2));
  const more = texts.length - shown.length;
  return more === 0 ? shown.join(' and ') : `${shown.join(', ')} and ${more} more`;
}
