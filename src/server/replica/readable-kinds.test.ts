import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster, ClusterError, type ListOptions } from '../../cluster/index.ts';
import { type AccessRule, kubernetesKind, type ResourceType } from '../../resources/index.ts';
import { ReadableKinds } from './readable-kinds.ts';

const READER = { username: 'reader', groups: ['system:authenticated'] };
const SECRET = { apiVersion: 'v1', kind: 'Secret' };
const POD = { apiVersion: 'v1', kind: 'Pod' };
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment' };
const REVIEW = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' };
const MISSING = { apiVersion: 'example.com/v1', kind: 'Widget' };
const RBAC = 'rbac.authorization.k8s.io';
/** More attempts than any test needs. */
const PATIENT = { grantDelaysMs: Array.from({ length: 1_000 }, () => 2) };
const IMPATIENT = { grantDelaysMs: [1] };

const { signal } = new AbortController();

describe('kinds that policies read', () => {
  let embedded: EmbeddedCluster;
  let cluster: Cluster;
  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    cluster = embedded.as(READER);
  });
  afterEach(() => embedded.close());

  async function allow(name: string, rules: readonly AccessRule[]): Promise<void> {
    const type = (kind: string): ResourceType => kubernetesKind(`${RBAC}/v1`, kind) as ResourceType;
    const metadata = { name };
    await embedded.admin.create(type('ClusterRole'), {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata,
      rules,
    });
    await embedded.admin.create(type('ClusterRoleBinding'), {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: READER.username }],
    });
  }

  /** The cluster, with other lists. */
  function listing(list: (options?: ListOptions) => Promise<never>): Pick<Cluster, 'discovery' | 'list' | 'create'> {
    return {
      discovery: cluster.discovery,
      create: cluster.create.bind(cluster),
      list: (_type, options) => list(options),
    };
  }

  it('are served, unless the cluster says that they are not', async () => {
    const kinds = new ReadableKinds(cluster);
    assert.equal(await kinds.isServed(SECRET, signal), true);
    assert.equal(await kinds.isServed(MISSING, signal), false);
    const find = (): Promise<never> => Promise.reject(new ClusterError('unreachable', 'down'));
    const down = new ReadableKinds({ ...listing(find), discovery: { find, resources: find } });
    assert.equal(await down.isServed(MISSING, signal), true);
    assert.equal(await down.forbiddenRead(MISSING, signal), undefined);
  });

  it('are named with the account and the rights that are missing', async () => {
    await allow('pods', [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]);
    const kinds = new ReadableKinds(cluster, IMPATIENT);
    for (const [kind, rights, message] of [
      [SECRET, 'get, list, watch secrets', /User "reader" cannot list resource "secrets"/],
      [DEPLOYMENT, 'get, list, watch deployments.apps', /User "reader" cannot list resource "deployments"/],
      [REVIEW, 'create subjectaccessreviews.authorization.k8s.io', /User "reader" cannot create/],
    ] as const) {
      const forbidden = await kinds.forbiddenRead(kind, signal);
      assert.equal(forbidden?.rights, rights);
      assert.match(forbidden.message, message);
    }
    for (const kind of [POD, MISSING]) {
      assert.equal(await kinds.forbiddenRead(kind, signal), undefined, kind.kind);
    }
  });

  it('may be granted while they are checked', async () => {
    const checks = [SECRET, REVIEW].map((kind) => new ReadableKinds(cluster, PATIENT).forbiddenRead(kind, signal));
    await allow('late', [
      { apiGroups: [''], resources: ['secrets'], verbs: ['list'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    ]);
    assert.deepEqual(await Promise.all(checks), [undefined, undefined]);
  });

  it('are read one object at a time', async () => {
    await allow('secrets', [{ apiGroups: [''], resources: ['secrets'], verbs: ['list'] }]);
    const limits: unknown[] = [];
    const kinds = new ReadableKinds(
      listing(async ({ limit } = {}) => {
        limits.push(limit);
        throw ApiError.internal('enough');
      }),
    );
    assert.equal(await kinds.forbiddenRead(SECRET, signal), undefined);
    assert.deepEqual(limits, [1]);
  });

  it('count as readable when the API server does not answer, unless it answered before', async () => {
    const forbidden = new ApiError(403, 'Forbidden', 'no');
    for (const error of [
      new ClusterError('unreachable', 'down'),
      ApiError.internal('broken'),
      new ApiError(429, 'TooManyRequests', 'busy'),
      new ApiError(401, 'Unauthorized', 'who?'),
    ]) {
      const failing = new ReadableKinds(listing(() => Promise.reject(error)));
      assert.equal(await failing.forbiddenRead(SECRET, signal), undefined, error.message);
      const answers: Error[] = [forbidden, error];
      const later = new ReadableKinds(
        listing(() => Promise.reject(answers.shift() ?? error)),
        IMPATIENT,
      );
      assert.deepEqual(await later.forbiddenRead(SECRET, signal), {
        message: 'no',
        rights: 'get, list, watch secrets',
      });
    }
  });

  it('are checked until the signal', async () => {
    const kinds = new ReadableKinds(cluster, { grantDelaysMs: [3_600_000] });
    const ending = new AbortController();
    const check = kinds.forbiddenRead(SECRET, ending.signal);
    ending.abort();
    await check;
    assert.equal(await kinds.forbiddenRead(SECRET, AbortSignal.abort()), undefined);
  });
});
