import { shortened } from '../../values/index.ts';
import { isEqual } from '../verdict/json-patch.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import type { Catalogue } from './catalogue.ts';
import { mistakesOf } from './findings.ts';
import { isNetworkPolicy, readNetworkPolicy } from './network-policy.ts';
import type { NetworkPolicySettings } from './settings.ts';
import { ProviderSupport } from './support.ts';
import type { ProviderInstance } from './support.ts';
import { analysePolicy, judgePolicy, severityOf, unknownProvider, unsupportedFeatures } from './verdict.ts';
import type { ProviderVerdict } from './verdict.ts';

export interface NetworkPolicyAnswer {
  readonly accepted: boolean;
  readonly message?: string;
  readonly code?: number;
  readonly warnings: readonly string[];
}

const FORBIDDEN = 403;
/**
 * API servers shorten each warning to 256 characters when all have more than 4096, and drop what is beyond: see
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/filters/warning.go
 */
const MAX_WARNING = 256;
const MAX_WARNINGS_TOTAL = 4096;
const CHECKED_OPERATIONS: readonly unknown[] = ['CREATE', 'UPDATE'];
const NO_PROVIDER =
  'it is unknown whether this NetworkPolicy is enforced: no network provider is known. Let the policy read NetworkPolicyProviders (contextAwareResources), or name providers in the setting "providers"';

/**
 * Checks an admission request for a NetworkPolicy. Providers are those of the settings, else the `detected` ones of the
 * cluster. Never throws.
 */
export function checkNetworkPolicySupport(
  request: unknown,
  { deny, providers, catalogue }: NetworkPolicySettings,
  detected: readonly ProviderInstance[] = [],
): NetworkPolicyAnswer {
  const object = checkedObject(request);
  if (object === undefined) {
    return { accepted: true, warnings: [] };
  }
  const instances = providers ?? detected;
  const policy = readNetworkPolicy(object);
  const analysed = analysePolicy(policy);
  const verdicts = instances
    .map((instance) => verdictOf(instance, catalogue, (support) => judgePolicy(analysed, support)))
    .sort((one, other) => severityOf(other) - severityOf(one));
  const rejecting = deny ? verdicts.filter(({ accepted }) => accepted === 'False') : [];
  if (rejecting.length > 0) {
    const message = rejecting.map((verdict) => verdict.message).join('; ');
    return { accepted: false, message, code: FORBIDDEN, warnings: [] };
  }
  const texts = [
    ...(instances.length === 0 ? [NO_PROVIDER] : []),
    ...verdicts.filter(({ accepted }) => accepted !== 'True').flatMap(messagesOf),
    ...mistakesOf(policy).map(({ message }) => `this NetworkPolicy ${message}`),
    ...verdicts.flatMap(({ warnings }) => warnings.map(({ message }) => message)),
  ];
  return { accepted: true, warnings: withinLimits([...new Set(texts)]) };
}

/** The NetworkPolicy that a request writes; undefined when there is none, or its spec stays as it is. */
function checkedObject(request: unknown): JsonObject | undefined {
  const { operation, object, oldObject, subResource = '' } = isJsonObject(request) ? request : {};
  if (!CHECKED_OPERATIONS.includes(operation) || subResource !== '' || !isNetworkPolicy(object)) {
    return undefined;
  }
  const isUnchanged =
    operation === 'UPDATE' && isJsonObject(oldObject) && isEqual(object['spec'] ?? {}, oldObject['spec'] ?? {});
  return isUnchanged ? undefined : object;
}

function verdictOf(
  instance: ProviderInstance,
  catalogue: Catalogue,
  judge: (support: ProviderSupport) => ProviderVerdict,
): ProviderVerdict {
  const provider = catalogue.find(instance.name);
  return provider === undefined
    ? unknownProvider(
        instance.name,
        instance.version,
        `it is unknown what ${instance.name} does with this NetworkPolicy: the catalogue has no such provider`,
      )
    : judge(new ProviderSupport(provider, instance));
}

/** A warning for each feature, since one for all would be cut off. */
function messagesOf({ features, message }: ProviderVerdict): readonly string[] {
  const shown = unsupportedFeatures(features);
  return shown.length === 0 ? [message] : shown.map((one) => one.message);
}

function withinLimits(texts: readonly string[]): readonly string[] {
  const warnings: string[] = [];
  let total = 0;
  for (const [index, text] of texts.entries()) {
    const warning = shortened(text, MAX_WARNING);
    const left = texts.length - index;
    if (total + warning.length + MAX_WARNING > MAX_WARNINGS_TOTAL && left > 1) {
      return [...warnings, `and ${left} more: portcullis netpol explain shows all`];
    }
    total += warning.length;
    warnings.push(warning);
  }
  return warnings;
}
