// Attacks by a tenant with policies of a namespace, on a cluster with Portcullis, where the controllers of Kubernetes collect
// garbage and delete namespaces.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import type { KubectlResult, KubernetesObject } from '../cluster/cluster.ts';
import { scale, VALUES } from './install-case.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

const SHOP = 'shop';
const RBAC = 'rbac.authorization.k8s.io';
const CONTROLLER_USER = `system:serviceaccount:${NAMESPACE}:${CONTROLLER}`;
const NAMESPACE_CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';

const rule = (resource: string, operations: readonly string[] = ['*'], group = ''): object => ({
  apiGroups: [group],
  apiVersions: ['v1'],
  resources: [resource],
  operations,
});

function policy(name: string, mutating: boolean, settings: object, ...rules: readonly object[]): object {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'AdmissionPolicy',
    metadata: { name, namespace: SHOP },
    spec: { module: 'builtin:cel', mutating, settings, rules },
  };
}

const REJECT = { validations: [{ expression: 'false', message: 'the tenant says no' }] };
/** A policy that annotates all objects, and adds the tenant to bindings. */
const TAKE_OVER = {
  mutations: [
    {
      patchType: 'JSONPatch',
      jsonPatch: {
        expression: `[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'touched': 'yes'}}] +
          (object.kind != 'RoleBinding' ? [] : [JSONPatch{op: 'add', path: '/subjects/-',
            value: Object.subjects{apiGroup: '${RBAC}', kind: 'User', name: 'jane'}}])`,
      },
    },
  ],
};

describe('a tenant who writes policies', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;

  const as = (user: string, args: readonly string[], object?: object): Promise<KubectlResult> =>
    lab.cluster.kubectl(
      [`--as=${user}`, '-n', SHOP, ...args],
      object === undefined ? {} : { stdin: JSON.stringify(object) },
    );
  const apply = (user: string, object: object): Promise<KubectlResult> => as(user, ['apply', '-f', '-'], object);
  const bind = (user: string, role: string): Promise<string> =>
    lab.kubectl(['create', 'rolebinding', `${user}-${role}`, '-n', SHOP, `--clusterrole=${role}`, `--user=${user}`]);

  async function refused(attempt: Promise<KubectlResult>, expected: RegExp): Promise<void> {
    const { code, stderr } = await attempt;
    assert.equal(code, 1, stderr);
    assert.match(stderr, expected);
  }

  async function allowed(attempt: Promise<KubectlResult>): Promise<void> {
    const { code, stderr } = await attempt;
    assert.equal(code, 0, stderr);
  }

  /** Waits until a policy is Active, and API servers call it. */
  async function served(name: string, isCalled: () => Promise<void>): Promise<void> {
    await lab.active('admissionpolicies', name, SHOP);
    await lab.eventually(`${name} to be called`, isCalled);
  }

  const annotated = async (isTouched: boolean): Promise<void> => {
    const made = await lab.kubectl(['create', 'configmap', 'probe', '-n', SHOP, '--dry-run=server', '-o', 'json']);
    assert.equal(made.includes('"touched"'), isTouched, made);
  };

  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
    await lab.cluster.createNamespace(SHOP);
    await bind('jane', 'edit');
    await bind('victor', 'view');
    // API servers notice the webhook for our own kinds with a short delay.
    await lab.eventually('the webhook for our own kinds', async () => {
      const one = policy('probe', false, REJECT, rule('roles', ['*'], RBAC));
      const { stderr } = await lab.cluster.kubectl(['create', '--dry-run=server', '-f', '-'], {
        stdin: JSON.stringify(one),
      });
      assert.match(stderr, /rule-privileged/);
    });
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  it('is no one by being an editor of the namespace', async () => {
    const one = policy('mine', false, REJECT, rule('configmaps'));
    await refused(apply('jane', one), /User "jane" cannot (create|patch) resource "admissionpolicies"/);
    const { stdout } = await as('jane', ['get', 'admissionpolicies']);
    assert.equal(stdout, '');
    await bind('jane', 'portcullis-edit');
    await bind('victor', 'portcullis-edit');
  });

  it('writes none on bindings, tokens, policies and the like', async () => {
    for (const [group, resource] of [
      [RBAC, 'rolebindings'],
      ['policies.kubewarden.io', 'admissionpolicies'],
      ['certificates.k8s.io', 'certificatesigningrequests'],
      ['', 'serviceaccounts/token'],
    ] as const) {
      const one = policy('take-over', true, TAKE_OVER, rule(resource, ['CREATE', 'UPDATE'], group));
      await refused(apply('jane', one), /policies of a namespace never see requests for .*\[rule-privileged\]/s);
    }
  });

  it('writes no policy for objects that the tenant cannot read or write, and gets a message that names the missing right', async () => {
    await refused(
      apply('victor', policy('mine', true, TAKE_OVER, rule('configmaps', ['CREATE']))),
      /Error from server \(Forbidden\).*user "victor" lacks rights.*user "victor" may not create, update configmaps in the namespace "shop" \[author-rights\]/s,
    );
    await refused(
      apply('victor', policy('mine', false, REJECT, rule('configmaps'), rule('secrets'))),
      /spec\.rules\[1\]\.resources\[0\]: Forbidden: user "victor" may not get secrets in the namespace "shop"/,
    );
    await refused(
      apply('jane', policy('mine', true, TAKE_OVER, rule('resourcequotas', ['CREATE']))),
      /user "jane" may not create, update resourcequotas/,
    );
    await allowed(
      apply('victor', policy('mine', false, { validations: [{ expression: 'true' }] }, rule('configmaps'))),
    );
    await allowed(as('victor', ['delete', 'admissionpolicy', 'mine']));
  });

  it('sees what serves of its policy, what came before, and that a rule matches nothing', async () => {
    const seen = (message: string, resource = 'configmaps'): object =>
      policy('seen', false, { validations: [{ expression: 'true', message }] }, rule(resource, ['CREATE']));
    const read = async (path: string): Promise<string> =>
      (await as('jane', ['get', 'admissionpolicy', 'seen', '-o', `jsonpath=${path}`])).stdout;
    for (const message of ['one', 'two']) {
      await allowed(apply('jane', seen(message)));
      await lab.active('admissionpolicies', 'seen', SHOP);
    }
    assert.match(
      await read('{.status.serving.modules[0].digest} {.status.serving.modules[0].settings}'),
      /^builtin:cel@.*"two"/,
    );
    assert.equal(await read('{.status.revisions[*].revision} {.status.revisions[*].state}'), '2 1 Serving Retired');
    assert.match(await read('{.status.revisions[1].spec}'), /"one"/);
    await refused(as('jane', ['get', 'policyrevisions', '-n', NAMESPACE]), /forbidden/);
    // The right to read what it matches is asked for, and nobody has that for a kind that does not exist.
    await lab.apply(seen('three', 'configmap'));
    await lab.eventually('an issue', async () => {
      assert.equal(
        await read('{.status.phase} {.status.reason} {.status.issues[0].severity}'),
        'Active CannotMatch Error',
      );
      assert.equal(await read('{.status.conditions[?(@.type=="Ready")].status}'), 'False');
    });
    await allowed(apply('jane', seen('four')));
    await lab.eventually('no issue', async () => {
      assert.equal(await read('{.status.conditions[?(@.type=="Ready")].status} {.status.issues}'), 'True ');
    });
    await allowed(as('jane', ['delete', 'admissionpolicy', 'seen']));
  });

  it('gets into no binding of an administrator, by a policy that was stored before either', async () => {
    await allowed(apply('jane', policy('take-over', true, TAKE_OVER, rule('configmaps', ['CREATE']))));
    await served('take-over', () => annotated(true));
    const rules = [rule('configmaps', ['CREATE']), rule('rolebindings', ['*'], RBAC)];
    const controller = [`--serviceaccount=${NAMESPACE}:${CONTROLLER}`, '--clusterrole=portcullis-view'];
    await lab.kubectl(['create', 'rolebinding', 'controller', '-n', SHOP, ...controller]);
    // Writes of the controller are not checked. Such a policy may also be older than the rule.
    await allowed(
      as(CONTROLLER_USER, [
        'patch',
        'admissionpolicy',
        'take-over',
        '--type=merge',
        '-p',
        JSON.stringify({ spec: { rules } }),
      ]),
    );
    await served('take-over', () => annotated(true));
    await lab.eventually('both rules in the webhook', async () => {
      const webhooks = await lab.kubectl(['get', 'mutatingwebhookconfigurations', '-o', 'json']);
      assert.match(webhooks, /"rolebindings"/);
    });
    await bind('victor', 'admin');
    const binding = await lab.kubectl(['get', 'rolebinding', 'victor-admin', '-n', SHOP, '-o', 'json']);
    assert.doesNotMatch(binding, /jane|touched/);
    await annotated(true);
    // It can still be changed and deleted.
    await allowed(as('jane', ['annotate', 'admissionpolicy', 'take-over', 'a=b']));
    await allowed(as('jane', ['delete', 'admissionpolicy', 'take-over']));
    await lab.eventually('no policy', () => annotated(false));
    await lab.kubectl(['delete', 'rolebinding', 'victor-admin', '-n', SHOP]);
  });

  it('matches no tokens by a wildcard', async () => {
    const one = policy('no-tokens', false, REJECT, rule('serviceaccounts/*', ['CREATE', 'UPDATE']));
    await refused(apply('jane', one), /user "jane" may not get serviceaccounts\/\* in the namespace "shop"/);
    await lab.apply(one);
    const annotate = ['annotate', 'serviceaccount', 'default', '-n', SHOP, 'a=b', '--dry-run=server', '--overwrite'];
    await served('no-tokens', async () => refused(lab.cluster.kubectl(annotate), /the tenant says no/));
    await lab.kubectl(['create', 'token', 'default', '-n', SHOP]);
    await lab.kubectl(['delete', 'admissionpolicy', 'no-tokens', '-n', SHOP]);
  });

  it('sees who executes commands in pods, with the rights of its author, as CONNECT with the options', async () => {
    const settings = {
      validations: [
        {
          expression: "has(object.command) && object.command == ['allowed']",
          messageExpression: "request.operation + ' ' + object.kind + ' for ' + request.subResource",
        },
      ],
    };
    const connections = ['pods/exec', 'pods/attach', 'pods/portforward', 'services/proxy'];
    const one = policy('no-shell', false, settings, ...connections.map((resource) => rule(resource, ['CONNECT'])));
    await refused(apply('victor', one), /user "victor" may not get pods\/exec in the namespace "shop"/);
    await refused(
      apply('jane', policy('no-shell', false, settings, rule('pods/*', ['CONNECT']))),
      /user "jane" may not get pods\/\*/,
    );
    await allowed(apply('jane', one));
    const connect = async (path: string): Promise<string> => {
      const { status, body } = await lab.cluster.request<{ message?: string }>(
        'POST',
        `/api/v1/namespaces/${SHOP}/${path}`,
      );
      return `${status} ${body.message ?? ''}`;
    };
    // None of them exists: API servers look for them after admission only.
    await served('no-shell', async () => assert.match(await connect('pods/none/exec?command=id'), /^(?!404)/));
    assert.match(await connect('pods/none/exec?command=id'), /no-shell.*CONNECT PodExecOptions for exec/);
    assert.match(await connect('pods/none/attach?stdin=true'), /CONNECT PodAttachOptions for attach/);
    assert.match(await connect('pods/none/portforward?ports=80'), /CONNECT PodPortForwardOptions for portforward/);
    assert.match(await connect('services/none/proxy/path'), /CONNECT ServiceProxyOptions for proxy/);
    assert.match(await connect('pods/none/exec?command=allowed'), /^404 /);
    await allowed(as('jane', ['delete', 'admissionpolicy', 'no-shell']));
  });

  it('adds no ephemeral container to a pod that the policies of the cluster would not admit with it', async () => {
    const rules = [rule('pods', ['CREATE', 'UPDATE']), rule('pods/ephemeralcontainers', ['UPDATE'])];
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': SHOP } };
    const cluster = (name: string, spec: object): object => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: { mutating: false, rules, namespaceSelector, ...spec },
    });
    await lab.apply(
      cluster('baseline', { module: 'builtin:pod-security', settings: { enforce: 'baseline' } }),
      cluster('profile', {
        module: 'builtin:pod-profile',
        mutating: true,
        settings: {
          privileged: true,
          runAsUser: 1000,
          fsGroup: 'RunAsAny',
          supplementalGroups: 'RunAsAny',
          seLinux: 'RunAsAny',
        },
      }),
    );
    for (const name of ['baseline', 'profile']) {
      await lab.active('clusteradmissionpolicies', name);
    }
    await lab.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'quiet', namespace: SHOP },
      // No node runs it.
      spec: {
        schedulerName: 'none',
        automountServiceAccountToken: false,
        containers: [{ name: 'app', image: 'app', securityContext: { runAsUser: 1000 } }],
      },
    });
    const add = (securityContext: object): Promise<KubectlResult> => {
      const container = { name: 'debug', image: 'debug', securityContext };
      const patch = JSON.stringify({ spec: { ephemeralContainers: [container] } });
      const command = [
        'patch',
        'pod',
        'quiet',
        '-n',
        SHOP,
        '--subresource=ephemeralcontainers',
        '--dry-run=server',
        '-p',
      ];
      return lab.cluster.kubectl([...command, patch]);
    };
    await lab.eventually('both policies to be called', async () => {
      await refused(add({ privileged: true, runAsUser: 1000 }), /baseline.*privileged/s);
      await refused(
        add({ runAsUser: 0 }),
        /spec\.ephemeralContainers\[0\]\.securityContext\.runAsUser: expected 1000, got 0/,
      );
    });
    await allowed(add({ runAsUser: 1000 }));
    await lab.kubectl(['delete', 'clusteradmissionpolicies', 'baseline', 'profile']);
    await lab.kubectl(['delete', 'pod', 'quiet', '-n', SHOP, '--force']);
  });

  it('writes with the token of a policy server no report but that of its pod, and no revision', async () => {
    const pods = await lab.kubectl(['get', 'pods', '-n', NAMESPACE, '-o', 'name']);
    const [pod = '', other] = [...pods.matchAll(/pod\/(policy-server-default-\S+)/g)].map(([, name]) => name);
    const bound = ['--bound-object-kind=Pod', `--bound-object-name=${pod}`];
    const token = await lab.kubectl(['create', 'token', POLICY_SERVER, '-n', NAMESPACE, ...bound]);
    const stolen = (args: readonly string[], object?: object): Promise<KubectlResult> =>
      lab.cluster.kubectl(
        [`--token=${token.trim()}`, '-n', NAMESPACE, ...args],
        object === undefined ? {} : { stdin: JSON.stringify(object) },
      );
    const report = (name: string, policyServer: string): object => ({
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyServerReplica',
      metadata: { name },
      spec: { policyServer, controlAddress: '192.0.2.1:1' },
    });
    const dry = '--dry-run=server';
    const create = ['create', dry, '-f', '-'];
    const only = /a policy server writes only the PolicyServerReplica that has the name of its pod/;
    await refused(stolen(create, report('forged', 'default')), only);
    await refused(
      stolen(['delete', 'policyserverreplica', other ?? 'another', dry]),
      other === undefined ? /NotFound/ : only,
    );
    await allowed(stolen(['delete', 'policyserverreplica', pod, dry]));
    const path = `/apis/portcullis.dev/v1/namespaces/${NAMESPACE}/policyserverreplicas/${pod}`;
    const { spec } = await lab.get<KubernetesObject & { spec: object }>(path);
    // The policy server itself writes the report now and then.
    const replaced = async (change: object): Promise<KubectlResult> => {
      const result = await stolen(['replace', dry, '-f', '-'], { ...(await lab.get(path)), ...change });
      return /Conflict/.test(result.stderr) ? replaced(change) : result;
    };
    await refused(
      replaced({ spec: { ...spec, policyServer: 'blue' } }),
      /only for the PolicyServer whose Deployment created its pod/,
    );
    await allowed(replaced({}));
    for (const verb of ['create', 'update', 'patch', 'delete', 'deletecollection']) {
      const { stdout } = await stolen(['auth', 'can-i', verb, 'policyrevisions.portcullis.dev']);
      assert.equal(stdout.trim(), 'no', verb);
    }
  });

  it('rejects no garbage collection, and what other users delete as ever', async () => {
    const one = policy('keep', false, REJECT, rule('configmaps', ['DELETE']), rule('secrets', ['UPDATE']));
    await allowed(apply('jane', one));
    await lab.kubectl(['create', 'configmap', 'kept', '-n', SHOP]);
    const remove = ['delete', 'configmap', 'kept', '--dry-run=server'];
    await served('keep', async () => refused(as('jane', remove), /the tenant says no/));
    await refused(
      as('system:serviceaccount:kube-system:replicaset-controller', remove),
      /the tenant says no|cannot delete/,
    );
    await refused(lab.cluster.kubectl([...remove, '-n', SHOP]), /the tenant says no/);
    await allowed(as(NAMESPACE_CONTROLLER, remove));
    // Foreground deletion: the garbage collector deletes the config map, and then removes the finalizer of the Secret.
    await lab.kubectl(['create', 'secret', 'generic', 'owner', '-n', SHOP]);
    const { metadata } = await lab.get(`/api/v1/namespaces/${SHOP}/secrets/owner`);
    const owner = { apiVersion: 'v1', kind: 'Secret', name: 'owner', uid: metadata['uid'], blockOwnerDeletion: true };
    await lab.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'owned', namespace: SHOP, ownerReferences: [owner] },
    });
    await lab.kubectl(['delete', 'secret', 'owner', '-n', SHOP, '--cascade=foreground', '--timeout=45s']);
    await refused(as('jane', ['get', 'configmap', 'owned']), /NotFound/);
  });

  it('keeps no object from the namespace controller while policy servers are down', async () => {
    await scale(lab, CONTROLLER, 0);
    await lab.rolledOut(CONTROLLER);
    await scale(lab, POLICY_SERVER, 0);
    await lab.rolledOut(POLICY_SERVER);
    const remove = ['delete', 'configmap', 'kept', '--dry-run=server'];
    await refused(as('jane', remove), /failed calling webhook/);
    await allowed(as(NAMESPACE_CONTROLLER, remove));
    await scale(lab, CONTROLLER, 2);
    await lab.running();
  });

  it('keeps no namespace from being deleted to the end', async () => {
    const kinds = ['configmaps', 'secrets', 'pods', 'services', 'serviceaccounts', 'persistentvolumeclaims'];
    await allowed(apply('jane', policy('keep', false, REJECT, ...kinds.map((resource) => rule(resource)))));
    await served('keep', async () =>
      refused(
        as('jane', ['create', 'service', 'clusterip', 'one', '--tcp=80', '--dry-run=server']),
        /the tenant says no/,
      ),
    );
    await lab.kubectl(['delete', 'namespace', SHOP, '--timeout=60s']);
    await refused(lab.cluster.kubectl(['get', 'namespace', SHOP]), /NotFound/);
  });
});
