export { builtinCatalogue } from './builtin-catalogue.ts';
export { Catalogue } from './catalogue.ts';
export type {
  AgentPattern,
  Defect,
  Detection,
  Evidence,
  Provider,
  ProviderExtension,
  ProviderSetting,
  SupportRow,
  VersionObject,
} from './catalogue.ts';
export { EFFECT_TEXTS, EFFECTS, FEATURE_TEXTS, FEATURE_TRAITS, FEATURES, TRAIT_TEXTS, usesText } from './feature.ts';
export type { Effect, Feature } from './feature.ts';
export { parseBlock } from './cidr.ts';
export { readClusterFacts } from './cluster-facts.ts';
export type { ClusterFacts } from './feature-uses.ts';
export { findingsOf, MISTAKES, mistakesOf } from './findings.ts';
export type { NetworkPolicyFinding, FindingType } from './findings.ts';
export { podFacts, workloadFacts } from './pod-facts.ts';
export type { PodFacts } from './pod-facts.ts';
export { isNetworkPolicy, readNetworkPolicy } from './network-policy.ts';
export type { NetworkPolicy } from './network-policy.ts';
export { compareProviderVersions, leastProviderVersion, parseProviderVersion } from './provider-version.ts';
export { MAX_CATALOGUE_LENGTH, parseCatalogue, readProvider } from './read-catalogue.ts';
export { NetworkPolicySet } from './redundant.ts';
export { FEATURE_NOUNS } from './sentence.ts';
export { isInRange } from './version-range.ts';
export { defectText, ProviderSupport, requirementText, SEVERITY } from './support.ts';
export type { ProviderInstance, SupportReason } from './support.ts';
export {
  analysePolicy,
  judgePolicy,
  MAX_MESSAGE,
  MAX_PATHS,
  severityOf,
  UNREAD_FIELDS,
  unknownProvider,
  unsupportedFeatures,
} from './verdict.ts';
export type { AnalysedPolicy, FeatureVerdict, ProviderVerdict, ProviderWarning } from './verdict.ts';
export { compareVerdicts } from './what-if.ts';
export type { FeatureChange, FeatureState } from './what-if.ts';
export { checkNetworkPolicySupport } from './admission.ts';
export type { NetworkPolicyAnswer } from './admission.ts';
export { readDetectedProviders } from './detected-providers.ts';
export type { DetectedProviders } from './detected-providers.ts';
export { parseNetworkPolicySettings } from './settings.ts';
export type { NetworkPolicySettings, ParsedNetworkPolicySettings } from './settings.ts';
