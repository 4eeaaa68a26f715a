// What network providers do with a NetworkPolicy, from its status: what they do not do of it, and what else to know.
import {
  findCondition,
  type KubernetesObject,
  type NetworkPolicyStatus,
  type ProviderEntry,
} from '../resources/index.ts';
import { commandNameOf } from './command-name.ts';
import type { Asked, Explanation, RootCause } from './explanation.ts';
import type { Read } from './read.ts';

const ACCEPTED = 'Accepted';

export function explainNetworkPolicy(
  policy: KubernetesObject,
  read: Read<NetworkPolicyStatus>,
  { program }: Asked,
): Explanation {
  const object = commandNameOf(policy);
  const { namespace = '', name = '' } = policy.metadata;
  const look = `What the providers do with each part of it: ${program} netpol explain ${name} -n ${namespace}`;
  const status = typeof read === 'object' ? read.status : undefined;
  const accepted = findCondition(status?.conditions, ACCEPTED);
  if (typeof read === 'string' || accepted === undefined) {
    return { object, state: 'Unknown', ...unknownStatus(read, namespace), toDo: [look] };
  }
  const { providers = [], findings = [], observedGeneration = 0 } = status ?? {};
  const isStale = observedGeneration < (policy.metadata.generation ?? 0);
  const current = providers.map((entry) => ofGeneration(entry, observedGeneration));
  const causes = current.flatMap(causesOf);
  const texts = current.flatMap(providerTexts);
  return {
    object,
    state: accepted.status === 'True' ? ACCEPTED : `${ACCEPTED} ${accepted.status} (${accepted.reason})`,
    since: accepted.lastTransitionTime,
    because: [
      ...(isStale ? ['The status is about an older spec of the NetworkPolicy.'] : []),
      ...(texts.some((text) => text.includes(accepted.message)) || providers.some(hasWarningsOf(accepted.message))
        ? []
        : [accepted.message]),
      ...texts,
      ...findings.map(({ message }) => message),
    ],
    ...(causes.length === 0 ? {} : { rootCauses: causes }),
    ...(accepted.status === 'True' && causes.length === 0 ? {} : { evidence: status?.conditions ?? [] }),
    toDo: accepted.status === 'True' && causes.length === 0 ? [] : [look],
  };
}

function unknownStatus(read: Read<NetworkPolicyStatus>, namespace: string): Pick<Explanation, 'because' | 'unread'> {
  return read === 'unreadable'
    ? {
        because: ['What the network providers do with it is not known.'],
        unread: [`You may not read NetworkPolicyStatuses in namespace ${namespace}.`],
      }
    : { because: ['No controller has written a NetworkPolicyStatus for it, so what the providers do is not known.'] };
}

/** The entry without what a provider reported of another spec. */
function ofGeneration(entry: ProviderEntry, generation: number): ProviderEntry {
  const features = (entry.features ?? []).filter(
    ({ observedGeneration = generation }) => observedGeneration === generation,
  );
  return { ...entry, features };
}

/** Features that a provider does not support, or of which it is not known. */
function missingFeatures({ features = [] }: ProviderEntry): NonNullable<ProviderEntry['features']> {
  return features.filter(({ status }) => status !== 'True');
}

function providerTexts(provider: ProviderEntry): readonly string[] {
  const name = providerName(provider);
  return [
    ...missingFeatures(provider).map(
      ({ type, status, message, paths = [], effect }) =>
        `${name}: ${type} is ${status === 'False' ? 'not supported' : 'not known to be supported'}: ${message}${
          effect === undefined ? '' : ` (${effect})`
        }${paths.length === 0 ? '' : `, at ${paths.join(', ')}`}`,
    ),
    ...(provider.warnings ?? []).map(({ message }) => `${name}: ${message}`),
  ];
}

/** Whether a message is that of warnings, which are texts of their own. */
function hasWarningsOf(text: string): (provider: ProviderEntry) => boolean {
  return ({ warnings = [] }) => warnings.some(({ message }) => text.includes(message));
}

function causesOf(provider: ProviderEntry): readonly RootCause[] {
  return missingFeatures(provider).map(({ reason, message, lastTransitionTime }) => ({
    reason,
    message: `${providerName(provider)}: ${message}`,
    since: lastTransitionTime,
  }));
}

function providerName({ name, controllerName, version }: ProviderEntry): string {
  return `${name ?? controllerName}${version === undefined ? '' : `@${version}`}`;
}
