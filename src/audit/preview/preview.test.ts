import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import { knownKind, type KubernetesObject } from '../../resources/index.ts';
import type { AuditPolicy } from '../audit-policy.ts';
import { celSpec, ruleFor, samplePolicy } from '../testing/sample-policies.ts';
import { type Preview, previewCluster } from './preview.ts';

const OWNED = { controller: true, blockOwnerDeletion: true };
const TAGGED = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";
const INTERNAL = "object.spec.containers.all(c, c.image.startsWith('registry.example/'))";

function podSpec(image: string): object {
  return { containers: [{ name: 'main', image }] };
}

function template(app: string, image: string, labels: object = {}): object {
  return { metadata: { labels: { app, ...labels } }, spec: podSpec(image) };
}

describe('a preview', () => {
  let embedded: EmbeddedCluster;
  let host: EvaluationHost;
  let admin: Cluster;

  async function create(apiVersion: string, kind: string, object: object): Promise<KubernetesObject> {
    return await admin.create(knownKind(apiVersion, kind), { apiVersion, kind, metadata: {}, ...object });
  }

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-preview'),
      workers: 2,
      defaultTimeoutSeconds: 2,
      lookups: { cluster: admin, log: pino({ level: 'silent' }) },
      log: () => undefined,
    });
    await host.start();
    for (const name of ['shop', 'argocd']) {
      await create('v1', 'Namespace', { metadata: { name } });
    }
    const deployment = await create('apps/v1', 'Deployment', {
      metadata: { namespace: 'shop', name: 'web' },
      spec: { selector: { matchLabels: { app: 'web' } }, template: template('web', 'registry.example/web:2') },
    });
    const ofDeployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'web',
      uid: deployment.metadata.uid,
      ...OWNED,
    };
    const sets = [];
    for (const [name, image, revision] of [
      ['web-1', 'web:1', '1'],
      ['web-2', 'registry.example/web:2', '2'],
    ] as const) {
      const labels = { 'pod-template-hash': name };
      sets.push(
        await create('apps/v1', 'ReplicaSet', {
          metadata: {
            namespace: 'shop',
            name,
            ownerReferences: [ofDeployment],
            annotations: { 'deployment.kubernetes.io/revision': revision },
          },
          spec: { replicas: 0, selector: { matchLabels: { app: 'web' } }, template: template('web', image, labels) },
        }),
      );
    }
    const [old] = sets;
    const ofSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: old?.metadata.uid, ...OWNED };
    for (const name of ['web-1-a', 'web-1-b']) {
      await create('v1', 'Pod', {
        metadata: { namespace: 'shop', name, ownerReferences: [ofSet] },
        spec: podSpec('web:1'),
      });
    }
    await create('v1', 'Pod', { metadata: { namespace: 'shop', name: 'good' }, spec: podSpec('registry.example/a:1') });
    await create('v1', 'Pod', {
      metadata: { namespace: 'shop', name: 'kept', finalizers: ['example.com/kept'] },
      spec: podSpec('tool:latest'),
    });
    await create('v1', 'Pod', { metadata: { namespace: 'argocd', name: 'repo' }, spec: podSpec('argocd:1') });
    const jobTemplate = { spec: { ...podSpec('job:1'), restartPolicy: 'Never' } };
    await create('batch/v1', 'CronJob', {
      metadata: { namespace: 'shop', name: 'nightly' },
      spec: { schedule: '@daily', jobTemplate: { spec: { template: jobTemplate } } },
    });
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    await embedded[Symbol.asyncDispose]();
  });

  const preview = (
    old: readonly AuditPolicy[],
    changed: readonly AuditPolicy[],
    cluster: Pick<Cluster, 'list' | 'discovery'> = admin,
  ): Promise<Preview> => previewCluster(cluster, { host, old, new: changed });

  const texts = ({ groups }: Preview): readonly string[] =>
    groups.map(({ change, subject, kind, namespace = '', owner, count, guard, example }) =>
      [
        change,
        subject,
        `${count} ${kind} ${namespace}`,
        ...(owner === undefined ? [] : [`${owner.kind} ${owner.name}`]),
        ...(example.revision === undefined ? [] : [`revision ${example.revision}`]),
        ...(guard === undefined ? [] : [`guard ${guard}`]),
      ].join(', '),
    );

  it('groups what is newly rejected by owner: objects, next pods, rollbacks, finalizers; guarded objects come first', async () => {
    const found = await preview([samplePolicy('a', celSpec(TAGGED))], [samplePolicy('a', celSpec(INTERNAL))]);
    assert.deepEqual(texts(found), [
      'newlyRejected, objects, 1 Pod argocd, guard Argo CD',
      'newlyRejected, objects, 2 Pod shop, Deployment web',
      'newlyRejected, nextPods, 1 CronJob shop, CronJob nightly',
      'newlyRejected, rollbacks, 1 Deployment shop, Deployment web, revision 1',
    ]);
    assert.deepEqual(found.counts.objects, { unchanged: 1, newlyRejected: 3, stillRejected: 1 });
    assert.deepEqual(found.counts.finalizers, { stillRejected: 1 });
    assert.deepEqual([found.before, found.after], ['known', 'known']);
  });

  it('takes all that a new policy rejects as newly rejected', async () => {
    const found = await preview([], [samplePolicy('a', celSpec(TAGGED))]);
    assert.deepEqual(texts(found), ['newlyRejected, objects, 1 Pod shop', 'newlyRejected, finalizers, 1 Pod shop']);
    assert.equal(found.before, 'none');
    const creations = celSpec(TAGGED, { rules: [ruleFor('pods', { operations: ['CREATE'] })] });
    assert.deepEqual(texts(await preview([], [samplePolicy('a', creations)])), ['newlyRejected, objects, 1 Pod shop']);
  });

  it('says what is newly admitted, for which messages change, and what monitor mode reports', async () => {
    const strict = samplePolicy('a', celSpec(INTERNAL));
    const loose = await preview([strict], [samplePolicy('a', celSpec(TAGGED))]);
    assert.equal(loose.counts.objects.newlyAdmitted, 3);
    const settings = { validations: [{ expression: INTERNAL, message: 'use our registry' }] };
    const reworded = await preview([strict], [samplePolicy('a', celSpec('', { settings }))]);
    assert.deepEqual(
      [reworded.counts.objects.messageChanged, reworded.groups[0]?.oldMessage, reworded.groups[0]?.message],
      [4, 'no', 'use our registry'],
    );
    const monitored = await preview([], [samplePolicy('a', celSpec(TAGGED, { mode: 'monitor' }))]);
    assert.deepEqual(texts(monitored), ['newlyReported, objects, 1 Pod shop']);
    const enforced = await preview(
      [samplePolicy('a', celSpec(TAGGED, { mode: 'monitor' }))],
      [samplePolicy('a', celSpec(TAGGED))],
    );
    assert.equal(enforced.counts.objects.newlyRejected, 1);
  });

  it('says that a version cannot be judged by, and what is not read', async () => {
    const byUser = samplePolicy('a', celSpec("request.userInfo.username == 'x'"));
    const strict = samplePolicy('a', celSpec(INTERNAL));
    const unknown = await preview([strict], [byUser]);
    assert.deepEqual([unknown.after, unknown.groups.length], ['unknown', 0]);
    assert.deepEqual(
      unknown.coverage.map(({ policy, state, reason }) => [policy, state, reason]),
      [['new', 'NotAuditable', 'UserInfo']],
    );
    const before = await preview([byUser], [strict]);
    assert.deepEqual([before.before, before.counts.objects.newlyRejected], ['unknown', 4]);
    const gone = samplePolicy('a', celSpec(TAGGED, { module: 'file:///does/not/exist.wasm' }));
    const lost = await preview([strict], [gone]);
    assert.deepEqual(
      lost.coverage.map(({ policy, state, reason }) => [policy, state, reason]),
      [['new', 'Failed', 'NotLoaded']],
    );
    assert.deepEqual([lost.after, lost.counts.objects], ['unknown', {}]);
  });

  it('has the changes of other kinds where one is forbidden', async () => {
    const forbidden: Pick<Cluster, 'list' | 'discovery'> = {
      discovery: admin.discovery,
      list: (type, options) =>
        type.resource === 'replicasets'
          ? Promise.reject(new ApiError(403, 'Forbidden', 'no'))
          : admin.list(type, options),
    };
    const found = await preview([], [samplePolicy('a', celSpec(INTERNAL))], forbidden);
    assert.ok(texts(found).includes('newlyRejected, objects, 2 Pod shop, ReplicaSet web-1'), texts(found).join('\n'));
    const missing = found.coverage.filter(({ state }) => state === 'Forbidden');
    assert.ok(missing.every(({ kind }) => kind?.resource === 'replicasets') && missing.length > 0);
  });

  it('judges rollbacks to ControllerRevisions, and counts a list that expired once', async () => {
    const revised = await create('apps/v1', 'StatefulSet', {
      metadata: { namespace: 'shop', name: 'db' },
      spec: {
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: template('db', 'registry.example/db:2'),
      },
    });
    const ofSet = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: revised.metadata.uid, ...OWNED };
    // The embedded cluster has no ControllerRevisions.
    const revision = {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { namespace: 'shop', name: 'db-1', ownerReferences: [ofSet] },
      data: { spec: { template: { ...template('db', 'db:1'), $patch: 'replace' } } },
      revision: 1,
    };
    const served = await admin.discovery.resources();
    const sets = served.find(({ resource }) => resource === 'replicasets');
    assert.ok(sets);
    const revisions = { ...sets, resource: 'controllerrevisions', kind: 'ControllerRevision' };
    let lists = 0;
    const expiring: Pick<Cluster, 'list' | 'discovery'> = {
      discovery: {
        find: (apiVersion, kind) => admin.discovery.find(apiVersion, kind),
        resources: () => Promise.resolve([...served, revisions]),
      },
      list: async (type, options) => {
        if (type.resource === 'controllerrevisions') {
          return { metadata: { resourceVersion: '1' }, items: [revision] };
        }
        if (type.resource !== 'pods') {
          return await admin.list(type, options);
        }
        lists += 1;
        if (options?.continue !== undefined) {
          throw new ApiError(410, 'Expired', 'too old');
        }
        const { items, metadata } = await admin.list(type, options);
        return { items, metadata: lists === 1 ? { ...metadata, continue: 'next' } : metadata };
      },
    } as Pick<Cluster, 'list' | 'discovery'>;
    const found = await preview([samplePolicy('a', celSpec(TAGGED))], [samplePolicy('a', celSpec(INTERNAL))], expiring);
    assert.ok(texts(found).includes('newlyRejected, rollbacks, 1 StatefulSet shop, StatefulSet db, revision 1'));
    assert.deepEqual(found.counts.objects, { unchanged: 1, newlyRejected: 3, stillRejected: 1 });
    assert.ok(lists > 2);
  });

  it('groups messages that differ by the name of their object only', async () => {
    const settings = {
      validations: [
        { expression: INTERNAL, messageExpression: "object.metadata.name + ': not ours, in ' + object.kind" },
      ],
    };
    const found = await preview([], [samplePolicy('a', celSpec('', { settings }))]);
    const ofWeb = found.groups.filter(({ subject, owner }) => subject === 'objects' && owner?.name === 'web');
    assert.deepEqual(
      ofWeb.map(({ count, message, example: { name } }) => [count, message, name]),
      [[2, 'web-1-a: not ours, in Pod', 'web-1-a']],
    );
  });
});
