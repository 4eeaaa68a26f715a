// Previews of revisions on a real API server, with the rights of an auditor and the guard of the installation.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { AUDITOR_NAMESPACE_RULES, AUDITOR_READ_RULES, AUDITOR_RULES } from '../../src/audit/access-rules/index.ts';
import { RevisionPreviews } from '../../src/audit/index.ts';
import { ApiError, connectionAs, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { EvaluationHost } from '../../src/evaluation/index.ts';
import { recordGuards, withoutComments } from '../../src/installation/objects/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
} from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster as Server, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const NAMESPACE = 'portcullis';
const account = (name: string): string => `system:serviceaccount:${NAMESPACE}:${name}`;
const AUDITOR = account('portcullis-auditor');
const RBAC = 'rbac.authorization.k8s.io';
const KEY = { namespace: NAMESPACE, name: 'kw.cap.images-1' };
const SPEC = {
  module: 'builtin:cel',
  mutating: false,
  rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
  settings: { validations: [{ expression: "object.metadata.name != 'bad'", message: 'no' }] },
};
const log = pino({ level: 'silent' });

describe('a preview of a revision on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Server;
  let admin: KubernetesCluster;
  let auditor: KubernetesCluster;
  let controller: KubernetesCluster;
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];

  const create = (object: object): Promise<KubernetesObject> => {
    const whole = object as KubernetesObject;
    return admin.create(knownKind(whole.apiVersion, whole.kind), whole);
  };

  async function grant(kind: 'Role' | 'ClusterRole', rules: readonly object[]): Promise<void> {
    const metadata = { name: 'auditor', ...(kind === 'Role' ? { namespace: NAMESPACE } : {}) };
    await create({ apiVersion: `${RBAC}/v1`, kind, metadata, rules });
    const roleRef = { apiGroup: RBAC, kind, name: 'auditor' };
    const subjects = [{ apiGroup: RBAC, kind: 'User', name: AUDITOR }];
    await create({ apiVersion: `${RBAC}/v1`, kind: `${kind}Binding`, metadata, roleRef, subjects });
  }

  before(async () => {
    server = await startCluster();
    const connection = {
      server: server.url,
      ca: readFileSync(server.caFile, 'utf8'),
      credentials: tokenCredentials(server.adminToken),
    };
    const as = (user: string, groups: readonly string[] = ['system:authenticated']): KubernetesCluster =>
      new KubernetesCluster(connectionAs(connection, { user, groups }));
    admin = new KubernetesCluster(connection);
    auditor = as(AUDITOR);
    controller = as(account('portcullis-controller'), ['system:masters']);
    for (const own of OWN_KINDS) {
      await create(customResourceDefinition(own));
    }
    await server.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    await server.createNamespace(NAMESPACE);
    await server.createNamespace('shop');
    for (const guard of withoutComments(recordGuards({ namespace: NAMESPACE }))) {
      await create(guard);
    }
    await grant('ClusterRole', [...AUDITOR_RULES, ...AUDITOR_READ_RULES]);
    await grant('Role', AUDITOR_NAMESPACE_RULES);
    for (const name of ['good', 'bad']) {
      const spec = { containers: [{ name: 'main', image: 'registry.example/web' }] };
      await server.expect('POST', '/api/v1/namespaces/shop/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec,
      });
    }
    const policy = await admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'images' },
      spec: SPEC,
    });
    const { uid = '' } = policy.metadata;
    await controller.create(POLICY_REVISIONS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: { ...KEY, labels: { [POLICY_SERVER_LABEL]: 'default', [POLICY_UID_LABEL]: uid } },
      spec: {
        policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'images', uid },
        policyId: 'kw.cap.images',
        policyServer: 'default',
        revision: 1,
        policyGeneration: 1,
        snapshot: SPEC,
      },
    });
    const status = {
      state: 'Validated',
      modules: [{ name: 'images', module: 'builtin:cel', digest: 'builtin:cel@1' }],
    };
    await controller.patch(POLICY_REVISIONS, KEY, { type: 'merge', body: { status } }, { subresource: 'status' });
    const caches = new SharedCaches({ cluster: auditor, log });
    const previews = new RevisionPreviews({
      cluster: auditor,
      caches,
      installation: { productNamespace: NAMESPACE, exemptNamespaces: [] },
      startHost: async () => {
        const host = new EvaluationHost({
          cacheDir: join(tmpdir(), 'portcullis-revision-previews'),
          workers: 1,
          lookups: { cluster: auditor, log },
          log: () => undefined,
        });
        await host.start();
        return host;
      },
      log,
    });
    running.push(...[caches, previews].map((part) => part.start(stop.signal)));
  });
  after(async () => {
    stop.abort();
    await Promise.all(running);
    [admin, auditor, controller].forEach((one) => one.close());
    await server[Symbol.asyncDispose]();
  });

  it('is written by the auditor with its own rights, into one field', async () => {
    const status = await eventually(
      async () => {
        const found = (await admin.get(POLICY_REVISIONS, KEY)).status;
        assert.equal(found?.preview?.summary, '1', JSON.stringify(found));
        return found;
      },
      { timeoutMs: 60_000 },
    );
    assert.deepEqual([status?.state, status?.preview?.state, status?.modules?.length], ['Validated', 'Complete', 1]);
    const { stdout } = await server.kubectl(['get', 'policyrevisions', '-n', NAMESPACE]);
    assert.match(stdout, /NEWLY REJECTED[^]*images-1 .* 1 /);
  });

  it('is all that the auditor may write of a revision', async () => {
    const changes: readonly JsonObject[] = [
      { modules: [] },
      { state: 'Serving', order: 9 },
      { preview: null, reason: 'Other' },
      { preview: { summary: '0' }, modules: null },
    ];
    for (const status of changes) {
      await assert.rejects(
        auditor.patch(POLICY_REVISIONS, KEY, { type: 'merge', body: { status } }, { subresource: 'status' }),
        (error) => error instanceof ApiError && error.code === 422 && /only the controller/.test(error.message),
        JSON.stringify(status),
      );
    }
    const body = { metadata: { labels: { a: 'b' } } };
    await assert.rejects(auditor.patch(POLICY_REVISIONS, KEY, { type: 'merge', body }), { code: 403 });
    await assert.rejects(auditor.delete(POLICY_REVISIONS, KEY), { code: 403 });
  });
});
