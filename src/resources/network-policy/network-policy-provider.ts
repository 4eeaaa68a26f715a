import {
  anything,
  choice,
  defaulted,
  entries,
  integer,
  list,
  object,
  optional,
  text,
  time,
} from '../schema-builder.ts';
import { CONDITIONS, OBSERVED_GENERATION, PORTCULLIS_GROUP, UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

const VERSION = { maxLength: 253 } as const;
const SETTINGS = (description: string) =>
  optional(entries(description, text('The value.', { maxLength: 1024 }), { maxProperties: 64 }));

const REPORTER = object('Who reports for the provider: its entries replace what the controller concludes.', {
  controllerName: text('The key of its entries in `status.providers`, as DOMAIN/PATH: `cilium.io/agent`.', {
    minLength: 1,
    maxLength: 507,
  }),
  username: text(
    'The only user who may write these entries, as `kubectl auth whoami` says: `system:serviceaccount:NAMESPACE:NAME`.',
    { minLength: 1, maxLength: 1024 },
  ),
  expireAfterSeconds: defaulted(
    integer('The entries count for so long after `status.renewTime`.', { minimum: 30, maximum: 86_400 }),
    600,
  ),
});

const STATUS_FIELDS = {
  observedGeneration: OBSERVED_GENERATION,
  isPresent: optional({ ...choice('Whether the provider counts.', ['True', 'False']) }),
  version: optional(text('The version that counts.', VERSION)),
  settings: SETTINGS('The settings that count.'),
  renewTime: optional(time('When the reporter last said that it runs. Only it writes this.')),
  isReporting: optional({ ...choice('Whether the entries of the reporter count.', ['True', 'False']) }),
  detected: optional(
    object('What is detected.', {
      versions: list('All versions that run, the lowest first.', text('A version.', VERSION), {
        maxItems: 16,
        'x-kubernetes-list-type': 'atomic',
      }),
      nodes: integer('Nodes with an agent.', { minimum: 0 }),
    }),
  ),
  conditions: optional(CONDITIONS),
} as const;

const networkPolicyProvider = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'NetworkPolicyProvider',
  plural: 'networkpolicyproviders',
  shortNames: ['npp'],
  categories: ['portcullis'],
  scope: 'Cluster',
  description:
    'A network provider of the cluster, with its name in the catalogue. The controller creates one for each provider that it detects; administrators change what is wrong, and declare what cannot be detected.',
  spec: object('What administrators say about the provider.', {
    presence: defaulted(
      choice('Whether the provider runs: as detected, certainly, or not.', ['Detected', 'Present', 'Absent']),
      'Detected',
    ),
    version: optional(text('The version. Default: the lowest that is detected.', VERSION)),
    settings: SETTINGS('Settings by their names in the catalogue, before those that are detected.'),
    capabilities: optional(
      anything('What the provider supports, in the format of the catalogue: it extends or replaces its entries.'),
    ),
    reporter: optional(REPORTER),
  }),
  status: object('What is detected, and what counts.', STATUS_FIELDS, { default: UNSEEN }),
  columns: [
    column('Present', '.status.isPresent'),
    column('Version', '.status.version'),
    column('Nodes', '.status.detected.nodes', { type: 'integer' }),
    column('Reporting', '.status.isReporting'),
    AGE_COLUMN,
    column('Message', '.status.conditions[?(@.type=="Ready")].message', { isWide: true }),
  ],
  example: { metadata: { name: 'cilium' }, spec: { presence: 'Present', version: '1.15.4' } },
} as const satisfies KindDeclaration;

export type NetworkPolicyProvider = ObjectOfKind<typeof networkPolicyProvider>;
export const NETWORK_POLICY_PROVIDERS = ownKind(networkPolicyProvider);
