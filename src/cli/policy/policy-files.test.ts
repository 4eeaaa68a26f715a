import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { FilePolicy } from './file-policy.ts';
import { matchRequest } from './match-request.ts';
import { choosePolicy, policiesIn, readPolicies } from './policy-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'policy-files-'));
after(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

/** A manifest of one of our kinds. */
function manifest(spec: object = {}, metadata: object = {}, kind = 'ClusterAdmissionPolicy'): string {
  const own = { module: 'builtin:cel', settings: { validations: [] }, mutating: false, rules: RULES, ...spec };
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind,
    metadata: { name: 'one', ...metadata },
    spec: own,
  });
}

function read(...texts: readonly string[]): readonly FilePolicy[] {
  return policiesIn([{ text: texts.join('\n---\n'), name: 'policy.yaml', folder }]).policies;
}

function only(...texts: readonly string[]): FilePolicy {
  const [policy, ...more] = read(...texts);
  assert.ok(policy !== undefined && more.length === 0);
  return policy;
}

interface Asked {
  readonly operation?: string;
  readonly group?: string;
  readonly version?: string;
  readonly resource?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly spec?: object;
}

/** The body of a review. */
function asked({
  operation = 'CREATE',
  group = '',
  version = 'v1',
  resource = 'pods',
  namespace = 'shop',
  labels = {},
  spec,
}: Asked): Uint8Array {
  const request = {
    uid: '1',
    kind: { group, version, kind: 'Thing' },
    resource: { group, version, resource },
    operation,
    ...(namespace === '' ? {} : { namespace }),
    userInfo: { username: 'anna' },
    object: { metadata: { name: 'web', labels }, ...(spec && { spec }) },
  };
  return Buffer.from(JSON.stringify({ request }));
}

/** `matches`, with what is unchecked, or what excludes the request. */
function outcome(policy: FilePolicy, request: Asked): string {
  const { result } = matchRequest(policy, { body: asked(request), route: 'validate' });
  if ('error' in result) {
    return `error: ${result.error}`;
  }
  return result.isMatch ? ['matches', ...result.unchecked].join(' ') : result.excludedBy;
}

const NAMESPACE = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', labels: { tier: 'gold' } },
});
const BINDING = JSON.stringify({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'all' },
  spec: { policyName: 'small', validationActions: ['Deny'] },
});
const VALIDATING = JSON.stringify({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'small' },
  spec: { matchConstraints: { resourceRules: RULES }, validations: [{ expression: 'true' }] },
});

describe('readPolicies', () => {
  it('finds policies of every kind in files and folders, with their places', async () => {
    const none = { module: undefined, settings: undefined, mutating: undefined };
    const group = { ...none, expression: 'a()', message: 'no', policies: { a: { module: 'builtin:cel' } } };
    write('many/a.yaml', `# A comment.\n${manifest()}\n---\n${manifest(group, {}, 'ClusterAdmissionPolicyGroup')}`);
    write('many/b/c.json', manifest({}, { namespace: 'shop' }, 'AdmissionPolicy'));
    write('many/values.yaml', 'replicas: 2');
    write('many/portcullis-test.yml', 'cases: []');
    const ofKubernetes = write('vap.yaml', `${VALIDATING}\n---\n${BINDING}\n---\n${NAMESPACE}`);
    const file = write('policies.yml', 'first: {module: builtin:cel}\nsecond: {module: builtin:cel}');
    const { policies, objects } = await readPolicies([join(folder, 'many'), ofKubernetes, file]);
    assert.deepEqual(
      policies.map(({ name, file: path, line }) => [name, path.slice(folder.length + 1), line]),
      [
        ['first', 'policies.yml', 1],
        ['second', 'policies.yml', 2],
        ['cap/one', 'many/a.yaml', 2],
        ['capg/one', 'many/a.yaml', 4],
        ['ap/shop/one', 'many/b/c.json', 1],
        ['vap/small', 'vap.yaml', 1],
      ],
    );
    assert.deepEqual(
      objects.map(({ object }) => object['kind']),
      ['Namespace'],
    );
  });

  it('gives policies the names that they have in a cluster, and its defaults', () => {
    const cluster = only(manifest({ mode: 'monitor', failurePolicy: 'Fail' }));
    assert.equal(cluster.definition.id, 'kw.cap.one');
    assert.equal(cluster.definition.failurePolicy, 'Ignore');
    const namespaced = only(manifest({}, {}, 'AdmissionPolicy'));
    assert.equal(namespaced.name, 'ap/default/one');
    assert.deepEqual(namespaced.definition.kind === 'policy' && namespaced.definition.hostCapabilities, []);
  });

  it('refuses what an API server would refuse, where it stands', () => {
    const text = 'apiVersion: policies.kubewarden.io/v1\nkind: ClusterAdmissionPolicy\nmetadata: {name: one}\n';
    const cases: readonly (readonly [text: string, message: RegExp])[] = [
      [`${text}spec:\n  module: builtin:cel\n  mutating: false\n`, /policy\.yaml:4:1 .* spec\.rules: Required value/],
      [
        `${text}spec:\n  module: builtin:cel\n  mutating: false\n  ruels: []\n`,
        /policy\.yaml:7:3 ClusterAdmissionPolicy one: spec\.ruels: unknown field, did you mean "rules"\?/,
      ],
      [manifest({ mode: 'warn' }), /spec\.mode: Unsupported value: "warn"/],
      [manifest().replace('/v1', '/v1alpha2'), /apiVersion: expected policies\.kubewarden\.io\/v1, got .*v1alpha2/],
      [manifest({}, { name: undefined }), /metadata\.name: expected a name, got none/],
      [`${manifest()}\n---\n${manifest()}`, /policy\.yaml:3 cap\/one is also in policy\.yaml:1: expected it once/],
    ];
    for (const [invalid, message] of cases) {
      assert.throws(() => read(invalid), message);
    }
  });
});

describe('matchRequest', () => {
  it('follows rules, namespace and selectors as API servers do', () => {
    const selector = { matchLabels: { tier: 'gold' } };
    const namespaced = only(manifest({}, { namespace: 'shop' }, 'AdmissionPolicy'));
    const selected = manifest({ namespaceSelector: selector });
    const wild = only(manifest({ rules: [{ ...RULES[0], apiGroups: ['*'], resources: ['*'] }] }));
    const cases: readonly (readonly [policy: FilePolicy, request: Asked, outcome: string])[] = [
      [only(manifest()), {}, 'matches'],
      [only(manifest()), { operation: 'DELETE' }, 'rules'],
      [only(manifest()), { version: 'v2' }, 'version'],
      [only(manifest({ matchPolicy: 'Exact' })), { version: 'v2' }, 'rules'],
      [only(manifest()), { namespace: 'kube-system' }, 'namespaceSelector'],
      [only(manifest()), { namespace: 'portcullis' }, 'namespaceSelector'],
      [only(manifest({ allowInsideAdmissionControllerNamespace: true })), { namespace: 'portcullis' }, 'matches'],
      [namespaced, {}, 'matches'],
      [namespaced, { namespace: 'bank' }, 'namespace'],
      [only(selected), {}, 'matches namespaceSelector'],
      [only(selected), { namespace: 'kube-system' }, 'namespaceSelector'],
      [only(selected, NAMESPACE), {}, 'matches'],
      [only(selected, NAMESPACE.replace('gold', 'iron')), {}, 'namespaceSelector'],
      [only(manifest({ objectSelector: selector })), {}, 'objectSelector'],
      [only(manifest({ objectSelector: selector })), { labels: { tier: 'gold' } }, 'matches'],
      [wild, { group: 'apps', resource: 'deployments' }, 'matches'],
      [wild, { group: 'policies.kubewarden.io', resource: 'admissionpolicies' }, 'exemption'],
      [only(VALIDATING, BINDING), {}, 'matches'],
      [only(VALIDATING, BINDING), { operation: 'UPDATE' }, 'binding'],
      [only(VALIDATING), {}, 'binding'],
    ];
    for (const [policy, request, expected] of cases) {
      assert.equal(outcome(policy, request), expected, `${policy.name} ${JSON.stringify(request)}`);
    }
  });

  it('follows match conditions, but for those with the authorizer', () => {
    const withCondition = (expression: string): FilePolicy =>
      only(manifest({ matchConditions: [{ name: 'condition', expression }] }));
    assert.equal(outcome(withCondition('request.operation == "CREATE"'), {}), 'matches');
    assert.equal(outcome(withCondition('request.operation == "UPDATE"'), {}), 'matchConditions');
    assert.equal(outcome(withCondition('authorizer.path("/x").check("get").allowed()'), {}), 'matches authorizer');
    assert.match(outcome(withCondition('object.spec.none == 1'), {}), /^error: .*no such key: spec/);
  });

  it('matches a workload by its pod template, if the policy checks these', () => {
    const isMatch = (spec: object, labels: object): boolean => {
      const template = { metadata: { labels }, spec: { containers: [] } };
      const body = asked({ group: 'apps', resource: 'deployments', spec: { template } });
      const { result } = matchRequest(only(manifest(spec)), { body, route: 'validate' });
      return 'isMatch' in result && result.isMatch;
    };
    const objectSelector = { matchLabels: { app: 'web' } };
    assert.equal(isMatch({ podTemplates: 'Warn' }, {}), true);
    assert.equal(isMatch({ podTemplates: 'Warn', objectSelector }, { app: 'web' }), true);
    assert.equal(isMatch({ podTemplates: 'Warn', objectSelector }, { app: 'db' }), false);
    assert.equal(isMatch({ podTemplates: 'Ignore' }, {}), false);
  });

  it('says why a policy does not match', () => {
    const reason = (policy: FilePolicy, request: Asked): string | undefined =>
      matchRequest(policy, { body: asked(request), route: 'validate' }).reason;
    assert.equal(
      reason(only(manifest()), { group: 'apps', resource: 'deployments' }),
      'no rule is for CREATE of deployments.apps (resources: pods)',
    );
  });
});

describe('choosePolicy', () => {
  it('takes the only policy, or one by an unambiguous name', () => {
    const policies = read(
      manifest(),
      manifest({}, { namespace: 'shop' }, 'AdmissionPolicy'),
      manifest({}, { name: 'two' }),
    );
    const names: readonly (readonly [name: string, chosen: string])[] = [
      ['two', 'cap/two'],
      ['cap/one', 'cap/one'],
      ['ap/one', 'ap/shop/one'],
      ['clusteradmissionpolicy/one', 'cap/one'],
      ['kw.ap.shop.one', 'ap/shop/one'],
    ];
    for (const [name, chosen] of names) {
      assert.equal(choosePolicy(policies, name, 'x').name, chosen);
    }
    assert.throws(
      () => choosePolicy(policies, 'one', 'x'),
      /one is the name of 2 policies: expected one of cap\/one, ap\/shop\/one/,
    );
    assert.throws(() => choosePolicy(policies, 'three', 'x'), {
      message: 'x has no policy "three"',
      hint: 'It has cap/one, ap/shop/one, cap/two.',
    });
    assert.throws(() => choosePolicy(policies, undefined, 'x'), /x has 3 policies: expected --policy with one of them/);
    assert.throws(() => choosePolicy([], undefined, 'x'), /x has no policy/);
  });
});

describe('a manifest that is meant to be a policy', () => {
  const policy = (apiVersion: string, kind: string): string =>
    `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: a}`;
  const OWN = 'policies.kubewarden.io';
  for (const [text, message] of [
    [
      policy(`${OWN}/v1`, 'ClusterAdmisionPolicy'),
      `:5:1 ClusterAdmisionPolicy a: kind: ${OWN} has no kind ClusterAdmisionPolicy, did you mean "ClusterAdmissionPolicy"?`,
    ],
    [
      policy(`${OWN}/v1`, 'Policy'),
      `:5:1 Policy a: kind: ${OWN} has no kind Policy, expected one of ClusterAdmissionPolicy, AdmissionPolicy, `,
    ],
    [
      policy(`${OWN}/v2`, 'ClusterAdmissionPolicy'),
      `:4:1 ClusterAdmissionPolicy a: apiVersion: expected ${OWN}/v1, got ${OWN}/v2`,
    ],
    [
      policy('policies.kubewarden.com/v1', 'AdmissionPolicy'),
      `:4:1 AdmissionPolicy a: apiVersion: expected ${OWN}/v1, got policies.kubewarden.com/v1`,
    ],
    [
      policy('policies.kubewarden.com/v1', 'ClusterAdmisionPolicy'),
      `:4:1 ClusterAdmisionPolicy a: apiVersion: expected ${OWN}/v1, got policies.kubewarden.com/v1`,
    ],
    [
      '\nkind: AdmissionPolicyGroup',
      `:5:1 AdmissionPolicyGroup without a name: apiVersion: expected ${OWN}/v1, got none`,
    ],
    [
      policy('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBindings'),
      'has no kind ValidatingAdmissionPolicyBindings, did you mean "ValidatingAdmissionPolicyBinding"?',
    ],
    [
      policy('policy/v1', 'ValidatingAdmissionPolicy'),
      ':4:1 ValidatingAdmissionPolicy a: apiVersion: expected admissionregistration.k8s.io/v1, got policy/v1',
    ],
  ] as const) {
    it(`is an error: ${message.slice(0, 60)}`, () => {
      assert.throws(
        () => read(`{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n\n---\n${text}`),
        (error) => {
          assert.ok(error instanceof Error);
          assert.ok(error.message.startsWith('policy.yaml:') && error.message.includes(message), error.message);
          return true;
        },
      );
    });
  }

  it('is no object of another kind', () => {
    for (const [apiVersion, kind] of [
      [`${OWN}/v1`, 'PolicyServer'],
      ['admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration'],
      ['kyverno.io/v1', 'ClusterPolicy'],
      ['policy.open-cluster-management.io/v1', 'Policy'],
    ] as const) {
      assert.deepEqual(read(policy(apiVersion, kind)), []);
    }
  });
});
