// `portcullis explain` for policies of admission, policy servers and NetworkPolicies, on `portcullis start`.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { portcullis } from './command.ts';
import { StartedPortcullis } from './started.ts';

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;

function policy(name: string, spec: object = {}): object {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      settings: { validations: [{ expression: 'true' }] },
      ...spec,
    },
  };
}

describe('portcullis explain', { skip: skipWithoutCluster() }, () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start();
  });
  after(() => started[Symbol.asyncDispose]());

  const kubectl = async (args: readonly string[], object?: object): Promise<string> => {
    const { code, stdout, stderr } = await started.kubectl(args, object && JSON.stringify(object));
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const apply = async (object: object): Promise<string> => await kubectl(['apply', '-f', '-'], object);
  const explain = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await started.portcullis(['explain', ...args]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const reaches = async (name: string, phase: string): Promise<void> =>
    await eventually(
      async () => assert.equal(await kubectl(['get', 'cap', name, '-o', 'jsonpath={.status.phase}']), phase),
      { timeoutMs: 60_000 },
    );

  it('says of a Degraded policy what failed, since when, and which last good revision serves', async () => {
    await apply(policy('degraded'));
    await reaches('degraded', 'Active');
    await apply(policy('degraded', { module: 'https://127.0.0.1:1/policy.wasm', settings: {} }));
    await reaches('degraded', 'Degraded');
    const text = await explain('cap/degraded');
    assert.match(text, new RegExp(`^clusteradmissionpolicy/degraded is Degraded, Ready False since ${TIME}\\n`));
    assert.match(text, new RegExp(`\\n {2}FetchFailed: .*127\\.0\\.0\\.1:1`));
    assert.match(text, new RegExp(`Revision 1, the last good one, serves since ${TIME}; revision 2 is Candidate\\.`));
    assert.match(text, /\nConditions:\n {2}UpToDate False since .*: FetchFailed\n/);
    assert.match(text, /\nWhat to do:\n {2}Make the source of the module work again; .*: portcullis rollout refresh /);
    assert.match(text, /portcullis rollout undo clusteradmissionpolicy\/degraded\n/);
    const data = JSON.parse(await explain('clusteradmissionpolicy', 'degraded', '-o', 'json')) as {
      object: string;
      state: string;
      rootCauses: readonly { reason: string; since: string }[];
      evidence: readonly { type: string }[];
      unread?: unknown;
    };
    assert.deepEqual([data.object, data.state], ['clusteradmissionpolicy/degraded', 'Degraded']);
    assert.deepEqual([data.rootCauses[0]?.reason, data.unread], ['FetchFailed', undefined]);
    assert.ok(data.evidence.some(({ type }) => type === 'UpToDate'));
  });

  it('says that a policy waits for its PolicyServer, and that nothing enforces it', async () => {
    await apply(policy('serverless', { policyServer: 'not-there' }));
    await reaches('serverless', 'Pending');
    const text = await explain('cap/serverless');
    assert.match(
      text,
      new RegExp(`^clusteradmissionpolicy/serverless is Pending, Ready False since ${TIME}\\n {2}PolicyServerNotFound`),
    );
    assert.match(text, /requests are admitted without the policy/);
    assert.match(text, /\n {2}Create that PolicyServer, or write the policy for another one\.\n/);
  });

  it('says of an Active policy that it matches nothing', async () => {
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pod'], operations: ['CREATE'] }];
    await apply(policy('never', { rules }));
    await reaches('never', 'Active');
    await eventually(async () => {
      const text = await explain('cap/never');
      assert.match(
        text,
        /^clusteradmissionpolicy\/never is Active, Ready False since .*\n {2}CannotMatch.*resources\[0\]: .*"pod"/,
      );
      assert.match(text, /\nWhat to do:\n {2}Correct the rule\.\n$/);
    });
  });

  it('says of a policy whose module is refused that nothing serves, and what requests get', async () => {
    const source = createServer((_, response) => response.end('no WebAssembly')).listen(0, '127.0.0.1');
    await once(source, 'listening');
    const { port } = source.address() as AddressInfo;
    try {
      await apply(policy('module', { module: `http://127.0.0.1:${port}/policy.wasm`, settings: {} }));
      await eventually(async () => {
        const text = await explain('cap/module');
        assert.match(
          text,
          /^clusteradmissionpolicy\/module is Error, Ready False since .*\n {2}InvalidModule: .*WebAssembly/,
        );
        assert.match(text, /requests are admitted without the policy/);
        assert.match(text, /\n {2}Correct spec\.module, or build it again\.\n/);
      });
    } finally {
      source.close();
    }
  });

  it('says of a policy that works that nothing is to be done', async () => {
    await apply(policy('fine'));
    await reaches('fine', 'Active');
    await eventually(async () => {
      assert.match(
        await explain('cap/fine'),
        new RegExp(
          `^clusteradmissionpolicy/fine is Active, Ready True since ${TIME}\\n {2}It serves as declared\\.\\n(?: {2}Existing objects: .*\\n)?$`,
        ),
      );
    });
  });

  it('says of a disarmed policy who said why, and how to arm it', async () => {
    await apply(policy('disarmed'));
    await reaches('disarmed', 'Active');
    const disarmed = await started.portcullis(['break-glass', 'disarm', 'cap/disarmed', '--reason', 'it blocks us']);
    assert.equal(disarmed.code, 0, disarmed.stderr);
    await eventually(async () => {
      const text = await explain('cap/disarmed');
      assert.match(text, /Disarmed: .*it blocks us/);
      assert.match(text, /Arm it again: portcullis break-glass rearm clusteradmissionpolicy\/disarmed\n/);
    });
  });

  it('says of a policy in a namespace, and of a policy server', async () => {
    await apply({
      ...policy('own'),
      kind: 'AdmissionPolicy',
      metadata: { name: 'own', namespace: 'default' },
    });
    await eventually(async () =>
      assert.match(await explain('ap/own', '-n', 'default'), /^admissionpolicy\/own -n default is Active, Ready /),
    );
    assert.match(
      await explain('ps/default'),
      /^policyserver\/default is Ready since .*\n {2}1 replicas are ready\.\n$/,
    );
  });

  it('says of an exception what it excepts, until when, and what it waits for', async () => {
    const end = `${new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, -5)}Z`;
    await apply({
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyException',
      metadata: { name: 'importer', namespace: 'default' },
      spec: {
        policies: [{ kind: 'ClusterAdmissionPolicy', name: 'excepted' }],
        objects: { kinds: [{ kind: 'ConfigMap' }], names: ['importer-*'] },
        reason: 'a test',
        expiresAt: end,
      },
    });
    await eventually(async () => {
      const text = await explain('pex/importer', '-n', 'default');
      assert.match(
        text,
        /^policyexception\/importer -n default is Pending, Ready False since .*\n {2}PolicyNotFound: /,
      );
      assert.match(text, /\n {2}Create the policy that the message names, or correct spec\.policies\.\n/);
      assert.match(text, /auth can-i exempt clusteradmissionpolicies\.policies\.kubewarden\.io\/excepted\n/);
    });
    await apply(policy('excepted'));
    await eventually(async () =>
      assert.match(
        await explain('pex', 'importer', '-n', 'default'),
        new RegExp(
          `^policyexception/importer -n default is Active, Ready True since ${TIME}\\n {2}Active: it ends at ${end}\\n {2}It excepts ConfigMap of namespace default, named importer-\\*, from ClusterAdmissionPolicy excepted\\.\\n`,
        ),
      ),
    );
  });

  it('says what network providers do not do of a NetworkPolicy', async () => {
    await kubectl(['apply', '-f', 'examples/network-policy/cluster.yaml']);
    await eventually(async () => {
      const text = await explain('netpol/to-storage', '-n', 'backups');
      assert.match(text, /^networkpolicy\/to-storage -n backups is Accepted False \(FeatureNotSupported\) since /);
      assert.match(text, /cilium@v1\.15\.4: EndPort is not supported: .*\(\w+\), at /);
      assert.match(text, /portcullis netpol explain to-storage -n backups\n$/);
    });
  });

  it('says what a user with few rights may not read, and that it is Unknown', async () => {
    const metadata = { name: 'reader' };
    await apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, namespace: 'default' } });
    const rules = [
      { apiGroups: ['policies.kubewarden.io'], resources: ['clusteradmissionpolicies'], verbs: ['get'] },
      { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['get'] },
    ];
    await apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules });
    await apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace: 'default' }],
    });
    const token = (await kubectl(['create', 'token', 'reader', '-n', 'default'])).trim();
    const user = (await kubectl(['config', 'view', '-o', 'jsonpath={.users[0].name}'])).trim();
    const KUBECONFIG = join(started.folder, 'reader');
    copyFileSync(started.kubeconfig, KUBECONFIG);
    await kubectl(['--kubeconfig', KUBECONFIG, 'config', 'set-credentials', user, `--token=${token}`]);
    const asReader = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await portcullis(['explain', ...args], { env: { KUBECONFIG } });
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const text = await asReader('cap/degraded');
    assert.match(text, /\n {2}FetchFailed: /);
    assert.match(text, /\nWhat is not known:\n {2}You may not read PolicyRevisions in namespace portcullis: /);
    assert.match(text, /\n {2}You may not read PolicyServer default: whether it exists and is ready is Unknown\.\n/);
    const network = await asReader('netpol/to-storage', '-n', 'backups');
    assert.match(network, /^networkpolicy\/to-storage -n backups is Unknown\n/);
    assert.match(network, /You may not read NetworkPolicyStatuses in namespace backups\./);
  });

  it('says which kinds it explains', async () => {
    const { code, stderr } = await started.portcullis(['explain', 'namespace/default']);
    assert.equal(code, 2);
    assert.match(stderr, /namespace\/default is of no kind that is explained\n.*as in cap\/pinned-images/);
  });
});
