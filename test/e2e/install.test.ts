// The product, installed from its charts on a real API server with Pods as processes: enforcement, recovery, and removal without
// leftovers. The tests depend on each other: all use one cluster, in order.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import {
  base64,
  CONFIG_MAPS,
  configMap,
  guard,
  isGuarded,
  podNames,
  scale,
  secret,
  unbroken,
  VALUES,
} from './install-case.ts';
import { CONTROLLER, InstallLab, type Inventory, NAMESPACE, POLICY_SERVER } from './install-lab.ts';
import { expiredCertificates } from './install-certificates.ts';
import {
  EXAMPLES_HOLD,
  mutatingPolicies,
  namespacedPolicies,
  pod,
  REFUSED_BY_EXAMPLES,
  VALIDATED_AFTERWARDS,
} from './install-policies.ts';
import { startSidecarWebhook } from './install-sidecar.ts';

const RESTRICTED = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'restricted' },
  spec: {
    module: 'builtin:pod-security',
    mutating: false,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
    settings: { enforce: 'restricted' },
  },
};

function containerOf(object: object): object {
  return (object as { spec: { containers: [object] } }).spec.containers[0];
}

interface KeptPolicy {
  readonly status: {
    readonly copies?: { readonly nodes?: number };
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  };
}

describe('Portcullis, installed', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  let found: Inventory;
  before(async () => {
    lab = await InstallLab.start();
    found = await lab.inventory();
    await lab.install(VALUES);
    await lab.running();
    await guard(lab);
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  it('comes up from its charts', async () => {
    const { code, stdout, stderr } = await lab.command('doctor', '--fail-on', 'error');
    assert.equal(code, 0, stdout + stderr);
  });

  it('refuses modules of tenants at apply, and those at private addresses, unless the PolicyServer names them', async () => {
    const all = { 'portcullis.dev/tenant-modules': '*' };
    const servers = Object.entries({
      closed: {},
      some: { 'portcullis.dev/tenant-modules': 'https://1.1.1.1/shared' },
      open: all,
      named: { ...all, 'portcullis.dev/tenant-module-hosts': '10.0.0.5:8443' },
    }).map(([name, annotations]) => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name, annotations },
      spec: { image: 'portcullis:0.1.0', replicas: 0 },
    }));
    await lab.apply(...servers);
    const path = '/apis/policies.kubewarden.io/v1/namespaces/default/admissionpolicies';
    const policy = (module: string, policyServer: string): object => ({
      ...RESTRICTED,
      kind: 'AdmissionPolicy',
      spec: { ...RESTRICTED.spec, module, policyServer, settings: {} },
    });
    for (const [module, server, expected] of [
      ['https://1.1.1.1/p.wasm', 'closed', /^422 .*builtin modules, got https:.*tenant-modules/],
      ['https://1.1.1.1/p.wasm', 'some', /^422 .*and https:\/\/1\.1\.1\.1\/shared, got/],
      ['https://1.1.1.1/shared/p.wasm', 'some', /^201/],
      ['https://10.0.0.5:8443/p.wasm', 'open', /^422 .*10\.0\.0\.5:8443.*tenant-module-hosts/],
      ['https://10.0.0.5/p.wasm', 'named', /^422 .*10\.0\.0\.5.*tenant-module-hosts/],
      ['https://10.0.0.5:8443/p.wasm', 'named', /^201/],
      ['https://1.1.1.1/p.wasm', 'open', /^201/],
    ] as const) {
      await lab.eventually(`${module} on ${server}`, async () =>
        assert.match(await lab.answer(path, policy(module, server)), expected),
      );
    }
    await lab.kubectl(['delete', 'policyservers', 'closed', 'some', 'open', 'named']);
  });

  it('refuses parameters on a PolicyServer that Kubewarden’s controller manages or once did', async () => {
    const server = (finalizers: readonly string[]): object => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'beside', finalizers },
      spec: { image: 'portcullis:0.1.0', replicas: 0 },
    });
    const policy = {
      ...RESTRICTED,
      spec: {
        ...RESTRICTED.spec,
        policyServer: 'beside',
        parameters: {
          from: { namespace: { labels: ['level'] } },
          overridable: ['enforce'],
          settingsExpression: "{'enforce': params.labels.level}",
        },
      },
    };
    const path = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies';
    for (const [finalizers, expected] of [
      [
        ['kubewarden.io/finalizer'],
        /^422 .*spec\.parameters: .*the finalizer kubewarden\.io\/finalizer .*docs\/migration\.md/,
      ],
      [[], /^201/],
    ] as const) {
      await lab.apply(server(finalizers));
      await lab.eventually(`finalizers ${finalizers.join()}`, async () =>
        assert.match(await lab.answer(path, policy), expected),
      );
    }
    await lab.kubectl(['delete', 'policyserver', 'beside']);
  });

  it('enforces policies of every kind and of every kind of module', async () => {
    await lab.cluster.createNamespace('examples', EXAMPLES_HOLD);
    const cases = namespacedPolicies('examples');
    const names = Object.keys(REFUSED_BY_EXAMPLES);
    const examples = await Promise.all([...names, 'default-seccomp', 'cost-center'].map((name) => lab.example(name)));
    await lab.apply(...examples.flat(), ...cases.map(({ policy }) => policy));
    await Promise.all([
      ...names
        .filter((name) => name !== 'privileged-by-exception')
        .map((name) => lab.active('clusteradmissionpolicies', name)),
      lab.active('clusteradmissionpolicygroups', 'privileged-by-exception'),
      lab.active('clusteradmissionpolicies', 'default-seccomp'),
      ...cases.map(({ resource, policy }) => lab.active(resource, policy.metadata.name ?? '', 'examples')),
    ]);
    const pods = '/api/v1/namespaces/examples/pods';
    for (const [name, [object, expected]] of Object.entries(REFUSED_BY_EXAMPLES)) {
      await lab.eventually(name, async () => assert.match(await lab.answer(pods, object), expected));
    }
    for (const { path, object, expected } of cases) {
      await lab.eventually(path, async () => assert.match(await lab.answer(path, object), expected));
    }
    await lab.eventually('the seccomp profile', async () => {
      const { body } = await lab.cluster.request<{ spec: { securityContext: object } }>(
        'POST',
        `${pods}?dryRun=All`,
        pod({ securityContext: { runAsNonRoot: true } }),
      );
      assert.deepEqual(body.spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    });
  });

  it('has Pods that the policies of the examples admit, and the restricted Pod Security Standard', async () => {
    await lab.apply({
      ...RESTRICTED,
      spec: { ...RESTRICTED.spec, namespaceSelector: { matchLabels: EXAMPLES_HOLD } },
    });
    await lab.active('clusteradmissionpolicies', RESTRICTED.metadata.name);
    const pods = '/api/v1/namespaces/examples/pods';
    await lab.eventually('the standard', async () => {
      assert.match(await lab.answer(pods, pod({ securityContext: {} })), /cap\/restricted/);
    });
    for (const name of [CONTROLLER, POLICY_SERVER]) {
      const { spec } = await lab.get<{ spec: { template: { metadata: object; spec: Record<string, unknown> } } }>(
        `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${name}`,
      );
      const { template } = spec;
      const object = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name: 'asked' },
        spec: { ...template.spec, serviceAccountName: 'default', serviceAccount: 'default' },
      };
      assert.equal(await lab.answer(pods, object), '201', name);
    }
  });

  it('mutates a pod to the same result in any order of webhooks, and validates the result', async () => {
    await using sidecar = await startSidecarWebhook();
    const namespaces = (['closed', 'counted'] as const).flatMap((first) =>
      (['aa', 'zz'] as const).map((turn) => ({ name: `mutated-${first}-${turn}`, first, turn })),
    );
    for (const { name, first, turn } of namespaces) {
      await lab.cluster.createNamespace(name, { mutated: first, sidecar: turn });
    }
    const policies = (['closed', 'counted'] as const).flatMap((first) => mutatingPolicies(first, { mutated: first }));
    const others = ['aa', 'zz'].map((turn) => sidecar.configuration(`${turn}-sidecar`, { sidecar: turn }));
    await lab.apply(...policies, VALIDATED_AFTERWARDS, ...others);
    const names = [...policies, VALIDATED_AFTERWARDS].map(({ metadata }) => metadata.name);
    await Promise.all(names.map((name) => lab.active('clusteradmissionpolicies', name)));
    for (const { name } of namespaces) {
      await lab.eventually(`a pod of ${name}`, async () => {
        const path = `/api/v1/namespaces/${name}/pods?dryRun=All`;
        const { body } = await lab.cluster.request<{
          metadata: { annotations: object };
          spec: { containers: { name: string; securityContext?: object }[] };
        }>('POST', path, pod());
        assert.ok('spec' in body, JSON.stringify(body));
        assert.deepEqual(body.metadata.annotations, { containers: '2' });
        assert.deepEqual(
          body.spec.containers.map((container) => [container.name, container.securityContext]),
          [
            ['main', { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }],
            ['sidecar', { allowPrivilegeEscalation: false }],
          ],
        );
      });
      const two = [{ ...containerOf(pod()) }, { ...containerOf(pod()), name: 'second' }];
      const answer = await lab.answer(`/api/v1/namespaces/${name}/pods`, pod({ containers: two }));
      assert.match(answer, /too many containers/);
    }
    await lab.kubectl(['delete', 'mutatingwebhookconfiguration', 'aa-sidecar', 'zz-sidecar']);
    await lab.kubectl(['delete', 'clusteradmissionpolicy', ...names]);
    await lab.kubectl(['delete', 'namespace', '--wait=false', ...namespaces.map(({ name }) => name)]);
  });

  it('lets the policy that warns of unsupported NetworkPolicies read the detected providers', async () => {
    for (const policy of await lab.example('network-policy')) {
      await lab.apply(policy);
    }
    await lab.active('clusteradmissionpolicies', 'network-policy-support');
    await lab.kubectl(['delete', 'clusteradmissionpolicy', 'network-policy-support']);
  });

  it('admits requests that a policy matches which never served, and reports that', async () => {
    const name = 'never-served';
    const spec = {
      ...RESTRICTED.spec,
      module: lab.web.put('missing.wasm', { kind: 'status', status: 404 }),
      settings: {},
    };
    await lab.apply({ ...RESTRICTED, metadata: { name }, spec });
    await lab.eventually('the failure', async () => {
      const columns = ['get', 'clusteradmissionpolicy', name, '--no-headers'];
      assert.match(await lab.kubectl(columns), /Error +False +1 +0 +0 +ModuleNotFound/);
    });
    const { code, stdout } = await lab.command('doctor');
    assert.equal(code, 1);
    const expected = `error PolicyNotEnforced: clusteradmissionpolicy/${name}\n  requests are admitted without it \\(NotServedYet\\): ModuleNotFound: `;
    assert.match(stdout, new RegExp(expected));
    assert.equal(await lab.answer('/api/v1/namespaces/default/pods', pod()), '201');
    await lab.kubectl(['delete', 'clusteradmissionpolicy', name]);
  });

  it('is disarmed while nothing of it runs, stays so when it comes back, and is armed again', async () => {
    // No other policy matches them: a webhook keeps what others match.
    const LIMIT_RANGES = '/api/v1/namespaces/guarded/limitranges';
    const limitRange = {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { generateName: 'asked-' },
      spec: { limits: [] },
    };
    const refusing = {
      ...RESTRICTED,
      metadata: { name: 'refusing' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['limitranges'], operations: ['CREATE'] }],
        settings: { validations: [{ expression: 'false', message: 'refused' }] },
      },
    };
    await lab.apply(refusing);
    await lab.active('clusteradmissionpolicies', 'refusing');
    assert.match(await lab.answer(LIMIT_RANGES, limitRange), /refused/);
    await scale(lab, CONTROLLER, 0);
    await lab.rolledOut(CONTROLLER);
    await scale(lab, POLICY_SERVER, 0);
    await lab.eventually('the end of all processes', async () => {
      const pods = [...(await podNames(lab, CONTROLLER)), ...(await podNames(lab, POLICY_SERVER))];
      assert.deepEqual(pods, []);
    });
    assert.match(await lab.answer(CONFIG_MAPS, configMap), /failed calling webhook/);
    const breakGlass = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await lab.command('break-glass', ...args, '--timeout', '1s');
      assert.equal(code, 0, stdout + stderr);
      return stdout;
    };
    const isAdmitted = (path: string, object: object): Promise<void> =>
      lab.eventually('the admission', async () => assert.equal(await lab.answer(path, object), '201'));
    // One policy, then all.
    assert.match(
      await breakGlass('disarm', 'cap/refusing', '--reason', 'INC-1'),
      /refusing disarmed; no controller answered: changed validatingwebhookconfiguration\/portcullis-default\n$/,
    );
    await isAdmitted(LIMIT_RANGES, limitRange);
    assert.match(await lab.answer(CONFIG_MAPS, configMap), /failed calling webhook/);
    await breakGlass('disarm', '--all', '--reason', 'INC-2');
    await isAdmitted(CONFIG_MAPS, configMap);
    const { stdout } = await lab.command('break-glass', 'status');
    assert.match(
      stdout,
      /^policyserver\.policies\.kubewarden\.io\/default: INC-2\nclusteradmissionpolicy\..*\/refusing: INC-1\n$/,
    );
    await scale(lab, POLICY_SERVER, 1);
    await scale(lab, CONTROLLER, 2);
    await lab.running();
    const outcome = [
      'get',
      'clusteradmissionpolicy',
      'guard',
      '-o',
      'jsonpath={.status.conditions[?(@.type=="Enforced")].reason}',
    ];
    await lab.eventually('the status', async () => assert.equal(await lab.kubectl(outcome), 'Disarmed'));
    assert.equal(await lab.answer(CONFIG_MAPS, configMap), '201');
    await lab.command('break-glass', 'rearm', '--all');
    await isGuarded(lab);
    await isAdmitted(LIMIT_RANGES, limitRange);
    const events = await lab.kubectl(['get', 'events', '-n', 'default', '-o', 'jsonpath={.items[*].message}']);
    for (const message of [/disarmed by .*: INC-1/, /disarmed by .*: INC-2/, /armed again by /]) {
      assert.match(events, message);
    }
    await lab.kubectl(['delete', 'clusteradmissionpolicy', 'refusing']);
  });

  it('comes back when its policy servers are all gone', async () => {
    await scale(lab, CONTROLLER, 0);
    await lab.rolledOut(CONTROLLER);
    await lab.kubectl(['delete', 'deployment', POLICY_SERVER, '-n', NAMESPACE, '--wait=true']);
    await lab.eventually('no policy server', async () => assert.deepEqual(await podNames(lab, POLICY_SERVER), []));
    assert.match(await lab.answer(CONFIG_MAPS, configMap), /failed calling webhook/);
    assert.equal(await lab.answer('/api/v1/namespaces/kube-system/configmaps', configMap), '201');
    await scale(lab, CONTROLLER, 2);
    await lab.running();
    await isGuarded(lab);
  });

  it('says how many nodes the modules of a policy are on', async () => {
    // The pods are on the only node, which would take all copies along.
    await lab.eventually('copies of all modules', async () => {
      const policies = await lab.kubectl(['get', 'clusteradmissionpolicies', '-o', 'json']);
      const { items } = JSON.parse(policies) as { items: readonly KeptPolicy[] };
      const kept = items.flatMap(({ status }) => (status.copies === undefined ? [] : [status]));
      assert.ok(kept.length > 0);
      for (const { copies, conditions } of kept) {
        const { reason } = conditions.find(({ type }) => type === 'ModulesKept') ?? {};
        assert.deepEqual([copies?.nodes, reason], [1, 'OneNode']);
      }
    });
  });

  it('restores its CA after it was deleted or changed, without failed requests', async (test) => {
    const { data: was } = await secret(lab, 'portcullis-ca');
    const isBack = async (): Promise<void> => assert.deepEqual((await secret(lab, 'portcullis-ca')).data, was);
    await unbroken(lab, test, async () => {
      await lab.kubectl(['delete', 'secret', 'portcullis-ca', '-n', NAMESPACE]);
      await lab.eventually('the CA', isBack);
      await lab.cluster.expect('PATCH', `/api/v1/namespaces/${NAMESPACE}/secrets/portcullis-ca`, {
        data: { 'tls.crt': base64('nonsense'), 'tls.key': base64('nonsense') },
      });
      await lab.eventually('the CA again', isBack);
    });
    await lab.running();
  });

  it('comes back when everything was down until its certificates had expired', async () => {
    await scale(lab, CONTROLLER, 0);
    await lab.rolledOut(CONTROLLER);
    await scale(lab, POLICY_SERVER, 0);
    await lab.rolledOut(POLICY_SERVER);
    const expired = await expiredCertificates(NAMESPACE, CONTROLLER, POLICY_SERVER);
    for (const [name, data] of expired) {
      await lab.cluster.expect('PATCH', `/api/v1/namespaces/${NAMESPACE}/secrets/${name}`, { data });
    }
    await scale(lab, CONTROLLER, 2);
    await lab.eventually('policy servers to be wanted again', async () => {
      const { spec } = await lab.get<{ spec: { replicas: number } }>(
        `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${POLICY_SERVER}`,
      );
      assert.equal(spec.replicas, 2);
    });
    await lab.running();
    await isGuarded(lab);
  });

  it('leaves the cluster as it was', async () => {
    await lab.helm(['uninstall', 'portcullis']);
    assert.equal(await lab.answer(CONFIG_MAPS, configMap), '201');
    // The hook of the chart has written what is true without a controller.
    const policies = JSON.parse(await lab.kubectl(['get', 'clusteradmissionpolicies', '-o', 'json'])) as {
      readonly items: readonly KeptPolicy[];
    };
    assert.ok(policies.items.length > 0);
    for (const { status } of policies.items) {
      const said = status.conditions.map((one) => `${one.type} ${one.status} ${one.reason}`);
      assert.ok(said.includes('Enforced False Uninstalled'), said.join(', '));
    }
    const { code, stdout, stderr } = await lab.command('uninstall', '--delete-policies', '--delete-crds');
    assert.equal(code, 0, stdout + stderr);
    await lab.kubectl(['delete', 'namespace', '--ignore-not-found', NAMESPACE, 'guarded', 'examples']);
    await lab.eventually('nothing of it', async () => {
      const is = await lab.inventory();
      assert.deepEqual([...is.symmetricDifference(found)], []);
    });
  });
});
