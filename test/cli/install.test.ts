// `portcullis install`, `uninstall` and `doctor` on a real API server. No pods run: the tests look at installed objects, and at
// clusters where objects are missing, left over, or belong to others.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { installObjects } from '../../src/installation/install-objects.ts';
import { defaultValues } from '../../src/installation/read-values.ts';
import {
  ALL_KINDS,
  customResourceDefinition,
  POLICIES as GOVERNANCE_POLICIES,
  PRUNE_FINALIZER,
} from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, type KubernetesObject, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { type CommandResult, EXAMPLES, interrupted, portcullis } from './command.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const SERVERS = '/apis/policies.kubewarden.io/v1/policyservers';
const POLICIES = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies';

interface Finding {
  readonly code: string;
  readonly severity: string;
  readonly where: string;
  readonly objects: readonly string[];
  readonly message: string;
}

interface ObjectList {
  readonly items: readonly KubernetesObject[];
}

/** A webhook configuration whose server never answers. */
const configuration = (name: string, labels: object, webhook = `${name}.example.com`): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name, labels },
  webhooks: [
    {
      name: webhook,
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Ignore',
      clientConfig: { service: { name: 'policy-server-default', namespace: 'portcullis' } },
      rules: [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['things'], operations: ['CREATE'] }],
    },
  ],
});

/** The status of a policy that is enforced. */
const ACTIVE = {
  phase: 'Active',
  policyStatus: 'active',
  mode: 'protect',
  observedGeneration: 1,
  desiredRevision: 1,
  servingRevision: 1,
  conditions: ['PolicyActive', 'Enforced', 'Ready'].map((type) => ({
    type,
    status: 'True',
    reason: 'Serving',
    message: '',
    observedGeneration: 1,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })),
};

/** The controller's user. */
const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';
const OURS = { 'app.kubernetes.io/managed-by': 'portcullis' };

describe('an installation on a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster({ users: { bob: {}, [CONTROLLER]: {} } });
  });
  after(() => cluster.stop());

  const command = (...args: string[]): Promise<CommandResult> =>
    portcullis(args, { env: { KUBECONFIG: cluster.kubeconfig } });
  const done = async (...args: string[]): Promise<CommandResult> => {
    const result = await command(...args);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}${result.stdout}`);
    return result;
  };
  const findings = async (...args: string[]): Promise<readonly Finding[]> => {
    const { stdout } = await command('doctor', '-o', 'json', ...args);
    return (JSON.parse(stdout) as { findings: readonly Finding[] }).findings;
  };
  const names = async (path: string): Promise<readonly string[]> =>
    (await cluster.expect<ObjectList>('GET', path)).items.map(({ metadata }) => metadata.name ?? '').toSorted();
  const remove = (path: string): Promise<unknown> => cluster.request('DELETE', path);

  it('is refused without rights, and names each missing one', async () => {
    const { code, stderr } = await command('install', '--context', 'bob');
    assert.equal(code, 1);
    assert.match(stderr, /get, create, patch, list, delete deployments\.apps in namespace portcullis/);
    assert.match(stderr, /Nothing was changed/);
    assert.equal((await cluster.request('GET', '/api/v1/namespaces/portcullis')).status, 404);
  });

  it('reports missing objects, and objects that it may not list', async () => {
    const codes = new Set((await findings()).map(({ code }) => code));
    assert.deepEqual([...codes], ['NotInstalled']);
    const unseen = await findings('--context', 'bob');
    assert.deepEqual(
      unseen.map(({ code, message }) => `${code}: ${message}`),
      ['NotLookedAt: you may not list these objects, so their problems are not found'],
    );
    assert.ok((unseen[0]?.objects.length ?? 0) > 5);
  });

  it('has a dry run', async () => {
    const { stdout } = await done('install', '--dry-run');
    assert.match(stdout, /clusterrole\.rbac\.authorization\.k8s\.io\/portcullis-controller created \(dry run\)/);
    assert.match(stdout, /deployment\.apps\/portcullis-controller would be created/);
    assert.deepEqual(await names(CRDS), []);
  });

  it('has no warnings, and changes nothing the second time', async () => {
    const first = await done('install', '--no-wait');
    assert.doesNotMatch(first.stderr, /Warning/);
    const again = await done('install', '--no-wait');
    const lines = again.stdout.trim().split('\n');
    assert.ok(lines.length > 15 && lines.every((line) => line.endsWith(' unchanged')), again.stdout);
    const upgrade = await done('install', '--no-wait', '--image', 'registry.example.com/portcullis:2.0.0');
    assert.deepEqual(
      upgrade.stdout.split('\n').filter((line) => line.endsWith(' configured')),
      [
        'deployment.apps/portcullis-controller configured',
        'deployment.apps/portcullis-auditor configured',
        'policyserver.policies.kubewarden.io/default configured',
      ],
    );
  });

  it('reports settings that end or extend the enforcement of all policies', async () => {
    const values = JSON.stringify({ controller: { degradedPolicies: 'ignore', unservedPolicies: 'reject' } });
    const env = { KUBECONFIG: cluster.kubeconfig };
    const { code, stderr } = await portcullis(['install', '--no-wait', '--values', '-'], { env, stdin: values });
    assert.equal(code, 0, stderr);
    const settings = async (): Promise<readonly string[]> =>
      (await findings()).flatMap(({ code, severity, message }) =>
        code.endsWith('edPolicies') ? [`${severity} ${code} ${message.split(':', 1)[0]}`] : [],
      );
    assert.deepEqual(await settings(), [
      'warning DegradedPolicies --degraded-policies=ignore',
      'info UnservedPolicies --unserved-policies=reject',
    ]);
    await done('install', '--no-wait');
    assert.equal((await settings()).length, 2);
    await done('install', '--no-wait', '--reset-values');
    assert.deepEqual(await settings(), []);
  });

  describe('that is run again', () => {
    const deployment = '/apis/apps/v1/namespaces/portcullis/deployments/portcullis-controller';
    const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
    const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    const image = 'registry.example.com/portcullis:2.0.0';
    const install = async (values: object, ...args: string[]): Promise<CommandResult> => {
      const options = { env: { KUBECONFIG: cluster.kubeconfig }, stdin: JSON.stringify(values) };
      return await portcullis(['install', '--no-wait', '--values', '-', ...args], options);
    };
    const installed = async (values: object, ...args: string[]): Promise<CommandResult> => {
      const result = await install(values, ...args);
      assert.equal(result.code, 0, result.stderr);
      return result;
    };
    /** Replicas and image of the controller, image and replicas of the PolicyServer, its log level, and roles of Policies. */
    const state = async (): Promise<readonly unknown[]> => {
      type Controller = {
        spec: { replicas: number; template: { spec: { containers: [{ image: string; args: string[] }] } } };
      };
      const { spec } = await cluster.expect<Controller>('GET', deployment);
      const [container] = spec.template.spec.containers;
      const server = await cluster.expect<{ spec: { image: string; replicas: number } }>('GET', `${SERVERS}/default`);
      const granted = await names(`${bindings}?labelSelector=app.kubernetes.io/component=governance-roles`);
      return [
        spec.replicas,
        container.image,
        server.spec.image,
        server.spec.replicas,
        container.args.find((one) => one.startsWith('--log-level')),
        granted.join(),
      ];
    };

    it('keeps what it is not told: values of before, and what was changed in the cluster since', async () => {
      await done('install', '--no-wait', '--image', image, '--governance-role', 'view');
      const granted = 'portcullis-governance-view';
      assert.deepEqual(await state(), [2, image, image, 2, '--log-level=info', granted]);
      const { stderr } = await installed({ controller: { logLevel: 'debug' } });
      assert.match(stderr, /^Kept from the last installation: .*image=registry\.example\.com\/portcullis:2\.0\.0/m);
      assert.deepEqual(await state(), [2, image, image, 2, '--log-level=debug', granted]);
      const byHand = 'registry.example.com/portcullis:2.0.1';
      for (const args of [
        ['scale', 'deployment/portcullis-controller', '--replicas=3'],
        ['set', 'image', 'deployment/portcullis-controller', `controller=${byHand}`],
      ]) {
        const { code, stderr: said } = await cluster.kubectl([...args, '-n', 'portcullis']);
        assert.equal(code, 0, said);
      }
      await cluster.expect('PATCH', `${SERVERS}/default`, { spec: { replicas: 5 } });
      await done('install', '--no-wait');
      assert.deepEqual(await state(), [3, byHand, image, 5, '--log-level=debug', granted]);
      await done('install', '--no-wait', '--governance-role', 'view,edit');
      const both = 'portcullis-governance-edit,portcullis-governance-view';
      assert.deepEqual(await state(), [3, byHand, image, 5, '--log-level=debug', both]);
      const again = await done('install', '--no-wait');
      assert.ok(
        again.stdout
          .trim()
          .split('\n')
          .every((line) => line.endsWith(' unchanged')),
        again.stdout,
      );
      await installed({ controller: { replicas: 2 } }, '--image', image);
      assert.deepEqual(await state(), [2, image, image, 5, '--log-level=debug', both]);
      await done('install', '--no-wait', '--reset-values');
      assert.deepEqual(await state(), [2, 'portcullis:0.1.0', 'portcullis:0.1.0', 2, '--log-level=info', '']);
    });

    it('does not grant again what was revoked by hand', async () => {
      await done('install', '--no-wait', '--governance-role', 'view,edit');
      await remove(`${bindings}/portcullis-governance-edit`);
      await done('install', '--no-wait');
      assert.equal((await state()).at(-1), 'portcullis-governance-view');
    });

    it('shows what it would change, and what it would delete, and changes nothing', async () => {
      const before = await cluster.expect('GET', deployment);
      const off = { userRoles: { enabled: false }, controller: { replicas: 4 } };
      const { stdout, stderr } = await installed(off, '--dry-run');
      assert.match(stdout, /^deployment\.apps\/portcullis-controller configured \(dry run\)$/m);
      assert.match(stdout, /^ {2}- +replicas: 2\n {2}\+ +replicas: 4\n/m);
      assert.doesNotMatch(stdout, /install-values/);
      assert.match(stdout, /^clusterrole\S+\/portcullis-view deleted \(dry run\)$/m);
      assert.match(stderr, /^\d+ unchanged, 1 configured, 4 deleted\. Nothing was changed \(dry run\)\.$/m);
      const after = await cluster.expect('GET', deployment);
      assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
      assert.ok((await names(roles)).includes('portcullis-view'));
    });

    it('deletes the rights of what a value turns off, and nothing that only has its labels', async () => {
      const labels = { 'app.kubernetes.io/part-of': 'portcullis' };
      await cluster.expect('POST', roles, { metadata: { name: 'of-a-user', labels }, rules: [] });
      const off = {
        auditor: { enabled: false },
        governance: { enabled: false },
        networkPolicyStatus: { enabled: false },
        networkPolicy: { enabled: false },
        userRoles: { enabled: false },
      };
      const { stdout } = await installed(off);
      const [left, bound] = [
        await names(`${roles}?labelSelector=app.kubernetes.io/part-of=portcullis`),
        await names(bindings),
      ];
      assert.deepEqual(left, [
        'of-a-user',
        'portcullis-context-aware',
        'portcullis-context-aware-common',
        'portcullis-controller',
      ]);
      assert.deepEqual(
        bound.filter((name) => name.startsWith('portcullis')),
        ['portcullis-context-aware', 'portcullis-controller'],
      );
      assert.deepEqual(await names('/apis/networking.k8s.io/v1/namespaces/portcullis/networkpolicies'), []);
      assert.match(stdout, /^role\.\S+\/portcullis-controller-governance deleted$/m);
      const again = await done('install', '--no-wait');
      assert.ok(
        again.stdout
          .trim()
          .split('\n')
          .every((line) => line.endsWith(' unchanged')),
        again.stdout,
      );
      await remove(`${roles}/of-a-user`);
    });

    it('keeps a PolicyServer that policies name', async () => {
      await cluster.expect('POST', POLICIES, {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'user' },
        spec: {
          module: 'builtin:pod-security',
          settings: { enforce: 'baseline' },
          mutating: false,
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        },
      });
      const off = { policyServer: { enabled: false } };
      assert.match((await installed(off)).stderr, /\/default was not deleted: 1 policies name it/);
      await remove(`${POLICIES}/user`);
      assert.match((await installed(off)).stdout, /\/default deleted$/m);
      await done('install', '--no-wait', '--reset-values');
    });

    it('refuses to change what another tool installs, and says what to do', async () => {
      const marks = [
        [
          {
            labels: { 'app.kubernetes.io/managed-by': 'Helm' },
            annotations: { 'meta.helm.sh/release-name': 'mine', 'meta.helm.sh/release-namespace': 'portcullis' },
          },
          /belongs to the Helm release mine in namespace portcullis\n.*helm upgrade mine/,
        ],
        [{ annotations: { 'argocd.argoproj.io/tracking-id': 'mine:apps/Deployment:a/b' } }, /Argo CD application mine/],
        [{ labels: { 'kustomize.toolkit.fluxcd.io/name': 'mine' } }, /belongs to mine of Flux/],
      ] as const;
      for (const [metadata, expected] of marks) {
        await cluster.expect('PATCH', deployment, { metadata });
        const before = await cluster.expect('GET', deployment);
        for (const args of [[], ['--dry-run'], ['--reset-values']]) {
          const { code, stderr, stdout } = await command('install', '--no-wait', ...args);
          assert.deepEqual([code, stdout], [1, '']);
          assert.match(stderr, expected);
          assert.match(stderr, /Nothing was changed/);
        }
        const after = await cluster.expect('GET', deployment);
        assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
        const nulls = (some: object = {}): object => Object.fromEntries(Object.keys(some).map((name) => [name, null]));
        const { labels, annotations }: { labels?: object; annotations?: object } = metadata;
        await cluster.expect('PATCH', deployment, {
          metadata: { labels: nulls(labels), annotations: nulls(annotations) },
        });
      }
      await done('install', '--no-wait');
    });
  });

  it('waits for the controller, and prints its state after the timeout', async () => {
    const { code, stderr } = await command('install', '--timeout', '1s');
    assert.equal(code, 1);
    assert.match(stderr, /portcullis-controller is not ready after 1 s: 0 of 2 pods available/);
  });

  it('has pods that the restricted Pod Security Standard and our examples allow', async () => {
    const objects = installObjects({ namespace: 'portcullis', values: defaultValues('0.1.0') });
    const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { metadata: object; spec: object } };
    };
    const { template } = deployment.spec;
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...template.metadata, name: 'controller', namespace: 'portcullis' },
      spec: { ...template.spec, priorityClassName: undefined },
    };
    const admitted = await cluster.request('POST', '/api/v1/namespaces/portcullis/pods?dryRun=All', pod);
    assert.equal(admitted.status, 201, JSON.stringify(admitted.body));
    assert.equal(admitted.headers['warning'], undefined);
    const request = {
      uid: '1',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      operation: 'CREATE',
      name: 'controller',
      namespace: 'portcullis',
      userInfo: { username: 'test' },
      object: admitted.body,
    };
    for (const policy of [
      'required-labels',
      'pod-privileged',
      'host-namespaces',
      'container-limits',
      'privileged-by-exception',
      'pod-security',
    ]) {
      const sources = ['--sources-path', `${EXAMPLES}/sources.yml`];
      // The example allows 512 MiB, the installation 1 GiB.
      const judged =
        policy === 'container-limits'
          ? [`${EXAMPLES}/${policy}/policy.wasm`, '--settings-json', '{"cpu": "2", "memory": "1Gi"}']
          : [`${EXAMPLES}/${policy}/policy.yaml`, '--ignore-rules'];
      const args = ['run', ...judged, '-r', '-', ...sources];
      const { stdout, stderr } = await portcullis(args, { stdin: JSON.stringify({ request }) });
      const verdict = JSON.parse(stdout) as { allowed: boolean; warnings: unknown };
      assert.equal(verdict.allowed, true, `${policy}: ${stdout}${stderr}`);
      assert.equal(verdict.warnings, null, policy);
    }
  });

  it('grants the controller no wildcard rights', async () => {
    const { items } = await cluster.expect<{
      items: readonly { metadata: { name: string }; rules?: object[] | null }[];
    }>('GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=app.kubernetes.io/part-of=portcullis');
    assert.ok(items.length >= 4);
    assert.doesNotMatch(JSON.stringify(items.map(({ rules }) => rules)), /"\*"|escalate|"bind"|impersonate/);
  });

  it('lets the controller write no ClusterRoles but those of policy servers, which read', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1';
    const [group, name] = ['rbac.authorization.k8s.io', 'portcullis-policy-server-blue'];
    const roles = `${path}/clusterroles`;
    const bindings = `${path}/clusterrolebindings`;
    const reads = { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] };
    const writes = { apiGroups: [group], resources: ['clusterroles'], verbs: ['get', 'delete'] };
    const binding = (role: string, namespace: string): object => ({
      metadata: { name },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: 'policy-server-blue', namespace }],
    });
    const answer = async (method: string, at: string, body?: object): Promise<string> => {
      const { status, body: said } = await cluster.request<{ message?: string }>(method, at, body, {
        user: CONTROLLER,
      });
      return `${status} ${said.message ?? ''}`;
    };
    assert.match(await answer('POST', roles, { metadata: { name }, rules: [reads] }), /^201/);
    for (const [method, at, body, refusal] of [
      ['DELETE', `${roles}/view`, undefined, /names begin with/],
      ['PATCH', `${roles}/system:discovery`, { rules: [] }, /names begin with/],
      ['DELETE', `${bindings}/cluster-admin`, undefined, /names begin with/],
      ['DELETE', `${bindings}/portcullis-controller`, undefined, /names begin with/],
      ['POST', roles, { metadata: { name: 'another' }, rules: [reads] }, /names begin with/],
      ['POST', roles, { metadata: { name }, rules: [reads, writes] }, /only the right to read/],
      ['POST', bindings, binding('portcullis-controller', 'portcullis'), /binds only roles of policy servers/],
      ['POST', bindings, binding(name, 'default'), /binds only roles of policy servers/],
    ] as const) {
      // API servers read a new policy after a moment. A dry run, so that nothing happens before.
      await eventually(async () => {
        const said = await answer(method, `${at}?dryRun=All`, body);
        assert.match(said, /^422 /, `${method} ${at}: ${said}`);
        assert.match(said, refusal);
      });
    }
    assert.match(await answer('POST', bindings, binding(name, 'portcullis')), /^201/);
    assert.match(await answer('DELETE', `${bindings}/${name}`), /^200/);
    assert.match(await answer('DELETE', `${roles}/${name}`), /^200/);
    // Others are not restricted.
    await cluster.expect('POST', `${roles}?dryRun=All`, { metadata: { name: 'another' }, rules: [writes] });
  });

  it('lets nobody but the controller write revisions, whatever RBAC grants', async () => {
    const revisions = '/apis/portcullis.dev/v1/namespaces/portcullis/policyrevisions';
    const [name, label] = ['kw.cap.guarded-1', 'portcullis.dev/policy-server'];
    const revision = (metadata: object = {}): object => ({
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: { name, labels: { [label]: 'default' }, ...metadata },
      spec: {
        policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'guarded', uid: 'u' },
        policyId: 'kw.cap.guarded',
        policyServer: 'default',
        revision: 1,
        policyGeneration: 1,
        snapshot: { module: 'builtin:cel' },
      },
    });
    const one = `${revisions}/${name}`;
    const [own, other] = [revisions, '/apis/portcullis.dev/v1/namespaces/default/policyrevisions'];
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'gone' };
    const create = async (): Promise<void> => {
      const { status, body } = await cluster.request('POST', own, revision(), { user: CONTROLLER });
      assert.equal(status, 201, JSON.stringify(body));
    };
    await create();
    for (const [method, at, body, refusal] of [
      ['POST', own, revision({ name: 'kw.cap.forged-1' }), /only the controller of Portcullis creates and deletes/],
      [
        'DELETE',
        one,
        undefined,
        /creates and deletes PolicyRevisions: change the policy instead\. In an emergency: kubectl --as/,
      ],
      ['DELETE', own, undefined, /creates and deletes/],
      ['PATCH', `${one}/status`, { status: { state: 'Serving', order: 9 } }, /never their spec/],
      ['PATCH', one, { spec: { snapshot: { module: 'builtin:pod-security' } } }, /never their spec/],
      ['PATCH', one, { metadata: { labels: { [label]: null } } }, /never their spec/],
      ['PATCH', one, { metadata: { ownerReferences: [owner] } }, /change owners and finalizers/],
      ['PATCH', one, { metadata: { finalizers: ['example.com/kept'] } }, /change owners and finalizers/],
    ] as const) {
      // API servers read a new policy after a moment. The test's user is an administrator.
      await eventually(async () => {
        const { status, body: said } = await cluster.request<{ message?: string }>(method, `${at}?dryRun=All`, body);
        assert.equal(status, 422, `${method} ${at}: ${JSON.stringify(said)}`);
        assert.match(said.message ?? '', refusal);
      });
    }
    await cluster.expect('PATCH', one, { metadata: { annotations: { note: 'looked at' } } });
    await cluster.expect('POST', `${other}?dryRun=All`, revision());
    const as = await cluster.kubectl(['delete', 'policyrevision', name, '-n', 'portcullis', `--as=${CONTROLLER}`]);
    assert.equal(as.code, 0, as.stderr);
    // For `uninstall`.
    await create();
  });

  it('lets nobody write policies of a namespace by being its editor, unless the value says so', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
    type Role = { metadata: { labels: Record<string, string> } };
    const aggregation = async (name: string): Promise<readonly (string | undefined)[]> => {
      const { metadata } = await cluster.expect<Role>('GET', `${path}/${name}`);
      return ['view', 'edit', 'admin'].map((to) => metadata.labels[`rbac.authorization.k8s.io/aggregate-to-${to}`]);
    };
    assert.deepEqual(await aggregation('portcullis-view'), ['true', 'true', 'true']);
    assert.deepEqual(await aggregation('portcullis-edit'), [undefined, 'false', 'false']);
  });

  it('finds webhooks without a Service, missing rights, and kinds that differ', async () => {
    await cluster.expect('POST', CONFIGURATIONS, configuration('portcullis-default', OURS));
    await cluster.expect('PATCH', '/apis/rbac.authorization.k8s.io/v1/clusterroles/portcullis-controller', {
      rules: [],
    });
    await cluster.expect('PATCH', `${CRDS}/policyservers.policies.kubewarden.io`, {
      metadata: { annotations: { 'meta.helm.sh/release-name': 'kubewarden-crds' } },
    });
    const codes = (await findings()).map(({ code, where }) => `${code} ${where}`);
    for (const expected of [
      'WebhookServiceMissing validatingwebhookconfiguration/portcullis-default',
      'RightsMissing clusterrole/portcullis-controller',
      'KindOwnedElsewhere customresourcedefinition/policyservers.policies.kubewarden.io',
      'ControllerNotAvailable deployment/portcullis-controller -n portcullis',
    ]) {
      assert.ok(codes.includes(expected), `${expected} is not in ${codes.join(', ')}`);
    }
  });

  it('keeps its webhooks when the user may not stop the controller, which would create them again', async () => {
    const webhooks = { apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['*'] };
    const path = '/apis/rbac.authorization.k8s.io/v1';
    await cluster.expect('POST', `${path}/clusterroles`, { metadata: { name: 'webhooks' }, rules: [webhooks] });
    await cluster.expect('POST', `${path}/clusterrolebindings`, {
      metadata: { name: 'webhooks' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'webhooks' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
    });
    const { code, stderr } = await command('uninstall', '--webhooks-only', '--context', 'bob');
    assert.equal(code, 1);
    for (const right of [
      'delete clusterrolebindings.rbac.authorization.k8s.io portcullis-controller',
      'delete rolebindings.rbac.authorization.k8s.io portcullis-controller in namespace portcullis',
      'delete clusterroles.rbac.authorization.k8s.io portcullis-context-aware',
      'delete deployments.apps portcullis-controller in namespace portcullis',
      'get, list, watch pods in namespace portcullis',
    ]) {
      assert.ok(stderr.includes(right), `${right} is not in ${stderr}`);
    }
    assert.ok((await names(CONFIGURATIONS)).includes('portcullis-default'));
  });

  it('is removed with all of its webhooks and no others, also when the controller does not run', async () => {
    await cluster.expect('POST', CONFIGURATIONS, configuration('somebody-elses', {}));
    // A user removed the labels.
    for (const name of ['portcullis-own-kinds', 'namespaced-portcullis-default']) {
      await cluster.expect('POST', CONFIGURATIONS, configuration(name, {}));
    }
    const tried = await done('uninstall', '--keep-namespace', '--dry-run');
    assert.match(tried.stdout, /portcullis-default deleted \(dry run\)/);
    assert.match(tried.stdout, /policyrevision\.portcullis\.dev\/kw\.cap\.guarded-1 deleted \(dry run\)/);
    assert.deepEqual(await names(CONFIGURATIONS), [
      'namespaced-portcullis-default',
      'portcullis-default',
      'portcullis-own-kinds',
      'somebody-elses',
    ]);
    const { stdout, stderr } = await done('uninstall', '--keep-namespace');
    assert.match(stdout.split('\n')[0] ?? '', /validatingwebhookconfiguration.*namespaced-portcullis-default deleted/);
    assert.deepEqual(await names(CONFIGURATIONS), ['somebody-elses']);
    assert.match(stderr, /Kept: 1 policyservers/);
    // Kubernetes may create the aggregated role again when one of its parts is deleted.
    const [whole, part] = ['portcullis-context-aware', 'portcullis-context-aware-common'].map((name) =>
      stdout.indexOf(`${name} deleted`),
    );
    assert.ok(whole !== undefined && part !== undefined && whole > 0 && whole < part, stdout);
    for (const path of [
      '/apis/apps/v1/namespaces/portcullis/deployments',
      '/api/v1/namespaces/portcullis/services',
      '/apis/portcullis.dev/v1/namespaces/portcullis/policyrevisions',
      '/api/v1/namespaces/portcullis/serviceaccounts',
      '/apis/rbac.authorization.k8s.io/v1/namespaces/portcullis/roles',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=app.kubernetes.io/part-of=portcullis',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    ]) {
      assert.deepEqual(await names(path), [], path);
    }
    assert.equal((await names(CRDS)).length, ALL_KINDS.length);
    await remove(`${CONFIGURATIONS}/somebody-elses`);
  });

  it('can be removed twice, and where it was never installed', async () => {
    const { stdout } = await done('uninstall', '--keep-namespace');
    assert.equal(stdout, '');
    await done('uninstall', '--namespace', 'elsewhere');
  });

  it('is removed as a whole by another attempt, wherever the first one was ended', async () => {
    await done('install', '--no-wait');
    await cluster.expect('POST', POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'left' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      },
    });
    const remaining = async (): Promise<readonly string[]> => {
      const selector = '?labelSelector=app.kubernetes.io/part-of=portcullis';
      const kinds = [
        CONFIGURATIONS,
        '/apis/apps/v1/deployments',
        '/api/v1/services',
        '/api/v1/serviceaccounts',
        '/apis/rbac.authorization.k8s.io/v1/clusterroles',
        '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
        '/apis/rbac.authorization.k8s.io/v1/roles',
        '/apis/rbac.authorization.k8s.io/v1/rolebindings',
        '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
        '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
      ];
      return (await Promise.all(kinds.map(async (kind) => await names(`${kind}${selector}`)))).flat();
    };
    let lines = 1;
    // At the end of the growing steps the command is not ended any more.
    for (; ; lines = lines * 4) {
      await done('install', '--no-wait');
      await cluster.expect('POST', CONFIGURATIONS, configuration('portcullis-default', OURS));
      await cluster.expect('PATCH', `${POLICIES}/left/status`, { status: ACTIVE });
      const wasEnded = await interrupted(['uninstall', '--keep-namespace'], lines, {
        env: { KUBECONFIG: cluster.kubeconfig },
      });
      // Whatever is left, no webhook calls a server that is gone.
      const [webhooks, deployments] = [await names(CONFIGURATIONS), await names('/apis/apps/v1/deployments')];
      assert.ok(!webhooks.includes('portcullis-default') || deployments.includes('portcullis-controller'), `${lines}`);
      await done('uninstall', '--keep-namespace');
      assert.deepEqual(await remaining(), [], `after ${lines} lines`);
      const { status } = await cluster.expect<{ status: typeof ACTIVE }>('GET', `${POLICIES}/left`);
      const said = status.conditions.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`);
      assert.ok(said.includes('Enforced False Uninstalled'), `after ${lines} lines: ${said.join(', ')}`);
      if (!wasEnded) {
        break;
      }
    }
    assert.ok(lines >= 32, `${lines}`);
    await remove(`${POLICIES}/left`);
  });

  it('neither labels nor deletes a namespace that it did not create', async () => {
    const shared = '/api/v1/namespaces/shared';
    await cluster.expect('POST', '/api/v1/namespaces', { metadata: { name: 'shared' } });
    const { stderr } = await done('install', '--namespace', 'shared', '--no-wait');
    assert.match(stderr, /namespace\/shared was not changed: it existed before/);
    const { metadata } = await cluster.expect('GET', shared);
    assert.deepEqual(Object.keys(metadata.labels ?? {}), ['kubernetes.io/metadata.name']);
    // ClusterRoles and webhook configurations have fixed names: a second installation would share them.
    for (const wrong of ['install', 'uninstall']) {
      const elsewhere = await command(wrong);
      assert.equal(elsewhere.code, 1);
      assert.match(elsewhere.stderr, /installed in namespace shared, not in portcullis/);
    }
    await done('uninstall', '--namespace', 'shared');
    const left = await cluster.expect('GET', shared);
    assert.equal(left.metadata.deletionTimestamp, undefined);
  });

  it('deletes policies and kinds only with both flags', async () => {
    const { code, stderr } = await command('uninstall', '--delete-crds');
    assert.equal(code, 2);
    assert.match(stderr, /--delete-policies/);
    // A finalizer of Kubewarden would hold it for ever.
    await cluster.expect('PATCH', `${SERVERS}/default`, { metadata: { finalizers: ['kubewarden.io/finalizer'] } });
    // So would one of a ConfigurationPolicy, whose controller does not run.
    const group = 'policy.open-cluster-management.io';
    const templates = `/apis/${group}/v1/namespaces/default/configurationpolicies`;
    await cluster.expect('POST', templates, {
      apiVersion: `${group}/v1`,
      kind: 'ConfigurationPolicy',
      metadata: { name: 'one', finalizers: [PRUNE_FINALIZER] },
      spec: {
        remediationAction: 'inform',
        'object-templates': [{ complianceType: 'musthave', objectDefinition: { apiVersion: 'v1', kind: 'Namespace' } }],
      },
    });
    const kept = await done('uninstall', '--keep-namespace');
    assert.match(kept.stderr, /Kept: 1 configurationpolicies with the finalizer/);
    const { stdout, stderr: said } = await done('uninstall', '--keep-namespace', '--delete-policies');
    assert.match(stdout, /configurationpolicy\.policy\.open-cluster-management\.io\/one deleted/);
    assert.match(said, /Kept: what Policies made.*Nothing was pruned/);
    assert.deepEqual(await names(templates), []);
    await done('uninstall', '--keep-namespace', '--delete-policies', '--delete-crds');
    assert.deepEqual(await names(CRDS), []);
  });

  it('leaves kinds of Open Cluster Management as they are, until they are labelled', async () => {
    const name = 'policies.policy.open-cluster-management.io';
    const theirs = structuredClone(customResourceDefinition(GOVERNANCE_POLICIES)) as unknown as {
      spec: { versions: { schema: object }[] };
    };
    const [version] = theirs.spec.versions;
    assert.ok(version !== undefined);
    version.schema = { openAPIV3Schema: { type: 'object', description: 'theirs' } };
    await cluster.expect('POST', CRDS, theirs);
    await eventually(async () => {
      await cluster.expect('POST', `/apis/policy.open-cluster-management.io/v1/namespaces/default/policies`, {
        apiVersion: 'policy.open-cluster-management.io/v1',
        kind: 'Policy',
        metadata: { name: 'theirs' },
      });
    });
    const schema = async (): Promise<string> => JSON.stringify(await cluster.expect('GET', `${CRDS}/${name}`));
    const first = await done('install', '--no-wait');
    assert.match(first.stderr, new RegExp(`${name} was not changed: it is of Open Cluster Management`, 'u'));
    assert.match(await schema(), /theirs/);
    const codes = (await findings()).map(({ code, where }) => `${code} ${where}`);
    assert.ok(codes.includes(`KindOwnedElsewhere customresourcedefinition/${name}`), codes.join(', '));
    const { stderr } = await done('uninstall', '--keep-namespace', '--delete-policies', '--delete-crds');
    assert.match(stderr, new RegExp(`Kept: .*${name}, which is of Open Cluster Management`, 'u'));
    assert.match(stderr, /Kept: Policies and the kinds of their templates, which are of Open Cluster Management/);
    await cluster.expect('GET', `/apis/policy.open-cluster-management.io/v1/namespaces/default/policies/theirs`);
    assert.deepEqual(await names(CRDS), [name]);
    await cluster.expect('PATCH', `${CRDS}/${name}`, {
      metadata: { labels: { 'app.kubernetes.io/part-of': 'portcullis' } },
    });
    await done('install', '--no-wait');
    assert.doesNotMatch(await schema(), /theirs/);
    await done('uninstall', '--keep-namespace', '--delete-policies', '--delete-crds');
    assert.deepEqual(await names(CRDS), []);
  });

  describe('beside Kubewarden', () => {
    const controller = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'kubewarden-controller',
        labels: { 'app.kubernetes.io/part-of': 'kubewarden', 'app.kubernetes.io/component': 'controller' },
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'k' } },
        template: { metadata: { labels: { app: 'k' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    };
    const deployment = '/apis/apps/v1/namespaces/kubewarden/deployments/kubewarden-controller';

    before(async () => {
      await cluster.createNamespace('kubewarden');
      await cluster.expect('POST', '/apis/apps/v1/namespaces/kubewarden/deployments', controller);
      // Its kinds have an older version as well, and it has its own PolicyServers.
      const objects = installObjects({ namespace: 'portcullis', values: defaultValues('0.1.0') });
      for (const object of objects.filter(({ kind }) => kind === 'CustomResourceDefinition')) {
        const definition = structuredClone(object) as unknown as {
          spec: { versions: { name: string; storage: boolean }[] };
        };
        const [first] = definition.spec.versions;
        assert.ok(first !== undefined);
        definition.spec.versions.push({ ...structuredClone(first), name: 'v1alpha2', storage: false });
        await cluster.expect('POST', CRDS, definition);
      }
      await cluster.kubectl(['wait', 'crd', '--all', '--for=condition=Established']);
      await cluster.expect('POST', SERVERS, {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'PolicyServer',
        metadata: { name: 'default', finalizers: ['kubewarden.io/finalizer'] },
        spec: { image: 'example.com/kubewarden/policy-server:v1.36.0', replicas: 1 },
      });
    });

    it('is refused without the flag, with a hint for both ways', async () => {
      const { code, stderr } = await command('install', '--no-wait');
      assert.equal(code, 1);
      assert.match(stderr, /deployment kubewarden-controller in namespace kubewarden/);
      assert.match(stderr, /scale deployment kubewarden-controller --replicas=0/);
      assert.match(stderr, /--beside-kubewarden/);
    });

    it('changes neither its controller, nor its PolicyServers, nor the versions of its kinds', async () => {
      const { stderr } = await done('install', '--no-wait', '--beside-kubewarden');
      assert.match(stderr, /Kubewarden still manages its PolicyServers/);
      const server = await cluster.expect<{ spec: { image: string } }>('GET', `${SERVERS}/default`);
      assert.equal(server.spec.image, 'example.com/kubewarden/policy-server:v1.36.0');
      const { spec } = await cluster.expect<{ spec: { versions: { name: string; storage: boolean }[] } }>(
        'GET',
        `${CRDS}/policyservers.policies.kubewarden.io`,
      );
      assert.deepEqual(
        spec.versions.map(({ name, storage }) => [name, storage]),
        [
          ['v1', true],
          ['v1alpha2', false],
        ],
      );
      assert.equal((await cluster.request('GET', deployment)).status, 200);
      const codes = (await findings()).map(({ code }) => code);
      assert.ok(codes.includes('KubewardenRuns') && codes.includes('PolicyServerForeign'), codes.join(', '));
    });

    it('refuses to delete its policies', async () => {
      const { code, stderr } = await command('uninstall', '--delete-policies');
      assert.equal(code, 1);
      assert.match(stderr, /Kubewarden's controller runs/);
    });

    it('finds its leftovers when it does not run any more', async () => {
      await remove(deployment);
      await cluster.expect('POST', POLICIES, {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'one', finalizers: ['kubewarden.io/finalizer'] },
        spec: {
          module: 'builtin:pod-security',
          settings: { enforce: 'baseline' },
          mutating: false,
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        },
      });
      await remove(`${POLICIES}/one`);
      for (const [name, webhook] of [
        ['clusterwide-gone', 'clusterwide-gone.kubewarden.admission'],
        ['kubewarden-controller-validating-webhook-configuration', 'vclusteradmissionpolicy.kb.io'],
      ] as const) {
        await cluster.expect('POST', CONFIGURATIONS, configuration(name, {}, webhook));
      }
      const found = await findings();
      const of = (code: string): readonly string[] =>
        found.filter((one) => one.code === code).map(({ severity, where }) => `${severity} ${where}`);
      assert.deepEqual(of('KubewardenWebhookLeft'), ['error validatingwebhookconfiguration/clusterwide-gone']);
      assert.deepEqual(of('KubewardenControllerWebhookLeft'), [
        'error validatingwebhookconfiguration/kubewarden-controller-validating-webhook-configuration',
      ]);
      assert.deepEqual(of('KubewardenFinalizer'), ['error clusteradmissionpolicy/one', 'warning policyserver/default']);
    });
  });
});
