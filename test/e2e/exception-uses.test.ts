// How often an exception was used, on a cluster with Portcullis whose processes end and start again.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PolicyException } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import type { KubectlResult, KubernetesObject } from '../cluster/cluster.ts';
import { VALUES } from './install-case.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

const SHOP = 'shop';
const MAPS = `/api/v1/namespaces/${SHOP}/configmaps`;
/** API servers ask about exceptions from then on, after the creation of the guard. Milliseconds. */
const GUARDED_MS = 11_000;
const MONTH_MS = 30 * 86_400_000;

const POLICY = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'no-maps' },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    settings: { validations: [{ expression: 'false', message: 'no ConfigMaps' }] },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': SHOP } },
  },
};
const EXCEPTION = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'PolicyException',
  metadata: { namespace: SHOP, name: 'importer' },
  spec: {
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'no-maps' }],
    objects: { kinds: [{ kind: 'ConfigMap' }], names: ['importer-*'] },
    reason: 'a test',
    expiresAt: `${new Date(Date.now() + MONTH_MS).toISOString().slice(0, -5)}Z`,
  },
};

describe('the uses of an exception', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;

  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    const installedAt = Date.now();
    await lab.running();
    await lab.cluster.createNamespace(SHOP);
    await lab.apply(POLICY);
    await lab.active('clusteradmissionpolicies', 'no-maps');
    await lab.eventually('the policy to reject', async () =>
      assert.match((await create('other')).stderr, /no ConfigMaps/),
    );
    await sleep(Math.max(0, installedAt + GUARDED_MS - Date.now()));
    await lab.apply(EXCEPTION);
    await lab.kubectl(['wait', 'pex/importer', '-n', SHOP, '--for=condition=Ready', '--timeout=30s']);
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  const create = (name: string): Promise<KubectlResult> =>
    lab.cluster.kubectl(['create', 'configmap', name, '-n', SHOP]);
  const excepted = (name: string): Promise<void> =>
    lab.eventually(`${name} to be excepted`, async () => {
      const { code, stderr } = await create(name);
      assert.equal(code, 0, stderr);
    });
  const status = async (): Promise<NonNullable<PolicyException['status']>> =>
    (await lab.get<PolicyException>(`/apis/portcullis.dev/v1/namespaces/${SHOP}/policyexceptions/importer`)).status ??
    assert.fail();
  const used = (count: number): Promise<void> =>
    lab.eventually(`${count} uses`, async () => assert.equal((await status()).used, count));
  const restart = async (name: string): Promise<void> => {
    await lab.kubectl(['rollout', 'restart', `deployment/${name}`, '-n', NAMESPACE]);
    await lab.rolledOut(name);
  };

  it('are counted, but for dry runs', async () => {
    await excepted('importer-one');
    await used(1);
    const { lastUsed = '', conditions = [] } = await status();
    assert.ok(Math.abs(Date.parse(lastUsed) - Date.now()) < 60_000, lastUsed);
    assert.equal(conditions.find(({ type }) => type === 'Used')?.reason, 'RequestsExcepted');
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'importer-dry' } };
    assert.equal(await lab.answer(MAPS, map), '201', 'a dry run, which does not count');
    const { stdout } = await lab.cluster.kubectl(['get', 'pex', '-n', SHOP]);
    assert.match(
      stdout,
      /^NAME +POLICY +STATE +EXPIRES +OBJECTS +USED +LAST-USED +AGE\nimporter +no-maps +Active +\S+Z .* 1 +\d+s /,
    );
  });

  it('go on when a policy server and the controller start again', async () => {
    await restart(POLICY_SERVER);
    await excepted('importer-two');
    // The policy server reports what it counted when it ends, and the new controller what it reads.
    await restart(POLICY_SERVER);
    await restart(CONTROLLER);
    await used(2);
    await excepted('importer-three');
    await used(3);
    const { usedBy = [] } = await status();
    const { items } = await lab.get<{ readonly items: readonly KubernetesObject[] }>(
      `/apis/portcullis.dev/v1/namespaces/${NAMESPACE}/policyserverreplicas`,
    );
    const replicas = items.map(({ metadata }) => metadata.name);
    assert.deepEqual(
      usedBy.filter(({ name }) => !replicas.includes(name)),
      [],
      'those of former processes are gone',
    );
  });
});
