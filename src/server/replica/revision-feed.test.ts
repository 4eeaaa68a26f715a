import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import {
  customResourceDefinition,
  type JsonObject,
  kubernetesKind,
  OWN_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
} from '../../resources/index.ts';
import type { WantedChanges } from '../policies/wanted-policy.ts';
import type { Deviation } from './replica-state.ts';
import { RevisionFeed } from './revision-feed.ts';

const NAMESPACE = 'portcullis';

describe('a feed of revisions', () => {
  let cluster: EmbeddedCluster;
  let stop: AbortController;
  let ended: Promise<void> | undefined;
  let reported: { changes: WantedChanges; isFirst: boolean }[];
  let refused: readonly Deviation[];
  beforeEach(async () => {
    cluster = await EmbeddedCluster.open();
    const definitions = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const namespaces = kubernetesKind('v1', 'Namespace');
    assert.ok(definitions !== undefined && namespaces !== undefined);
    for (const own of OWN_KINDS) {
      await cluster.admin.create(definitions, customResourceDefinition(own));
    }
    await cluster.admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    stop = new AbortController();
    reported = [];
    refused = [];
  });
  afterEach(async () => {
    stop.abort();
    await ended;
    await cluster.close();
  });

  function start(): void {
    const feed = new RevisionFeed({
      cluster: cluster.admin,
      namespace: NAMESPACE,
      policyServer: 'default',
      changed: (changes, isFirst) => reported.push({ changes, isFirst }),
      refused: (all) => (refused = all),
      failed: () => undefined,
      log: pino({ level: 'silent' }),
    });
    ended = feed.start(stop.signal);
  }

  async function create(
    policy: string,
    revision: number,
    state: string,
    server = 'default',
    label = server,
  ): Promise<void> {
    const name = `kw.cap.${policy}-${revision}`;
    await cluster.admin.create(POLICY_REVISIONS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: { name, namespace: NAMESPACE, labels: { [POLICY_SERVER_LABEL]: label } },
      spec: {
        policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: policy, uid: 'u' },
        policyId: `kw.cap.${policy}`,
        policyServer: server,
        revision,
        policyGeneration: 1,
        snapshot: { module: 'm' },
      },
    });
    await setState(name, { state, order: revision });
  }

  async function setState(name: string, status: JsonObject): Promise<void> {
    const patch = { type: 'merge', body: { status } } as const;
    await cluster.admin.patch(POLICY_REVISIONS, { name, namespace: NAMESPACE }, patch, { subresource: 'status' });
  }

  /** Waits until this many changes were reported. */
  async function count(expected: number): Promise<void> {
    for (let turns = 0; reported.length < expected && turns < 10_000; turns += 1) {
      await turn();
    }
    assert.equal(reported.length, expected);
  }

  async function until(holds: () => boolean): Promise<void> {
    for (let turns = 0; !holds() && turns < 10_000; turns += 1) {
      await turn();
    }
    assert.ok(holds());
  }

  it('reports all revisions first, and then changes', async () => {
    await create('a', 1, 'Serving');
    await create('b', 1, 'Retired');
    await create('other', 1, 'Serving', 'another');
    await create('mislabelled', 1, 'Serving', 'another', 'default');
    start();
    await count(1);
    assert.equal(reported[0]?.isFirst, true);
    assert.deepEqual([...(reported[0]?.changes.keys() ?? [])].toSorted(), ['kw.cap.a', 'kw.cap.b']);
    assert.equal(reported[0]?.changes.get('kw.cap.a')?.serving?.revision, 1);
    assert.deepEqual(reported[0]?.changes.get('kw.cap.b'), { staged: [] });

    await setState('kw.cap.b-1', { state: 'Validated' });
    await count(2);
    assert.equal(reported[1]?.isFirst, false);
    const staged = reported[1]?.changes.get('kw.cap.b')?.staged ?? [];
    assert.deepEqual(
      staged.map(({ name, snapshot }) => [name, snapshot]),
      [['kw.cap.b-1', { module: 'm' }]],
    );

    await cluster.admin.delete(POLICY_REVISIONS, { name: 'kw.cap.a-1', namespace: NAMESPACE });
    await count(3);
    assert.deepEqual([...(reported[2]?.changes ?? [])], [['kw.cap.a', undefined]]);
  });

  it('refuses what is not the revision that its name says, and serves the others', async () => {
    await create('a', 1, 'Serving');
    start();
    await count(1);
    const forge = async (name: string, spec: object, state = 'Serving'): Promise<void> => {
      await cluster.admin.create(POLICY_REVISIONS, {
        apiVersion: 'portcullis.dev/v1',
        kind: 'PolicyRevision',
        metadata: { name, namespace: NAMESPACE, labels: { [POLICY_SERVER_LABEL]: 'default' } },
        spec: {
          policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'a', uid: 'u' },
          policyId: 'kw.cap.a',
          policyServer: 'default',
          revision: 1,
          policyGeneration: 1,
          snapshot: { module: 'builtin:cel' },
          ...spec,
        },
      });
      await setState(name, { state, order: 1_000_000 });
    };
    // A second revision of the same number, and a policy of a namespace with the id of one of the cluster.
    await forge('kw.cap.a-one', {});
    const ofNamespace = { kind: 'AdmissionPolicy', name: 'a', namespace: 'shop', uid: 'u' };
    const policy = { apiVersion: 'policies.kubewarden.io/v1', ...ofNamespace };
    await forge('kw.cap.a-2', { revision: 2, policy });
    await until(() => refused.length === 2);
    assert.deepEqual(
      refused.map(({ policy: id, revision, state, reason, message }) => [id, revision, state, reason, message]),
      [
        [
          'kw.cap.a',
          1,
          'Failed',
          'RevisionMismatch',
          'PolicyRevision kw.cap.a-one is not served: metadata.name: expected kw.cap.a-1, as spec.policyId and spec.revision say, got "kw.cap.a-one". Only the controller writes revisions',
        ],
        [
          'kw.cap.a',
          2,
          'Failed',
          'RevisionMismatch',
          'PolicyRevision kw.cap.a-2 is not served: spec.policyId: expected kw.ap.shop.a, as spec.policy says, got "kw.cap.a". Only the controller writes revisions',
        ],
      ],
    );
    assert.equal(reported.length, 1, 'what serves is the same');
    await cluster.admin.delete(POLICY_REVISIONS, { name: 'kw.cap.a-one', namespace: NAMESPACE });
    await until(() => refused.length === 1);
  });

  it('reports an empty list', async () => {
    start();
    await count(1);
    assert.deepEqual([reported[0]?.isFirst, reported[0]?.changes.size], [true, 0]);
  });
});
