import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isOwnBucket, labelSelector, policyMatch, ruleMatches, splitResource } from '../../resources/index.ts';
import type {
  AccessRule,
  AdmissionPolicySpec,
  MatchRule,
  PolicyMatch,
  GroupVersionResource,
  RuleRequest,
} from '../../resources/index.ts';
import { REPLICA_RULES } from '../../control/access-rules/index.ts';
import { CERTIFICATE_NAMESPACE_RULES } from '../certificates/certificate-rules.ts';
import { CLUSTER_RULES, REVIEW_RULES } from '../access-rules/cluster-rules.ts';
import { CONTROLLER_NAMESPACE_RULES } from '../access-rules/controller-rules.ts';
import { POLICY_SERVER_NAMESPACE_RULES } from '../policy-servers/policy-server-rules.ts';
import {
  MAX_MATCH_CONDITIONS,
  MAX_RULES,
  standaloneConfiguration,
  webhookConfigurations,
  type WebhookSettings,
} from './webhook-configurations.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';
import { WebhookDryRuns } from './webhook-dry-runs.ts';

const PRODUCT = 'portcullis';
const NAME = 'kubernetes.io/metadata.name';
const IDENTITIES = 'portcullis.dev/exempt-identities';
const SETTINGS: WebhookSettings = {
  policyServer: 'default',
  target: { url: 'https://localhost:8443', ca: 'PEM' },
  exemptNamespaces: ['kube-system'],
  identities: [`system:serviceaccount:${PRODUCT}:portcullis-controller`],
  productNamespace: PRODUCT,
};
const RULE: MatchRule = {
  operations: ['*'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
  scope: '*',
};
/** Lets a policy cover the product's namespace. */
const INSIDE = { allowInsideAdmissionControllerNamespace: true };

interface Where {
  readonly namespace?: string | undefined;
  readonly ownWebhook?: boolean;
}

function matchOf(name: string, spec: object, { namespace, ownWebhook = false }: Where = {}): PolicyMatch {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  const all = { mutating: false, ...spec } as AdmissionPolicySpec;
  return policyMatch({ kind, metadata, spec: all }, { productNamespace: PRODUCT, ownWebhook });
}

function webhooksOf(configurations: readonly WebhookConfiguration[]): readonly Webhook[] {
  return configurations.flatMap(({ webhooks = [] }) => webhooks as readonly Webhook[]);
}

function exemptsProduct({ matchConditions = [] }: Webhook): boolean {
  return matchConditions.some(({ name }) => name === IDENTITIES);
}

describe('requests of the product', () => {
  const rulesOf = (apiGroup: string, ...resources: readonly string[]): object => ({
    rules: [{ ...RULE, apiGroups: [apiGroup], resources }],
  });
  const named = (operator: string, ...values: readonly string[]): object => ({
    namespaceSelector: { matchExpressions: [{ key: NAME, operator, values }] },
  });
  const configMaps = rulesOf('', 'configmaps');
  const created = { rules: [{ ...RULE, operations: ['CREATE'] }] };
  const many = Array.from({ length: MAX_RULES + 1 }, (_, index) => ({
    ...RULE,
    apiGroups: [`g${index}`],
    resources: [`r${index}`],
  }));

  for (const [what, spec, where = {}] of [
    ['pods', rulesOf('', 'pods', 'pods/exec', 'pods/ephemeralcontainers')],
    ['all workloads', rulesOf('apps', '*')],
    ['Secrets, in a webhook of its own', rulesOf('', 'secrets'), { ownWebhook: true }],
    ['Leases, though Leases of the product are in its namespace', rulesOf('coordination.k8s.io', 'leases')],
    ['Roles', rulesOf('rbac.authorization.k8s.io', 'roles', 'rolebindings')],
    ['Namespaces, which the product only reads', rulesOf('', 'namespaces')],
    ['events of a group of its own', rulesOf('example.com', 'events')],
    ['ConfigMaps of some namespaces', { ...configMaps, ...INSIDE, ...named('In', 'shop', 'bank') }],
    ['ConfigMaps of others than some', { ...configMaps, ...INSIDE, ...named('NotIn', 'shop', PRODUCT) }],
    ['new ConfigMaps, of a tenant', created, { namespace: 'shop' }],
    ['new ConfigMaps, of a tenant, in a webhook of its own', created, { namespace: 'shop', ownWebhook: true }],
  ] as readonly (readonly [string, object, Where?])[]) {
    it(`need no exemption where a policy is for ${what}`, () => {
      const [webhook, ...others] = webhooksOf(
        webhookConfigurations([matchOf('p', spec, where)], SETTINGS).configurations,
      );
      assert.deepEqual([webhook?.matchConditions, others], [undefined, []]);
    });
  }

  for (const [what, spec, where = {}] of [
    ['events', rulesOf('', 'events')],
    ['events by their other name', rulesOf('events.k8s.io', 'events')],
    ['events, of a tenant', rulesOf('', 'events'), { namespace: 'shop' }],
    ['everything', { rules: [{ ...RULE, apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }] }],
    ['everything of a group that has events', rulesOf('', '*')],
    ['ClusterRoles', rulesOf('rbac.authorization.k8s.io', 'roles', 'clusterroles')],
    ['ClusterRoles in all groups', rulesOf('*', 'clusterroles')],
    ['ClusterRoleBindings, in a webhook of its own', rulesOf('rbac.authorization.k8s.io', '*'), { ownWebhook: true }],
    ['policies', rulesOf('policies.kubewarden.io', 'admissionpolicies')],
    ['statuses of policies', rulesOf('policies.kubewarden.io', 'admissionpolicies/status')],
    ['all statuses', rulesOf('policies.kubewarden.io', '*/status')],
    ['SelfSubjectReviews', rulesOf('authentication.k8s.io', 'selfsubjectreviews')],
    ['SubjectAccessReviews', rulesOf('authorization.k8s.io', 'subjectaccessreviews')],
    ['ConfigMaps in all namespaces', { ...configMaps, ...INSIDE }],
    ['ConfigMaps in its namespace, too', { ...configMaps, ...INSIDE, ...named('In', 'shop', PRODUCT) }],
    ['ConfigMaps in most namespaces', { ...configMaps, ...INSIDE, ...named('NotIn', 'shop') }],
    ['ConfigMaps in namespaces with a name', { ...configMaps, ...INSIDE, ...named('Exists') }],
    [
      'ConfigMaps in namespaces with another label',
      {
        ...configMaps,
        ...INSIDE,
        namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'NotIn', values: [PRODUCT] }] },
      },
    ],
    ['ConfigMaps in its namespace', configMaps, { namespace: PRODUCT }],
    ['so many resources that its webhook covers all', { rules: many }],
    ['so many resources of a tenant that its webhook covers all', { rules: many }, { namespace: 'shop' }],
  ] as readonly (readonly [string, object, Where?])[]) {
    it(`are exempt where a policy is for ${what}`, () => {
      const webhooks = webhooksOf(webhookConfigurations([matchOf('p', spec, where)], SETTINGS).configurations);
      assert.deepEqual(webhooks.map(exemptsProduct), [true]);
    });
  }

  it('are exempt from a shared webhook if any of its policies may match one', () => {
    const [pods, events, inside] = [
      matchOf('pods', rulesOf('', 'pods')),
      matchOf('events', { rules: [{ ...RULE, resources: ['events'], apiGroups: ['', 'events.k8s.io'] }] }),
      matchOf('inside', { ...configMaps, ...INSIDE }),
    ];
    const isExempt = (...matches: readonly PolicyMatch[]): readonly boolean[] =>
      webhooksOf(webhookConfigurations(matches, SETTINGS).configurations).map(exemptsProduct);
    assert.deepEqual(isExempt(pods, events), [true]);
    assert.deepEqual(isExempt(pods, inside), [true]);
    assert.deepEqual(
      isExempt(
        matchOf('tenant', configMaps, { namespace: 'shop' }),
        matchOf('its', configMaps, { namespace: PRODUCT }),
      ),
      [true],
    );
    assert.deepEqual(isExempt(pods), [false]);
  });

  it('need no exemption where the namespace of the product is exempt', () => {
    const settings = { ...SETTINGS, exemptNamespaces: ['kube-system', PRODUCT] };
    const { configurations } = webhookConfigurations([matchOf('p', { ...configMaps, ...INSIDE })], settings);
    assert.deepEqual(webhooksOf(configurations).map(exemptsProduct), [false]);
  });

  it('are exempt from the dry run of a webhook of its own, as from the webhook', () => {
    for (const [spec, isExempt] of [
      [configMaps, false],
      [rulesOf('', 'events'), true],
      [{ ...configMaps, ...INSIDE }, true],
    ] as const) {
      const dryRun = standaloneConfiguration('kw.cap.p', matchOf('p', spec, { ownWebhook: true }), 'None', SETTINGS);
      assert.deepEqual(webhooksOf([dryRun]).map(exemptsProduct), [isExempt]);
    }
  });
});

describe('match conditions of a webhook of its own', () => {
  it('leave room for the exemption of the product, which two revisions may need together though neither does', async () => {
    const dryRuns = new WebhookDryRuns({ ...SETTINGS, objects: { dryRun: () => Promise.resolve() } as never });
    const revisionOf = (count: number, rest: object): readonly [PolicyMatch, AdmissionPolicySpec] => {
      const matchConditions = Array.from({ length: count }, (_, index) => ({ name: `c${index}`, expression: 'true' }));
      const spec = { rules: [RULE], matchConditions, ...rest } as unknown as AdmissionPolicySpec;
      return [matchOf('p', spec, { ownWebhook: true }), spec];
    };
    const dryRun = async ([match, spec]: readonly [PolicyMatch, AdmissionPolicySpec]): Promise<void> =>
      await dryRuns.run('kw.cap.p', 'default', match, spec, new AbortController().signal);
    const inShop = { matchExpressions: [{ key: NAME, operator: 'In', values: ['shop'] }] };
    const most = MAX_MATCH_CONDITIONS - 1;
    await assert.rejects(dryRun(revisionOf(MAX_MATCH_CONDITIONS, {})), /expected at most 63 in a webhook/);
    const [before, next] = [revisionOf(most, {}), revisionOf(most, { ...INSIDE, namespaceSelector: inShop })];
    const conditionsOf = (...matches: readonly PolicyMatch[]): number | undefined =>
      webhooksOf(webhookConfigurations(matches, SETTINGS).configurations)[0]?.matchConditions?.length;
    for (const one of [before, next]) {
      await dryRun(one);
      assert.equal(conditionsOf(one[0]), most);
    }
    assert.equal(conditionsOf(before[0], next[0]), MAX_MATCH_CONDITIONS);
  });
});

/** The operations of webhook rules for each verb. A patch that applies a missing object creates it. */
const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  get: [],
  list: [],
  watch: [],
  create: ['CREATE'],
  update: ['UPDATE'],
  patch: ['UPDATE', 'CREATE'],
  delete: ['DELETE'],
  deletecollection: ['DELETE'],
};
const VERSIONS = ['v1', 'v1beta1'];
const EVENT_GROUPS = ['', 'events.k8s.io'];

type ProductRequest = readonly [RuleRequest, GroupVersionResource];

/** All requests that access rules permit, in every group and version that an API server may match them in. */
function requestsOf(rules: readonly AccessRule[], namespaces: readonly string[]): readonly ProductRequest[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) => {
    const operations = verbs.flatMap((verb) => OPERATIONS[verb] ?? assert.fail(`what does ${verb} do?`));
    assert.ok(![...apiGroups, ...resources].includes('*'), 'what does a star stand for?');
    return apiGroups.flatMap((group) =>
      resources.flatMap((path) => {
        const [resource, subresource] = splitResource(path);
        const groups = resource === 'events' && EVENT_GROUPS.includes(group) ? EVENT_GROUPS : [group];
        return groups.flatMap((one) =>
          VERSIONS.flatMap((version) =>
            namespaces.flatMap((namespace) =>
              operations.map(
                (operation) =>
                  [
                    { operation, subresource, namespace },
                    { group: one, version, resource },
                  ] as const,
              ),
            ),
          ),
        );
      }),
    );
  });
}

const NAMESPACES = ['shop', 'kube-system', PRODUCT];
const REQUESTS: readonly ProductRequest[] = [
  ...requestsOf([...CLUSTER_RULES, ...REVIEW_RULES], ['', ...NAMESPACES]),
  ...requestsOf(
    [...CONTROLLER_NAMESPACE_RULES, ...CERTIFICATE_NAMESPACE_RULES, ...POLICY_SERVER_NAMESPACE_RULES, ...REPLICA_RULES],
    [PRODUCT],
  ),
];

/** A request of the product that a webhook may receive, by its rules and namespaces; undefined if there is none. */
function coveredProductRequest({ rules, namespaceSelector }: Webhook): ProductRequest | undefined {
  const selector = labelSelector(namespaceSelector);
  const selected = new Set(
    NAMESPACES.filter((name) =>
      [{}, { team: 'a' }, { team: 'b' }].some((labels) => selector.matches({ ...labels, [NAME]: name })),
    ),
  );
  return REQUESTS.find(
    ([request, resource]) =>
      (request.namespace === '' || selected.has(request.namespace)) &&
      rules.some((rule) => ruleMatches(rule, request, resource)),
  );
}

/** Resources that the product writes, others in the same groups, and wildcards. */
const kinds = fc.constantFrom(
  ...[...CLUSTER_RULES, ...REVIEW_RULES, ...POLICY_SERVER_NAMESPACE_RULES, ...REPLICA_RULES].flatMap(
    ({ apiGroups: [apiGroup = ''], resources }) => resources.map((resource) => ({ apiGroup, resource })),
  ),
  ...['pods', 'pods/exec', 'pods/*', 'configmaps', '*'].map((resource) => ({ apiGroup: '', resource })),
  { apiGroup: 'events.k8s.io', resource: 'events' },
  { apiGroup: 'policies.kubewarden.io', resource: '*/status' },
  { apiGroup: 'rbac.authorization.k8s.io', resource: 'roles/*' },
  { apiGroup: 'apps', resource: 'deployments/scale' },
  { apiGroup: 'apps', resource: '*' },
  { apiGroup: '*', resource: 'events/*' },
  { apiGroup: '*', resource: 'widgets' },
  { apiGroup: '*', resource: '*/*' },
);
const rules = fc.array(
  fc
    .record({
      kinds: fc.array(kinds, { minLength: 1, maxLength: 2 }),
      operations: fc.subarray(['CREATE', 'UPDATE', 'DELETE', 'CONNECT'], { minLength: 1 }),
      apiVersions: fc.constantFrom(['*'], ['v1'], ['v1beta1']),
      scope: fc.constantFrom('*', 'Cluster', 'Namespaced'),
    })
    .map(({ kinds: some, ...rest }) => ({
      ...rest,
      apiGroups: some.map(({ apiGroup }) => apiGroup),
      resources: some.map(({ resource }) => resource),
    })),
  { minLength: 1, maxLength: 3 },
);
const requirement = fc.oneof(
  fc.record({
    key: fc.constantFrom(NAME, NAME, 'team'),
    operator: fc.constantFrom('In', 'NotIn'),
    values: fc.subarray([PRODUCT, 'shop', 'a'], { minLength: 1 }),
  }),
  fc.record({ key: fc.constantFrom(NAME, 'team'), operator: fc.constantFrom('Exists', 'DoesNotExist') }),
);
const policies = fc
  .record({
    namespace: fc.constantFrom(undefined, undefined, 'shop', PRODUCT),
    ownWebhook: fc.boolean(),
    rules,
    mutating: fc.boolean(),
    matchPolicy: fc.constantFrom('Equivalent', 'Exact'),
    namespaceSelector: fc.oneof(
      fc.constant({}),
      fc.record({ matchExpressions: fc.array(requirement, { minLength: 1, maxLength: 2 }) }),
      fc.constantFrom({ matchLabels: { [NAME]: PRODUCT } }, { matchLabels: { team: 'a' } }),
    ),
    allowInsideAdmissionControllerNamespace: fc.boolean(),
  })
  .map(
    ({ namespace, ownWebhook, ...spec }) =>
      (name: string) =>
        matchOf(name, spec, { namespace, ownWebhook }),
  );

describe('a webhook for what further controllers write', () => {
  const governance = 'policy.open-cluster-management.io';
  const furtherRules: readonly AccessRule[] = [
    { apiGroups: [governance], resources: ['policies/status'], verbs: ['update'] },
    { apiGroups: [governance], resources: ['policysets'], verbs: ['list', 'watch'] },
  ];
  const webhooksFor = (resources: readonly string[], settings: WebhookSettings): readonly Webhook[] =>
    webhooksOf(
      webhookConfigurations(
        [undefined, 'shop'].map((namespace, index) =>
          matchOf(`p${index}`, { rules: [{ ...RULE, apiGroups: [governance], resources }] }, { namespace }),
        ),
        settings,
      ).configurations,
    );

  it('exempts the product, for policies of the cluster and of namespaces', () => {
    const webhooks = webhooksFor(['policies'], { ...SETTINGS, furtherRules });
    assert.deepEqual(webhooks.map(exemptsProduct), [true, true]);
    assert.deepEqual(webhooksFor(['policies'], SETTINGS).map(exemptsProduct), [false, false]);
  });

  it('does not for what they only read', () => {
    assert.deepEqual(webhooksFor(['policysets'], { ...SETTINGS, furtherRules }).map(exemptsProduct), [false, false]);
  });
});

describe('webhooks without the exemption of the product', () => {
  it('receive no request of the product, whatever policies there are', (context) => {
    const counts = { exempting: 0, others: 0, covering: 0 };
    fc.assert(
      fc.property(
        fc.array(policies, { minLength: 1, maxLength: 4 }),
        fc.constantFrom([], ['kube-system'], ['kube-system', PRODUCT]),
        (makers, exemptNamespaces) => {
          const matches = makers.map((make, index) => make(`p${index}`));
          const settings = { ...SETTINGS, exemptNamespaces };
          const dryRuns = matches
            .filter(({ bucket }) => isOwnBucket(bucket))
            .map((match) => standaloneConfiguration('kw.cap.p', match, 'None', settings));
          for (const webhook of webhooksOf([...webhookConfigurations(matches, settings).configurations, ...dryRuns])) {
            const found = coveredProductRequest(webhook);
            counts.covering += found === undefined ? 0 : 1;
            counts[exemptsProduct(webhook) ? 'exempting' : 'others'] += 1;
            assert.ok(exemptsProduct(webhook) || found === undefined, JSON.stringify({ found, webhook }));
          }
        },
      ),
      { numRuns: 1_000 },
    );
    context.diagnostic(JSON.stringify(counts));
    // Enough of each, so that always or never exempting would fail.
    assert.ok(counts.others > 100 && counts.covering > 100, JSON.stringify(counts));
  });
});
