// Compares the policies of a bucket that a policy server evaluates with the webhooks that a real kube-apiserver calls, if each
// policy has its own webhook with the same rules, selectors and conditions.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import {
  createPolicy,
  loadBuckets,
  readPolicyDefinition,
  readReview,
  type PolicyOptions,
} from '../../src/engine/index.ts';
import { policyMatch, type AdmissionPolicySpec, type PolicyMatch } from '../../src/resources/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { TestNamespaces } from '../../src/engine/testing/test-namespaces.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { ADMIN, type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { webhookConfigurationPath } from '../cluster/webhook-configuration.ts';

const { admit, PolicyTable } = loadBuckets();

type Json = Readonly<Record<string, unknown>>;

const WEBHOOKS = 60;
const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  red: { team: 'red' },
  blue: { team: 'blue' },
  bare: {},
};
const SELECTORS: readonly Json[] = [
  {},
  {},
  {},
  { matchLabels: { 'kubernetes.io/metadata.name': 'red' } },
  { matchLabels: { team: 'blue' } },
  { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['red'] }] },
  { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] },
  { matchExpressions: [{ key: 'team', operator: 'In', values: ['red', 'blue'] }] },
];
const CONDITIONS: readonly string[] = [
  'request.operation != "DELETE"',
  'object.metadata.name == "one"',
  'has(request.namespace) && request.namespace == "red"',
  '!has(object.metadata) || object.metadata.name.size() > 2',
  'oldObject == null',
  'request.resource.resource in ["configmaps", "namespaces"] || request.subResource == "scale"',
];

/** The seed of pseudo-random numbers. */
let state = 20_261_121;
function below(count: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % count;
}

function one<T>(list: readonly T[]): T {
  const found = list[below(list.length)];
  assert.ok(found !== undefined);
  return found;
}

function some<T>(list: readonly T[]): T[] {
  return [...new Set(Array.from({ length: 1 + below(3) }, () => one(list)))];
}

function randomSpec(): AdmissionPolicySpec {
  const conditions = below(3) === 0 ? some(CONDITIONS) : [];
  const spec = {
    mutating: false,
    failurePolicy: 'Ignore',
    matchPolicy: 'Exact',
    timeoutSeconds: 10,
    rules: [
      {
        operations: below(2) === 0 ? ['*'] : some(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
        apiGroups: below(2) === 0 ? ['*'] : some(['', 'apps', 'rbac.authorization.k8s.io']),
        apiVersions: below(2) === 0 ? ['*'] : ['v1'],
        resources:
          below(2) === 0 ? ['*/*'] : some(['configmaps', 'namespaces', 'clusterroles', '*/scale', 'services/proxy']),
        scope: one(['*', 'Cluster', 'Namespaced']),
      },
    ],
    namespaceSelector: one(SELECTORS),
    objectSelector: one(SELECTORS),
    matchConditions: conditions.map((expression, index) => ({ name: `c${index}`, expression })),
  };
  return spec as unknown as AdmissionPolicySpec;
}

interface Call {
  readonly path: string;
  readonly review: Buffer;
}

describe('webhooks of a kube-apiserver and the policies of a bucket', { skip: skipWithoutCluster() }, () => {
  let folder: string;
  let server: Server;
  let cluster: Cluster;
  let calls: Call[] = [];
  const matches = new Map<string, PolicyMatch>();
  const table = new PolicyTable({
    port: { request: () => assert.fail('no policy calls the host') },
    log: () => {},
  } satisfies PolicyOptions);
  const namespaces = new TestNamespaces();

  async function serve(): Promise<string> {
    const { certFile, keyFile } = await ensureLocalCertificates(folder);
    server = createServer({ cert: await readFile(certFile), key: await readFile(keyFile) }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const review = Buffer.concat(chunks);
        const { request: asked } = JSON.parse(review.toString()) as { request: { uid: string; userInfo: Json } };
        if (asked.userInfo.username === ADMIN) {
          calls.push({ path: request.url?.split('?')[0] ?? '', review });
        }
        response.setHeader('Content-Type', 'application/json');
        const answer = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };
        response.end(JSON.stringify({ ...answer, response: { uid: asked.uid, allowed: true } }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `https://localhost:${(server.address() as AddressInfo).port}`;
  }

  function addPolicy(index: number): void {
    const policy = { kind: 'ClusterAdmissionPolicy', metadata: { name: `p${index}` }, spec: randomSpec() };
    const match = policyMatch(policy, { productNamespace: 'portcullis', ownWebhook: false });
    const id = `kw.cap.p${index}`;
    const { definition } = readPolicyDefinition(id, { module: 'm.wasm' });
    assert.ok(definition);
    const verdict = { accepted: true, auditAnnotations: null, warnings: null };
    const guest = {
      mode: 'builtin' as const,
      validate: () => verdict,
      validateSettings: () => ({ valid: true }) as const,
      start: () => {},
      checkProtocol: () => {},
    };
    table.set(
      createPolicy(definition, () => guest, table.options),
      match,
    );
    matches.set(id, match);
  }

  function webhook(name: string, url: string, caBundle: string, match: Partial<PolicyMatch>): object {
    const everything = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' };
    return {
      name: `${name}.portcullis.test`,
      clientConfig: { url: `${url}/${name}`, caBundle: Buffer.from(caBundle).toString('base64') },
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      rules: match.rules ?? [everything],
      namespaceSelector: match.namespaceSelector ?? {},
      objectSelector: match.objectSelector ?? {},
      matchConditions: match.matchConditions ?? [],
    };
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-e2e-'));
    const [url, started] = await Promise.all([serve(), startCluster()]);
    cluster = started;
    for (const [name, labels] of Object.entries(NAMESPACES)) {
      await cluster.createNamespace(name, labels);
    }
    for (let index = 0; index < WEBHOOKS; index++) {
      addPolicy(index);
    }
    const caBundle = await readFile(join(folder, 'ca.crt'), 'utf8');
    const webhooks = [...matches].map(([id, match]) => webhook(id, url, caBundle, match));
    await cluster.expect('POST', webhookConfigurationPath('validating'), {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'matching' },
      webhooks: [...webhooks, webhook('all', url, caBundle, {})],
    });
    const { body } = await cluster.request<{ items: { metadata: { name: string; labels: Record<string, string> } }[] }>(
      'GET',
      '/api/v1/namespaces',
    );
    for (const { metadata } of body.items) {
      namespaces.set(metadata.name, metadata.labels);
    }
    await eventually(async () => {
      await send('POST', '/api/v1/namespaces/default/configmaps', configMap('probe'));
      assert.ok(calls.some(({ path }) => path === '/all'));
    });
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    server?.close();
    server?.closeAllConnections();
    await rm(folder, { recursive: true, force: true });
  });

  async function send(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET',
    path: string,
    body?: object,
  ): Promise<number> {
    const { status } = await cluster.request(method, method === 'GET' ? path : `${path}?dryRun=All`, body);
    return status;
  }

  function configMap(name: string, labels: Json = {}): object {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels } };
  }

  /** The policies that the server would evaluate for the reviews that the webhook for all requests received. */
  function askedByServer(): string[] {
    const buckets = new Set([...matches.values()].map(({ bucket }) => bucket));
    return calls
      .filter(({ path }) => path === '/all')
      .flatMap(({ review }) =>
        [...buckets].flatMap((bucket) => {
          const admission = admit(table, bucket, readReview('validate', review), { objects: namespaces });
          assert.ok(admission.kind === 'verdict', admission.kind);
          return admission.observations.map(({ policy }) => policy);
        }),
      )
      .toSorted();
  }

  async function compare(what: string, run: () => Promise<number>): Promise<number> {
    calls = [];
    const status = await run();
    const called = calls.map(({ path }) => path.slice(1)).filter((name) => name !== 'all');
    assert.ok(calls.length > called.length, `${what} was reviewed; status ${status}`);
    assert.deepEqual(askedByServer(), called.toSorted(), what);
    return called.length;
  }

  it('match the same requests', async () => {
    let compared = 0;
    const inNamespace = (namespace: string, rest: string): string => `/api/v1/namespaces/${namespace}/${rest}`;
    for (const namespace of Object.keys(NAMESPACES)) {
      await cluster.expect('POST', inNamespace(namespace, 'configmaps'), configMap('one', { team: 'red' }));
      await cluster.expect('POST', inNamespace(namespace, 'services'), {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
        spec: { ports: [{ port: 80 }] },
      });
      await cluster.expect('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', labels: { team: 'blue' } },
        spec: {
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ name: 'a', image: 'example.com/a' }] },
          },
        },
      });
      const requests: [string, () => Promise<number>][] = [
        ['create', () => send('POST', inNamespace(namespace, 'configmaps'), configMap('two', { team: 'blue' }))],
        ['create unlabelled', () => send('POST', inNamespace(namespace, 'configmaps'), configMap('three'))],
        ['update', () => send('PUT', inNamespace(namespace, 'configmaps/one'), configMap('one', { team: 'blue' }))],
        [
          'patch',
          () => send('PATCH', inNamespace(namespace, 'configmaps/one'), { metadata: { labels: { team: null } } }),
        ],
        ['delete', () => send('DELETE', inNamespace(namespace, 'configmaps/one'))],
        ['delete all', () => send('DELETE', inNamespace(namespace, 'configmaps'))],
        ['connect', () => send('GET', inNamespace(namespace, 'services/web/proxy/'))],
        [
          'scale',
          () => send('PATCH', `/apis/apps/v1/namespaces/${namespace}/deployments/web/scale`, { spec: { replicas: 2 } }),
        ],
        [
          'update namespace',
          () => send('PATCH', `/api/v1/namespaces/${namespace}`, { metadata: { labels: { team: 'blue' } } }),
        ],
        ['delete namespace', () => send('DELETE', `/api/v1/namespaces/${namespace}`)],
      ];
      for (const [what, run] of requests) {
        compared += await compare(`${what} in ${namespace}`, run);
      }
    }
    const newNamespace = (name: string, labels: Json): object => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
    const role = (labels: Json): object => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'one', labels },
      rules: [],
    });
    const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
    for (const labels of [{}, { team: 'red' }, { team: 'blue' }]) {
      compared += await compare('create namespace', () =>
        send('POST', '/api/v1/namespaces', newNamespace('new', labels)),
      );
      compared += await compare('create cluster role', () => send('POST', roles, role(labels)));
    }
    const generated = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { generateName: 'new-', labels: { team: 'red' } },
    };
    compared += await compare('create namespace with a name that is generated', () =>
      send('POST', '/api/v1/namespaces', generated),
    );
    compared += await compare('delete cluster role', () => send('DELETE', `${roles}/view`));
    assert.ok(compared > 100, `webhooks called: ${compared}`);
  });
});
