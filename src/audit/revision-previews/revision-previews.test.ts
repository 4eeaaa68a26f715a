import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  POLICY_EXCEPTIONS,
  POLICY_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
  type PolicyRevision,
  type RevisionPreview,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { asJson } from '../../values/index.ts';
import { celSpec, INSTALLATION, NOT_LATEST, samplePod } from '../testing/sample-policies.ts';
import { until } from '../testing/until.ts';
import { RevisionPreviews } from './revision-previews.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const PODS = knownKind('v1', 'Pod');
const LOG = pino({ level: 'silent' });
const STRICT = "object.spec.containers.all(c, c.image.startsWith('ours/'))";
type Status = NonNullable<PolicyRevision['status']>;

describe('previews of revisions', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let policy: KubernetesObject;
  let stop: AbortController;
  let running: Promise<unknown>;
  let writes: number;
  let hosts: number;
  let list: Cluster['list'];

  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    [writes, hosts] = [0, 0];
    list = admin.list.bind(admin);
    for (const kind of [...POLICY_KINDS, POLICY_REVISIONS, POLICY_EXCEPTIONS]) {
      await admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    for (const name of ['portcullis', 'shop']) {
      await admin.create(knownKind('v1', 'Namespace'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    for (const [name, image] of [
      ['a', 'theirs/web:latest'],
      ['b', 'theirs/web:1'],
      ['c', 'ours/web:1'],
    ] as const) {
      await admin.create(PODS, samplePod('shop', name, image));
    }
    policy = await admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'p' },
      spec: celSpec(STRICT),
    });
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await embedded[Symbol.asyncDispose]();
  });

  function start(): void {
    stop = new AbortController();
    const cluster: ConstructorParameters<typeof RevisionPreviews>[0]['cluster'] = {
      get: (...args: Parameters<Cluster['get']>) => admin.get(...args),
      list: (...args: Parameters<Cluster['list']>) => list(...args),
      watch: (...args: Parameters<Cluster['watch']>) => admin.watch(...args),
      patch: async (...args: Parameters<Cluster['patch']>) => {
        writes += 1;
        return await admin.patch(...args);
      },
      discovery: admin.discovery,
    } as typeof admin;
    const caches = new SharedCaches({ cluster: admin, log: LOG });
    const previews = new RevisionPreviews({
      cluster,
      caches,
      installation: INSTALLATION,
      startHost: async () => {
        hosts += 1;
        const host = new EvaluationHost({
          cacheDir: join(tmpdir(), 'portcullis-revision-previews'),
          workers: 1,
          lookups: { cluster: admin, log: LOG },
          log: () => undefined,
        });
        await host.start();
        return host;
      },
      log: LOG,
    });
    running = Promise.all([caches, previews].map((part) => part.start(stop.signal)));
  }

  async function revision(number: number, spec: object, status: Partial<Status>): Promise<void> {
    const { uid = '' } = policy.metadata;
    const name = `kw.cap.p-${number}`;
    await admin.create(POLICY_REVISIONS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: {
        name,
        namespace: 'portcullis',
        labels: { [POLICY_SERVER_LABEL]: 'default', [POLICY_UID_LABEL]: uid },
      },
      spec: {
        policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'p', uid },
        policyId: 'kw.cap.p',
        policyServer: 'default',
        revision: number,
        policyGeneration: number,
        snapshot: { ...spec },
      },
    });
    await state(number, status);
  }

  async function state(number: number, status: Partial<Status>): Promise<void> {
    const key = { namespace: 'portcullis', name: `kw.cap.p-${number}` };
    await admin.patch(POLICY_REVISIONS, key, { type: 'merge', body: asJson({ status }) }, { subresource: 'status' });
  }

  async function read(number: number): Promise<Status> {
    const key = { namespace: 'portcullis', name: `kw.cap.p-${number}` };
    const { status = {} } = await admin.get(POLICY_REVISIONS, key);
    return status;
  }

  async function preview(number: number): Promise<RevisionPreview> {
    await until(async () => (await read(number)).preview?.computedAt !== undefined);
    const { preview: found } = await read(number);
    assert.ok(found !== undefined);
    return found;
  }

  const now = (): string => new Date().toISOString().replace(/\.\d+Z/, 'Z');
  const serving = (order = 1, servingSince = now()): Partial<Status> => ({ state: 'Serving', order, servingSince });

  it('say before it serves what a revision changes, and are written once', async () => {
    await revision(1, celSpec(NOT_LATEST), serving(1, '2026-01-01T00:00:00Z'));
    start();
    await revision(2, celSpec(STRICT), { state: 'Validated', attempts: 1, reason: 'R' });
    const found = await preview(2);
    const { counts } = found;
    assert.deepEqual(
      [found.summary, found.state, found.reason, found.comparedWith, counts?.newlyRejected, counts?.newlyAdmitted],
      ['1', 'Complete', 'Compared', 1, 1, 0],
    );
    assert.equal(found.message, '1 newly rejected (compared with revision 1)');
    const { preview: _, ...rest } = await read(2);
    assert.deepEqual(rest, { state: 'Validated', attempts: 1, reason: 'R' });
    await state(2, { state: 'Staged' });
    await state(2, serving(2));
    await state(1, { state: 'Retired' });
    // A later revision is previewed after all that the changes above caused.
    await revision(3, celSpec(NOT_LATEST), { state: 'Validated' });
    assert.equal((await preview(3)).counts?.newlyAdmitted, 1);
    assert.deepEqual([(await read(2)).preview, writes, hosts], [found, 2, 1]);
    // Long served, and seen for the first time.
    assert.equal((await read(1)).preview, undefined);
  });

  it('take all that a first revision rejects as new, also where it serves already', async () => {
    await revision(1, celSpec(STRICT), serving());
    start();
    const found = await preview(1);
    assert.deepEqual(
      [found.summary, found.comparedWith, found.message],
      ['2', undefined, '2 newly rejected (nothing served before)'],
    );
  });

  it('are unknown, with a reason, where existing objects do not say what a policy asks', async () => {
    start();
    await revision(1, celSpec("request.userInfo.username == 'root'"), { state: 'Validated' });
    const { summary, state: known, reason, counts } = await preview(1);
    assert.deepEqual([summary, known, reason, counts], ['Unknown', 'Unknown', 'UserInfo', undefined]);
  });

  it('never say zero where objects cannot be read', async () => {
    list = (async (type: Parameters<Cluster['list']>[0], options: object) => {
      if (type.resource === 'pods') {
        throw new ApiError(403, 'Forbidden', 'pods is forbidden');
      }
      return await admin.list(type, options);
    }) as Cluster['list'];
    start();
    await revision(1, celSpec('true'), { state: 'Validated' });
    const { summary, state: known, reason, message } = await preview(1);
    assert.deepEqual([summary, known, reason], ['Unknown', 'Incomplete', 'Forbidden']);
    assert.match(message, /pods is forbidden/);
  });
});
