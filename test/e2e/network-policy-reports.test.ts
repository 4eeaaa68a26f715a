// A network provider that reports for itself, as docs/network-policy-providers.md says: the example and the commands of the page
// with the rights of the Role only, on both API servers.
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import {
  findCondition,
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
} from '../../src/resources/index.ts';
import { agentPod, rangePolicy } from '../../src/network-policy/testing/sample-cluster.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { embeddedServer, realServer, ReportingLab, type ReportingUser } from './network-policy-reporting.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/network-policy/reporter.ts', import.meta.url));
const PAGE = readFileSync(new URL('../../docs/network-policy-providers.md', import.meta.url), 'utf8');
const NAMESPACE = 'default';
const POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const run = promisify(execFile);

describe('the example reporter', () => {
  it('is short enough to copy', () => {
    assert.ok(readFileSync(EXAMPLE, 'utf8').split('\n').length <= 200);
  });
});

for (const [where, serve] of [
  ['a kube-apiserver', realServer],
  ['the embedded API server', embeddedServer],
] as const) {
  describe(`a provider that reports for itself, on ${where}`, { skip: skipWithoutCluster() }, () => {
    let lab: ReportingLab;
    let example: ChildProcess | undefined;

    before(async () => {
      lab = await ReportingLab.start(await serve());
      await lab.kubectl('admin', ['create', 'namespace', 'kube-system']).catch(() => undefined);
    });
    after(async () => {
      example?.kill();
      await lab?.[Symbol.asyncDispose]();
    });

    const accepted = async (name: string): Promise<string> => {
      const { status } = await lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name });
      const condition = findCondition(status?.conditions, 'Accepted');
      return `${condition?.status} ${condition?.reason}`;
    };
    const entry = async (name: string, controllerName = 'example.com/agent') => {
      const { status } = await lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name });
      return status?.providers?.find((one) => one.controllerName === controllerName);
    };
    const applied = async (object: object): Promise<void> =>
      void (await lab.kubectl('admin', ['apply', '-f', '-'], JSON.stringify(object)));
    const reporter = (user: ReportingUser, ...args: readonly string[]) =>
      run(process.execPath, [EXAMPLE, 'example', ...args], { env: { ...process.env, ...lab.reporterEnv(user) } });

    it('is refused before an administrator names its account', async () => {
      await applied(rangePolicy('range', NAMESPACE));
      await applied({
        apiVersion: 'portcullis.dev/v1',
        kind: 'NetworkPolicyProvider',
        metadata: { name: 'example' },
        spec: { reporter: { controllerName: 'example.com/agent', username: 'reporter' } },
      });
      await eventually(() => assert.rejects(reporter('mallory', '--once'), /status\.renewTime: Forbidden/));
      await assert.rejects(lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name: 'range' }));
    });

    it('applies a status that does not exist yet, which the controller adopts', async () => {
      await eventually(() => reporter('reporter', '--once'));
      assert.equal((await entry('range'))?.conditions?.[0]?.status, 'False');
      lab.startControllers();
      await eventually(async () => assert.equal(await accepted('range'), 'False FeatureNotSupported'));
      const { metadata } = await lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name: 'range' });
      const [owner, ...others] = metadata.ownerReferences ?? [];
      assert.deepEqual([owner?.controller, others], [true, []]);
    });

    it('tells who applies a policy what it does not do, and that it does the next version', async () => {
      example = spawn(process.execPath, [EXAMPLE, 'example'], {
        env: { ...process.env, ...lab.reporterEnv('reporter') },
        stdio: 'inherit',
      });
      await applied(rangePolicy('mine', NAMESPACE));
      await eventually(async () => assert.equal(await accepted('mine'), 'False FeatureNotSupported'));
      const table = await lab.kubectl('admin', ['get', 'npst', '-n', NAMESPACE]);
      assert.match(table, /^mine +example 1\.0\.0 +False +FeatureNotSupported +endPort +FailClosed /m);
      const single = { ...rangePolicy('mine', NAMESPACE), spec: { podSelector: {}, policyTypes: ['Egress'] } };
      await applied(single);
      await eventually(async () => assert.equal(await accepted('mine'), 'True Accepted'));
      assert.equal((await entry('mine'))?.conditions?.[0]?.observedGeneration, 2);
      assert.match(await lab.kubectl('admin', ['get', 'netpol', '-n', NAMESPACE]), /^mine /m);
      if (serve === embeddedServer) {
        await lab.kubectl('admin', ['wait', 'netpol/mine', '-n', NAMESPACE, '--for=condition=Accepted']);
      }
    });

    it('replaces what is concluded of a provider that is detected, and nobody else does', async () => {
      await applied(agentPod());
      await eventually(async () => assert.equal((await entry('mine', 'cilium.io/agent'))?.version, 'v1.15.4'));
      const stolen = {
        apiVersion: 'portcullis.dev/v1',
        kind: 'NetworkPolicyStatus',
        metadata: { name: 'range', namespace: NAMESPACE },
        status: { providers: [{ controllerName: 'cilium.io/agent', reporter: 'example-reporter', conditions: [] }] },
      };
      const apply = ['apply', '--server-side', '--force-conflicts', '--subresource=status', '-f', '-'];
      for (const user of ['reporter', 'mallory'] as const) {
        const { code, stderr } = await lab.tryKubectl(user, apply, JSON.stringify(stolen));
        assert.equal(code, 1);
        assert.match(stderr, /status\.providers\[cilium\.io\/agent\]: Forbidden: only its reporter writes it/);
      }
      assert.equal((await entry('range', 'cilium.io/agent'))?.reporter, 'portcullis-network-policy');
      const spec = { reporter: { controllerName: 'cilium.io/agent', username: 'mallory' } };
      await lab.admin.patch(NETWORK_POLICY_PROVIDERS, { name: 'cilium' }, { type: 'merge', body: { spec } });
      const names = { KUBE_PROVIDER: 'cilium', KUBE_NAMESPACE: NAMESPACE, KUBE_POLICY: 'range' };
      await eventually(() => documentedCalls('mallory', names));
      await eventually(async () => assert.equal((await entry('range', 'cilium.io/agent'))?.reporter, 'my-provider'));
      await eventually(async () => {
        const { status } = await lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name: 'range' });
        assert.match(status?.summary?.providers ?? '', /^(?:example 1\.0\.0, )?cilium 2\.1\.0/);
      });
    });

    it('passes the conformance test, which a provider that is not named or writes nothing does not', async () => {
      const { code, stdout, stderr } = await lab.portcullis('admin', [
        'netpol',
        'conformance',
        'example',
        '--quiet',
        '1s',
      ]);
      assert.equal(code, 0, stdout + stderr);
      assert.match(stdout, /^PASS {2}named: reporter reports for example\.com\/agent$/m);
      assert.match(stdout, /^PASS {2}report of port-range: False, FeatureNotSupported$/m);
      assert.match(stdout, /^PASS {2}report of a change: True, Accepted$/m);
      assert.match(stdout, /^PASS {2}nothing is left of a policy: /m);
      const silent = await lab.portcullis('admin', [
        'netpol',
        'conformance',
        'cilium',
        '--timeout',
        '1s',
        '--quiet',
        '1s',
      ]);
      assert.equal(silent.code, 1);
      assert.match(silent.stdout, /^FAIL {2}report of plain: no entry of its own$/m);
      const unnamed = await lab.portcullis('admin', ['netpol', 'conformance', 'calico', '--timeout', '1s']);
      assert.equal(unnamed.code, 1);
      assert.match(unnamed.stdout, /^FAIL {2}named: .*"calico" not found$/m);
      const left = await lab.kubectl('admin', ['get', 'netpol', '-A', '-o', 'name']);
      assert.deepEqual(left.trim().split('\n').length, 2, left);
    });

    it('leaves nothing behind when it is no longer named', async () => {
      assert.equal((await entry('range', 'cilium.io/agent'))?.reporter, 'my-provider');
      const body = { spec: { reporter: null } };
      await lab.admin.patch(NETWORK_POLICY_PROVIDERS, { name: 'cilium' }, { type: 'merge', body });
      await eventually(async () => {
        const { reporter, version, conditions } = (await entry('range', 'cilium.io/agent')) ?? {};
        assert.deepEqual([reporter, version], ['portcullis-network-policy', 'v1.15.4']);
        assert.equal(findCondition(conditions, 'Accepted')?.status, 'False');
      });
    });

    it('is not needed: an administrator sees which policies an upgrade fixes, and then that it did', async () => {
      example?.kill();
      await lab.admin.delete(NETWORK_POLICY_PROVIDERS, { name: 'example' });
      await eventually(async () => {
        const { status } = await lab.admin.get(NETWORK_POLICY_STATUSES, { namespace: NAMESPACE, name: 'range' });
        assert.deepEqual([status?.summary?.providers, status?.summary?.effect], ['cilium 1.15.4', 'FailClosed']);
      });
      const before = await lab.admin.get<KubernetesObject>(POLICIES, { namespace: NAMESPACE, name: 'range' });
      const change = ['--provider', 'cilium@1.15.4', '--to', 'cilium@1.16.0'];
      const { stdout } = await lab.portcullis('admin', ['netpol', 'what-if', '-A', ...change]);
      assert.match(stdout, /^default\/range +Fixes +EndPort /m);
      const image = 'cilium-agent=quay.io/cilium/cilium:v1.16.0';
      await lab.kubectl('admin', ['set', 'image', 'pod/cilium-a', '-n', 'kube-system', image]);
      await eventually(async () => assert.equal(await accepted('range'), 'True Accepted'));
      assert.match(
        await lab.kubectl('admin', ['get', 'npst', '-A']),
        /^default +range +cilium 1\.16\.0 +True +Accepted /m,
      );
      const after = await lab.admin.get<KubernetesObject>(POLICIES, { namespace: NAMESPACE, name: 'range' });
      assert.deepEqual([after['spec'], after.metadata.generation], [before['spec'], before.metadata.generation]);
      if (serve === embeddedServer) {
        await lab.kubectl('admin', ['wait', 'netpol/range', '-n', NAMESPACE, '--for=condition=Accepted']);
      } else {
        assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
      }
    });

    it('has no right to NetworkPolicies themselves', async () => {
      for (const args of [
        ['annotate', 'netpol', 'range', 'a=b'],
        ['delete', 'netpol', 'range'],
      ]) {
        const { code, stderr } = await lab.tryKubectl('reporter', [...args, '-n', NAMESPACE]);
        assert.deepEqual([code, /forbidden/i.test(stderr)], [1, true], stderr);
      }
    });

    it('goes with its policy', async () => {
      const policy = await lab.admin.get<KubernetesObject>(POLICIES, { namespace: NAMESPACE, name: 'mine' });
      assert.equal(policy.metadata.generation, 2);
      await lab.kubectl('admin', ['delete', 'netpol', 'mine', '-n', NAMESPACE]);
      await eventually(() => assert.rejects(accepted('mine')));
    });

    /** The calls with curl that the page has. */
    async function documentedCalls(user: ReportingUser, names: Readonly<Record<string, string>>): Promise<void> {
      const [, script = assert.fail('the page has no calls')] = /```sh\n(#[^\n]*curl[^]*?)```/.exec(PAGE) ?? [];
      const env = { ...process.env, ...lab.reporterEnv(user), ...names };
      await run('bash', ['-eu', '-c', script], { cwd: lab.folder, env });
    }
  });
}
