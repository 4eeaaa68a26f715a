import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WEBHOOK_SUFFIX } from '../webhooks/webhook-configurations.ts';
import { MAX_POLICY_ID_LENGTH } from './policy-rules.ts';
import {
  BASELINE,
  type Case,
  conditions,
  group,
  validated,
  itValidates,
  module,
  object,
  review,
  RULE,
  SPEC,
} from './testing/validation-cases.ts';

const rules = (...given: readonly object[]): object => ({ ...SPEC, rules: given.map((one) => ({ ...RULE, ...one })) });
const selector = (objectSelector: object): object => ({ ...SPEC, objectSelector });
const CUSTOM = { ...RULE, apiGroups: ['example.com'] };
const DIGEST = `sha256:${'a'.repeat(64)}`;

const CEL_POLICY = 'registry://ghcr.io/kubewarden/policies/cel-policy:v1.0.0';

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };
const PARAMETERS = {
  paramKind: CONFIG_MAP,
  paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' },
  validations: [{ expression: 'true' }],
};
const MUTATIONS = {
  mutations: [
    { patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'remove', path: '/metadata/labels'}]" } },
  ],
};
const LABELLED = { matchConstraints: { namespaceSelector: { matchLabels: { a: 'b' } } } };
const OF_NAMESPACE = { validations: [{ expression: 'true' }, { expression: 'namespaceObject.metadata.name != "a"' }] };
const reads = (...contextAwareResources: readonly object[]): object => ({ contextAwareResources });

const POLICY_CASES: readonly Case[] = [
  [
    'a hint at builtin:cel when it takes the settings of cel-policy',
    'cap',
    { ...SPEC, module: CEL_POLICY, settings: { validations: [{ expression: 'object.spec.replicas <= 5' }] } },
    [],
    ['spec.module [builtin-module]'],
    /builtin:cel takes these settings as they are.*write module: builtin:cel/,
  ],
  [
    'a warning of orValue of a field that is read without ?',
    'cap',
    {
      ...SPEC,
      module: 'builtin:cel',
      settings: { validations: [{ expression: 'object.spec.replicas.orValue(0) <= 5' }] },
    },
    [],
    ['spec.settings.validations[0].expression [plain-or-value]'],
    /object\.spec\.replicas is no optional.*write object\.spec\.\?replicas\.orValue/,
  ],
  [
    'no hint at builtin:cel for functions that only cel-policy has',
    'cap',
    { ...SPEC, module: CEL_POLICY, settings: { validations: [{ expression: 'kw.k8s.apiVersion("v1") != null' }] } },
    [],
  ],
  [
    'no hint at builtin:cel where it may not read parameters',
    'ap',
    { ...SPEC, module: CEL_POLICY, settings: PARAMETERS },
    [],
  ],
  ...['', ':v0.2.2', `@${DIGEST}`].map((version): Case => [
    `a hint at builtin:pod-security for pod-privileged${version}`,
    'cap',
    { ...SPEC, module: `mirror.example.com/ghcr/kubewarden/policies/pod-privileged${version}`, settings: {} },
    [],
    ['spec.module [builtin-module]'],
    /module: builtin:pod-security, settings: \{enforce: baseline\}/,
  ]),
  ...[
    { module: 'https://example.com/kubewarden/policies/pod-privileged', settings: {} },
    { module: 'ghcr.io/other/policies/pod-privileged:v1', settings: {} },
    { module: 'ghcr.io/kubewarden/policies/pod-privileged-too:v1', settings: {} },
    { module: 'ghcr.io/kubewarden/policies/pod-privileged:v1', settings: { skip_init_containers: true } },
    { module: 'ghcr.io/kubewarden/policies/allow-privilege-escalation-psp:v1', settings: {}, mutating: true },
  ].map((spec): Case => [`no hint for ${JSON.stringify(spec)}`, 'cap', { ...SPEC, ...spec }, []]),
  [
    'hints for members of groups',
    'capg',
    {
      ...group('first() && second()'),
      policies: { first: { module: 'ghcr.io/kubewarden/policies/host-namespaces-psp:v1' }, second: BASELINE },
    },
    [],
    ['spec.policies[first].module [builtin-module]'],
  ],
  [
    'rules for resources that are exempt',
    'cap',
    rules({ apiGroups: ['admissionregistration.k8s.io'], resources: ['mutatingwebhookconfigurations'] }),
    [],
    ['spec.rules[0].resources[0] [rule-never-matches]'],
    /Control access to them with RBAC/,
  ],
  [
    'rules for records of the product',
    'cap',
    rules({ apiGroups: ['portcullis.dev'], resources: ['policyrevisions'] }),
    [],
    ['spec.rules[0].apiGroups[0] [rule-never-matches]'],
  ],
  ...['ap', 'apg'].map((kind): Case => [
    'rules for privileged kinds',
    kind as 'ap' | 'apg',
    {
      ...(kind === 'ap' ? SPEC : group('first() && second()')),
      rules: [
        RULE,
        { ...RULE, apiGroups: ['apps', 'rbac.authorization.k8s.io'], resources: ['rolebindings'] },
        { ...RULE, apiGroups: ['policies.kubewarden.io'], resources: ['admissionpolicies'] },
        { ...RULE, resources: ['serviceaccounts/token'] },
      ],
    },
    [
      'spec.rules[1].apiGroups[1] [rule-privileged]',
      'spec.rules[2].apiGroups[0] [rule-privileged]',
      'spec.rules[3].resources[0] [rule-privileged]',
    ],
    [],
    /policies of a namespace never see requests for rbac\.authorization\.k8s\.io/,
  ]),
  [
    'rules for tokens of another group',
    'ap',
    rules({ apiGroups: ['example.com'], resources: ['serviceaccounts/token'] }),
    [],
  ],
  ['rules that match privileged kinds by a wildcard', 'ap', rules({ resources: ['*/token'] }), []],
  [
    'rules for RoleBindings',
    'cap',
    rules({ apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'] }),
    [],
  ],
  [
    'a selector for two values of one label',
    'cap',
    selector({ matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'In', values: ['c', 'd'] }] }),
    [],
    ['spec.objectSelector [selector-matches-nothing]'],
    /label "a"/,
  ],
  [
    'a selector that requires and excludes a value',
    'ap',
    selector({ matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] }),
    [],
    ['spec.objectSelector [selector-matches-nothing]'],
  ],
  [
    'a selector for a label both present and absent',
    'cap',
    selector({
      matchExpressions: [
        { key: 'a', operator: 'Exists' },
        { key: 'a', operator: 'DoesNotExist' },
      ],
    }),
    [],
    ['spec.objectSelector [selector-matches-nothing]'],
  ],
  [
    'a selector with several requirements',
    'cap',
    selector({
      matchLabels: { a: 'b' },
      matchExpressions: [
        { key: 'a', operator: 'In', values: ['b', 'c'] },
        { key: 'd', operator: 'NotIn', values: ['e'] },
        { key: 'd', operator: 'DoesNotExist' },
      ],
    }),
    [],
  ],
  ['a plain policy', 'cap', SPEC, []],
  ['a plain namespaced policy', 'ap', SPEC, []],

  ['no groups', 'cap', rules({ apiGroups: [] }), ['spec.rules[0].apiGroups [rule-groups]'], [], /"" is the core group/],
  ['groups not given', 'cap', rules({ apiGroups: undefined }), ['spec.rules[0].apiGroups [rule-groups]']],
  ['a wildcard beside groups', 'cap', rules({ apiGroups: ['*', 'apps'] }), ['spec.rules[0].apiGroups [rule-wildcard]']],
  [
    'a wildcard beside versions',
    'cap',
    rules({ apiVersions: ['v1', '*'] }),
    ['spec.rules[0].apiVersions [rule-wildcard]'],
  ],
  [
    'a wildcard beside operations',
    'cap',
    rules({}, { operations: ['*', 'CREATE'] }),
    ['spec.rules[1].operations [rule-wildcard]'],
    ['spec.settings [pod-subresource]'],
    /expected it alone, got 2 entries/,
  ],
  ['an empty version', 'cap', rules({ apiVersions: [''] }), ['spec.rules[0].apiVersions[0] [rule-empty]']],
  ['an empty resource', 'cap', rules({ resources: ['pods', ''] }), ['spec.rules[0].resources[1] [rule-empty]']],
  [
    'a wildcard for subresources beside one of them',
    'cap',
    rules({ resources: ['pods/*', 'pods/log'] }),
    ['spec.rules[0].resources[1] [rule-overlap]'],
  ],
  [
    'a subresource of all resources beside that of one',
    'cap',
    rules({ resources: ['*/scale', 'pods/scale'] }),
    ['spec.rules[0].resources[1] [rule-overlap]'],
  ],
  ['*/* beside a resource', 'cap', rules({ resources: ['*/*', 'pods'] }), ['spec.rules[0].resources [rule-overlap]']],
  ['* beside a resource', 'cap', rules({ resources: ['*', 'pods'] }), ['spec.rules[0].resources [rule-overlap]']],
  ['* beside a subresource', 'cap', rules({ resources: ['*', 'pods/exec'], operations: ['CREATE', 'CONNECT'] }), []],
  ['all groups', 'cap', rules({ apiGroups: ['*'], apiVersions: ['*'] }), []],
  [
    'a rule for everything',
    'cap',
    rules({ apiGroups: ['*'], resources: ['*/*'], operations: ['*'] }),
    [],
    ['spec.rules[0] [rules-everything]'],
  ],
  [
    'a kind as resource, a group in a version, a version as group',
    'cap',
    rules({ resources: ['Pod'], apiVersions: ['apps/v1'], apiGroups: ['v1'] }),
    [],
    [
      'spec.rules[0].resources[0] [rule-never-matches]',
      'spec.rules[0].apiVersions[0] [rule-never-matches]',
      'spec.rules[0].apiGroups[0] [rule-never-matches]',
    ],
    /expected "v1" here, and the group in apiGroups/,
  ],
  [
    'resources that Kubernetes does not have in these groups',
    'cap',
    rules(
      { resources: ['pods', 'pods/eviction', '*/scale', 'pod', 'others'] },
      { apiGroups: ['', 'apps'], resources: ['pods', 'deployments', 'jobs'] },
      { resources: ['pods/log'] },
    ),
    [],
    [
      'spec.rules[0].resources[3] [rule-never-matches]',
      'spec.rules[0].resources[4] [rule-never-matches]',
      'spec.rules[1].resources[2] [rule-never-matches]',
      'spec.rules[2].resources[0] [rule-never-matches]',
    ],
    /Kubernetes has no resource "pod" in apiGroups "". Did you mean pods\?/,
  ],
  ...[['*'], ['apps', 'example.com'], ['', 'extensions']].map((apiGroups): Case => [
    `resources of groups that are not all known: ${apiGroups.join(', ')}`,
    'cap',
    rules({ apiGroups, resources: ['others', '*/scale'] }),
    [],
  ]),

  [
    'valid conditions',
    'cap',
    conditions("request.userInfo.username != 'x'", "authorizer.group('').resource('pods').check('get').allowed()"),
    [],
  ],
  [
    'a condition of unknown type',
    'cap',
    conditions('object.spec.hostNetwork'),
    ['spec.matchConditions[0].expression [condition-expression]'],
    [],
    /compare it, as in `… == true`/,
  ],
  [
    'a condition with an undeclared variable',
    'cap',
    conditions('true', 'objct.metadata.name == ""'),
    ['spec.matchConditions[1].expression [condition-expression]'],
    [],
    /1:1: undeclared reference to 'objct'[^]*did you mean 'object'/,
  ],
  [
    'a condition that is a string',
    'cap',
    conditions('request.name'),
    ['spec.matchConditions[0].expression [condition-expression]'],
    [],
    /got string: compare it with a value/,
  ],
  [
    'a condition without an expression',
    'cap',
    conditions(' '),
    ['spec.matchConditions[0].expression [condition-expression]'],
  ],
  [
    'variables of policies in conditions',
    'cap',
    conditions('variables.x'),
    ['spec.matchConditions[0].expression [condition-expression]'],
  ],
  [
    'a condition without a name',
    'cap',
    { ...SPEC, matchConditions: [{ name: '', expression: 'true' }] },
    ['spec.matchConditions[0].name [condition-name]'],
  ],
  [
    'a condition with an invalid name',
    'cap',
    { ...SPEC, matchConditions: [{ name: 'a b', expression: 'true' }] },
    ['spec.matchConditions[0].name [condition-name]'],
  ],

  [
    'a selector',
    'cap',
    selector({ matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'Exists' }] }),
    [],
  ],
  [
    'In without values',
    'cap',
    selector({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
    ['spec.objectSelector.matchExpressions[0].values [selector]'],
  ],
  [
    'Exists with values',
    'ap',
    selector({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
    ['spec.objectSelector.matchExpressions[0].values [selector]'],
  ],
  [
    'an unknown operator',
    'cap',
    selector({ matchExpressions: [{ key: 'a', operator: 'in', values: ['b'] }] }),
    ['spec.objectSelector.matchExpressions[0].operator [selector]'],
    [],
    /expected In, NotIn, Exists or DoesNotExist/,
  ],
  [
    'an invalid label',
    'cap',
    { ...SPEC, namespaceSelector: { matchLabels: { 'a b': 'c' } } },
    ['spec.namespaceSelector.matchLabels [selector]'],
  ],

  ['side effects on dry runs only', 'ap', { ...SPEC, sideEffects: 'NoneOnDryRun' }, []],
  ['side effects', 'ap', { ...SPEC, sideEffects: 'Some' }, ['spec.sideEffects [side-effects]']],
  [
    'unknown side effects',
    'cap',
    { ...SPEC, sideEffects: 'Unknown' },
    ['spec.sideEffects [side-effects]'],
    [],
    /"None", "NoneOnDryRun"/,
  ],

  ['a module on the web', 'cap', module(`https://example.com/p.wasm@${DIGEST}`), []],
  ['a module in a file', 'cap', module('file:///policies/p.wasm'), []],
  [
    'a module without a scheme',
    'cap',
    module('policies/p.wasm'),
    ['spec.module [module-reference]'],
    [],
    /has no scheme: expected one of/,
  ],
  [
    'a module with an unknown scheme',
    'cap',
    module('htps://example.com/p'),
    ['spec.module [module-reference]'],
    [],
    /Did you mean https:\/\/\?/,
  ],
  [
    'a builtin module as a URL',
    'cap',
    module('builtn://cel'),
    ['spec.module [module-reference]'],
    [],
    /Did you mean builtin:\?/,
  ],
  [
    'a digest that is too short',
    'cap',
    module('https://example.com/p.wasm@sha256:abc'),
    ['spec.module [module-reference]'],
    [],
    /64 hexadecimal digits/,
  ],
  [
    'a digest of another algorithm',
    'cap',
    module(`registry://example.com/p@sha512:${'a'.repeat(128)}`),
    ['spec.module [module-reference]'],
  ],
  [
    'a relative file without a folder for modules',
    'cap',
    module('file://./p.wasm'),
    ['spec.module [module-reference]'],
  ],
  ['a registry', 'cap', module('registry://example.com/p:v1'), []],
  ['a registry without a scheme', 'ap', module('ghcr.io/a/p:v1'), []],
  [
    'a registry of the machine, for a tenant',
    'ap',
    module('registry://127.0.0.1:5000/p:v1'),
    [],
    ['spec.module [module-source]'],
  ],
  ['a malformed tag', 'cap', module('registry://example.com/p:v1+2'), ['spec.module [module-reference]']],
  [
    'an unknown builtin module',
    'cap',
    module('builtin:pod-securty'),
    ['spec.module [module-builtin]'],
    [],
    /Did you mean builtin:pod-security\?/,
  ],
  [
    'a builtin module with slashes',
    'cap',
    module('builtin://cel'),
    ['spec.module [module-builtin]'],
    [],
    /Did you mean builtin:cel\?/,
  ],
  [
    'a password in an invalid reference',
    'cap',
    module('htps://user:geheim@example.com/p?sig=geheim'),
    ['spec.module [module-reference]'],
    [],
    /^(?!.*geheim)/s,
  ],

  [
    'a file of the server',
    'ap',
    module('file:///etc/p.wasm'),
    ['spec.module [module-source]'],
    [],
    /cannot name files of the policy server/,
  ],
  [
    'a module of a tenant that only the policy server can judge',
    'ap',
    module('http://10.0.0.5/p'),
    [],
    ['spec.module [module-source]'],
  ],
  ["a tenant's module elsewhere", 'ap', module('https://1.1.1.1/p.wasm'), []],
  ['a local module of the cluster', 'cap', module('http://127.0.0.1/p'), []],

  [
    'invalid settings of builtin:cel',
    'cap',
    module('builtin:cel', { validations: [{ expression: 'object.spec.contaners' }, { expression: '1 +' }] }),
    ['spec.settings.validations[0].expression [settings]', 'spec.settings.validations[1].expression [settings]'],
    [],
    /must evaluate to bool but got dyn[^]*<input>:1:4: Syntax error/,
  ],
  [
    'no settings of builtin:cel',
    'cap',
    { ...SPEC, module: 'builtin:cel', settings: null },
    ['spec.settings.validations [settings]'],
  ],
  ['valid settings of builtin:cel', 'ap', module('builtin:cel', { validations: [{ expression: 'true' }] }), []],
  [
    'invalid settings of builtin:pod-security',
    'cap',
    module('builtin:pod-security', { enforce: 'basline' }),
    ['spec.settings.enforce [settings]'],
    [],
    /expected one of privileged, baseline, restricted/,
  ],
  [
    'settings that are too deep',
    'cap',
    module('https://example.com/p', nested(200)),
    ['spec.settings [not-runnable]'],
    [],
    /levels of nesting/,
  ],

  ['a group', 'capg', group('first() && (!second() || first() == second())'), [], []],
  [
    'an unknown member',
    'capg',
    group('frst() || second()'),
    ['spec.expression [group-expression]'],
    [],
    /line 1, column 1[^]*\^/,
  ],
  [
    'a misspelled member',
    'apg',
    group('first() || secnd()'),
    ['spec.expression [group-expression]'],
    [],
    /did you mean second\(\)\?/,
  ],
  [
    'an expression that is never true',
    'capg',
    group('first() && !first()'),
    ['spec.expression [group-expression]'],
    [],
    /is false whatever the members say: every request would be rejected/,
  ],
  [
    'an expression that is always true',
    'capg',
    group('first() || second() || true'),
    [],
    ['spec.expression [group-expression]'],
    /the group rejects nothing/,
  ],
  ['a member that is not called', 'capg', group('first'), ['spec.expression [group-expression]']],
  [
    'an operator of CEL that groups do not have',
    'capg',
    group('first() ? second() : true'),
    ['spec.expression [group-expression]'],
    [],
    /unexpected character/,
  ],
  ['a number', 'capg', group('1 + 1 == 2'), ['spec.expression [group-expression]']],
  ['an argument', 'capg', group('first(1)'), ['spec.expression [group-expression]']],
  ['no member', 'capg', group('true'), ['spec.expression [group-expression]'], [], /uses no member/],
  [
    'an invalid member',
    'apg',
    group('first()', { third: { module: 'file:///x' } }),
    ['spec.policies[third].module [module-source]'],
  ],
  [
    'mutations of a policy that may not mutate',
    'cap',
    module('builtin:cel', MUTATIONS),
    ['spec.settings.mutations [settings-rights]'],
    [],
    /Forbidden: a policy with mutating: false cannot change objects.*: set spec\.mutating to true/,
  ],
  ['mutations of a policy that may mutate', 'cap', { ...module('builtin:cel', MUTATIONS), mutating: true }, []],
  [
    'mutations of a member',
    'capg',
    group('first()', { third: { module: 'builtin:cel', settings: MUTATIONS } }),
    ['spec.policies[third].settings.mutations [settings-rights]'],
    [],
    /members of a group cannot change objects/,
  ],
  [
    'parameters that the policy may not read',
    'cap',
    { ...module('builtin:cel', PARAMETERS), ...reads(NAMESPACE, { ...CONFIG_MAP, kind: 'Secret' }) },
    ['spec.settings.paramKind [settings-rights]'],
    [],
    /reads v1\/ConfigMap from the cluster.*: add \{apiVersion: v1, kind: ConfigMap\} to spec\.contextAwareResources/,
  ],
  ['parameters that the policy may read', 'cap', { ...module('builtin:cel', PARAMETERS), ...reads(CONFIG_MAP) }, []],
  [
    'parameters of a policy of a namespace',
    'ap',
    module('builtin:cel', PARAMETERS),
    ['spec.settings.paramKind [settings-rights]'],
    [],
    /policies of a namespace never may/,
  ],
  [
    'parameters of a member',
    'capg',
    group('first()', { third: { module: 'builtin:cel', settings: PARAMETERS } }),
    ['spec.policies[third].settings.paramKind [settings-rights]'],
    [],
    /add \{apiVersion: v1, kind: ConfigMap\} to spec\.policies\[third\]\.contextAwareResources/,
  ],
  [
    'parameters that a member may read',
    'capg',
    group('first()', { third: { module: 'builtin:cel', settings: PARAMETERS, ...reads(CONFIG_MAP) } }),
    [],
  ],
  [
    'parameters of a member in a namespace',
    'apg',
    group('first()', { third: { module: 'builtin:cel', settings: PARAMETERS } }),
    ['spec.policies[third].settings.paramKind [settings-rights]'],
  ],
  [
    'namespaces that the policy may not read',
    'cap',
    module('builtin:cel', { ...LABELLED, ...OF_NAMESPACE }),
    [
      'spec.settings.matchConstraints.namespaceSelector [settings-rights]',
      'spec.settings.validations[1].expression [settings-rights]',
    ],
    [],
    /reads v1\/Namespace from the cluster/,
  ],
  [
    'namespaces that the policy may read',
    'cap',
    { ...module('builtin:cel', { ...LABELLED, ...OF_NAMESPACE }), ...reads(NAMESPACE) },
    [],
  ],
  [
    'a namespace for parameters that have none',
    'cap',
    {
      ...module('builtin:cel', {
        ...PARAMETERS,
        paramKind: NAMESPACE,
        paramRef: { ...PARAMETERS.paramRef, namespace: 'a' },
      }),
      ...reads(NAMESPACE),
    },
    ['spec.settings.paramRef.namespace [settings]'],
  ],
  [
    'a namespace for parameters that no namespace can have',
    'cap',
    {
      ...module('builtin:cel', { ...PARAMETERS, paramRef: { ...PARAMETERS.paramRef, namespace: 'Shop/1' } }),
      ...reads(CONFIG_MAP),
    },
    ['spec.settings.paramRef.namespace [settings]'],
  ],
  ...(
    [
      [{}, {}, true],
      [{ resources: ['*'] }, {}, true],
      [{ resources: ['*/*'] }, { resources: ['pods/eviction'] }, true],
      [{ resources: ['*'] }, { resources: ['pods/eviction'] }, false],
      [{ resources: ['pods/*'] }, {}, true],
      [{ resources: ['*/eviction'] }, { resources: ['pods/eviction'] }, true],
      [{ resources: ['services'] }, {}, false],
      [{ resources: ['pods/eviction'] }, {}, false],
      [{ operations: ['*'] }, {}, true],
      [{ operations: ['UPDATE'] }, {}, false],
      [{ scope: 'Cluster' }, {}, true],
      [{ scope: 'Cluster' }, { scope: 'Namespaced' }, false],
      [{ apiGroups: ['apps'] }, {}, false],
      [{ apiGroups: ['*'] }, {}, true],
      [{ apiVersions: ['v2'] }, {}, true],
      [{ apiGroups: ['events.k8s.io'], resources: ['events'] }, { resources: ['events'] }, true],
    ] as const
  ).map(([constraint, rule, meets]): Case => {
    const settings = {
      validations: [{ expression: 'true' }],
      matchConstraints: { resourceRules: [{ ...RULE, ...constraint }] },
    };
    const spec = { ...module('builtin:cel', settings), rules: [{ ...RULE, ...rule }] };
    const warnings = meets ? [] : ['spec.settings.matchConstraints.resourceRules [constraints-never-match]'];
    return [
      `constraints ${JSON.stringify(constraint)} with the rule ${JSON.stringify(rule)}`,
      'cap',
      spec,
      [],
      warnings,
    ];
  }),
  [
    'more constraints than are compared',
    'cap',
    {
      ...module('builtin:cel', {
        validations: [{ expression: 'true' }],
        matchConstraints: {
          resourceRules: [{ ...CUSTOM, resources: Array.from({ length: 20_000 }, (_, index) => `other${index}`) }],
        },
      }),
      rules: [{ ...CUSTOM, resources: Array.from({ length: 100 }, (_, index) => `kinds${index}`) }],
    },
    [],
    [],
  ],
  [
    'constraints of another version, when both are exact',
    'cap',
    {
      ...module('builtin:cel', {
        validations: [{ expression: 'true' }],
        matchConstraints: { matchPolicy: 'Exact', resourceRules: [{ ...RULE, apiVersions: ['v2'] }] },
      }),
      matchPolicy: 'Exact',
    },
    [],
    ['spec.settings.matchConstraints.resourceRules [constraints-never-match]'],
  ],
  ...(
    [
      ['object.spec.x == 1', ['DELETE'], 'rejects'],
      ['object.spec.x == 1', ['CREATE', 'UPDATE', 'DELETE'], 'warns'],
      ['object.spec.x == 1', ['*'], 'warns'],
      ['object.spec.x == 1', ['CREATE', 'UPDATE', 'CONNECT'], 'accepts'],
      ['oldObject.spec.x == 1', ['CREATE'], 'rejects'],
      ['oldObject.spec.x == 1', ['CREATE', 'CONNECT'], 'rejects'],
      ['oldObject.spec.x == 1', ['CREATE', 'UPDATE'], 'warns'],
      ['oldObject.spec.x == 1', ['UPDATE', 'DELETE'], 'accepts'],
      ['variables.name != "a"', ['DELETE'], 'rejects'],
      ['object["spec"].x == 1', ['DELETE'], 'rejects'],
      ['object.spec.containers.all(c, c.image != "a")', ['DELETE'], 'rejects'],
      ['has(object.metadata.labels) ? true : false', ['DELETE'], 'rejects'],
      ['has(object.metadata)', ['DELETE'], 'accepts'],
      ['object.?spec.x.orValue(1) == 1', ['DELETE'], 'accepts'],
      ['object == null || object.spec.x == 1', ['DELETE'], 'accepts'],
      ['object != null ? object.spec.x == 1 : true', ['DELETE'], 'accepts'],
      ['[1].all(x, object.spec.x == x)', ['DELETE'], 'accepts'],
      ['oldObject.?a.orValue(oldObject.b) == 1', ['CREATE'], 'accepts'],
    ] as const
  ).map(([expression, operations, outcome]): Case => {
    const variables = [{ name: 'name', expression: 'object.metadata.name' }];
    const found = ['spec.settings.validations[0].expression [null-object]'];
    return [
      `${expression} on ${operations.join(', ')}`,
      'cap',
      {
        ...module('builtin:cel', { variables, validations: [{ expression }] }),
        rules: [{ ...RULE, operations }],
      },
      outcome === 'rejects' ? found : [],
      outcome === 'warns' ? found : [],
    ];
  }),
  ...(
    [
      [{ matchConditions: [{ name: 'a', expression: 'object.spec.x == 1' }] }, ['matchConditions[0].expression']],
      [{ matchConditions: [{ name: 'a', expression: 'object != null' }] }, []],
      [
        {
          matchConditions: [
            { name: 'a', expression: 'object.spec.x == 1' },
            { name: 'b', expression: 'request.name == "a"' },
          ],
        },
        [],
      ],
      [{ failurePolicy: 'Ignore' }, []],
      [{ matchConstraints: { objectSelector: { matchLabels: { a: 'b' } } } }, []],
      [
        {
          auditAnnotations: [{ key: 'a', valueExpression: 'string(object.a)' }],
          validations: [{ expression: 'true' }],
        },
        ['auditAnnotations[0].valueExpression'],
      ],
    ] as const
  ).map(([settings, fields]): Case => {
    const spec = module('builtin:cel', { validations: [{ expression: 'object.spec.x == 1' }], ...settings });
    return [
      `a read of the object on DELETE, and ${JSON.stringify(settings)}`,
      'cap',
      { ...spec, rules: [{ ...RULE, operations: ['DELETE'] }] },
      fields.map((field) => `spec.settings.${field} [null-object]`),
    ];
  }),
  [
    'a read of the object on DELETE, behind a match condition',
    'cap',
    {
      ...module('builtin:cel', { validations: [{ expression: 'object.spec.x == 1' }] }),
      rules: [{ ...RULE, operations: ['DELETE'] }],
      matchConditions: [{ name: 'a', expression: 'object != null' }],
    },
    [],
  ],
  ...(
    [
      [['object.metadata.name != "a"'], {}, true],
      [['object.metadata.name != "a"', 'request.name != "a"'], {}, false],
      [['object.metadata.name != "a"'], { failurePolicy: 'Ignore' }, false],
      [['has(object.metadata)'], {}, false],
    ] as const
  ).map(([expressions, spec, isRefused]): Case => [
    `match conditions ${expressions.join(', ')} on DELETE, and ${JSON.stringify(spec)}`,
    'cap',
    { ...conditions(...expressions), ...spec, rules: [{ ...RULE, operations: ['DELETE'] }] },
    isRefused ? ['spec.matchConditions[0].expression [null-object]'] : [],
  ]),
  [
    'a match condition of a group that reads the old object on CREATE',
    'capg',
    { ...group('first() || second()'), matchConditions: [{ name: 'a', expression: 'oldObject.a == 1' }] },
    ['spec.matchConditions[0].expression [null-object]'],
  ],
  [
    'pod templates by a policy without a rule for new pods',
    'cap',
    { ...rules({ resources: ['pods'], operations: ['UPDATE'] }, { resources: ['secrets'] }), podTemplates: 'Warn' },
    [],
    ['spec.podTemplates [pod-templates]', 'spec.settings [pod-subresource]'],
    /no rule matches the creation of pods/,
  ],
  ['pod templates by a policy of pods', 'ap', { ...SPEC, podTemplates: 'Enforce' }, []],
  [
    'pod templates, and a condition that only an API server evaluates',
    'cap',
    {
      ...conditions("authorizer.group('apps').resource('deployments').check('create').allowed()"),
      podTemplates: 'Warn',
    },
    ['spec.podTemplates [pod-templates]'],
  ],
  [
    'a mutation that reads the old object on CREATE',
    'cap',
    {
      ...module('builtin:cel', {
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: { expression: "[JSONPatch{op: 'test', path: oldObject.metadata.name}]" },
          },
        ],
      }),
      mutating: true,
    },
    ['spec.settings.mutations[0].jsonPatch.expression [null-object]'],
  ],
  [
    'a mutation that reads the object, which runs only where there is one',
    'cap',
    {
      ...module('builtin:cel', {
        mutations: [
          { patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'test', path: object.metadata.name}]" } },
        ],
      }),
      mutating: true,
      rules: [{ ...RULE, operations: ['DELETE', 'CREATE'] }],
    },
    [],
  ],
  [
    'a member that reads the object on DELETE',
    'capg',
    {
      ...group('first() || second()', {
        first: { module: 'builtin:cel', settings: { validations: [{ expression: 'object.a == 1' }] } },
      }),
      rules: [{ ...RULE, operations: ['DELETE'] }],
    },
    [],
    ['spec.policies[first].settings.validations[0].expression [null-object]'],
  ],
  [
    'kinds that Kubernetes does not have',
    'cap',
    {
      ...SPEC,
      ...reads(
        { apiVersion: 'v1', kind: 'namespace' },
        { apiVersion: 'apps', kind: 'Deployment' },
        { apiVersion: 'apps/v1', kind: 'Deployments' },
        { apiVersion: 'ap/v1', kind: 'Deployment' },
        { apiVersion: 'batch/v1beta1', kind: 'CronJob' },
        { apiVersion: 'example.com/v1', kind: 'Anything' },
      ),
    },
    [
      'spec.contextAwareResources[0].kind [context-aware-kind]',
      'spec.contextAwareResources[1].apiVersion [context-aware-kind]',
      'spec.contextAwareResources[2].kind [context-aware-kind]',
      'spec.contextAwareResources[3].kind [context-aware-kind]',
    ],
    [],
    /no such kind in v1\. Did you mean Namespace\?[^]*Did you mean Deployment\?/,
  ],
  [
    'a kind of a member that Kubernetes does not have',
    'capg',
    group('first()', { third: { ...BASELINE, ...reads({ apiVersion: 'v1', kind: 'Pods' }) } }),
    ['spec.policies[third].contextAwareResources[0].kind [context-aware-kind]'],
  ],
  [
    'invalid settings of a member',
    'capg',
    group('first()', { third: { module: 'builtin:cel', settings: {} } }),
    ['spec.policies[third].settings.validations [settings]'],
  ],
  [
    'too many members',
    'capg',
    group('first()', Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`m${index}`, BASELINE]))),
    ['spec.policies [group-members]'],
    [],
    /expected 1 to 64 members, got 66/,
  ],
  ['a member whose name is no identifier', 'capg', group('first()', { 'a-b': BASELINE }), ['spec.policies [schema]']],

  [
    'several mistakes at once',
    'cap',
    { ...conditions('x'), sideEffects: 'Some', module: 'nothing' },
    [
      'spec.matchConditions[0].expression [condition-expression]',
      'spec.sideEffects [side-effects]',
      'spec.module [module-reference]',
    ],
  ],
  [
    'a field of the wrong type, which another version of the schema may allow',
    'cap',
    { ...SPEC, rules: 'all' },
    ['spec.rules [schema]', '<nil> [schema]'],
  ],
];

function nested(depth: number): object {
  let value: object = {};
  for (let level = 0; level < depth; level += 1) {
    value = { a: value };
  }
  return value;
}

const PROFILE = { apiVersion: 'example.com/v1', kind: 'ToolProfile', name: 'profile' };
/** A policy with parameters. */
const parameters = (more: object = {}, spec: object = {}): object => ({
  ...SPEC,
  parameters: {
    from: { resource: PROFILE },
    overridable: ['enforce'],
    settingsExpression: "{'enforce': params.spec.level}",
    ...more,
  },
  ...spec,
});
const fromNamespace = (keys: object, spec?: object): object => parameters({ from: { namespace: keys } }, spec);
const RESOURCE = 'spec.parameters.from.resource';
/** A profile of pods whose required settings come from parameters. */
const profileOf = (overridable: readonly string[]): object =>
  parameters(
    { overridable, settingsExpression: `{'${overridable.join("': 1, '")}': 1}` },
    {
      ...module('builtin:pod-profile', { supplementalGroups: 'RunAsAny', seLinux: 'RunAsAny' }),
      mutating: true,
    },
  );
const PARAMETER_CASES: readonly Case[] = [
  ['parameters of a resource', 'cap', parameters(), []],
  ['parameters of a resource in its namespace', 'ap', parameters(), []],
  ['parameters of annotations', 'cap', fromNamespace({ annotations: ['example.com/level'] }), []],
  ['parameters of a member', 'capg', group('first()', { first: parameters() }), []],
  [
    'parameters of both sources',
    'cap',
    parameters({ from: { resource: PROFILE, namespace: { labels: ['a'] } } }),
    ['spec.parameters.from [schema]'],
  ],
  ['parameters without a source', 'cap', parameters({ from: {} }), ['spec.parameters.from [schema]']],
  ['parameters of no keys', 'cap', fromNamespace({ labels: [] }), ['spec.parameters.from.namespace [schema]']],
  [
    'parameters of an invalid key',
    'cap',
    fromNamespace({ labels: ['a b'] }),
    ['spec.parameters.from.namespace.labels[0] [parameters]'],
  ],
  [
    'parameters that override nothing',
    'cap',
    parameters({ overridable: [] }),
    ['spec.parameters.overridable [schema]'],
  ],
  [
    'an expression over the request',
    'cap',
    parameters({ settingsExpression: "{'enforce': request.name}" }),
    ['spec.parameters.settingsExpression [parameters]'],
    [],
    /undeclared reference to 'request'/,
  ],
  [
    'an expression that sets another key',
    'cap',
    parameters({ settingsExpression: "{'exemptions': params.spec}" }),
    ['spec.parameters.settingsExpression [parameters]'],
    [],
    /"exemptions" is not overridable/,
  ],
  [
    'parameters of a missing kind',
    'cap',
    parameters({ from: { resource: { ...PROFILE, apiVersion: 'v1', kind: 'ConfigMaps' } } }),
    [`${RESOURCE}.kind [parameters]`],
    [],
    /Did you mean ConfigMap/,
  ],
  [
    'parameters of a cluster-scoped kind',
    'cap',
    parameters({ from: { resource: { ...PROFILE, apiVersion: 'v1', kind: 'Node' } } }),
    [`${RESOURCE}.kind [parameters]`],
    [],
    /got a cluster-scoped one/,
  ],
  [
    'parameters of an invalid name',
    'cap',
    parameters({ from: { resource: { ...PROFILE, name: 'A' } } }),
    [`${RESOURCE}.name [parameters]`],
  ],
  [
    'parameters of Secrets',
    'ap',
    parameters({ from: { resource: { ...PROFILE, apiVersion: 'v1', kind: 'Secret' } } }),
    [`${RESOURCE}.kind [parameters]`],
  ],
  [
    'parameters of a fixed namespace',
    'cap',
    parameters({ from: { resource: { ...PROFILE, namespace: 'shared' } } }),
    [],
  ],
  [
    'settings that parameters complete',
    'cap',
    parameters({}, { settings: { enforce: 'none' } }),
    [],
    ['spec.settings.enforce [settings]'],
  ],
  ['a required setting that parameters give', 'cap', profileOf(['runAsUser', 'fsGroup']), []],
  ['a required setting that nothing gives', 'cap', profileOf(['runAsUser']), [], ['spec.settings.fsGroup [settings]']],
  [
    'defaults that are invalid',
    'cap',
    parameters({ notFound: 'UseDefaults' }, { settings: { enforce: 'none' } }),
    ['spec.settings.enforce [settings]'],
  ],
  [
    'parameters of another namespace that deletions need',
    'cap',
    parameters(
      { from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile', namespace: 'shared' } } },
      { rules: [{ ...RULE, operations: ['*'] }] },
    ),
    [],
    ['spec.parameters.notFound [parameters]', 'spec.settings [pod-subresource]'],
  ],
  [
    'parameters that go with the namespace',
    'cap',
    parameters({}, { rules: [{ ...RULE, operations: ['*'] }] }),
    [],
    ['spec.settings [pod-subresource]'],
  ],
];

const KEEPS = 'spec.rules[0].operations [keeps-namespace]';
const rulesFor = (operations: readonly string[], more: object = {}): object => ({
  ...SPEC,
  rules: [{ ...RULE, resources: ['configmaps'], operations, ...more }],
});

/** Policies that may keep a namespace Terminating by their own verdict. */
const DELETION_CASES: readonly Case[] = [
  ['a rule for deletions', 'cap', rulesFor(['CREATE', 'DELETE']), [], [KEEPS], /namespace cannot be deleted either/],
  ['a rule for all operations', 'cap', rulesFor(['*']), [], [KEEPS]],
  ['a rule for updates alone', 'cap', rulesFor(['UPDATE']), [], [KEEPS], /removes the last finalizer/],
  ['a rule for updates alone of a namespace', 'ap', rulesFor(['UPDATE']), [], [KEEPS]],
  ['a rule for what is created and updated', 'cap', rulesFor(['CREATE', 'UPDATE']), []],
  ['a rule for deletions, which never sees the namespace controller', 'ap', rulesFor(['DELETE']), []],
  ['a rule for deletions of namespaces', 'cap', rulesFor(['DELETE'], { resources: ['namespaces'] }), []],
  ['a rule for updates of a subresource', 'cap', rulesFor(['UPDATE'], { resources: ['pods/status'] }), []],
  ['a rule for deletions in monitor mode', 'cap', { ...rulesFor(['DELETE']), mode: 'monitor' }, []],
  [
    'a rule for updates with the condition that the warning names',
    'cap',
    {
      ...rulesFor(['UPDATE']),
      matchConditions: [{ name: 'not-ending', expression: '!has(object.metadata.deletionTimestamp)' }],
    },
    [],
  ],
  [
    'a rule for deletions with the condition that the warning names',
    'cap',
    {
      ...rulesFor(['DELETE']),
      matchConditions: [
        {
          name: 'not-cleanup',
          expression: "request.userInfo.username != 'system:serviceaccount:kube-system:namespace-controller'",
        },
      ],
    },
    [],
  ],
];

const PODS_AND_UPDATES = [{ ...RULE, operations: ['CREATE', 'UPDATE'] }];
const cel = (settings: object, more: object = {}): object => ({ ...module('builtin:cel', settings), ...more });
const validation = (expression: string, rules: readonly object[] = [RULE]): object =>
  cel({ validations: [{ expression }] }, { rules });
const mutation = (key: 'jsonPatch' | 'applyConfiguration', expression: string, more: object = {}): object => {
  const patchType = key === 'jsonPatch' ? 'JSONPatch' : 'ApplyConfiguration';
  return cel({ mutations: [{ patchType, [key]: { expression } }] }, { mutating: true, ...more });
};
const patch = (expression: string, more: object = {}): object => mutation('jsonPatch', expression, more);
const readsNamespaces = { contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }] };
const EXPRESSION = 'spec.settings.validations[0].expression';
const PATCH = 'spec.settings.mutations[0].jsonPatch.expression';

const LINT_CASES: readonly Case[] = [
  [
    'a condition that reads namespaceObject',
    'cap',
    conditions("namespaceObject.metadata.labels.env == 'prod'"),
    ['spec.matchConditions[0].expression [namespace-object]'],
    [],
    /always null in match conditions.*select namespaces by spec\.namespaceSelector/s,
  ],
  [
    'one of two conditions that reads namespaceObject',
    'cap',
    conditions("namespaceObject.metadata.labels.env == 'prod'", "request.name != 'x'"),
    ['spec.matchConditions[0].expression [namespace-object]'],
  ],
  [
    'a condition that reads namespaceObject, where failures are ignored',
    'cap',
    { ...conditions("namespaceObject.metadata.labels.env == 'prod'"), failurePolicy: 'Ignore' },
    [],
    ['spec.matchConditions[0].expression [namespace-object]'],
    /would apply to no request/,
  ],
  [
    'a condition that tests namespaceObject first',
    'cap',
    conditions('namespaceObject == null || has(namespaceObject.metadata.labels)'),
    [],
    ['spec.matchConditions[0].expression [namespace-object]'],
  ],
  [
    'a condition of settings that reads namespaceObject',
    'cap',
    cel(
      {
        matchConditions: [{ name: 'a', expression: "namespaceObject.metadata.name == 'a'" }],
        validations: [{ expression: 'true' }],
      },
      readsNamespaces,
    ),
    ['spec.settings.matchConditions[0].expression [namespace-object]'],
  ],
  ...(
    [
      [[{ ...RULE, resources: ['nodes'] }], [`${EXPRESSION} [null-object]`], []],
      [[{ ...RULE, resources: ['namespaces', 'nodes'] }], [`${EXPRESSION} [null-object]`], []],
      [
        [{ ...RULE, apiGroups: ['example.com'], resources: ['widgets'], scope: 'Cluster' }],
        [`${EXPRESSION} [null-object]`],
        [],
      ],
      [[{ ...RULE, resources: ['pods', 'nodes'] }], [], [`${EXPRESSION} [null-object]`]],
      [[{ ...RULE, resources: ['*'] }], [], [`${EXPRESSION} [null-object]`]],
      [[{ ...RULE, resources: ['*'], scope: 'Namespaced' }], [], []],
      [[RULE], [], []],
      [[{ ...RULE, apiGroups: ['example.com'], resources: ['widgets'] }], [], []],
    ] as const
  ).map(([ruled, errors, warnings]): Case => [
    `namespaceObject in a validation for ${JSON.stringify(ruled)}`,
    'cap',
    { ...validation("namespaceObject.metadata.name != 'x'", ruled), ...readsNamespaces },
    errors,
    warnings,
  ]),
  [
    'namespaceObject in a validation that tests it, for nodes',
    'cap',
    {
      ...validation("namespaceObject == null || namespaceObject.metadata.name != 'x'", [
        { ...RULE, resources: ['nodes'] },
      ]),
      ...readsNamespaces,
    },
    [],
  ],
  [
    'a comment that takes the rest of an expression',
    'cap',
    validation("object.metadata.name != 'x' // the name is reserved && object.spec.hostNetwork != true"),
    [],
    [`${EXPRESSION} [comment]`],
    /the comment takes "&& object\.spec\.hostNetwork != true"/,
  ],
  [
    'a folded comment before a call',
    'cap',
    cel({
      variables: [{ name: 'named', expression: "object.spec.containers // of teams .filter(c, c.image != 'x')" }],
      validations: [{ expression: 'variables.named.size() > 0 && has(object.spec.ephemeralContainers)' }],
    }),
    [],
    ['spec.settings.variables[0].expression [comment]', `${EXPRESSION} [pod-subresource]`],
    /the comment takes "\.filter\(c/,
  ],
  [
    'a folded comment before the expression',
    'cap',
    validation('// no pod on the host network !has(object.spec.hostNetwork)'),
    [`${EXPRESSION} [settings]`],
    [],
    /a comment takes the whole expression/,
  ],
  ...[
    "object.metadata.name != 'x' // the name is reserved",
    "// pods of teams\nobject.metadata.name != 'x' // reserved\n&& object.metadata.name != 'y'",
    "object.metadata.name != 'x' // && object.spec.hostNetwork != true",
    "object.metadata.name != 'x' // never y, z && w",
    "object.metadata.name != 'x' // see .spec and .map(x)",
    "object.metadata.name != 'http://x && y'",
  ].map((expression): Case => [`a comment of its own in ${expression}`, 'cap', validation(expression), []]),
  ...[
    "object.spec.containers.all(c, c.resources.limits.cpu <= '2')",
    "object.spec.containers.all(c, c.?resources.?limits[?'memory'].orValue('0') < '1Gi')",
    'object.spec.containers.all(c, int(c.resources.requests.memory) <= 2000)',
    "object.spec.containers.all(c, c.resources.limits['nvidia.com/gpu'] > 1)",
    "object.spec.containers.all(c, c.resources.limits.all(k, c.resources.limits[k] <= '2'))",
    "object.spec.volumes.all(v, !has(v.emptyDir) || v.emptyDir.sizeLimit <= '1Gi')",
  ].map((expression): Case => [
    `quantities that are no numbers in ${expression}`,
    'cap',
    validation(expression),
    [],
    [`${EXPRESSION} [quantity]`],
    /write quantity\(/,
  ]),
  ...[
    "object.spec.containers.all(c, int(c.resources.limits.cpu.replace('m', '')) <= 500)",
    'object.spec.containers.all(c, dyn(c.resources.limits.cpu) <= 2)',
    "object.spec.containers.all(c, string(c.resources.limits.cpu) <= '2')",
    "object.spec.containers.all(c, c.env.all(e, e.valueFrom.resourceFieldRef.divisor < '2'))",
    "object.spec.overhead.all(k, v, v < '2')",
    "object.spec.overhead.all(name, object.spec.overhead[name] < '2')",
  ].map((expression): Case => [
    `quantities behind functions, and by the schema of pods in ${expression}`,
    'cap',
    validation(expression),
    [],
    [`${EXPRESSION} [quantity]`],
    /write quantity\([cevo.]/,
  ]),
  ...[
    "object.spec.containers.all(c, c.resources.limits.cpu != '0.5')",
    "object.spec.containers.all(c, c.resources.limits.memory in ['1Gi', '2048Mi'])",
    "object.spec.containers.all(c, c.resources.limits.cpu == '1000m')",
  ].map((expression): Case => [
    `quantities that API servers write in another way in ${expression}`,
    'cap',
    validation(expression),
    [],
    [`${EXPRESSION} [quantity]`],
    /which API servers write as "(?:500m|2Gi|1)", never/,
  ]),
  [
    'a quantity of a HorizontalPodAutoscaler',
    'cap',
    validation("object.spec.metrics.all(m, m.resource.target.averageValue < '100m')", [
      {
        apiGroups: ['autoscaling'],
        apiVersions: ['v2'],
        resources: ['horizontalpodautoscalers'],
        operations: ['CREATE'],
      },
    ]),
    [],
    [`${EXPRESSION} [quantity]`],
  ],
  [
    'a quantity in a variable',
    'cap',
    cel({
      variables: [{ name: 'cpu', expression: 'object.spec.containers[0].resources.limits.cpu' }],
      validations: [{ expression: "variables.cpu <= '2'" }],
    }),
    [],
    [`${EXPRESSION} [quantity]`],
  ],
  ...[
    "object.spec.containers.all(c, quantity(c.resources.limits.cpu).compareTo(quantity('2')) <= 0)",
    "object.spec.containers.all(c, c.resources.limits.cpu == '2' || has(c.resources.limits.memory))",
    'object.spec.minReplicas <= object.spec.max.count',
    'int(object.spec.limits.count) < 3',
    "object.spec.overhead.all(name, name < 'm')",
    "object.spec.containers.all(c, c.resources.limits.cpu in ['500m', '1'])",
  ].map((expression): Case => [`no quantity in ${expression}`, 'cap', validation(expression), []]),
  ...[
    ["request.operation != 'create'", 'write "CREATE"'],
    ["'Update' == request.operation", 'write "UPDATE"'],
    ["request.operation in ['CREATE', 'PATCH']", 'write "UPDATE"'],
    ["object.kind != 'pod'", 'is "Pod", never "pod"'],
    ["request.kind.kind in ['Pod', 'deployments']", 'is "Deployment", never "deployments"'],
    ["request.resource.resource != 'Pods'", 'is "pods", never "Pods"'],
    ["request.resource.resource == 'pod'", 'is "pods", never "pod"'],
    ["request.resource.resource == 'pods/exec'", 'which is in request.subResource'],
    ["request.resource.resource == 'Widgets'", 'in lower case and plural'],
    ["request.subResource == 'Status'", 'in lower case, such as "status"'],
    ["request.kind.group == 'core'", 'for kinds such as Pod, write ""'],
    ["request.resource.group == 'apps/v1'", 'the version is in another field'],
    ["request.kind.version == 'apps/v1'", 'the group is in another field'],
    ["object.apiVersion == 'core/v1'", 'is "v1", never "core/v1"'],
    ["request.userInfo.username == 'system:serviceaccounts:a:b'", 'is "system:serviceaccount:a:b"'],
    ["request.operation.startsWith('cre')", 'startsWith\\("cre"\\) is never true'],
    ["request.operation.contains('Delete')", 'is never true'],
  ].map(([expression = '', text = '']): Case => [
    `a value that requests never have in ${expression}`,
    'cap',
    validation(expression),
    [],
    [`${EXPRESSION} [request-value]`],
    new RegExp(text),
  ]),
  ...[
    "request.operation in ['CREATE', 'UPDATE']",
    "request.operation in ['create', 'CREATE']",
    "request.operation.lowerAscii() == 'create'",
    "object.kind in ['Pod', 'Widget', 'gadget']",
    "request.resource.resource == 'pods'",
    "request.name == 'create'",
    "request.operation.startsWith('CREA') || request.operation.contains('DELETE')",
    "request.resource.resource in ['pods', 'pod', 'widget']",
    "request.subResource in ['', 'status'] && request.kind.group in ['', 'apps'] && request.kind.version == 'v1'",
    "request.userInfo.groups.exists(g, g == 'system:serviceaccounts:a')",
  ].map((expression): Case => [`a value that requests have in ${expression}`, 'cap', validation(expression), []]),
  [
    'a value that requests never have in a condition',
    'cap',
    conditions("request.operation == 'create'"),
    [],
    ['spec.matchConditions[0].expression [request-value]'],
  ],
  ...[
    "object.kind + '/' + object.metadata.name + ' is not allowed'",
    "'at most ' + string(object.spec.replicas)",
    '"%s is not allowed".format([request.name])',
    "has(object.spec) ? 'a' : 'b'",
    'pod {{ request.object.metadata.name }} is not allowed',
    'pod ${object.metadata.name} is not allowed',
    'pod {object.metadata.name} is not allowed',
    'pod %(object.metadata.name) is not allowed',
  ].map((message): Case => [
    `the message ${message}`,
    'cap',
    cel({ validations: [{ expression: 'true', message }] }),
    [],
    ['spec.settings.validations[0].message [message-expression]'],
    /messageExpression/,
  ]),
  ...[
    'object.spec.hostNetwork must be false',
    'object.spec.hostNetwork',
    'set object.metadata.labels.team + object.metadata.labels.app',
    "use 'a' + 'b'",
    'at most {{ limit }} replicas',
    'costs $5 (object.spec)',
  ].map((message): Case => [
    `the message ${message}`,
    'cap',
    cel({ validations: [{ expression: 'true', message }] }),
    [],
  ]),
  ...(
    [
      ['[JSONPatch{op: "multiply", path: "/metadata/labels", value: {"a": "b"}}]', /has no operation "multiply"/],
      ['[JSONPatch{op: "update", path: "/metadata/labels", value: {"a": "b"}}]', /Did you mean replace\?/],
      ['[JSONPatch{op: "Delete", path: "/metadata/labels/a"}]', /Did you mean remove\?/],
      ['[JSONPatch{op: "add", path: "", value: object}]', /the path is empty/],
      ['[JSONPatch{op: "copy", from: "/metadata/labels", path: ""}]', /the path is empty/],
      ['[JSONPatch{op: "add", path: "#/metadata/labels", value: {"a": "b"}}]', /write "\/metadata\/labels"/],
      ['[JSONPatch{op: "add", path: " /metadata/labels", value: {"a": "b"}}]', /write "\/metadata\/labels"/],
      ['object.spec.containers.map(c, JSONPatch{op: "plus", path: "/metadata/labels/a"})', /can never succeed/],
      [
        '(object.spec.containers + object.spec.?initContainers.orValue([])).map(c, JSONPatch{op: "plus", path: "/spec"})',
        /can never succeed/,
      ],
      ['[JSONPatch{op: "Add", path: "/metadata/labels", value: {"a": "b"}}]', /Did you mean add\?/],
      ['[JSONPatch{path: "/metadata/labels", value: {"a": "b"}}]', /has no op/],
      ['[JSONPatch{op: "add", value: {"a": "b"}}]', /has no path/],
      ['[JSONPatch{op: "move", path: "/metadata/labels/a"}]', /has no from/],
      ['[JSONPatch{op: "add", path: "metadata/labels", value: {"a": "b"}}]', /write "\/metadata\/labels"/],
      ['[JSONPatch{op: "add", path: "spec/" + request.name, value: "b"}]', /does not begin with/],
      ['[JSONPatch{op: "add", path: "$.metadata.labels", value: {"a": "b"}}]', /write "\/metadata\/labels"/],
      [
        '[JSONPatch{op: "add", path: "/metadata/labels/app.kubernetes.io/name", value: "x"}]',
        /\/metadata\/labels\/app\.kubernetes\.io~1name/,
      ],
      ['[JSONPatch{op: "add", path: "/metadata/annotations/" + "a.b/c", value: "x"}]', /a\.b~1c/],
      ['[JSONPatch{op: "copy", from: "/metadata/labels/a.b/c", path: "/metadata/labels/x"}]', /a\.b~1c/],
      ['[JSONPatch{op: "add", path: "/spec/containers/image", value: "x"}]', /\/spec\/containers is a list/],
      [
        '[JSONPatch{op: "remove", path: "/spec/containers/-"}]',
        /\/spec\/containers is a list: expected an index, got "-"/,
      ],
      ['[JSONPatch{op: "add", path: "/metadata/labels/a", value: true}]', /the value is true or false, .* a text/],
      [
        '[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": 1}}]',
        /a number, where the field has a text, in "a"/,
      ],
      [
        '[JSONPatch{op: "add", path: "/spec/priority", value: "1"}]',
        /the value is a text, where the field has a number/,
      ],
      [
        'request.name == "a" ? [JSONPatch{op: "plus", path: "/spec"}] : [JSONPatch{op: "minus", path: "/spec"}]',
        /can never succeed/,
      ],
    ] as const
  ).map(([expression, text]): Case => {
    const count = [...expression.matchAll(/JSONPatch\{/g)].length;
    return [
      `the mutation ${expression}`,
      'cap',
      patch(expression),
      Array.from({ length: count }, () => `${PATCH} [mutation]`),
      [],
      text,
    ];
  }),
  ...(
    [
      ['value: object.spec.priority', /tried on a sample, .* for a Pod: .*\.metadata\.labels\.x: expected string/],
      ['value: object.spec.containers[0].resources', /\.metadata\.labels\.x: expected string/],
      ['value: request.object.metadata.labels', /\.metadata\.labels\.x: expected string/],
    ] as const
  ).map(([value, text]): Case => [
    `a mutation that fails on a sample: ${value}`,
    'cap',
    patch(`[JSONPatch{op: "add", path: "/metadata/labels/x", ${value}}]`),
    [],
    [`${PATCH} [mutation]`],
    text,
  ]),
  [
    'a mutation whose computed operation does not exist',
    'cap',
    patch('[JSONPatch{op: request.operation, path: "/metadata/labels/x", value: "a"}]'),
    [],
    [`${PATCH} [mutation]`],
    /Unexpected kind: CREATE/,
  ],
  [
    'a computed key that is not escaped',
    'cap',
    patch('[JSONPatch{op: "add", path: "/metadata/labels/example.com/" + request.name, value: "a"}]'),
    [`${PATCH} [mutation]`],
    [],
    /write ~1 for "\/"/,
  ],
  [
    'a mutation of each init container, which a pod may not have',
    'cap',
    patch('object.spec.?initContainers.orValue([]).map(c, JSONPatch{op: "plus", path: "/spec"})'),
    [],
    [`${PATCH} [mutation]`],
    /fails where it comes to this/,
  ],
  [
    'an operation without its value',
    'cap',
    patch('[JSONPatch{op: "add", path: "/metadata/labels/a"}]'),
    [],
    [`${PATCH} [mutation]`],
    /"add" has no value: it takes null/,
  ],
  [
    'a mutation that fails for some requests',
    'cap',
    patch('request.name == "a" ? [JSONPatch{op: "plus", path: "/spec"}] : []'),
    [],
    [`${PATCH} [mutation]`],
    /fails where it comes to this/,
  ],
  [
    'a mutation that fails for one of two kinds',
    'cap',
    patch('[JSONPatch{op: "add", path: "/spec/replicas/x", value: 1}]', {
      rules: [RULE, { ...RULE, apiGroups: ['apps'], resources: ['deployments'] }],
    }),
    [],
    [`${PATCH} [mutation]`, `${PATCH} [mutation]`],
    /\(of Pod\)/,
  ],
  [
    'a key that is not escaped, in any object',
    'cap',
    patch('[JSONPatch{op: "add", path: "/metadata/labels/a.b/c", value: "x"}]', {
      rules: [{ ...RULE, apiGroups: ['example.com'], resources: ['widgets'] }],
    }),
    [`${PATCH} [mutation]`],
  ],
  ...[
    '[JSONPatch{op: "add", path: "/metadata/labels/app.kubernetes.io~1name", value: "x"}]',
    '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: request.name}]',
    '[JSONPatch{op: "add", path: "/metadata/labels/" + request.name, value: "x"}]',
    '[JSONPatch{op: object.data.op, path: request.name, value: "x"}]',
    '[JSONPatch{op: "add", path: "/metadata/labels/x", value: string(object.spec.priority)}]',
    '[JSONPatch{op: "replace", path: "/metadata/labels/team", value: "x"}, JSONPatch{op: "remove", path: "/spec/containers/3"}]',
    '[JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "a"}}, JSONPatch{op: "test", path: "/spec/containers/0/image", value: "a"}]',
    '[JSONPatch{op: "replace", path: "/spec/containers/0/resources/limits/cpu", value: 2}]',
    '[JSONPatch{op: "add", path: "/spec/containers/0/livenessProbe/httpGet/port", value: 80}]',
    '[JSONPatch{op: "remove", path: "/metadata/labels/a"}]',
    '[JSONPatch{op: "add", path: "/metadata/labels", value: {}}, JSONPatch{op: "move", from: "/metadata/labels/a", path: "/metadata/labels/b"}]',
    'object.spec.containers.map(c, JSONPatch{op: "add", path: "/metadata/annotations/" + c.name, value: c.image})',
  ].map((expression): Case => [`the mutation ${expression}`, 'cap', patch(expression), []]),
  ...(
    [
      ['Object{spec: Object.spec{nodeSelector: {"a": "b"}}}', 'spec.nodeSelector'],
      ['Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "a", args: ["x"]}]}}', 'args'],
      ['Object{spec: Object.spec{initContainers: [{"command": ["x"]}]}}', 'command'],
      ['Object{spec: Object.spec{tolerations: object.spec.tolerations}}', 'tolerations'],
      [
        'Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, args: ["x"]})}}',
        'args',
      ],
    ] as const
  ).map(([expression, field]): Case => [
    `the configuration ${expression}`,
    'cap',
    mutation('applyConfiguration', expression),
    ['spec.settings.mutations[0].applyConfiguration.expression [mutation]'],
    [],
    new RegExp(`${field} of Pod is merged as a whole \\(atomic\\).*JSONPatch`),
  ]),
  [
    'a configuration that sets an atomic field for some requests',
    'cap',
    mutation(
      'applyConfiguration',
      'has(object.spec.nodeSelector) ? Object{} : Object{spec: Object.spec{nodeSelector: {"a": "b"}}}',
    ),
    [],
    ['spec.settings.mutations[0].applyConfiguration.expression [mutation]'],
  ],
  ...[
    'Object{metadata: Object.metadata{labels: {"a": "b"}, finalizers: ["a/b"]}}',
    'Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", image: "b", env: [Object.spec.containers.env{name: "x", value: "y"}]}]}}',
    'Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsNonRoot: true}}}',
  ].map((expression): Case => [
    `the configuration ${expression}`,
    'cap',
    mutation('applyConfiguration', expression),
    [],
  ]),
  [
    'a mutation of an immutable field on updates',
    'cap',
    patch('[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"a": "b"}}]', { rules: PODS_AND_UPDATES }),
    [],
    [`${PATCH} [immutable-field]`],
    /\/spec\/nodeSelector of a Pod is immutable/,
  ],
  [
    'a configuration of an immutable field on updates',
    'cap',
    mutation('applyConfiguration', 'Object{spec: Object.spec{hostNetwork: false}}', { rules: PODS_AND_UPDATES }),
    [],
    ['spec.settings.mutations[0].applyConfiguration.expression [immutable-field]'],
  ],
  ...(
    [
      ['', 'services', '/spec/clusterIP', '"None"', /of a Service is immutable/],
      ['', 'persistentvolumes', '/spec/hostPath', '{"path": "/a"}', /of a PersistentVolume/],
      ['', 'configmaps', '/metadata/namespace', '"a"', /of a ConfigMap/],
      ['', 'pods', '/spec/containers/-', '{"name": "a", "image": "b"}', /\/spec\/containers of a Pod/],
      ['', 'pods', '/spec/terminationGracePeriodSeconds', '3', /of a Pod/],
      ['discovery.k8s.io', 'endpointslices', '/addressType', '"IPv6"', /of an EndpointSlice/],
      ['storage.k8s.io', 'csidrivers', '/spec/attachRequired', 'false', /of a CSIDriver/],
      ['example.com', 'widgets', '/metadata/name', '"a"', /of an object/],
    ] as const
  ).map(([group, resource, path, value, text]): Case => [
    `an immutable field on updates: ${path} of ${resource}`,
    'cap',
    patch(`[JSONPatch{op: "add", path: "${path}", value: ${value}}]`, {
      rules: [{ apiGroups: [group], apiVersions: ['v1'], resources: [resource], operations: ['CREATE', 'UPDATE'] }],
    }),
    [],
    [`${PATCH} [immutable-field]`],
    text,
  ]),
  [
    'a container that a configuration adds on updates',
    'cap',
    mutation(
      'applyConfiguration',
      'Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "mesh", image: "mesh"}]}}',
      { rules: PODS_AND_UPDATES },
    ),
    [],
    ['spec.settings.mutations[0].applyConfiguration.expression [immutable-field]'],
    /\/spec\/initContainers of a Pod/,
  ],
  ...[
    patch('[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"a": "b"}}]'),
    patch('[JSONPatch{op: "add", path: "/spec/tolerations/-", value: {"key": "a"}}]', { rules: PODS_AND_UPDATES }),
    patch(
      'request.operation == "CREATE" ? [JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"a": "b"}}] : []',
      { rules: PODS_AND_UPDATES },
    ),
    patch('[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"a": "b"}}]', {
      rules: PODS_AND_UPDATES,
      matchConditions: [{ name: 'new', expression: "request.operation == 'CREATE'" }],
    }),
    patch('[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "a"}]', { rules: PODS_AND_UPDATES }),
    patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]', { rules: PODS_AND_UPDATES }),
    mutation(
      'applyConfiguration',
      'Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: "b"})}}',
      {
        rules: PODS_AND_UPDATES,
      },
    ),
  ].map((spec, index): Case => [`a mutation that updates allow, ${index}`, 'cap', spec, []]),
  [
    'ephemeral containers that no rule matches',
    'cap',
    validation('object.spec.?ephemeralContainers.orValue([]).all(c, c.image != "x")'),
    [],
    [`${EXPRESSION} [pod-subresource]`],
    /pods\/ephemeralcontainers/,
  ],
  [
    'resources of updated pods, without their subresource',
    'cap',
    validation('object.spec.containers.all(c, has(c.resources.limits))', PODS_AND_UPDATES),
    [],
    [`${EXPRESSION} [pod-subresource]`],
    /pods\/resize/,
  ],
  [
    'the Pod Security Standards for updated pods, without their ephemeral containers',
    'cap',
    { ...SPEC, rules: PODS_AND_UPDATES },
    [],
    ['spec.settings [pod-subresource]'],
  ],
  ...(
    [
      ['object.spec.containers.all(c, c.image != "x")', /init containers and ephemeral containers are not looked at/],
      ['object.spec.containers[0].image != "x"', /init containers and ephemeral/],
      ['object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))', /init containers/],
      [
        '(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image != "x")',
        /: ephemeral containers are not looked at/,
      ],
    ] as const
  ).flatMap(([expression, text]) =>
    [['pods'], ['pods', 'pods/ephemeralcontainers']].map((resources): Case => [
      `${expression} of ${resources.join(' and ')}`,
      'cap',
      validation(expression, [{ ...RULE, resources, operations: ['CREATE', 'UPDATE'] }]),
      [],
      [`${EXPRESSION} [pod-subresource]`],
      text,
    ]),
  ),
  ...[
    validation('object.spec.containers.all(c, has(c.livenessProbe))', PODS_AND_UPDATES),
    validation('object.spec.containers.size() < 9 && object.spec.?securityContext.?runAsNonRoot.orValue(false)'),
    validation('object.spec.containers.all(c, has(c.resources.limits))'),
    validation('has(object.spec.ephemeralContainers) && object.spec.containers.all(c, has(c.resources.limits))', [
      ...PODS_AND_UPDATES,
      { ...RULE, resources: ['pods/ephemeralcontainers', 'pods/resize'], operations: ['UPDATE'] },
    ]),
    validation('has(object.spec.ephemeralContainers)', [
      { ...RULE, resources: ['pods', 'pods/*'], operations: ['CREATE', 'UPDATE'] },
    ]),
    validation('has(object.spec.ephemeralContainers)', [{ ...RULE, resources: ['nodes'] }]),
  ].map((spec, index): Case => [`subresources of pods that are matched or not looked at, ${index}`, 'cap', spec, []]),
];

describe('probable mistakes', () => {
  itValidates(LINT_CASES);

  it('are looked for in bounded time, whatever tenants write', () => {
    const doubled = Array.from({ length: 40 }, (_, index) => ({
      name: `v${index}`,
      expression: index === 0 ? "''" : `variables.v${index - 1} + variables.v${index - 1}`,
    }));
    const expression = "[JSONPatch{op: 'add', path: variables.v39, value: 1}]";
    const spec = cel(
      { variables: doubled, mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] },
      { mutating: true },
    );
    const comment = `true // ${'x && y '.repeat(250)}`;
    const commented = cel({ validations: Array.from({ length: 20 }, () => ({ expression: comment })) });
    for (const one of [spec, commented]) {
      validated(review('cap', object('cap', one)));
    }
  });
});

describe('policies that judge deletions', () => itValidates(DELETION_CASES, 'none'));

describe('policies with parameters', () => {
  itValidates(PARAMETER_CASES);
});

describe('new policies', () => {
  itValidates(POLICY_CASES);

  it('must have ids that can be names of webhooks', () => {
    const longest = 'n'.repeat(MAX_POLICY_ID_LENGTH - 'kw.cap.'.length);
    assert.deepEqual(validated(review('cap', object('cap', SPEC, { name: longest }))).errors, []);
    const found = validated(review('cap', object('cap', SPEC, { name: `${longest}n` })));
    assert.deepEqual(found.errors, ['metadata.name [id-too-long]']);
    assert.match(found.text, /Shorten the name by 1/);
    assert.ok(`kw.cap.${longest}${WEBHOOK_SUFFIX}`.length <= 253);
  });

  it('may name files below the folder for modules', () => {
    const options = { modulesUrl: new URL('file:///srv/policies/') };
    for (const [name, errors] of [
      ['file://./p.wasm', []],
      ['file:///srv/policies/team/p.wasm', []],
      ['file://./../p.wasm', ['spec.module [module-source]']],
      ['file:///srv/policies/../p.wasm', ['spec.module [module-source]']],
      ['file:///srv/policies-of-others/p.wasm', ['spec.module [module-source]']],
    ] as const) {
      assert.deepEqual(validated(review('ap', object('ap', module(name))), options).errors, errors, name);
      assert.deepEqual(validated(review('cap', object('cap', module(name))), options).errors, [], name);
    }
  });

  it('of a namespace may name hosts that are not public if their PolicyServer names these', () => {
    const tenantHosts = (server: string): readonly string[] | undefined =>
      ({ default: ['10.0.0.5:8443', 'localhost'], other: [] })[server];
    const found = (url: string, policyServer = 'default'): object =>
      validated(review('ap', object('ap', { ...module(url), policyServer })), { tenantHosts });
    const refused = ['spec.module [module-source]'];
    for (const url of [
      'http://localhost:81/p',
      'https://localhost.:8443/p',
      'http://a.localhost/p',
      'http://127.0.0.1/p',
      'http://2130706433/p',
      'http://0x7f.1/p',
      'http://0.0.0.0/p',
      'http://169.254.169.254/latest',
      'http://[::1]/p',
      'http://[::ffff:127.0.0.1]/p',
      'http://[fe80::1]/p',
      'http://[::]/p',
      'https://10.0.0.5/p',
      'https://192.0.2.1/p',
      'http://168.63.129.16/p',
      'http://[64:ff9b::a00:5]/p',
    ]) {
      assert.partialDeepStrictEqual(found(url), { errors: refused, warnings: [] }, url);
    }
    assert.partialDeepStrictEqual(found('https://10.0.0.5:8443/p'), { errors: [], warnings: [] });
    assert.partialDeepStrictEqual(found('http://localhost/p'), { errors: [], warnings: [] });
    assert.partialDeepStrictEqual(found('https://10.0.0.5:8443/p', 'other'), { errors: refused });
    // The policy server decides.
    assert.partialDeepStrictEqual(found('https://10.0.0.5:8443/p', 'unknown'), { errors: [], warnings: refused });
  });

  it('have no parameters while Kubewarden manages their PolicyServer, whose definitions would drop them', () => {
    const kubewardenFinalizer = (server: string): string | undefined =>
      server === 'shared' ? 'kubewarden.io/finalizer' : undefined;
    const found = (spec: object, policyServer: string, kind: 'cap' | 'capg' = 'cap'): object =>
      validated(review(kind, object(kind, { ...spec, policyServer })), { kubewardenFinalizer });
    const refused = found(parameters(), 'shared');
    assert.partialDeepStrictEqual(refused, { errors: ['spec.parameters [parameters]'] });
    assert.match(
      (refused as { text: string }).text,
      /PolicyServer shared has the finalizer kubewarden\.io\/finalizer of Kubewarden's controller, whose Custom.*docs\/migration\.md/,
    );
    assert.partialDeepStrictEqual(found(group('first()', { first: parameters() }), 'shared', 'capg'), {
      errors: ['spec.policies[first].parameters [parameters]'],
    });
    assert.partialDeepStrictEqual(found(parameters(), 'ours'), { errors: [] });
    assert.partialDeepStrictEqual(found(SPEC, 'shared'), { errors: [] });
  });

  it('of a namespace may ask about the user of a request only, where their PolicyServer grants it', () => {
    const tenantCapabilities = (server: string): readonly string[] | undefined =>
      ({ default: [], granting: ['kubernetes/*'] })[server];
    const cel = (subject: string): object =>
      module('builtin:cel', { validations: [{ expression: `${subject}.path('/').check('get').allowed()` }] });
    const found = (spec: object, policyServer: string, kind: 'ap' | 'cap' = 'ap'): object =>
      validated(review(kind, object(kind, { ...spec, policyServer })), { tenantCapabilities });
    const own = cel('authorizer');
    const account = cel("authorizer.serviceAccount('kube-system', 'admin')");
    const field = 'spec.settings.validations[0].expression';
    const refused = [`${field} [host-capability]`];
    assert.partialDeepStrictEqual(found(own, 'granting'), { errors: [], warnings: [] });
    assert.partialDeepStrictEqual(found(own, 'default'), { errors: refused, warnings: [] });
    assert.match(
      (found(own, 'default') as { text: string }).text,
      /add "kubernetes\/can_i" to spec\.namespacedPoliciesCapabilities of PolicyServer default \(now: none\)/,
    );
    // The policy server decides.
    assert.partialDeepStrictEqual(found(own, 'unknown'), { errors: [], warnings: refused });
    assert.partialDeepStrictEqual(found(account, 'granting'), { errors: [`${field} [other-subject]`] });
    const condition = conditions(
      "authorizer.serviceAccount('a', 'b').path('/').check('get').allowed()",
      "authorizer.path('/').check('get').allowed()",
      "'serviceAccount' != ''",
    );
    assert.partialDeepStrictEqual(found(condition, 'default'), {
      errors: ['spec.matchConditions[0].expression [other-subject]'],
    });
    for (const spec of [own, account, condition]) {
      assert.partialDeepStrictEqual(found(spec, 'default', 'cap'), { errors: [], warnings: [] });
    }
  });

  it('get warnings for invalid settings if so configured', () => {
    const spec = module('builtin:cel', { validations: [{ expression: '1 +' }] });
    const found = validated(review('cap', object('cap', spec)), { settingsCheck: 'warn' });
    assert.deepEqual([found.errors, found.warnings], [[], ['spec.settings.validations[0].expression [settings]']]);
  });
});
