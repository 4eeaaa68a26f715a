// Requests on the wire. test/cluster-port runs against real API servers.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { KubernetesCluster, TABLE_ACCEPT } from './kubernetes-cluster.ts';
import { answerJson, scriptedServer } from './testing/scripted-server.ts';
import type { Answerer, ScriptedServer } from './testing/scripted-server.ts';

const PODS: ResourceType = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
const NODES: ResourceType = { group: '', version: 'v1', resource: 'nodes', kind: 'Node', namespaced: false };
const DEPLOYMENTS: ResourceType = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};

const pod = (name: string, metadata = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', ...metadata },
});

async function setUp(
  context: TestContext,
  answer: Answerer = (_, response) => answerJson(response, pod('a')),
): Promise<{ cluster: KubernetesCluster; server: ScriptedServer; requests: () => string[] }> {
  const server = await scriptedServer(context, answer);
  const cluster = new KubernetesCluster({ server: server.url }, { fieldManager: 'me' });
  context.after(() => cluster.close());
  return { cluster, server, requests: () => server.seen.map(({ method, url }) => `${method} ${url}`) };
}

describe('KubernetesCluster', () => {
  it('sends the API’s method and path for each verb', async (context) => {
    const { cluster, requests } = await setUp(context);
    const key = { namespace: 'shop', name: 'a' };
    await cluster.get(PODS, key, { resourceVersion: '0' });
    await cluster.get(NODES, { name: 'n/1' });
    await cluster.create(PODS, pod('a'), { dryRun: true, fieldValidation: 'Strict' });
    await cluster.create(PODS, pod('a'), { subresource: 'eviction' });
    await cluster.update(PODS, pod('a'), { subresource: 'status', fieldManager: 'you' });
    await cluster.patch(DEPLOYMENTS, key, { type: 'apply', body: {}, force: true });
    await cluster.delete(PODS, key);
    await cluster.deleteCollection(PODS, { namespace: 'shop', labelSelector: 'a in (b,c)' });
    assert.deepEqual(requests(), [
      'GET /api/v1/namespaces/shop/pods/a?resourceVersion=0',
      'GET /api/v1/nodes/n%2F1',
      'POST /api/v1/namespaces/shop/pods?dryRun=All&fieldManager=me&fieldValidation=Strict',
      'POST /api/v1/namespaces/shop/pods/a/eviction?fieldManager=me',
      'PUT /api/v1/namespaces/shop/pods/a/status?fieldManager=you',
      'PATCH /apis/apps/v1/namespaces/shop/deployments/a?fieldManager=me&force=true',
      'DELETE /api/v1/namespaces/shop/pods/a',
      'DELETE /api/v1/namespaces/shop/pods?labelSelector=a+in+%28b%2Cc%29',
    ]);
  });

  it('sends the content type of each patch', async (context) => {
    const { cluster, server } = await setUp(context);
    const key = { namespace: 'shop', name: 'a' };
    await cluster.patch(PODS, key, { type: 'merge', body: { a: null } });
    await cluster.patch(PODS, key, { type: 'json', body: [{ op: 'remove', path: '/a' }] });
    await cluster.patch(PODS, key, { type: 'strategic', body: {} });
    await cluster.patch(PODS, key, { type: 'apply', body: {} });
    assert.deepEqual(
      server.seen.map(({ headers, body }) => [headers['content-type'], body]),
      [
        ['application/merge-patch+json', '{"a":null}'],
        ['application/json-patch+json', '[{"op":"remove","path":"/a"}]'],
        ['application/strategic-merge-patch+json', '{}'],
        ['application/apply-patch+yaml', '{}'],
      ],
    );
  });

  it('sets the type of a list’s items', async (context) => {
    const { cluster, requests } = await setUp(context, (_, response) =>
      answerJson(response, {
        kind: 'PodList',
        metadata: { resourceVersion: '7', continue: 'next', remainingItemCount: 3 },
        items: [{ metadata: { name: 'a' } }],
      }),
    );
    const list = await cluster.list(PODS, {
      limit: 1,
      continue: 'c',
      fieldSelector: 'spec.nodeName=n',
      resourceVersionMatch: 'Exact',
    });
    assert.deepEqual(list, {
      metadata: { resourceVersion: '7', continue: 'next', remainingItemCount: 3 },
      items: [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }],
    });
    assert.deepEqual(requests(), [
      'GET /api/v1/pods?limit=1&continue=c&fieldSelector=spec.nodeName%3Dn&resourceVersionMatch=Exact',
    ]);
  });

  it('watches, and reports how the watch ended', async (context) => {
    const { cluster, requests } = await setUp(context, (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(`${JSON.stringify({ type: 'ADDED', object: pod('a') })}\n`);
      if (requests().length === 1) {
        response.end();
      } else {
        setTimeout(() => response.destroy(), 20);
      }
    });
    const names: (string | undefined)[] = [];
    const options = {
      namespace: 'shop',
      resourceVersion: '5',
      allowBookmarks: true,
      sendInitialEvents: true,
      timeoutSeconds: 9,
    };
    for await (const event of cluster.watch(PODS, options)) {
      names.push(event.object.metadata.name);
    }
    assert.deepEqual(names, ['a']);
    assert.deepEqual(requests(), [
      'GET /api/v1/namespaces/shop/pods?resourceVersion=5&timeoutSeconds=9&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true',
    ]);
    await assert.rejects(
      async () => {
        for await (const event of cluster.watch(PODS)) {
          assert.equal(event.type, 'ADDED');
        }
      },
      { name: 'ClusterError', code: 'unreachable' },
    );
  });

  it('ends a watch with the reason of the signal', async (context) => {
    const { cluster } = await setUp(context, (_, response) => response.writeHead(200).flushHeaders());
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('enough')), 20);
    await assert.rejects(async () => {
      for await (const event of cluster.watch(PODS, { signal: controller.signal })) {
        assert.fail(event.type);
      }
    }, /enough/);
  });

  it('distinguishes a pending deletion from a completed one', async (context) => {
    const answers = [
      { kind: 'Status', status: 'Success' },
      pod('gone', { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }),
      pod('graceful', { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 }),
      pod('held', { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['a/b'] }),
      { ...pod('namespace', { deletionTimestamp: '2026-01-01T00:00:00Z' }), spec: { finalizers: ['kubernetes'] } },
    ];
    const { cluster, server } = await setUp(context, (_, response) =>
      answerJson(response, answers[server.seen.length - 1]),
    );
    const key = { namespace: 'shop', name: 'a' };
    const options = {
      dryRun: true,
      gracePeriodSeconds: 0,
      propagationPolicy: 'Orphan',
      preconditions: { uid: 'u' },
    } as const;
    const names = [(await cluster.delete(PODS, key, options))?.metadata.name];
    for (let index = 1; index < answers.length; index += 1) {
      names.push((await cluster.delete(PODS, key))?.metadata.name);
    }
    assert.deepEqual(names, [undefined, undefined, 'graceful', 'held', 'namespace']);
    assert.deepEqual(JSON.parse(server.seen[0]?.body ?? ''), {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      dryRun: ['All'],
      gracePeriodSeconds: 0,
      propagationPolicy: 'Orphan',
      preconditions: { uid: 'u' },
    });
  });

  it('passes on warnings', async (context) => {
    const { cluster } = await setUp(context, (_, response) =>
      answerJson(response, pod('a'), 200, { warning: '299 - "unknown field \\"x\\""' }),
    );
    const warnings: string[] = [];
    await cluster.create(PODS, pod('a'), { onWarning: (text) => warnings.push(text) });
    assert.deepEqual(warnings, ['unknown field "x"']);
  });

  it('sends any request, such as for tables', async (context) => {
    const { cluster, server } = await setUp(context, (_, response) => answerJson(response, { kind: 'Table' }));
    const answer = await cluster.request('GET', '/api/v1/pods', { accept: TABLE_ACCEPT, query: { limit: 2 } });
    assert.deepEqual(answer.json(), { kind: 'Table' });
    assert.equal(answer.text, '{"kind":"Table"}');
    assert.equal(server.seen[0]?.url, '/api/v1/pods?limit=2');
    assert.equal(server.seen[0]?.headers.accept, TABLE_ACCEPT);
  });

  it('rejects invalid requests without sending them', async (context) => {
    const { cluster, server } = await setUp(context);
    for (const send of [
      () => cluster.get(PODS, { name: 'a' }),
      () => cluster.get(PODS, { namespace: '..', name: 'a' }),
      () => cluster.delete(PODS, { namespace: 'shop', name: '' }),
      () => cluster.deleteCollection(PODS),
    ]) {
      await assert.rejects(send(), { name: 'ClusterError', code: 'request-invalid' });
    }
    assert.equal(server.seen.length, 0);
  });

  it('drops discovery when a type is not served', async (context) => {
    const { cluster, server } = await setUp(context, ({ url }, response) =>
      url.startsWith('/api/v1/')
        ? response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found')
        : answerJson(response, { kind: 'APIGroupDiscoveryList', items: [] }),
    );
    await cluster.discovery.resources();
    await cluster.discovery.resources();
    assert.equal(server.seen.length, 2);
    await assert.rejects(cluster.list(PODS), { name: 'ApiError', code: 404 });
    await cluster.discovery.resources();
    assert.equal(server.seen.length, 5);
  });
});
