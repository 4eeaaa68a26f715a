// Context-aware policies read a real API server through `portcullis serve --kubeconfig`. They see changes, and a message says what
// to do when a right is missing. A replica of a PolicyServer holds such a policy back.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { writeMetadata } from '../../src/modules/index.ts';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import type { PrevalidationRequest, PrevalidationResult } from '../../src/control/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_RULES } from '../../src/control/access-rules/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { customResourceDefinition, OWN_KINDS } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { example, exampleReview, guest, type TestServer } from '../server/harness.ts';
import { NAMESPACE, startReplica } from '../server/replica-lab.ts';
import { serve, type Served } from './served.ts';

const NAMESPACES = [{ apiVersion: 'v1', kind: 'Namespace' }];

const policies = {
  owner: {
    module: example('namespace-owner'),
    settings: { label: 'owner' },
    contextAwareResources: NAMESPACES,
    hostCapabilities: ['kubernetes/get_resource'],
  },
  asking: {
    module: guest('echo-host-call'),
    contextAwareResources: [
      ...NAMESPACES,
      { apiVersion: 'v1', kind: 'ConfigMap' },
      { apiVersion: 'v1', kind: 'Secret' },
    ],
    hostCapabilities: ['kubernetes/*'],
    timeoutEvalSeconds: 5,
  },
  // The id of an AdmissionPolicy.
  'kw.ap.shop.asking': { module: guest('echo-host-call'), hostCapabilities: ['kubernetes/can_i'] },
  gatekeeper: { module: 'file://./gatekeeper.wasm', contextAwareResources: NAMESPACES },
  opa: { module: 'file://./opa.wasm', contextAwareResources: NAMESPACES },
};

const REGO_MODES = ['gatekeeper', 'opa'] as const;

/** A Rego policy that searches a namespace. Only its metadata names the execution mode. */
function regoModule(executionMode: (typeof REGO_MODES)[number]): Uint8Array {
  const file = new URL(`../fixtures/rego/inventory-${executionMode}.wasm`, import.meta.url);
  return writeMetadata(readFileSync(file), {
    executionMode,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['namespaces'], operations: ['CREATE'] }],
    annotations: {},
    mutating: false,
    backgroundAudit: true,
    policyType: 'kubernetes',
    contextAwareResources: NAMESPACES,
    hostCapabilities: [],
  });
}

interface Verdict {
  readonly allowed: boolean;
  readonly status?: { readonly message?: string };
}

describe('context-aware policies on a real API server', { skip: skipWithoutCluster() }, () => {
  let folder: string;
  let ca: string;
  let cluster: Cluster;
  let served: Served;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-context-'));
    cluster = await startCluster({ users: { reader: {}, replica: {} } });
    await allow('reader', 'reader', [
      { apiGroups: [''], resources: ['namespaces', 'configmaps'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    ]);
    await cluster.createNamespace('shop', { owner: 'team-checkout' });
    await cluster.createNamespace('scratch');
    await Promise.all(REGO_MODES.map((mode) => writeFile(join(folder, `${mode}.wasm`), regoModule(mode))));
    const policiesFile = join(folder, 'policies.yml');
    await writeFile(policiesFile, JSON.stringify(policies));
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    ca = readFileSync(certificates.caFile, 'utf8');
    served = await serve({
      folder,
      policiesFile,
      certificates,
      args: ['--kubeconfig', cluster.kubeconfig, '--context', 'reader'],
    });
  });

  after(async () => {
    await served?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Binds a user to a new ClusterRole. */
  function allow(user: string, name: string, rules: readonly object[]): Promise<unknown> {
    return Promise.all([
      cluster.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name },
        rules,
      }),
      cluster.expect('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      }),
    ]);
  }

  /** The verdict of a policy. */
  async function ask(policy: string, request: object): Promise<Verdict> {
    const review = exampleReview('required-labels', 'rejected');
    const body = JSON.stringify({ ...review, request: { ...review.request, ...request } });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const url = new URL(`/validate/${policy}`, served.admission);
    httpsRequest(url, { method: 'POST', ca, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve(text));
    })
      .on('error', reject)
      .end(body);
    const answer = JSON.parse(await promise) as { response?: Verdict; message?: string };
    // For an unknown policy, the server returns an error instead of a review.
    return answer.response ?? { allowed: false, status: { message: answer.message ?? '' } };
  }

  /** Calls a host capability. Returns its result or its error. */
  async function call(
    op: string,
    payload: object,
    policy = 'asking',
  ): Promise<{ readonly answer?: unknown; readonly error?: string }> {
    const { allowed, status } = await ask(policy, {
      object: { binding: 'kubewarden', ns: 'kubernetes', op, payload },
    });
    const text = status?.message ?? '';
    return allowed ? { answer: text === '' ? undefined : (JSON.parse(text) as unknown) } : { error: text };
  }

  it('admit requests depending on a namespace, and see it change', async () => {
    await eventually(async () => assert.equal((await ask('owner', { namespace: 'shop' })).allowed, true));
    const refused = await ask('owner', { namespace: 'scratch' });
    assert.equal(refused.allowed, false);
    assert.match(refused.status?.message ?? '', /namespace "scratch" has no label "owner"/);
    await cluster.expect('PATCH', '/api/v1/namespaces/scratch', { metadata: { labels: { owner: 'me' } } });
    await eventually(async () => assert.equal((await ask('owner', { namespace: 'scratch' })).allowed, true), {
      timeoutMs: 1000,
      intervalMs: 20,
    });
    const missing = await ask('owner', { namespace: 'nowhere' });
    assert.match(missing.status?.message ?? '', /Cannot find v1\/Namespace named 'nowhere'/);
  });

  it('get a message that names the missing right when the server cannot read a kind', async () => {
    const payload = { api_version: 'v1', kind: 'Secret', namespace: 'shop', name: 'any' };
    for (const disable_cache of [false, true]) {
      const { allowed, status } = await ask('asking', {
        object: { binding: 'kubewarden', ns: 'kubernetes', op: 'get_resource', payload: { ...payload, disable_cache } },
      });
      assert.equal(allowed, false);
      assert.match(
        status?.message ?? '',
        /cannot read v1\/Secret: secrets .*is forbidden: User "reader" cannot (list|get) resource "secrets".*; allow the policy server to get, list and watch secrets/,
      );
    }
  });

  it('list, see lists change, name resources and ask for rights', async () => {
    const namespaces = { api_version: 'v1', kind: 'Namespace' };
    const labelled = await call('list_resources_all', { ...namespaces, label_selector: 'owner=team-checkout' });
    const { kind, items } = labelled.answer as { kind: string; items: { metadata: { name: string } }[] };
    assert.deepEqual([kind, items.map(({ metadata }) => metadata.name)], ['NamespaceList', ['shop']]);
    assert.deepEqual(await call('get_resource_plural_name', namespaces), { answer: 'namespaces' });
    const names = async (): Promise<string> => JSON.stringify((await call('list_resources_all', namespaces)).answer);
    const first = await names();
    assert.equal(await names(), first);
    assert.doesNotMatch(first, /"another"/);
    await cluster.createNamespace('another');
    // Both workers, whatever they have cached.
    await eventually(async () => assert.match(await names(), /"another"/), { timeoutMs: 1000, intervalMs: 20 });
    for (const answer of await Promise.all(Array.from({ length: 8 }, names))) {
      assert.match(answer, /"another"/);
    }
    const may = async (user: string, resource: string): Promise<unknown> => {
      const resource_attributes = { verb: 'list', group: '', resource, version: '*' };
      const { answer } = await call('can_i', { subject_access_review: { user, groups: [], resource_attributes } });
      return (answer as { allowed: boolean }).allowed;
    };
    assert.deepEqual([await may('reader', 'namespaces'), await may('reader', 'secrets')], [true, false]);
  });

  it("learn the rights of the request's user only, as policies of a namespace", async () => {
    const about = (user: string, groups: readonly string[]): ReturnType<typeof call> => {
      const resource_attributes = { verb: 'list', group: '', resource: 'namespaces', version: '*' };
      return call('can_i', { subject_access_review: { user, groups, resource_attributes } }, 'kw.ap.shop.asking');
    };
    const { answer } = await about('alice', ['developers']);
    assert.equal((answer as { allowed: boolean }).allowed, false);
    assert.match((await about('reader', [])).error ?? '', /only about the user of the request.*"alice", got "reader"/);
    assert.match((await about('alice', ['system:masters'])).error ?? '', /groups of this user, got "system:masters"/);
  });

  for (const mode of REGO_MODES) {
    it(`find their kinds as inventory, in Rego for ${mode}`, async () => {
      const child = (parent: string): Promise<Verdict> =>
        ask(mode, { object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'child', labels: { parent } } } });
      await eventually(async () => assert.equal((await child('shop')).allowed, true));
      const refused = await child(`later-${mode}`);
      assert.match(refused.status?.message ?? '', new RegExp(`namespace "later-${mode}" does not exist`));
      await cluster.createNamespace(`later-${mode}`);
      await eventually(async () => assert.equal((await child(`later-${mode}`)).allowed, true), {
        timeoutMs: 1000,
        intervalMs: 20,
      });
    });
  }

  it('ask for what is declared once it is, without a restart', async () => {
    await cluster.expect('POST', '/api/v1/namespaces/shop/configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'limits', namespace: 'shop' },
    });
    const payload = { api_version: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'limits' };
    await eventually(async () => assert.equal((await call('get_resource', payload)).error, undefined));
    const { asking: _asking, ...without } = policies;
    const file = join(folder, 'policies.yml');
    await writeFile(file, JSON.stringify(without));
    await eventually(async () => assert.match((await ask('asking', {})).status?.message ?? '', /unknown policy/));
    assert.equal((await ask('owner', { namespace: 'shop' })).allowed, true);
    await writeFile(file, JSON.stringify(policies));
    await eventually(async () =>
      assert.doesNotMatch((await ask('asking', {})).status?.message ?? '', /unknown policy/),
    );
    await eventually(async () => assert.equal((await call('get_resource', payload)).error, undefined));
  });

  it('are held back by a replica that may not read a kind, until it may', async () => {
    await cluster.createNamespace(NAMESPACE);
    const items = OWN_KINDS.map((kind) => customResourceDefinition(kind));
    const { code, stderr } = await cluster.kubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    });
    assert.equal(code, 0, stderr);
    await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=20s']);
    await allow('replica', 'replica', [...REPLICA_CLUSTER_RULES, ...REPLICA_RULES]);
    const connection = { server: cluster.url, ca: readFileSync(cluster.caFile, 'utf8') };
    const user = new KubernetesCluster({ ...connection, credentials: tokenCredentials(cluster.token('replica')) });
    try {
      await using server = await startReplica({ cluster: user, workers: 1 });
      await holdsBack(server);
    } finally {
      user.close();
    }
  });

  async function holdsBack(server: TestServer): Promise<void> {
    const prevalidate = (spec: object): Promise<PrevalidationResult> => {
      const whole = { settings: {}, mutating: false, rules: [], ...spec };
      const policy = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec: whole };
      return server.server.prevalidate(policy as unknown as PrevalidationRequest);
    };
    const config = { apiVersion: 'v1', kind: 'ConfigMap' };
    const cel = {
      module: 'builtin:cel',
      settings: {
        paramKind: config,
        paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' },
        validations: [{ expression: 'params != null' }],
      },
      contextAwareResources: [config],
    };
    const review = {
      module: guest('echo-host-call'),
      contextAwareResources: [{ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' }],
    };
    for (const [spec, expected] of [
      [cel, /v1\/ConfigMap.*get, list, watch configmaps.*User "replica" cannot list resource "configmaps"/],
      [review, /create subjectaccessreviews\.authorization\.k8s\.io.*User "replica" cannot create/],
    ] as const) {
      const result = await prevalidate(spec);
      assert.partialDeepStrictEqual(result, { ok: false, reason: 'KindNotReadable', isTransient: true });
      assert.match(result.ok ? '' : result.message, expected);
    }
    assert.partialDeepStrictEqual(await prevalidate({ ...review, contextAwareResources: NAMESPACES }), { ok: true });
    await allow('replica', 'granted', [
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    ]);
    for (const spec of [cel, review]) {
      await eventually(async () => assert.partialDeepStrictEqual(await prevalidate(spec), { ok: true }));
    }
  }
});
