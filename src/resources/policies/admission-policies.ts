import {
  anything,
  choice,
  defaulted,
  entries,
  flag,
  integer,
  list,
  nullable,
  object,
  optional,
  text,
} from '../schema-builder.ts';
import type { TypedSchema } from '../schema-builder.ts';
import {
  CONTEXT_AWARE_RESOURCES,
  LABEL_SELECTOR,
  MATCH_CONDITIONS,
  MAX_RULES,
  POLICIES_GROUP,
  POLICY_STATUS,
  RULE,
} from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { NAMESPACED_PARAMETERS, PARAMETERS } from './policy-parameters.ts';

/**
 * Maximum number of members of a group. Each gets at least two seconds, a request at most thirty, and evaluation ends
 * early.
 */
const MAX_GROUP_MEMBERS = 100;

const DEFAULT_TIMEOUT_SECONDS = 10;
const TIMEOUT = { minimum: 2, maximum: 30 } as const;

/** Reserved words of CEL. */
const RESERVED_WORDS = [
  'true false null in as break const continue else for function if import let loop package namespace return var void while',
]
  .join(' ')
  .split(' ');

const MODULE = text(
  'The code of the policy: `registry://`, `https://`, `http://` or `file://` for WebAssembly, `builtin:` for builtin policies.',
  { minLength: 1 },
);

const SETTINGS = nullable(anything('Settings of the policy. The policy validates them.'));

const TIMEOUT_EVAL = integer('How long one evaluation may take, in seconds.', TIMEOUT);

const MESSAGE = 'The message of rejections.';

/** The PolicyServer of policies that name none. */
export const DEFAULT_POLICY_SERVER = 'default';

/** Fields of all four kinds. */
const COMMON = {
  policyServer: defaulted(
    text('The PolicyServer that runs the policy.', {
      minLength: 1,
      maxLength: 63,
      rules: [{ rule: 'self == oldSelf', message: 'the field is immutable' }],
    }),
    DEFAULT_POLICY_SERVER,
  ),
  mode: defaulted(
    choice(
      '`protect` rejects and changes requests, `monitor` only says in the log and in the status what it would reject.',
      ['protect', 'monitor'],
    ),
    'protect',
  ),
  failurePolicy: optional(
    choice(
      'What happens to requests that the policy cannot evaluate: `Fail` (the default) rejects them, `Ignore` admits them.',
      ['Ignore', 'Fail'],
    ),
  ),
  backgroundAudit: defaulted(flag('Whether existing objects are judged as well, by audits.'), true),
  matchPolicy: optional(choice('Whether requests for other versions of a resource match.', ['Exact', 'Equivalent'])),
  matchConditions: optional(MATCH_CONDITIONS),
  objectSelector: optional(LABEL_SELECTOR('Labels of the objects that the policy matches.')),
  podTemplates: optional(
    choice(
      'What happens to workloads whose pods the policy would reject: `Ignore` (the default) does not check them, `Warn` admits them with a warning, `Enforce` rejects them, and a mutating policy changes their pod templates.',
      ['Ignore', 'Warn', 'Enforce'],
    ),
  ),
  sideEffects: optional(text('Side effects of the policy. Default: `None`.')),
  timeoutSeconds: defaulted(
    integer('How long a request waits for the policy, in seconds.', TIMEOUT),
    DEFAULT_TIMEOUT_SECONDS,
  ),
} as const;

const NAMESPACE_SELECTOR = optional(LABEL_SELECTOR('Labels of the namespaces that the policy matches.'));

const INSIDE_OWN_NAMESPACE = optional(flag('Whether the policy also matches the namespace of the controller.'));

/** Rules of cluster-wide policies. */
const CLUSTER_RULES = list('Requests that the policy matches.', RULE, {
  minItems: 1,
  maxItems: MAX_RULES,
  'x-kubernetes-list-type': 'atomic',
});

/** Rules of policies of a namespace, which match only its own resources, and never policy reports. */
const NAMESPACED_RULES = list(
  'Requests that the policy matches. Wildcards for groups and resources are not allowed.',
  {
    ...RULE,
    'x-kubernetes-validations': [
      {
        rule: "!has(self.apiGroups) || !self.apiGroups.exists(group, group == '*')",
        message: 'namespaced policies cannot use wildcards in apiGroups',
        fieldPath: '.apiGroups',
        reason: 'FieldValueForbidden',
      },
      {
        rule: "!self.resources.exists(resource, resource == '*' || resource == '*/*')",
        message: 'namespaced policies cannot use wildcards in resources',
        fieldPath: '.resources',
        reason: 'FieldValueForbidden',
      },
      {
        rule: "!has(self.apiGroups) || !('wgpolicyk8s.io' in self.apiGroups) || !('policyreports' in self.resources)",
        message: 'namespaced policies cannot target policyreports.wgpolicyk8s.io',
        fieldPath: '.resources',
        reason: 'FieldValueForbidden',
      },
      {
        rule: "!has(self.scope) || self.scope != 'Cluster'",
        message: 'namespaced policies are only for namespaced resources',
        fieldPath: '.scope',
        reason: 'FieldValueForbidden',
      },
    ],
  } satisfies typeof RULE,
  { minItems: 1, maxItems: MAX_RULES, 'x-kubernetes-list-type': 'atomic' },
);

const TIMEOUTS_FIT = {
  rule: '!has(self.timeoutEvalSeconds) || self.timeoutEvalSeconds <= self.timeoutSeconds',
  message: 'timeoutEvalSeconds cannot be greater than timeoutSeconds',
  fieldPath: '.timeoutEvalSeconds',
} as const;

/** Fields of single policies. */
const SINGLE = {
  module: MODULE,
  settings: optional(SETTINGS),
  mutating: flag('Whether the policy may change requests.'),
  timeoutEvalSeconds: optional(TIMEOUT_EVAL),
  message: optional(text(MESSAGE)),
} as const;

const GROUP_RULES = [
  {
    rule: "self.policies.all(name, name.matches('^[_a-zA-Z][_a-zA-Z0-9]*$'))",
    message: 'names of members must be identifiers: a letter or _, then letters, digits and _',
    fieldPath: '.policies',
  },
  {
    rule: `self.policies.all(name, !(name in [${RESERVED_WORDS.map((word) => `'${word}'`).join(', ')}]))`,
    message: 'names of members must not be reserved words of CEL',
    fieldPath: '.policies',
  },
  {
    rule: 'self.policies.map(name, has(self.policies[name].timeoutEvalSeconds) ? self.policies[name].timeoutEvalSeconds : 0).sum() <= self.timeoutSeconds',
    message: 'timeoutEvalSeconds of all members together cannot be greater than timeoutSeconds',
    fieldPath: '.policies',
  },
] as const;

const EXPRESSION = text(
  'A CEL expression that is true when the group admits a request: members are functions without arguments, with `&&`, `||`, `!`, `==`, `!=` and parentheses.',
  { minLength: 1 },
);

const MEMBER = {
  module: MODULE,
  settings: optional(SETTINGS),
  timeoutEvalSeconds: optional(TIMEOUT_EVAL),
} as const;

function members<T>(member: TypedSchema<T>): TypedSchema<Readonly<Record<string, T>>> {
  return entries('The members of the group, by their names in the expression.', member, {
    minProperties: 1,
    maxProperties: MAX_GROUP_MEMBERS,
  });
}

const SHOWN_COLUMNS = [
  column('Mode', '.spec.mode'),
  column('Phase', '.status.phase'),
  column('Enforced', '.status.conditions[?(@.type=="Enforced")].status'),
  column('Desired', '.status.desiredRevision', { type: 'integer' }),
  column('Serving', '.status.servingRevision', { type: 'integer' }),
  column('Ready', '.status.readyReplicas', { type: 'integer' }),
  column('Findings', '.status.audit.summary'),
  column('Reason', '.status.reason'),
  AGE_COLUMN,
] as const;

const WIDE_COLUMNS = [
  column('Policy Server', '.spec.policyServer', { isWide: true }),
  column('Mutating', '.spec.mutating', { type: 'boolean', isWide: true }),
  column('BackgroundAudit', '.spec.backgroundAudit', { type: 'boolean', isWide: true }),
  column('Status', '.status.policyStatus', { isWide: true }),
  column('Observed mode', '.status.mode', { isWide: true }),
  column('Would Reject', '.status.monitored.count', { type: 'integer', isWide: true }),
  column('Message', '.status.message', { isWide: true }),
  column('Severity', String.raw`.metadata.annotations['io\.kubewarden\.policy\.severity']`, { isWide: true }),
  column('Category', String.raw`.metadata.annotations['io\.kubewarden\.policy\.category']`, { isWide: true }),
] as const;

const KIND = {
  group: POLICIES_GROUP,
  version: 'v1',
  categories: ['kubewarden', 'portcullis'],
  status: POLICY_STATUS,
  columns: [...SHOWN_COLUMNS, ...WIDE_COLUMNS],
} as const;

const EXAMPLE_RULES = [
  {
    apiGroups: [''],
    apiVersions: ['v1'],
    resources: ['pods', 'pods/ephemeralcontainers'],
    operations: ['CREATE', 'UPDATE'],
  },
];

const clusterAdmissionPolicy = {
  ...KIND,
  kind: 'ClusterAdmissionPolicy',
  plural: 'clusteradmissionpolicies',
  shortNames: ['cap'],
  scope: 'Cluster',
  description: 'A policy for requests of the whole cluster.',
  spec: object(
    'The policy.',
    {
      ...SINGLE,
      parameters: optional(PARAMETERS),
      rules: CLUSTER_RULES,
      contextAwareResources: optional(CONTEXT_AWARE_RESOURCES),
      namespaceSelector: NAMESPACE_SELECTOR,
      allowInsideAdmissionControllerNamespace: INSIDE_OWN_NAMESPACE,
      ...COMMON,
    },
    { rules: [TIMEOUTS_FIT] },
  ),
  example: {
    metadata: { name: 'no-privileged-pods' },
    spec: { module: 'builtin:pod-security', settings: { enforce: 'baseline' }, rules: EXAMPLE_RULES, mutating: false },
  },
} as const satisfies KindDeclaration;

const admissionPolicy = {
  ...KIND,
  kind: 'AdmissionPolicy',
  plural: 'admissionpolicies',
  // Not Kubewarden's `ap`: that is Istio's AuthorizationPolicy, which kubectl would not find any more.
  shortNames: ['admpol'],
  scope: 'Namespaced',
  description: 'A policy for requests of its own namespace.',
  spec: object(
    'The policy.',
    { ...SINGLE, parameters: optional(NAMESPACED_PARAMETERS), rules: NAMESPACED_RULES, ...COMMON },
    { rules: [TIMEOUTS_FIT] },
  ),
  example: {
    metadata: { name: 'no-privileged-pods', namespace: 'shop' },
    spec: {
      module: 'builtin:pod-security',
      settings: { enforce: 'restricted' },
      rules: EXAMPLE_RULES,
      mutating: false,
    },
  },
} as const satisfies KindDeclaration;

const EXAMPLE_GROUP = {
  expression: 'trusted() || baseline()',
  message: 'the pod has to be trusted, or to do without privileges',
  rules: EXAMPLE_RULES,
  policies: {
    trusted: { module: 'https://policies.example.com/trusted-images/v1.2.0.wasm' },
    baseline: { module: 'builtin:pod-security', settings: { enforce: 'baseline' } },
  },
};

const clusterAdmissionPolicyGroup = {
  ...KIND,
  kind: 'ClusterAdmissionPolicyGroup',
  plural: 'clusteradmissionpolicygroups',
  shortNames: ['capg'],
  scope: 'Cluster',
  description: 'Several policies with one verdict, for requests of the whole cluster.',
  spec: object(
    'The group.',
    {
      expression: EXPRESSION,
      message: text(MESSAGE),
      policies: members(
        object('One member.', {
          ...MEMBER,
          parameters: optional(PARAMETERS),
          contextAwareResources: optional(CONTEXT_AWARE_RESOURCES),
        }),
      ),
      rules: CLUSTER_RULES,
      namespaceSelector: NAMESPACE_SELECTOR,
      allowInsideAdmissionControllerNamespace: INSIDE_OWN_NAMESPACE,
      ...COMMON,
    },
    { rules: GROUP_RULES },
  ),
  example: { metadata: { name: 'trusted-or-harmless' }, spec: EXAMPLE_GROUP },
} as const satisfies KindDeclaration;

const admissionPolicyGroup = {
  ...KIND,
  kind: 'AdmissionPolicyGroup',
  plural: 'admissionpolicygroups',
  shortNames: ['apg'],
  scope: 'Namespaced',
  description: 'Several policies with one verdict, for requests of their own namespace.',
  spec: object(
    'The group.',
    {
      expression: EXPRESSION,
      message: text(MESSAGE),
      policies: members(object('One member.', { ...MEMBER, parameters: optional(NAMESPACED_PARAMETERS) })),
      rules: NAMESPACED_RULES,
      ...COMMON,
    },
    { rules: GROUP_RULES },
  ),
  example: { metadata: { name: 'trusted-or-harmless', namespace: 'shop' }, spec: EXAMPLE_GROUP },
} as const satisfies KindDeclaration;

export type ClusterAdmissionPolicy = ObjectOfKind<typeof clusterAdmissionPolicy>;
export type AdmissionPolicy = ObjectOfKind<typeof admissionPolicy>;
export type ClusterAdmissionPolicyGroup = ObjectOfKind<typeof clusterAdmissionPolicyGroup>;
export type AdmissionPolicyGroup = ObjectOfKind<typeof admissionPolicyGroup>;

export const CLUSTER_ADMISSION_POLICIES = ownKind(clusterAdmissionPolicy);
export const ADMISSION_POLICIES = ownKind(admissionPolicy);
export const CLUSTER_ADMISSION_POLICY_GROUPS = ownKind(clusterAdmissionPolicyGroup);
export const ADMISSION_POLICY_GROUPS = ownKind(admissionPolicyGroup);
