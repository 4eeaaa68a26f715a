import { choice, integer, list, listByKey, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';
import {
  CONDITION,
  CONDITIONS,
  OBSERVED_GENERATION,
  PORTCULLIS_GROUP,
  UNSEEN,
} from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

/** The field manager of the controller, which its entries name as their reporter. Those of providers have another one. */
export const NETWORK_POLICY_STATUS_MANAGER = 'portcullis-network-policy';

/** Providers of a cluster: one for each node pool and migration, with room for entries of the providers themselves. */
const MAX_PROVIDER_ENTRIES = 16;
/** More than the features that the catalogue has. */
const MAX_FEATURE_ENTRIES = 32;

const FEATURE_ENTRY = object('A feature that the policy uses: a condition with details.', {
  type: text('The feature, such as `EndPort`.', { maxLength: 316 }),
  status: choice('Whether the provider supports it.', ['True', 'False', 'Unknown']),
  reason: text('The reason, in CamelCase for programs.', { maxLength: 1024 }),
  message: text('The reason, for users.', { maxLength: 32_768 }),
  observedGeneration: optional(integer('The generation of the NetworkPolicy.', { format: 'int64', minimum: 0 })),
  lastTransitionTime: time('When the status last changed.'),
  effect: optional(
    choice('What happens where it is not supported.', [
      'FailClosed',
      'RuleDropped',
      'FailOpen',
      'PolicyDropped',
      'Inert',
    ]),
  ),
  paths: optional(
    list('Where the policy uses it; of many, the first.', text('A path.', { maxLength: 1024 }), {
      maxItems: 20,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
  evidence: optional(
    text('What the verdict is based on: `Code`, `Documentation`, `Issue`, `Inferred`.', { maxLength: 64 }),
  ),
  source: optional(text('A URL that shows it.', { maxLength: 1024 })),
});

/** Twice the types that there are. */
const MAX_FINDING_ENTRIES = 14;
/** One for each feature, and the limit of ports. */
const MAX_WARNING_ENTRIES = 16;

const FINDING_ENTRY = object('Something to know about the policy.', {
  type: text('The type, such as `AllowsNothing`.', { maxLength: 316 }),
  message: text('A sentence.', { maxLength: 1024 }),
  paths: optional(
    list('Where; of many, the first.', text('A path.', { maxLength: 1024 }), {
      maxItems: 20,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
});

const WARNING_ENTRY = object('What depends on the cluster.', {
  type: text('The feature, such as `PortCount`.', { maxLength: 316 }),
  message: text('A sentence, with the figures.', { maxLength: 1024 }),
});

const PROVIDER_ENTRY = object('What one provider does with the policy.', {
  controllerName: text('The provider, as DOMAIN/PATH: `cilium.io/agent`.', { minLength: 1, maxLength: 507 }),
  name: optional(text('The name of the provider in the catalogue.', { maxLength: 253 })),
  version: optional(text('The lowest version that runs.', { maxLength: 253 })),
  os: optional(choice('The operating system of its nodes, if it is for one only.', ['linux', 'windows'])),
  reporter: optional(
    text(`Who writes the entry: \`${NETWORK_POLICY_STATUS_MANAGER}\`, or a name of the provider.`, { maxLength: 128 }),
  ),
  conditions: optional(
    listByKey('`Accepted`, and `PartialFailure` or `Failure` while True.', ['type'], CONDITION, { maxItems: 8 }),
  ),
  features: optional(
    listByKey('The features that the policy uses.', ['type'], FEATURE_ENTRY, { maxItems: MAX_FEATURE_ENTRIES }),
  ),
  warnings: optional(
    list('What depends on the cluster, such as limits.', WARNING_ENTRY, {
      maxItems: MAX_WARNING_ENTRIES,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
});

const STATUS_FIELDS = {
  observedGeneration: OBSERVED_GENERATION,
  catalogue: optional(text('The digest of the catalogue.', { maxLength: 128 })),
  summary: optional(
    object('Texts for the columns of `kubectl get`.', {
      providers: text('Providers and versions.', { maxLength: 1024 }),
      unsupported: optional(text('Features that are not supported.', { maxLength: 1024 })),
      effect: optional(text('The most dangerous effect.', { maxLength: 64 })),
      warnings: optional(text('Features with a warning.', { maxLength: 1024 })),
      findings: optional(text('The types of the findings.', { maxLength: 1024 })),
    }),
  ),
  providers: optional(
    listByKey('One entry for each provider.', ['controllerName'], PROVIDER_ENTRY, { maxItems: MAX_PROVIDER_ENTRIES }),
  ),
  findings: optional(
    list('What to know about the policy, whatever the provider.', FINDING_ENTRY, {
      maxItems: MAX_FINDING_ENTRIES,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
  conditions: optional(CONDITIONS),
} as const;

const networkPolicyStatus = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'NetworkPolicyStatus',
  plural: 'networkpolicystatuses',
  shortNames: ['npst'],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'What the network providers do with the NetworkPolicy of the same name, which owns it. Written by the controller; a provider writes the entry of the `controllerName` that its NetworkPolicyProvider gives to it.',
  spec: object('Empty: the NetworkPolicy has the specification.', {}),
  status: object('What the providers do.', STATUS_FIELDS, { default: UNSEEN }),
  columns: [
    column('Providers', '.status.summary.providers'),
    column('Accepted', '.status.conditions[?(@.type=="Accepted")].status'),
    column('Reason', '.status.conditions[?(@.type=="Accepted")].reason'),
    column('Unsupported', '.status.summary.unsupported'),
    column('Effect', '.status.summary.effect'),
    column('Warnings', '.status.summary.warnings'),
    AGE_COLUMN,
    column('Message', '.status.conditions[?(@.type=="Accepted")].message', { isWide: true }),
    column('Findings', '.status.summary.findings', { isWide: true }),
    column('Observed-Generation', '.status.observedGeneration', { type: 'integer', isWide: true }),
    column('Catalogue', '.status.catalogue', { isWide: true }),
  ],
  example: { metadata: { name: 'myegress', namespace: 'shop' }, spec: {} },
} as const satisfies KindDeclaration;

export type NetworkPolicyStatus = ObjectOfKind<typeof networkPolicyStatus>;
export type ProviderEntry = Infer<typeof PROVIDER_ENTRY>;
export type FeatureEntry = Infer<typeof FEATURE_ENTRY>;
export const NETWORK_POLICY_STATUSES = ownKind(networkPolicyStatus);
