import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { ALL_KINDS, CLUSTER_ADMISSION_POLICIES, customResourceDefinition } from '../../resources/index.ts';
import { applyObject } from './apply-object.ts';
import { policiesSettled } from './policies-settled.ts';

const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

describe('policiesSettled', () => {
  let cluster: EmbeddedCluster;
  /** Lists and watches that were sent. */
  let lists = 0;
  let watches = 0;
  let counted: Pick<Cluster, 'list' | 'watch'>;
  beforeEach(async () => {
    cluster = await EmbeddedCluster.open();
    for (const kind of ALL_KINDS) {
      await applyObject(cluster, customResourceDefinition(kind));
    }
    [lists, watches] = [0, 0];
    counted = {
      list: (type, options) => {
        lists += 1;
        return cluster.admin.list(type, options);
      },
      watch: (type, options) => {
        watches += 1;
        return cluster.admin.watch(type, options);
      },
    };
  });
  afterEach(() => cluster.close());

  const apply = (name: string, policyServer = 'default'): Promise<void> =>
    applyObject(cluster, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: { policyServer, module: 'builtin:cel', mutating: false, rules: RULES },
    });

  async function report(name: string, phase: string): Promise<void> {
    const status = { phase, desiredRevision: 1, observedGeneration: 1 };
    await cluster.admin.patch(
      CLUSTER_ADMISSION_POLICIES,
      { name },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    );
  }

  async function isSettled(settled: Promise<void>): Promise<boolean> {
    let is = false;
    void settled.then(() => (is = true));
    // Enough turns for the events of a cluster in this process.
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise(setImmediate);
    }
    return is;
  }

  it('resolves without policies, and with those of other policy servers', async () => {
    await apply('elsewhere', 'other');
    await policiesSettled(counted, new AbortController().signal);
  });

  it('waits until each policy has loaded or failed, or is gone, and reads each kind once', async () => {
    for (const name of ['loads', 'fails', 'goes']) {
      await apply(name);
    }
    const settled = policiesSettled(counted, new AbortController().signal);
    await report('loads', 'Active');
    await report('fails', 'Updating');
    assert.equal(await isSettled(settled), false);
    await cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, { name: 'goes' });
    assert.equal(await isSettled(settled), false);
    await report('fails', 'Error');
    await settled;
    assert.deepEqual([lists, watches], [4, 4]);
  });

  it('ends with its signal', async () => {
    await apply('waits');
    const stopping = new AbortController();
    const settled = policiesSettled(counted, stopping.signal);
    stopping.abort(new Error('it stops'));
    await assert.rejects(settled, /it stops/);
  });
});
