// Hostile policies, applied by a tenant through the API. Each gets an answer, and none harms others.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { ApiError, type Cluster } from '../../src/cluster/index.ts';
import {
  ALL_KINDS,
  findCondition,
  type JsonObject,
  type KubernetesObject,
  POLICIES,
  type ResourceType,
} from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, type LabObject } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';
const RBAC = 'rbac.authorization.k8s.io';
const ACCOUNT = { username: 'governance', groups: ['system:authenticated'] };
const TENANT = { username: 'tenant', groups: ['system:authenticated'] };
/** The value of a Secret that the account may read. No status, event or log line has it. */
const SECRET_VALUE = 'hunter2-the-secret';
const ENCODED = Buffer.from(SECRET_VALUE).toString('base64');
const READ = ['get', 'list', 'watch'];
const WRITE = [...READ, 'create', 'update', 'patch', 'delete'];
const LARGEST_OBJECT = 1_572_864;

/** Roles of the account and the tenant: `rules` as group, resources, verbs. */
function grant(user: string, ...rules: readonly (readonly [string, readonly string[], readonly string[]])[]) {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: user },
      rules: rules.map(([group, resources, verbs]) => ({ apiGroups: [group], resources, verbs })),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: user },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: user },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
    },
  ];
}

interface Case {
  readonly attack: string;
  /** The spec of a ConfigurationPolicy, which is a template of a Policy; enforced unless it says otherwise. */
  readonly configuration?: JsonObject;
  /** The spec of a CertificatePolicy, which is a template of a Policy. */
  readonly certificate?: JsonObject;
  /** The templates of a Policy. */
  readonly templates?: readonly JsonObject[];
  /** Further fields of the spec of the Policy. */
  readonly spec?: JsonObject;
  readonly metadata?: JsonObject;
  /** The message of the Policy, of its template, or of the refusal by the API server. */
  readonly seen: RegExp;
}

const configMap = (name: JsonObject[string], fields: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: name ?? null, namespace: 'default' },
  ...fields,
});
const must = (objectDefinition: JsonObject, fields: JsonObject = {}): JsonObject => ({
  'object-templates': [{ complianceType: 'musthave', objectDefinition, ...fields }],
});
const mustNot = (apiVersion: string, kind: string, name: string, namespace?: string): JsonObject =>
  must(
    { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } },
    { complianceType: 'mustnothave' },
  );
const raw = (text: string): JsonObject => ({ 'object-templates-raw': text });
let maps = 0;
/** A ConfigMap of its own, because policies that change one object in turn stop. */
const data = (value: string): JsonObject => must(configMap(`data-${(maps += 1)}`, { data: { value } }));
const inAll = { namespaceSelector: { include: ['*'] } };
const FORBIDDEN = /is forbidden: User "governance" cannot/;

function nested(depth: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 0; level < depth; level += 1) {
    value = { a: value };
  }
  return value;
}

/** Ten aliases of the level before, on each level. */
const ALIASES = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  .concat(Array.from({ length: 9 }, (_, index) => `a${index + 1}: &a${index + 1} [${`*a${index}, `.repeat(10)}]`))
  .map((line) => `    ${line}\n`)
  .join('');
const RAW_OBJECT = '- complianceType: musthave\n  objectDefinition:\n';

const CASES: readonly Case[] = [
  // Names.
  {
    attack: 'a name that leaves the path',
    configuration: must(configMap('../../secrets')),
    seen: /Invalid value|cannot be created/,
  },
  { attack: 'a name of dots', configuration: must(configMap('..')), seen: /Invalid value|cannot be created/ },
  { attack: 'a name that is a number', configuration: must(configMap(10)), seen: /to be strings/ },
  { attack: 'a name that is a list', configuration: must(configMap(['a'])), seen: /to be strings/ },
  {
    attack: 'a name of control characters',
    configuration: must(configMap('a\u0000\u001b[31m\n')),
    seen: /Invalid value|cannot be created/,
  },
  {
    attack: 'a name of 100,000 characters',
    configuration: must(configMap('a'.repeat(100_000))),
    seen: /violation - configmaps \[a{1000}/,
  },
  {
    attack: 'a namespace that leaves the path',
    configuration: must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: '../kube-system' } }),
    seen: /cannot be created|namespace/,
  },
  {
    attack: 'a namespace of dots',
    configuration: must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: '..' } }),
    seen: /cannot be created|namespace/,
  },
  {
    attack: 'an API version that leaves the path',
    configuration: must({ apiVersion: '../../api/v1', kind: 'Secret', metadata: { name: 'a', namespace: 'default' } }),
    seen: /find mapping|kind and apiVersion/,
  },
  {
    attack: 'a kind that is a path',
    configuration: must({
      apiVersion: 'v1',
      kind: 'secrets/../configmaps',
      metadata: { name: 'a', namespace: 'default' },
    }),
    seen: /find mapping/,
  },
  {
    attack: 'the kind __proto__',
    configuration: must({ apiVersion: '__proto__', kind: '__proto__', metadata: { name: 'a', namespace: 'default' } }),
    seen: /find mapping/,
  },
  {
    attack: 'a subresource as the kind',
    configuration: must({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'default', namespace: 'default' },
    }),
    seen: /find mapping|cannot|method/,
  },
  {
    attack: 'a template named __proto__',
    templates: [{ apiVersion: `${GROUP}/v1`, kind: 'ConfigurationPolicy', metadata: { name: '__proto__' }, spec: {} }],
    seen: /metadata.name: Invalid value: "__proto__"/,
  },
  {
    attack: 'a template named as a path',
    templates: [
      { apiVersion: `${GROUP}/v1`, kind: 'ConfigurationPolicy', metadata: { name: '../policies' }, spec: {} },
    ],
    seen: /Failed to create policy template|Invalid/,
  },
  {
    attack: 'templates of one name',
    templates: ['a', 'a'].map((name) => ({
      apiVersion: `${GROUP}/v1`,
      kind: 'ConfigurationPolicy',
      metadata: { name },
      spec: must(configMap('a')),
    })),
    seen: /must be unique/,
  },
  { attack: 'a template without a kind', templates: [{}], seen: /[Ff]ailed|kind/ },
  {
    attack: 'a template that is no object',
    templates: [{ apiVersion: 5, kind: [], metadata: 'x' }],
    seen: /[Ff]ailed|kind/,
  },
  // Foreign kinds as templates.
  ...(['Secret', 'ServiceAccount', 'Namespace', 'Pod'] as const).map((kind) => ({
    attack: `a ${kind} as a template`,
    templates: [{ apiVersion: 'v1', kind, metadata: { name: 'stolen' } }],
    seen: /policy-template kind is not supported/,
  })),
  ...(
    [
      [`${RBAC}/v1`, 'ClusterRoleBinding'],
      [`${RBAC}/v1`, 'RoleBinding'],
      ['admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'],
      ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
      [`${GROUP}/v1`, 'Policy'],
      [`${GROUP}/v1beta1`, 'PolicySet'],
      ['policies.kubewarden.io/v1', 'ClusterAdmissionPolicy'],
      ['policies.kubewarden.io/v1', 'PolicyServer'],
    ] as const
  ).map(([apiVersion, kind]) => ({
    attack: `a ${kind} as a template`,
    templates: [{ apiVersion, kind, metadata: { name: 'stolen' } }],
    seen: /policy-template kind is not supported/,
  })),
  {
    attack: 'a foreign kind that the account may not write',
    templates: [
      { apiVersion: 'lab.example.com/v1', kind: 'Check', metadata: { name: 'a', namespace: 'kube-system' }, spec: {} },
    ],
    seen: FORBIDDEN,
  },
  // Objects of the product and the cluster.
  {
    attack: 'the namespace of the cluster',
    configuration: mustNot('v1', 'Namespace', 'local-cluster'),
    seen: FORBIDDEN,
  },
  { attack: 'kube-system', configuration: mustNot('v1', 'Namespace', 'kube-system'), seen: FORBIDDEN },
  {
    attack: 'the Lease of the controller',
    configuration: must({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'portcullis-controller', namespace: 'default' },
      spec: { holderIdentity: 'me' },
    }),
    seen: FORBIDDEN,
  },
  {
    attack: 'its CustomResourceDefinitions',
    configuration: mustNot('apiextensions.k8s.io/v1', 'CustomResourceDefinition', `policies.${GROUP}`),
    seen: FORBIDDEN,
  },
  {
    attack: 'webhook configurations',
    configuration: mustNot('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', 'portcullis-default'),
    seen: FORBIDDEN,
  },
  {
    attack: 'its service account',
    configuration: mustNot('v1', 'ServiceAccount', 'portcullis-governance', 'default'),
    seen: FORBIDDEN,
  },
  {
    attack: 'more rights for the account',
    configuration: must({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'mine' },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: ACCOUNT.username }],
    }),
    seen: FORBIDDEN,
  },
  {
    attack: 'a copy that is forged',
    configuration: must({
      apiVersion: `${GROUP}/v1`,
      kind: 'Policy',
      metadata: {
        name: 'policies.forged',
        namespace: 'local-cluster',
        labels: { [`${GROUP}/root-policy`]: 'policies.forged' },
      },
      spec: { disabled: false, 'policy-templates': [] },
    }),
    seen: FORBIDDEN,
  },
  {
    attack: 'a ConfigurationPolicy that is its own',
    configuration: mustNot(`${GROUP}/v1`, 'ConfigurationPolicy', 'self', 'local-cluster'),
    seen: FORBIDDEN,
  },
  // Size and nesting.
  {
    attack: 'an object of 5,000 levels',
    configuration: must(configMap('deep', { data: nested(5_000) })),
    seen: /deep|nest|too|depth/i,
  },
  {
    attack: 'an object of 400 levels',
    configuration: must(configMap('deep', { data: nested(400) })),
    seen: /cannot be created|strict|Invalid|unmarshal|string|expected/i,
  },
  {
    attack: 'an object of 1.2 MB',
    configuration: must(configMap('large', { data: { a: 'x'.repeat(1_200_000) } })),
    seen: /too large|Too long|cannot be created|limit|exceed/i,
  },
  {
    attack: '1,001 templates',
    templates: Array.from({ length: 1_001 }, (_, index) => ({
      apiVersion: `${GROUP}/v1`,
      kind: 'ConfigurationPolicy',
      metadata: { name: `t-${index}` },
    })),
    seen: /must have at most 1000 items|[Tt]oo many/,
  },
  {
    attack: '501 dependencies',
    templates: [],
    spec: {
      dependencies: Array.from({ length: 501 }, (_, index) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        name: `${index}`,
        compliance: 'Compliant',
      })),
    },
    seen: /must have at most 500 items|[Tt]oo many/,
  },
  {
    attack: '8,000 object templates with keys of the prototype',
    configuration: {
      remediationAction: 'inform',
      'object-templates': Array.from({ length: 8_000 }, () => ({
        complianceType: 'musthave',
        objectDefinition: { __proto__: null, constructor: 'x' },
      })),
    },
    seen: /kind and apiVersion fields are required/,
  },
  {
    attack: 'keys of the prototype in an object',
    configuration: raw(
      '- complianceType: musthave\n  objectDefinition: {apiVersion: v1, kind: ConfigMap, metadata: {name: proto, namespace: default}, data: {__proto__: x, constructor: y, toString: z}}',
    ),
    seen: /found as specified|was created|Invalid|cannot be created/,
  },
  {
    attack: 'keys of the prototype as an object template',
    configuration: raw('- __proto__: {complianceType: musthave}\n  complianceType: constructor'),
    seen: /complianceType: expected/,
  },
  // Patterns and selectors.
  {
    attack: '50,000 patterns of namespaces',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
      remediationAction: 'inform',
      namespaceSelector: { include: Array.from({ length: 50_000 }, () => '[!-~]') },
    },
    seen: /not found|namespace/,
  },
  {
    attack: 'a pattern of many stars',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
      namespaceSelector: { include: [`${'*a'.repeat(500)}b`] },
    },
    seen: /namespace/,
  },
  {
    attack: 'a pattern that is too long',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
      namespaceSelector: { include: ['a'.repeat(2_000)] },
    },
    seen: /at most 1024 characters/,
  },
  {
    attack: 'a pattern that does not end',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
      namespaceSelector: { include: ['[a'] },
    },
    seen: /syntax error in pattern/,
  },
  {
    attack: 'an operator of the prototype',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }),
      namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'constructor', values: ['a'] }] },
    },
    seen: /LabelSelector|operator/,
  },
  {
    attack: 'a pattern of names that backtracks',
    certificate: { namespaceSelector: { include: ['default'] }, allowedSANPattern: '(a+)+$' },
    seen: /All evaluated certificates are compliant/,
  },
  {
    attack: 'a pattern of names that is too large',
    certificate: { namespaceSelector: { include: ['default'] }, allowedSANPattern: '(a?){999}'.repeat(1_100) },
    seen: /expression is too large/,
  },
  {
    attack: 'a look-behind in a pattern of names',
    certificate: { namespaceSelector: { include: ['default'] }, disallowedSANPattern: '(?<!a)b' },
    seen: /not a regular expression/,
  },
  {
    attack: 'labels of the prototype for certificates',
    certificate: { namespaceSelector: { include: ['default'] }, labelSelector: { constructor: 'x' } },
    seen: /compliant/,
  },
  {
    attack: 'a duration without end',
    certificate: { namespaceSelector: { include: ['default'] }, minimumDuration: `${'9'.repeat(400)}h` },
    seen: /not a duration|should match/,
  },
  // Templates.
  {
    attack: 'a loop over a million',
    configuration: data('{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}'),
    seen: /more than 10000|list|exceeds/,
  },
  {
    attack: 'nested loops',
    configuration: data('{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}'),
    seen: /exceeds 1000000 steps/,
  },
  {
    attack: 'a text without end',
    configuration: data('{{ repeat 1000000 "0123456789" }}'),
    seen: /exceeds 8000000 characters/,
  },
  {
    attack: 'a width of a billion',
    configuration: data('{{ printf "%1000000000d" 1 }}'),
    seen: /data|width|exceeds|cannot/,
  },
  {
    attack: 'a definition that calls itself',
    configuration: data('{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}'),
    seen: /depth|deep|exceeds|nested/,
  },
  {
    attack: 'a thousand parentheses',
    configuration: data(`{{ ${'('.repeat(1_000)}1${')'.repeat(1_000)} }}`),
    seen: /nested deeper|deep|too/,
  },
  {
    attack: 'a list that contains itself many times',
    configuration: data('{{ $x := list 1 }}{{ range until 1000 }}{{ $x = list $x $x }}{{ end }}{{ toRawJson $x }}'),
    seen: /exceeds|nested deeper/,
  },
  {
    attack: 'a map that contains itself',
    configuration: data('{{ $x := dict }}{{ $_ := set $x "a" $x }}{{ toRawJson $x }}'),
    seen: /exceeds|nested deeper|cycle/,
  },
  {
    attack: 'a regular expression that backtracks',
    configuration: data('{{ regexReplaceAll "(a*)*b" (repeat 5000 "a") "x" }}'),
    seen: /exceeds|created|found/,
  },
  {
    attack: 'a regular expression of a million instructions',
    configuration: data(`{{ regexMatch "${'(a?){999}'.repeat(100)}b" (repeat 2000 "a") }}`),
    seen: /expression is too large/,
  },
  {
    attack: 'more look-ups than are allowed',
    configuration: data(
      '{{ range $i := until 2000 }}{{ lookup "v1" "ConfigMap" "default" (printf "m-%d" $i) }}{{ end }}',
    ),
    seen: /looks up more than 1000 objects/,
  },
  {
    attack: 'kinds that are looked up one after the other',
    configuration: data('{{ range $i := until 900 }}{{ lookup "v1" (printf "Kind%d" $i) "a" "a" }}{{ end }}'),
    seen: /does not serve Kind0/,
  },
  {
    attack: 'environment and files',
    configuration: data('{{ env "HOME" }}{{ expandenv "$HOME" }}'),
    seen: /not supported|not defined|unknown/,
  },
  {
    attack: 'aliases of aliases',
    configuration: raw(`${RAW_OBJECT}    apiVersion: v1\n${ALIASES}`),
    seen: /stand for more than 1000000 values/,
  },
  {
    attack: 'an alias of itself',
    configuration: raw('- &a {complianceType: musthave, objectDefinition: *a}'),
    seen: /nested deeper|alias|valid YAML/,
  },
  { attack: 'a YAML text of 20,000 levels', configuration: raw('- '.repeat(20_000)), seen: /valid YAML/ },
  { attack: 'YAML tags', configuration: raw('- !!js/function "x"'), seen: /tag|valid YAML/ },
  {
    attack: 'merge keys without end',
    configuration: raw(`- &a {x: 1}\n- <<: [${Array.from({ length: 20_000 }, () => '*a').join(', ')}]`),
    seen: /alias|exceeds|valid YAML|complianceType/,
  },
  { attack: 'several documents', configuration: raw('[]\n---\n[]'), seen: /several YAML documents/ },
  { attack: 'object templates that are a map', configuration: raw('a: b'), seen: /no list of object templates/ },
  {
    attack: 'templates of a hub',
    configuration: data('{{hub fromSecret "a" "b" "c" hub}}'),
    seen: /Secrets are not available to hub templates/,
  },
  {
    attack: 'values that are templates',
    configuration: data('{{ fromConfigMap "default" "injection" "text" }}'),
    seen: /data-\d+\] found as specified|data-\d+\] was created/,
  },
  {
    attack: 'a definition that leads to another namespace',
    configuration: {
      ...must({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: '{{ "kube-system" }}' } }),
      namespaceSelector: { include: ['default'] },
    },
    seen: /must match the result from the namespace selector/,
  },
  // Secrets.
  {
    attack: 'a message with a Secret',
    configuration: data('{{ fail (fromSecret "default" "key" "key") }}'),
    seen: /redacted/,
  },
  {
    attack: 'a message with a decoded Secret',
    configuration: raw('{{ fail (fromSecret "default" "key" "key" | base64dec) }}'),
    seen: /redacted/,
  },
  {
    attack: 'a Secret as a key of a map that fails',
    configuration: must(
      configMap('data', { data: { '{{ fromSecret "default" "key" "key" | base64dec }}': '{{ fail "x" }}' } }),
    ),
    seen: /redacted/,
  },
  {
    attack: 'a Secret as the type of raw templates',
    configuration: raw('- complianceType: {{ fromSecret "default" "key" "key" | base64dec }}'),
    seen: /redacted/,
  },
  {
    attack: 'a Secret as the name of what is looked up',
    configuration: data('{{ fromConfigMap "default" (fromSecret "default" "key" "key" | base64dec) "x" }}'),
    seen: /redacted/,
  },
  {
    attack: 'a Secret in an object that is refused',
    configuration: must({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'secretive', namespace: 'default' },
      data: { '{{ "a/b" }}': '{{ fromSecret "default" "key" "key" | base64dec }}' },
    }),
    seen: /cannot be created/,
  },
  {
    attack: 'a Secret that the object differs from',
    configuration: {
      ...must(configMap('injection', { data: { text: '{{ fromSecret "default" "key" "key" | base64dec }}' } })),
      remediationAction: 'inform',
    },
    seen: /found but not as specified/,
  },
  {
    attack: 'a custom message that reads',
    configuration: { ...must(configMap('a')), customMessage: { compliant: '{{ fromSecret "default" "key" "key" }}' } },
    seen: /found as specified|was created/,
  },
  {
    attack: 'a custom message without end',
    configuration: {
      ...must(configMap('a')),
      customMessage: { compliant: '{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}' },
    },
    seen: /exceeds 1000000 steps/,
  },
  // Many objects.
  {
    attack: 'thousands of templates in all namespaces',
    configuration: {
      ...inAll,
      remediationAction: 'inform',
      'object-templates': Array.from({ length: 9_000 }, (_, index) => ({
        complianceType: 'musthave',
        objectDefinition: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `x-${index}` } },
      })),
    },
    seen: /at most 20000 objects|not found|too long to evaluate/,
  },
  // Policies.
  {
    attack: 'a dependency of the prototype',
    configuration: must(configMap('a')),
    spec: {
      dependencies: [{ apiVersion: '__proto__', kind: 'constructor', name: 'toString', compliance: 'Compliant' }],
    },
    seen: /pending|constructor/i,
  },
  {
    attack: 'a dependency on itself',
    configuration: must(configMap('a')),
    spec: { dependencies: [{ apiVersion: `${GROUP}/v1`, kind: 'Policy', name: 'self', compliance: 'Compliant' }] },
    seen: /pending|self/i,
  },
  {
    attack: 'labels and annotations of the controller',
    metadata: {
      labels: { [`${GROUP}/root-policy`]: 'policies.other', [`${GROUP}/cluster-name`]: 'other' },
      annotations: { 'portcullis.dev/suspended': 'x', 'portcullis.dev/policy': 'x' },
    },
    configuration: must(configMap('a')),
    seen: /found as specified|was created/,
  },
];

const nameOf = (index: number): string => `hostile-${index}`;

/** What a tenant applies. */
function policyOf({ configuration, certificate, templates, spec, metadata }: Case, index: number): JsonObject {
  const name = nameOf(index);
  const definitions = templates ?? [
    {
      apiVersion: `${GROUP}/v1`,
      kind: certificate === undefined ? 'ConfigurationPolicy' : 'CertificatePolicy',
      metadata: { name },
      spec: { remediationAction: 'enforce', ...(configuration ?? certificate) },
    },
  ];
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { ...metadata, name, namespace: 'policies' },
    spec: {
      disabled: false,
      'policy-templates': definitions.map((objectDefinition) => ({ objectDefinition })),
      ...spec,
    },
  };
}

const messageOf = (object: LabObject | undefined): string => object?.status?.history?.[0]?.message ?? '';

describe('a hostile policy of a tenant', () => {
  let lab: GovernanceLab;
  let tenant: Cluster;
  const lines: string[] = [];

  /** Objects that no policy may change. */
  const protectedObjects = async (): Promise<string> => {
    const kinds: readonly (readonly [string, string])[] = [
      ['Secret', 'v1'],
      ['ServiceAccount', 'v1'],
      ['Namespace', 'v1'],
      ['ClusterRoleBinding', `${RBAC}/v1`],
      ['ClusterRole', `${RBAC}/v1`],
      ['CustomResourceDefinition', 'apiextensions.k8s.io/v1'],
    ];
    const lists = await Promise.all(kinds.map(([kind, apiVersion]) => lab.list(kind, apiVersion)));
    return JSON.stringify(
      lists.flat().map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.generation ?? metadata.uid}`),
    );
  };

  const apply = async (object: JsonObject): Promise<string> => {
    const body = object as JsonObject & KubernetesObject;
    const type = ALL_KINDS.find(({ kind }) => kind === body.kind) as ResourceType;
    try {
      await tenant.create(type, body, { fieldManager: 'kubectl' });
      return '';
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      assert.ok(error.code < 500, error.message);
      return error.message || error.reason;
    }
  };

  before(async () => {
    const sink = { write: (line: string) => void lines.push(line) };
    lab = await GovernanceLab.start({
      governed: (cluster) => cluster.as(ACCOUNT),
      log: pino({ level: 'debug' }, sink),
    });
    await lab.apply(
      ...grant(
        ACCOUNT.username,
        ['', ['configmaps'], WRITE],
        ['', ['secrets'], READ],
        ['lab.example.com', ['checks'], READ],
      ),
      ...grant(TENANT.username, [GROUP, ['policies', 'policysets'], WRITE]),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'key', namespace: 'default' },
        data: { key: ENCODED },
      },
      configMap('injection', { data: { text: '{{ fromSecret "default" "key" "key" }}' } }),
    );
    tenant = lab.cluster.as(TENANT);
    await lab.apply(policyOf({ attack: '', configuration: must(configMap('first')), seen: /./ }, -1));
    await lab.reaches(`policies/${nameOf(-1)}`, 'Compliant');
  });
  after(() => lab[Symbol.asyncDispose]());

  it('gets an answer for each attack, and changes nothing that the account may not', async (test) => {
    const kept = await protectedObjects();
    const refusals: string[] = [];
    for (const [index, attack] of CASES.entries()) {
      refusals.push(await apply(policyOf(attack, index)));
    }
    for (const [index, attack] of CASES.entries()) {
      await test.test(attack.attack, async () => {
        const refusal = refusals[index] ?? '';
        if (refusal !== '') {
          assert.match(refusal, attack.seen);
          return;
        }
        let seen = '';
        await until(
          async () => {
            const name = nameOf(index);
            const [root, configuration, certificate] = await Promise.all([
              lab.get({ kind: 'Policy', name: `policies/${name}` }),
              lab.get({ kind: 'ConfigurationPolicy', name: `local-cluster/${name}` }),
              lab.get({ kind: 'CertificatePolicy', name: `local-cluster/${name}` }),
            ]);
            const ready = findCondition(root?.status?.conditions, 'Ready')?.message ?? '';
            seen = [
              messageOf(configuration),
              messageOf(certificate),
              JSON.stringify(root?.status?.['message'] ?? ''),
              ready,
            ].join(' | ');
            return root?.status?.compliant !== undefined && attack.seen.test(seen);
          },
          () => `${attack.seen}, last ${seen.slice(0, 2_000)}`,
        );
      });
    }
    assert.equal(await protectedObjects(), kept);
  });

  it('does not keep another one from being enforced', async () => {
    await lab.apply(policyOf({ attack: '', configuration: must(configMap('last')), seen: /./ }, CASES.length));
    await lab.reaches(`policies/${nameOf(CASES.length)}`, 'Compliant');
  });

  it('has a status that fits, and no status, event or log line has the value of a Secret', async () => {
    for (const kind of ['Policy', 'ConfigurationPolicy', 'CertificatePolicy', 'Event'] as const) {
      const objects = kind === 'Event' ? await lab.list(kind, 'events.k8s.io/v1') : await lab.list(kind, `${GROUP}/v1`);
      for (const object of objects) {
        const text = JSON.stringify(object);
        assert.ok(text.length < LARGEST_OBJECT, `${kind} ${object.metadata.name}: ${text.length}`);
        assert.ok(!text.includes(SECRET_VALUE) && !text.includes(ENCODED), `${kind} ${object.metadata.name}: ${text}`);
      }
    }
    const log = lines.join('');
    assert.ok(lines.length > 0 && !log.includes(SECRET_VALUE) && !log.includes(ENCODED), log.slice(0, 5_000));
  });

  it('is refused where the tenant may not write', async () => {
    for (const namespace of ['local-cluster', 'policies']) {
      const direct = {
        apiVersion: `${GROUP}/v1`,
        kind: 'ConfigurationPolicy',
        metadata: { name: 'direct', namespace },
        spec: must(configMap('direct')),
      };
      assert.match(await apply(direct), /User "tenant" cannot create resource "configurationpolicies"/);
    }
    assert.equal(await lab.get({ kind: 'ConfigMap', name: 'default/direct' }), undefined);
    assert.equal(POLICIES.kind, 'Policy');
  });
});
