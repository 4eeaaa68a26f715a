// The webhook for our own kinds on a real API server: the messages for policies that cannot work, and whether the API server
// accepts the webhook of each policy that was accepted.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { GovernanceControllers } from '../../src/governance/index.ts';
import { GOVERNANCE_CONTROLLER_RULES } from '../../src/governance/access-rules/index.ts';
import { DEFAULT_GOVERNANCE_SETTINGS } from '../../src/governance/settings/index.ts';
import { Findings } from '../../src/lifecycle/admission/findings.ts';
import { OWN_KINDS_RULES } from '../../src/lifecycle/access-rules/own-kinds-rules.ts';
import { OwnKindsWebhook } from '../../src/lifecycle/admission/own-kinds-webhook.ts';
import { PolicyRules } from '../../src/lifecycle/admission/policy-rules.ts';
import { policy, randomNumbers, revision, RULE } from '../../src/lifecycle/admission/testing/own-kinds-objects.ts';
import { PolicyTypeChecks } from '../../src/lifecycle/type-checks/policy-type-checks.ts';
import { standaloneConfiguration } from '../../src/lifecycle/webhooks/webhook-configurations.ts';
import {
  type AdmissionPolicyObject,
  ALL_KINDS,
  customResourceDefinition,
  policyMatch,
} from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, type KubectlResult, type KubernetesObject, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const CONTROLLER = 'controller';
const GOVERNANCE = 'policy.open-cluster-management.io';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const GROUPS = ['policies.kubewarden.io', 'portcullis.dev'];
const POLICIES = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies';
const REVISIONS = '/apis/portcullis.dev/v1/namespaces/default/policyrevisions';

describe('a kube-apiserver with the webhook for our own kinds', { skip: skipWithoutCluster() }, () => {
  let folder: string;
  let cluster: Cluster;
  let stop: () => Promise<void>;

  const apply = (object: KubernetesObject, user?: string): Promise<KubectlResult> =>
    cluster.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(object), ...(user === undefined ? {} : { user }) });

  /** Grants the controller these rights, and no others. */
  async function grant(rules: readonly object[]): Promise<void> {
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: CONTROLLER };
    const path = `/apis/${apiVersion}`;
    await cluster.expect('POST', `${path}/clusterroles`, { apiVersion, kind: 'ClusterRole', metadata, rules });
    await cluster.expect('POST', `${path}/clusterrolebindings`, {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: CONTROLLER },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: CONTROLLER }],
    });
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-own-kinds-'));
    const [certificates, started] = await Promise.all([
      ensureLocalCertificates(join(folder, 'pki')),
      startCluster({ users: { [CONTROLLER]: {} } }),
    ]);
    cluster = started;
    for (const kind of ALL_KINDS) {
      await cluster.expect(
        'POST',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        customResourceDefinition(kind),
      );
    }
    await grant([
      ...OWN_KINDS_RULES,
      ...GOVERNANCE_CONTROLLER_RULES,
      { apiGroups: GROUPS, resources: ['*'], verbs: ['get', 'create', 'patch'] },
    ]);
    const connection = new KubernetesCluster({
      server: cluster.url,
      ca: readFileSync(cluster.caFile, 'utf8'),
      credentials: tokenCredentials(cluster.token(CONTROLLER)),
    });
    const log = pino({ level: 'silent' });
    const caches = new SharedCaches({ cluster: connection, log });
    const ca = readFileSync(certificates.caFile, 'utf8');
    // Its controllers do not run: the rules need the caches only.
    const governance = new GovernanceControllers({
      cluster: connection,
      governed: connection,
      caches,
      settings: DEFAULT_GOVERNANCE_SETTINGS,
      events: { event: () => undefined },
      log,
    });
    const typeChecks = new PolicyTypeChecks({ cluster: connection, log });
    const options = {
      cluster: connection,
      caches,
      namespace: 'default',
      ca,
      log,
      controllerUser: CONTROLLER,
      contributed: [governance.reviews],
      typeChecks,
      tenantCapabilities: (server: string) => (server === 'granting' ? ['kubernetes/can_i'] : []),
    };
    const webhook = new OwnKindsWebhook({ ...options, host: '127.0.0.1', port: 0, tls: certificates });
    const aborting = new AbortController();
    const running = [webhook.registration, caches, typeChecks, webhook].map((runnable) =>
      runnable.start(aborting.signal),
    );
    stop = async () => {
      aborting.abort();
      await Promise.all(running);
      connection.close();
    };
    await webhook.registration.ready;
    // API servers notice new configurations and kinds with a short delay.
    await eventually(async () => {
      assert.match((await apply(policy('probe', { sideEffects: 'Some' }))).stderr, /is invalid|denied the request/);
    });
    // And the controller notices their address.
    const unfit = { module: 'builtin:cel', settings: { validations: [{ expression: 'object.spec.missing == 1' }] } };
    const stdin = JSON.stringify(policy('probe', unfit));
    await eventually(async () => {
      const { stderr } = await cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { stdin });
      assert.match(stderr, /\[type-check\]/);
    });
  });
  after(async () => {
    await stop?.();
    await (cluster as Cluster | undefined)?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('warns of expressions and rules that do not fit the kinds of the cluster, once for each spec', async () => {
    const checked = policy('checked', {
      module: 'builtin:cel',
      settings: { validations: [{ expression: 'object.spec.volumes.all(v, !has(v.hostpath))' }] },
      rules: [RULE, { ...RULE, apiGroups: ['example.com'], resources: ['widgets'] }],
    });
    const { stderr, code } = await apply(checked);
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /^Warning: spec\.settings\.validations\[0\]\.expression: undefined field 'hostpath' at 1:32, in v1 Pod: did you mean 'hostPath'\? \[type-check\]$/m,
    );
    assert.match(
      stderr,
      /^Warning: spec\.rules\[1\]\.apiGroups: the cluster serves no API group "example\.com" \[rule-not-served\]$/m,
    );
    const labelled = { ...checked, metadata: { ...checked.metadata, labels: { a: 'b' } } };
    assert.doesNotMatch((await apply(labelled)).stderr, /Warning: spec/);
  });

  it('reports the errors of a policy when it is written, field by field', async () => {
    const broken = policy('broken', {
      module: 'builtin:cel',
      settings: { validations: [{ expression: "object.metadata.labels['team' != ''" }] },
      matchConditions: [{ name: 'not-mine', expression: "request.userinfo.username != 'me'" }],
      sideEffects: 'Some',
    });
    const { stderr, code } = await apply(broken);
    assert.equal(code, 1);
    assert.match(stderr, /The ClusterAdmissionPolicy "broken" is invalid/);
    assert.match(
      stderr,
      /\* spec\.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun" \[side-effects\]/,
    );
    assert.match(
      stderr,
      /\* spec\.matchConditions\[0\]\.expression: .*does not compile: ERROR: <input>:1:8: undefined field 'userinfo'/,
    );
    assert.match(stderr, /\* spec\.settings\.validations\[0\]\.expression: .*ERROR: <input>:1:36: Syntax error/);
    const created = await cluster.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(broken) });
    assert.match(created.stderr, /The ClusterAdmissionPolicy "broken" is invalid/);
  });

  it('refuses settings whose rights the policy does not have', async () => {
    const resource = { apiVersion: 'v1', kind: 'ConfigMap' };
    const settings = {
      paramKind: resource,
      paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' },
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'remove', path: '/spec'}]" } }],
    };
    const spec = { module: 'builtin:cel', settings };
    const { stderr, code } = await apply(policy('powerless', spec));
    assert.equal(code, 1);
    assert.match(stderr, /\* spec\.settings\.mutations: Forbidden: .*set spec\.mutating to true \[settings-rights\]/);
    assert.match(
      stderr,
      /\* spec\.settings\.paramKind: Forbidden: .*add \{apiVersion: v1, kind: ConfigMap\} to spec\.contextAwareResources \[settings-rights\]/,
    );
    const complete = policy('powerless', { ...spec, mutating: true, contextAwareResources: [resource] });
    assert.equal((await apply(complete)).code, 0);
  });

  it('rejects an invalid change of a policy, which stays as it was', async () => {
    assert.deepEqual(await apply(policy('changed')), {
      stdout: 'clusteradmissionpolicy.policies.kubewarden.io/changed created\n',
      stderr: '',
      code: 0,
    });
    const change = JSON.stringify({ spec: { settings: { enforce: 'basline' } } });
    const patched = await cluster.kubectl(['patch', 'cap', 'changed', '--type=merge', '-p', change]);
    assert.match(
      patched.stderr,
      /spec\.settings\.enforce: expected one of privileged, baseline, restricted, got "basline"/,
    );
    const { body } = await cluster.request<{ spec: { settings: object } }>('GET', `${POLICIES}/changed`);
    assert.deepEqual(body.spec.settings, { enforce: 'baseline' });
    const labelled = await cluster.kubectl(['annotate', 'cap', 'changed', 'portcullis.dev/rollback-to=last']);
    assert.match(labelled.stderr, /metadata\.annotations\[portcullis\.dev\/rollback-to\]: Invalid value: "last"/);
  });

  it('rejects policies of a namespace that request too many rights, with the line to add', async () => {
    const tenant = (subject: string, policyServer: string): KubernetesObject => {
      const settings = { validations: [{ expression: `${subject}.path('/healthz').check('get').allowed()` }] };
      const { spec, ...rest } = policy('asking', { module: 'builtin:cel', settings, policyServer });
      return { ...rest, kind: 'AdmissionPolicy', metadata: { name: 'asking', namespace: 'default' }, spec };
    };
    const refused = await apply(tenant('authorizer', 'default'));
    assert.match(
      refused.stderr,
      /add "kubernetes\/can_i" to spec\.namespacedPoliciesCapabilities of PolicyServer default \(now: none\) \[host-capability\]/,
    );
    const other = await apply(tenant("authorizer.serviceAccount('kube-system', 'x')", 'granting'));
    assert.match(other.stderr, /learn only what the user of the request may do.* \[other-subject\]/);
    const made = await apply(tenant('authorizer', 'granting'));
    assert.deepEqual([made.code, made.stderr], [0, '']);
  });

  it('warns of what may not be meant', async () => {
    const { stderr, code } = await apply(policy('warned', { rules: [{ ...RULE, resources: ['Pod'] }] }));
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^Warning: spec\.rules\[0\]\.resources\[0\]: "Pod" is no resource: .* \[rule-never-matches\]\n$/,
    );
  });

  describe('about policies that compile', () => {
    const validating = (expression: string, more: object = {}): object => ({
      module: 'builtin:cel',
      settings: { validations: [{ expression, ...more }] },
    });
    const mutating = (key: 'jsonPatch' | 'applyConfiguration', expression: string): object => ({
      module: 'builtin:cel',
      mutating: true,
      settings: {
        mutations: [{ patchType: key === 'jsonPatch' ? 'JSONPatch' : 'ApplyConfiguration', [key]: { expression } }],
      },
    });
    const patch = (op: string, path: string): object =>
      mutating('jsonPatch', `[JSONPatch{op: "${op}", path: "${path}", value: {"a": "b"}}]`);

    const refused: readonly (readonly [name: string, spec: object, message: RegExp])[] = [
      [
        'null-namespace',
        { matchConditions: [{ name: 'prod', expression: "namespaceObject.metadata.labels.env == 'prod'" }] },
        /spec\.matchConditions\[0\]\.expression: .*always null in match conditions.* \[namespace-object\]/,
      ],
      [
        'atomic',
        mutating('applyConfiguration', 'Object{spec: Object.spec{nodeSelector: {"a": "b"}}}'),
        /\.spec\.nodeSelector of Pod is merged as a whole .*JSONPatch.* \[mutation\]/,
      ],
      ['unknown-operation', patch('multiply', '/metadata/labels'), /has no operation "multiply".* \[mutation\]/],
      ['relative', patch('add', 'metadata/labels'), /does not begin with "\/": .* \[mutation\]/],
      ['unescaped', patch('add', '/metadata/labels/a.b/c'), /\/metadata\/labels\/a\.b~1c.* \[mutation\]/],
      [
        'folded',
        validating('// no pod on the host network !has(object.spec.hostNetwork)'),
        /a comment takes the whole expression/,
      ],
      ['dashes', validating("object.metadata.labels.app-name == 'web'"), /labels\['app-name'\]/],
    ];
    for (const [name, spec, message] of refused) {
      it(`refuses ${name}`, async () => {
        const { stderr, code } = await apply(policy(name, spec));
        assert.match(stderr, message);
        assert.equal(code, 1);
      });
    }

    const updates = [{ ...RULE, operations: ['CREATE', 'UPDATE'] }];
    const warned: readonly (readonly [name: string, spec: object, message: RegExp])[] = [
      [
        'immutable',
        { ...patch('add', '/spec/nodeSelector'), rules: updates },
        /\/spec\/nodeSelector of a Pod is immutable.* \[immutable-field\]/,
      ],
      [
        'swallowed',
        validating('true // unless && object.spec.hostNetwork != true'),
        /the comment takes .* \[comment\]/,
      ],
      [
        'quantities',
        validating("object.spec.containers.all(c, c.resources.limits.cpu <= '2')"),
        /quantity\(c\.resources\.limits\.cpu\).* \[quantity\]/,
      ],
      ['lower-case', validating("request.operation != 'create'"), /write "CREATE".* \[request-value\]/],
      [
        'message',
        validating('true', { message: "object.kind + ' is not allowed'" }),
        /messageExpression.* \[message-expression\]/,
      ],
      [
        'ephemeral',
        validating('!has(object.spec.ephemeralContainers)'),
        /pods\/ephemeralcontainers.* \[pod-subresource\]/,
      ],
      ['wrong-group', { rules: [{ ...RULE, apiGroups: ['apps'] }] }, /pods are in "".* \[rule-never-matches\]/],
    ];
    for (const [name, spec, message] of warned) {
      it(`warns of ${name}`, async () => {
        const { stderr, code } = await apply(policy(name, spec));
        assert.match(stderr, message);
        assert.equal(code, 0);
      });
    }
  });

  it('warns of dependencies of a governance policy, and refuses one without remediation', async () => {
    const governancePolicy = (
      name: string,
      spec: object,
      remediation: object,
    ): KubernetesObject & { spec: object } => ({
      apiVersion: `${GOVERNANCE}/v1`,
      kind: 'Policy',
      metadata: { name, namespace: 'default' },
      spec: {
        disabled: false,
        ...spec,
        'policy-templates': [
          {
            objectDefinition: {
              apiVersion: `${GOVERNANCE}/v1`,
              kind: 'ConfigurationPolicy',
              metadata: { name },
              spec: { ...remediation, 'object-templates-raw': '{{ range }}' },
            },
          },
        ],
      },
    });
    const on = (name: string): object => ({
      apiVersion: `${GOVERNANCE}/v1`,
      kind: 'Policy',
      name,
      compliance: 'Compliant',
    });
    const spec = { dependencies: [on('cycle'), on('none')] };
    const { stderr, code } = await apply(governancePolicy('cycle', spec, { remediationAction: 'inform' }));
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Warning: spec: policy default\/cycle depends on itself.* \[dependency-cycle\]\n/);
    assert.match(stderr, /Warning: spec\.dependencies\[1\]\.name: Policy default\.none does not exist yet.*\n/);
    assert.match(stderr, /Warning: spec\.policy-templates\[0\].*not a valid template: .* \[template\]\n/);
    const refused = await apply(governancePolicy('unset', {}, {}));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /RemediationAction field of the policy and policy template cannot both be unset/);
  });

  it('has revisions written by the controller only', async () => {
    const mine = await apply(revision('mine'));
    assert.match(
      mine.stderr,
      /Error from server \(Forbidden\): .*PolicyRevision\.portcullis\.dev "mine" is written by controller only, got admin/,
    );
    assert.equal((await apply(revision('one'), CONTROLLER)).code, 0);
    const status = (user: string): Promise<KubectlResult> =>
      cluster.kubectl(
        [
          'patch',
          'prev',
          'one',
          '-n',
          'default',
          '--subresource=status',
          '--type=merge',
          '-p',
          '{"status":{"state":"Serving"}}',
        ],
        { user },
      );
    assert.match((await status('admin')).stderr, /only the controller changes revisions/);
    assert.equal((await status(CONTROLLER)).code, 0);
    assert.equal((await cluster.kubectl(['annotate', 'prev', 'one', '-n', 'default', 'a=b'])).code, 0);
    assert.equal((await cluster.request('DELETE', `${REVISIONS}/one`)).status, 200);
  });

  it('is accepted by API servers whenever we accept, and the other way round', async () => {
    const judge = new PolicyRules();
    const random = randomNumbers(11);
    const seen = { accepted: 0, refused: 0 };
    for (let round = 0; round < 300; round += 1) {
      const object = policy('any', randomSpec(random)) as AdmissionPolicyObject;
      const findings = new Findings();
      judge.checkSpec(object, findings);
      const configuration = {
        ...standaloneConfiguration(
          'kw.cap.any',
          policyMatch(object, { productNamespace: 'portcullis', ownWebhook: false }),
          object.spec.sideEffects ?? 'None',
          {
            policyServer: 'default',
            target: { url: 'https://127.0.0.1:1', ca: '' },
            exemptNamespaces: [],
            identities: [],
            productNamespace: 'portcullis',
          },
        ),
        kind: 'ValidatingWebhookConfiguration',
      };
      const { status, body } = await cluster.request('POST', `${CONFIGURATIONS}?dryRun=All`, configuration);
      const text = JSON.stringify({ spec: object.spec, ours: findings.errors, theirs: body['message'] }, null, 1);
      assert.ok(status === 201 || status === 422, text);
      assert.equal(status === 201, findings.errors.length === 0, text);
      seen[status === 201 ? 'accepted' : 'refused'] += 1;
    }
    assert.ok(seen.accepted > 50 && seen.refused > 50, JSON.stringify(seen));
  });

  it('locks nobody out while the webhook is down', async () => {
    await apply(policy('kept'));
    await stop();
    const late = await apply(policy('late'));
    assert.match(late.stderr, /failed calling webhook "policies\.own-kinds\.portcullis\.dev"/);
    assert.equal((await cluster.kubectl(['label', 'cap', 'kept', 'a=b'])).code, 0);
    const status = [
      'patch',
      'cap',
      'kept',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Active"}}',
    ];
    assert.equal((await cluster.kubectl(status)).code, 0);
    assert.equal((await apply(policy('late'), CONTROLLER)).code, 0);
    assert.equal((await apply(revision('two'), CONTROLLER)).code, 0);
    assert.equal((await cluster.kubectl(['delete', 'cap', 'kept', 'late'])).code, 0);
    assert.equal((await cluster.kubectl(['create', 'configmap', 'unrelated'])).code, 0);
    const policySet = { policies: ['a'], exclusions: [{ policyName: 'b', clusterNames: ['east'] }] };
    const metadata = { name: 'set', namespace: 'default' };
    const set = { apiVersion: `${GOVERNANCE}/v1beta1`, kind: 'PolicySet', metadata, spec: policySet };
    assert.equal((await apply(set)).code, 0);
  });
});

/** Random rules, selectors and conditions. All conform to the schema of the kind; some are invalid. */
function randomSpec(random: () => number): object {
  const one = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const some = <T>(from: readonly T[], least = 1): readonly T[] =>
    Array.from({ length: least + Math.floor(random() ** 2 * 3) }, () => one(from));
  const rule = (): object => ({
    ...(random() < 0.95
      ? { apiGroups: some(['', 'apps', 'batch', 'example.com', ...(random() < 0.2 ? ['*'] : [])]) }
      : {}),
    apiVersions: some(['v1', 'v1beta1', 'v2', ...(random() < 0.2 ? ['*', ''] : [])]),
    resources: some(
      random() < 0.5
        ? ['pods', 'deployments', 'pods/log', 'jobs', 'Pods']
        : ['pods', 'pods/log', 'pods/*', '*/log', '*', '*/*', '', 'a/b/c', '*/', '/x'],
    ),
    operations: some(['CREATE', 'UPDATE', 'DELETE', 'CONNECT', ...(random() < 0.2 ? ['*'] : [])]),
    ...(random() < 0.3 ? { scope: one(['*', 'Cluster', 'Namespaced']) } : {}),
  });
  const labels = (): object =>
    Object.fromEntries(
      some(['a', 'example.com/a', ...(random() < 0.1 ? ['-', 'a/b/c', 'A/'] : [])]).map((key) => [
        key,
        one(['', 'b', 'b-c', ...(random() < 0.1 ? ['b c', '-'] : [])]),
      ]),
    );
  const expression = (): object => {
    const values = random() < 0.5 ? [] : ['b', ...(random() < 0.1 ? ['b c'] : [])];
    return {
      key: one(['a', 'a', 'example.com/b', ...(random() < 0.1 ? ['', '/'] : [])]),
      operator: one(
        values.length === 0
          ? ['Exists', 'DoesNotExist']
          : ['In', 'NotIn', ...(random() < 0.2 ? ['Exists', 'in', ''] : [])],
      ),
      values,
    };
  };
  const selector = (): object => ({ matchLabels: labels(), matchExpressions: random() < 0.5 ? [] : [expression()] });
  const condition = (index: number): object => ({
    name: random() < 0.9 ? `c${index}` : index === 0 ? one(['', 'a b', 'a/b/c']) : one(['example.com/x', '-']),
    expression: random() < 0.8 ? one(GOOD) : one(BAD),
  });
  return {
    rules: Array.from({ length: 1 + Math.floor(random() * 2) }, rule),
    ...(random() < 0.3 ? { objectSelector: selector() } : {}),
    ...(random() < 0.3 ? { namespaceSelector: selector() } : {}),
    ...(random() < 0.4 ? { matchConditions: [condition(0), condition(1)] } : {}),
    ...(random() < 0.2 ? { sideEffects: one(['None', 'NoneOnDryRun', 'Some', 'Unknown', 'x', '']) } : {}),
    timeoutSeconds: 10,
  };
}

const GOOD = [
  'true',
  "object.metadata.name != ''",
  "request.userInfo.groups.exists(group, group == 'x')",
  "request.operation in ['CREATE'] && !has(object.spec)",
  "authorizer.group('').resource('pods').namespace(request.namespace).check('get').allowed()",
  'object.spec.?replicas.orValue(1) > 1',
  "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
  'oldObject == null',
  'request.dryRun',
  'object.x == true',
];
const BAD = [
  'object.x',
  '',
  ' ',
  '1',
  'x',
  "'a'",
  'object.',
  'request.nothing == 1',
  'params.x',
  'variables.x',
  'size(1) == 1',
  'Object{} == 1',
  '[1].all(x, x)',
];
