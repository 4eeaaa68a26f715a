// oxlint-disable typescript/no-explicit-any -- tests read responses without types
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  X509CertificateGenerator,
} from '@peculiar/x509';
import fc from 'fast-check';
import { EmbeddedCluster } from '../embedded/embedded-cluster.ts';
import { selfSigned } from '../embedded/testing/self-signed.ts';
import type { SelfSigned } from '../embedded/testing/self-signed.ts';
import { Gateway } from './gateway.ts';
import type { GatewayOptions, RequestRecord } from './gateway.ts';
import { writeKubeconfig } from './kubeconfig-file.ts';

const TOKENS = [
  { token: 'admin-token', user: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } },
  { token: 'bob-token', user: { username: 'bob', groups: ['system:authenticated'] } },
  { token: 'alice-token', user: { username: 'alice', groups: ['system:authenticated'] } },
];
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}

interface RequestOptions {
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

describe('a gateway', () => {
  let tls: SelfSigned;
  let cluster: EmbeddedCluster;
  let agent: Agent;
  const gateways: Gateway[] = [];
  const errors: unknown[] = [];

  before(async () => {
    tls = await selfSigned();
    cluster = await EmbeddedCluster.open({ tokens: TOKENS });
    await letEdit('bob');
    agent = new Agent({ keepAlive: true, ca: tls.cert });
  });

  afterEach(async () => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
    assert.deepEqual(errors.splice(0), []);
  });

  after(async () => {
    agent.destroy();
    await cluster.close();
  });

  async function letEdit(username: string): Promise<void> {
    const group = 'rbac.authorization.k8s.io';
    const kind = 'ClusterRoleBinding';
    const object = {
      apiVersion: `${group}/v1`,
      kind,
      metadata: { name: username },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'edit' },
      subjects: [{ apiGroup: group, kind: 'User', name: username }],
    };
    await cluster.admin.create(
      { group, version: 'v1', resource: 'clusterrolebindings', kind, namespaced: false },
      object,
    );
  }

  async function start(
    options: Partial<GatewayOptions> = {},
  ): Promise<{ gateway: Gateway; url: string; port: number }> {
    const gateway = new Gateway({
      cluster,
      authenticator: cluster.authenticator,
      tls,
      onError: (error) => errors.push(error),
      ...options,
    });
    gateways.push(gateway);
    return { gateway, ...(await gateway.start({ port: 0 })) };
  }

  async function send(url: string, method: string, path: string, options: RequestOptions = {}): Promise<Reply> {
    const { body, type = 'application/json', accept, token = 'admin-token', headers } = options;
    const content =
      body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
    const outgoing = httpsRequest(new URL(url).origin, {
      method,
      path,
      agent,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(accept === undefined ? {} : { accept }),
        ...(content === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(content) }),
        ...headers,
      },
    });
    // A server may reject a body before it has received all of it.
    outgoing.on('error', () => undefined);
    outgoing.end(content);
    const [incoming] = await once(outgoing, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) {
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    const text = (incoming.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
    const isJson = String(incoming.headers['content-type']).startsWith('application/json') && text !== '';
    return {
      status: incoming.statusCode,
      headers: incoming.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    };
  }

  const configMap = (name: string, data: object = { a: 'b' }): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data,
  });

  it('creates, reads, patches, replaces and deletes', async () => {
    const { url } = await start();
    const created = await send(url, 'POST', CONFIG_MAPS, { body: configMap('one') });
    assert.equal(created.status, 201);
    assert.equal(created.body.metadata.namespace, 'default');
    assert.match(String(created.headers['audit-id']), /^[0-9a-f-]{36}$/);
    const merge = { body: { data: { c: 'd' } }, type: 'application/merge-patch+json' };
    assert.deepEqual((await send(url, 'PATCH', `${CONFIG_MAPS}/one`, merge)).body.data, { a: 'b', c: 'd' });
    const apply = { body: 'apiVersion: v1\nkind: ConfigMap\ndata: {e: f}\n', type: 'application/apply-patch+yaml' };
    const applied = await send(url, 'PATCH', `${CONFIG_MAPS}/one?fieldManager=me`, apply);
    assert.deepEqual(applied.body.data, { a: 'b', c: 'd', e: 'f' });
    const replaced = await send(url, 'PUT', `${CONFIG_MAPS}/one`, { body: configMap('one', { g: 'h' }) });
    assert.deepEqual([replaced.status, replaced.body.data], [200, { g: 'h' }]);
    const stale = { ...configMap('one'), metadata: { name: 'one', resourceVersion: '1' } };
    assert.equal((await send(url, 'PUT', `${CONFIG_MAPS}/one`, { body: stale })).body.reason, 'Conflict');
    const deleted = await send(url, 'DELETE', `${CONFIG_MAPS}/one`);
    assert.deepEqual(deleted.body.details, { name: 'one', kind: 'configmaps', uid: created.body.metadata.uid });
    assert.equal((await send(url, 'GET', `${CONFIG_MAPS}/one`)).status, 404);
  });

  it('answers as tables, as metadata and as YAML', async () => {
    const { url } = await start();
    await send(url, 'POST', CONFIG_MAPS, { body: configMap('shown') });
    const table = (await send(url, 'GET', `${CONFIG_MAPS}/shown`, { accept: TABLE })).body;
    assert.deepEqual(
      table.columnDefinitions.map(({ name }: { name: string }) => name),
      ['Name', 'Data', 'Age'],
    );
    assert.deepEqual(table.rows[0].cells.slice(0, 2), ['shown', 1]);
    assert.equal(table.rows[0].object.kind, 'PartialObjectMetadata');
    const bare = await send(url, 'GET', `${CONFIG_MAPS}?includeObject=None`, { accept: TABLE });
    assert.equal(bare.body.rows[0].object, null);
    assert.equal((await send(url, 'GET', `${CONFIG_MAPS}?includeObject=x`, { accept: TABLE })).status, 400);
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
    const list = (await send(url, 'GET', CONFIG_MAPS, { accept })).body;
    assert.equal(list.kind, 'PartialObjectMetadataList');
    assert.ok(list.items.every((item: object) => !('data' in item)));
    const yaml = await send(url, 'GET', `${CONFIG_MAPS}/shown`, { accept: 'application/yaml' });
    assert.match(yaml.text, /^apiVersion: v1\ndata:\n {2}a: b\nkind: ConfigMap\n/);
    assert.equal((await send(url, 'GET', CONFIG_MAPS, { accept: 'text/html' })).status, 406);
  });

  it('serves discovery, OpenAPI and its version', async () => {
    const { url } = await start();
    assert.deepEqual((await send(url, 'GET', '/api')).body.versions, ['v1']);
    const groups = (await send(url, 'GET', '/apis')).body.groups.map(({ name }: { name: string }) => name);
    assert.ok(groups.includes('apps'));
    const apps = (await send(url, 'GET', '/apis/apps/v1')).body.resources;
    assert.ok(apps.some(({ name }: { name: string }) => name === 'deployments/scale'));
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
    const all = await send(url, 'GET', '/apis', { accept });
    assert.equal(all.headers['content-type'], 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList');
    assert.ok(all.body.items.some(({ metadata }: { metadata: { name: string } }) => metadata.name === 'apps'));
    const index = (await send(url, 'GET', '/openapi/v3')).body.paths;
    const document = await send(url, 'GET', index['apis/apps/v1'].serverRelativeURL);
    assert.match(String(document.headers['cache-control']), /immutable/);
    assert.ok(document.body.components.schemas['io.k8s.api.apps.v1.Deployment']);
    assert.ok(document.body.components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta']);
    const known = { 'if-none-match': String(document.headers.etag) };
    assert.equal((await send(url, 'GET', '/openapi/v3/apis/apps/v1', { headers: known })).status, 304);
    assert.match((await send(url, 'GET', '/version')).body.gitVersion, /\+portcullis$/);
    assert.equal((await send(url, 'GET', '/readyz')).text, 'ok');
    assert.equal((await send(url, 'GET', '/openapi/v2')).body.swagger, '2.0');
  });

  it('refuses unknown paths, like an API server', async () => {
    const { url } = await start();
    const cases: readonly (readonly [string, string, number])[] = [
      ['GET', '/nothing', 404],
      ['GET', '/api/v1/nothing', 404],
      ['GET', '/api/v2', 404],
      ['GET', '/apis/nothing/v1/things', 404],
      ['GET', '/api/v1/pods/x', 404],
      ['GET', '/api/v1/namespaces/default/nodes', 404],
      ['GET', `${CONFIG_MAPS}/x/status`, 404],
      ['GET', '/api/v1/namespaces/default/pods/x/log', 404],
      ['POST', `${CONFIG_MAPS}/x`, 405],
      ['POST', '/api/v1/configmaps', 405],
      ['PUT', CONFIG_MAPS, 405],
      ['PATCH', CONFIG_MAPS, 405],
      ['OPTIONS', CONFIG_MAPS, 405],
      ['DELETE', '/version', 405],
      ['GET', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 405],
      ['GET', '/%', 400],
      ['GET', `/api/v1/pods?${'x'.repeat(9000)}`, 414],
      ['PATCH', `${CONFIG_MAPS}/x`, 415],
    ];
    for (const [method, path, status] of cases) {
      assert.equal((await send(url, method, path)).status, status, `${method} ${path.slice(0, 80)}`);
    }
  });

  it('reads no body of those who may not send one, and none about another object than the URL', async () => {
    const { url } = await start();
    const forbidden = await send(url, 'POST', CONFIG_MAPS, { token: 'alice-token', body: '{{{' });
    assert.deepEqual([forbidden.status, forbidden.body.details], [403, { kind: 'configmaps' }]);
    const other = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'b' } };
    const eviction = await send(url, 'POST', '/api/v1/namespaces/default/pods/a/eviction', { body: other });
    assert.equal(eviction.body.message, 'the name of the object (b) does not match the name on the URL (a)');
  });

  it('authenticates and authorizes requests', async () => {
    const { url } = await start();
    assert.equal((await send(url, 'GET', '/api/v1/nodes', { token: 'nobody' })).status, 401);
    const message = 'User "alice" cannot list resource "nodes" in API group "" at the cluster scope';
    const refused = await send(url, 'GET', '/api/v1/nodes', { token: 'alice-token' });
    assert.deepEqual([refused.status, refused.body.message], [403, `nodes is forbidden: ${message}`]);
    for (const path of ['/metrics', '/nothing', '/api/v1/nothing']) {
      assert.equal((await send(url, 'GET', path, { token: 'alice-token' })).status, 403, path);
    }
    assert.equal((await send(url, 'GET', '/apis', { token: 'alice-token' })).status, 200);
    const asAlice = await send(url, 'GET', '/api/v1/nodes', { headers: { 'impersonate-user': 'alice' } });
    assert.equal(asAlice.status, 403);
    const asAdmin = { token: 'alice-token', headers: { 'impersonate-user': 'admin' } };
    assert.match((await send(url, 'GET', '/api/v1/nodes', asAdmin)).body.message, /cannot impersonate/);
  });

  it('knows users by their client certificates', async () => {
    const carol = await clientCertificate('carol', 'system:masters');
    const mallory = await clientCertificate('mallory', 'system:masters');
    const { url } = await start({ tls: { ...tls, clientCa: carol.cert } });
    const status = async (client: SelfSigned): Promise<number> => {
      const outgoing = httpsRequest(`${url}/api/v1/nodes`, { agent: false, ca: tls.cert, ...client });
      outgoing.end();
      const [incoming] = await once(outgoing, 'response');
      incoming.resume();
      await once(incoming, 'end');
      return incoming.statusCode;
    };
    assert.deepEqual([await status(carol), await status(mallory)], [200, 401]);
  });

  it('refuses bodies that are too large, and keeps serving', async () => {
    const { url } = await start();
    const body = JSON.stringify(configMap('big', { a: 'x'.repeat(4 * 1024 * 1024) }));
    const refused = await send(url, 'POST', CONFIG_MAPS, { body }).catch(() => undefined);
    // The server may close the connection while the client still sends the rest.
    assert.ok(refused === undefined || refused.status === 413);
    // Without Content-Length, the server notices the size only while it reads.
    const outgoing = httpsRequest(`${url}${CONFIG_MAPS}`, {
      method: 'POST',
      agent: false,
      ca: tls.cert,
      headers: { authorization: 'Bearer admin-token', 'content-type': 'application/json' },
    });
    outgoing.on('error', () => undefined);
    outgoing.write(Buffer.alloc(3 * 1024 * 1024, 'x'));
    outgoing.write('xx');
    const [incoming] = await once(outgoing, 'response');
    incoming.resume();
    outgoing.destroy();
    assert.equal(incoming.statusCode, 413);
    assert.equal((await send(url, 'GET', '/version')).status, 200);
  });

  it('compresses large answers', async () => {
    const { url } = await start();
    await send(url, 'POST', CONFIG_MAPS, { body: configMap('large', { a: 'x'.repeat(200_000) }) });
    const answer = await send(url, 'GET', `${CONFIG_MAPS}/large`, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(answer.headers['content-encoding'], 'gzip');
    assert.equal(answer.body.data.a.length, 200_000);
    await send(url, 'DELETE', `${CONFIG_MAPS}/large`);
  });

  it('sends warnings as headers', async () => {
    const { url } = await start();
    const body = { ...configMap('warned'), unknown: 'ü"\n' };
    const answer = await send(url, 'POST', `${CONFIG_MAPS}?fieldValidation=Warn`, { body });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers['warning'], '299 - "unknown field \\"unknown\\""');
    const twice = JSON.stringify(configMap('twice')).replace('"a":"b"', '"a":"b","a":"c"');
    const warned = await send(url, 'POST', CONFIG_MAPS, { body: twice });
    assert.equal(warned.headers['warning'], '299 - "duplicate field \\"data.a\\""');
    assert.equal(
      (await send(url, 'POST', `${CONFIG_MAPS}?fieldValidation=Strict`, { body: twice })).body.message,
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a"',
    );
    const strict = await send(url, 'POST', `${CONFIG_MAPS}?fieldValidation=Strict`, { body });
    assert.match(strict.body.message, /strict decoding error: unknown field "unknown"/);
  });

  it('watches, as objects and as tables, until it stops', async () => {
    const records: RequestRecord[] = [];
    const { gateway, url } = await start({ onRequest: (record) => records.push(record) });
    await send(url, 'POST', CONFIG_MAPS, { body: configMap('seen') });
    const selector = 'fieldSelector=metadata.name%3Dseen';
    const plain = watchLines(url, `${CONFIG_MAPS}?watch=1&${selector}`, {});
    const tables = watchLines(url, `${CONFIG_MAPS}?watch=1&${selector}`, { accept: TABLE });
    assert.equal((await plain.next()).value.type, 'ADDED');
    assert.equal((await tables.next()).value.object.columnDefinitions.length, 3);
    const patch = { body: { data: { b: 'c' } }, type: 'application/merge-patch+json' };
    await send(url, 'PATCH', `${CONFIG_MAPS}/seen`, patch);
    assert.deepEqual((await plain.next()).value.object.data, { a: 'b', b: 'c' });
    const second = (await tables.next()).value;
    assert.deepEqual([second.type, second.object.columnDefinitions], ['MODIFIED', null]);
    await gateway.stop();
    assert.equal((await plain.next()).done, true);
    assert.equal((await tables.next()).done, true);
    assert.equal(records.filter(({ durationMs }) => durationMs > 0).length, records.length);
    assert.equal(records.length, 4);
  });

  it('refuses invalid watches with a status, and reports an expired version in the stream', async () => {
    const { url } = await start();
    const refused = await send(url, 'GET', `${CONFIG_MAPS}?watch=1&labelSelector=a%3D%3D%3D`);
    assert.equal(refused.status, 400);
    assert.equal((await send(url, 'GET', `${CONFIG_MAPS}?watch=1`, { token: 'alice-token' })).status, 403);
    const bounded = await send(
      url,
      'GET',
      `${CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dnone`,
    );
    assert.deepEqual([bounded.status, bounded.text], [200, '']);
  });

  it('reports in the stream that a version is too old', async () => {
    await using small = await EmbeddedCluster.open({ tokens: TOKENS, historySize: 2 });
    const { url } = await start({ cluster: small, authenticator: small.authenticator });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      await send(url, 'POST', CONFIG_MAPS, { body: configMap(name) });
    }
    const events = watchLines(url, `${CONFIG_MAPS}?watch=1&resourceVersion=1`, {});
    const { type, object } = (await events.next()).value;
    assert.deepEqual([type, object.code, object.reason], ['ERROR', 410, 'Expired']);
    assert.equal((await events.next()).done, true);
  });

  it('takes only so many watches', async () => {
    const { url } = await start({ maxWatches: 1 });
    const first = watchLines(url, `${CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dseen`, {});
    await first.next();
    const refused = await send(url, 'GET', `${CONFIG_MAPS}?watch=1`);
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '1']);
    await first.return(undefined);
  });

  it('leaves room for the requests of others when a user has as many as it may', async () => {
    const { url } = await start();
    const headers = { authorization: 'Bearer bob-token', 'content-type': 'application/json', 'content-length': '10' };
    // Requests whose bodies never come stand for those that wait for a webhook.
    const hanging = Array.from({ length: 100 }, () => {
      const outgoing = httpsRequest(`${url}${CONFIG_MAPS}`, { method: 'POST', agent: false, ca: tls.cert, headers });
      outgoing.on('error', () => undefined).flushHeaders();
      return outgoing;
    });
    let waiting: ReturnType<typeof send>;
    try {
      let isAnswered: boolean;
      do {
        waiting = send(url, 'GET', '/apis', { token: 'bob-token' });
        isAnswered = await Promise.race([waiting.then(() => true), sleep(100, false)]);
      } while (isAnswered);
      assert.equal((await send(url, 'GET', '/apis', { token: 'alice-token' })).status, 200);
    } finally {
      for (const outgoing of hanging) {
        outgoing.destroy();
      }
    }
    assert.equal((await waiting).status, 200);
  });

  it('leaves room for others when one user has many watches', async () => {
    const { url } = await start({ maxWatches: 3, maxWatchesOfUser: 1 });
    const path = `${CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dseen`;
    const bobs = watchLines(url, path, { token: 'bob-token' });
    await bobs.next();
    const refused = await send(url, 'GET', path, { token: 'bob-token' });
    assert.deepEqual(
      [refused.status, refused.headers['retry-after'], refused.body.message],
      [429, '1', 'too many watches of one user, please try again later'],
    );
    const others = [watchLines(url, path, {}), watchLines(url, path, {})];
    for (const lines of others) {
      await lines.next();
    }
    for (const lines of [bobs, ...others]) {
      await lines.return(undefined);
    }
  });

  it('refuses further lists to a user who does not read them, and serves others', async () => {
    const { url, port } = await start({ unreadAnswers: { all: 64 * 1024 ** 2, ofUser: 24 * 1024 ** 2 } });
    const path = '/api/v1/namespaces/unread/configmaps';
    await cluster.admin.create(
      { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'unread' } },
    );
    // A list that the buffers of the kernel cannot take.
    for (let index = 0; index < 12; index++) {
      await send(url, 'POST', path, { body: configMap(`large-${index}`, { a: 'x'.repeat(900_000) }) });
    }
    const sockets: TLSSocket[] = [];
    const list = { token: 'bob-token' };
    let refused: Reply | undefined;
    for (let count = 0; count < 8 && refused === undefined; count++) {
      sockets.push(await silentRequest(port, path, 'bob-token'));
      const answer = await send(url, 'GET', path, list);
      refused = answer.status === 200 ? undefined : answer;
    }
    assert.deepEqual(
      [refused?.status, refused?.headers['retry-after'], refused?.body.message],
      [
        429,
        '1',
        'too many bytes of answers of one user that have not been read: read them, or ask for smaller pages (limit), and try again later',
      ],
    );
    assert.equal((await send(url, 'GET', `${path}?limit=1`, list)).status, 200);
    // An administrator, whom no share holds for.
    assert.equal((await send(url, 'GET', path)).body.items.length, 12);
    sockets.forEach((socket) => socket.destroy());
    let freed: Reply;
    do {
      freed = await send(url, 'GET', path, list);
    } while (freed.status === 429);
    assert.equal(freed.status, 200);
  });

  it('cuts off the watchers that read least when unread events take too much memory, and serves others', async () => {
    const silent = 4;
    const ended: string[] = [];
    const { url, port } = await start({
      maxUnreadBytes: 1_500_000,
      onRequest: ({ method, path }) => (method === 'GET' ? ended.push(path) : undefined),
    });
    const path = '/api/v1/namespaces/flooded/configmaps';
    await cluster.admin.create(
      { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'flooded' } },
    );
    const data = { a: 'x'.repeat(900_000) };
    await send(url, 'POST', path, { body: configMap('same', data) });
    const sockets = await Promise.all(Array.from({ length: silent }, () => silentWatch(port, path)));
    const reader = watchLines(url, `${path}?watch=1`, {});
    await reader.next();
    let versions = 0;
    for (; versions < 60 && ended.length < silent - 1; versions++) {
      await send(url, 'PUT', `${path}/same`, { body: configMap('same', { ...data, index: String(versions) }) });
      await reader.next();
    }
    // The limit leaves room for the events of one. Without it, all stay for thirty seconds.
    assert.deepEqual(
      ended,
      Array.from({ length: silent - 1 }, () => path),
      `after ${versions} versions`,
    );
    await reader.return(undefined);
    sockets.forEach((socket) => socket.destroy());
  });

  it('cuts off a watcher that does not read', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onRequest = ({ method, path }: RequestRecord): void =>
      method === 'GET' && path.startsWith('/api/v1/namespaces/slow') ? resolve() : undefined;
    const { url, port } = await start({ slowWatcherMs: 100, onRequest });
    await cluster.admin.create(
      { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'slow' } },
    );
    const path = '/api/v1/namespaces/slow/configmaps';
    const socket = await silentWatch(port, path);
    // Unread data first fills the buffers of the kernel, some MiB.
    const data = { a: 'x'.repeat(900_000) };
    let isEnded = false;
    void promise.then(() => (isEnded = true));
    for (let index = 0; index < 60 && !isEnded; index++) {
      await send(url, 'PUT', `${path}/same`, { body: configMap('same', { ...data, index: String(index) }) }).then(
        ({ status }) => (status === 404 ? send(url, 'POST', path, { body: configMap('same', data) }) : undefined),
      );
    }
    await promise;
    socket.destroy();
    assert.equal((await send(url, 'GET', '/version')).status, 200);
  });

  it('notices clients that go away', async () => {
    const ended: string[] = [];
    const { url } = await start({ onRequest: ({ path }) => ended.push(path) });
    const lines = watchLines(url, `${CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dseen`, {});
    await lines.next();
    await lines.return(undefined);
    for (let wait = 0; wait < 200 && ended.length === 0; wait++) {
      await sleep(10);
    }
    assert.deepEqual(ended, [CONFIG_MAPS]);
  });

  it('fails to start on a port that is in use', async () => {
    const { port } = await start();
    const second = new Gateway({ cluster, authenticator: cluster.authenticator, tls });
    await assert.rejects(second.start({ port }), { name: 'ClusterError', code: 'port-busy' });
    await second.stop();
  });

  it('answers every request, and stays', async () => {
    const { url } = await start();
    const path = fc.oneof(
      fc.webPath(),
      fc.constantFrom(CONFIG_MAPS, `${CONFIG_MAPS}/a`, '/apis/apps/v1/deployments', '/openapi/v3/api/v1', '/version'),
    );
    const header = fc.constantFrom(
      'accept',
      'content-type',
      'impersonate-user',
      'impersonate-group',
      'user-agent',
      'authorization',
    );
    const value = fc.oneof(
      fc.stringMatching(/^[\x20-\x7e]{0,40}$/),
      fc.constantFrom(
        'application/json',
        'application/yaml',
        'application/merge-patch+json',
        'application/json-patch+json',
        'application/strategic-merge-patch+json',
        'application/apply-patch+yaml',
        'application/vnd.kubernetes.protobuf',
        TABLE,
      ),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'),
        path,
        fc.webQueryParameters(),
        fc.dictionary(header, value, { maxKeys: 3 }),
        fc.oneof(fc.json(), fc.string(), fc.constant(undefined)),
        async (method, target, query, headers, body) => {
          const watch = query.includes('watch') ? '&timeoutSeconds=1' : '';
          const answer = await send(url, method, `${target || '/'}?${query}${watch}`, { body, headers });
          assert.ok(
            answer.status < 500 || method === 'HEAD' || answer.body?.kind === 'Status',
            `${answer.status} ${answer.text}`,
          );
          assert.doesNotMatch(answer.text, /\.ts:\d+|node:internal/);
        },
      ),
      { numRuns: 100 },
    );
    // An internal error would be reported here.
    assert.deepEqual(errors, []);
  });

  it('answers 400 to invalid HTTP', async () => {
    const { port, url } = await start();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
        const socket = connect({ port, host: '127.0.0.1', ca: tls.cert });
        socket.on('error', () => undefined);
        await once(socket, 'secureConnect');
        socket.end(Buffer.from(bytes));
        const chunks: Buffer[] = [];
        socket.on('data', (chunk: Buffer) => chunks.push(chunk));
        await once(socket, 'close');
        const text = Buffer.concat(chunks).toString();
        assert.ok(text === '' || /^HTTP\/1\.1 4\d\d /.test(text), text);
      }),
      { numRuns: 20 },
    );
    assert.equal((await send(url, 'GET', '/version')).status, 200);
  });

  it('is reached with a kubeconfig that only its owner can read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-kubeconfig-'));
    try {
      const file = join(folder, 'new', 'config');
      await writeKubeconfig(file, { server: 'https://127.0.0.1:1', ca: tls.cert, token: 't', namespace: 'shop' });
      assert.equal((await stat(file)).mode & 0o777, 0o600);
      const text = await readFile(file, 'utf8');
      assert.match(text, /current-context: portcullis/);
      assert.match(text, /token: t/);
      assert.match(text, /namespace: shop/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  /** A watch that has begun, and whose client reads nothing. */
  function silentWatch(port: number, path: string): Promise<TLSSocket> {
    return silentRequest(port, `${path}?watch=1`, 'admin-token');
  }

  /** A GET whose answer has begun, and whose client reads nothing. */
  async function silentRequest(port: number, path: string, token: string): Promise<TLSSocket> {
    const socket = connect({ port, host: '127.0.0.1', ca: tls.cert });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }

  async function* watchLines(url: string, path: string, asked: RequestOptions): AsyncGenerator<any> {
    const outgoing = httpsRequest(new URL(path, url), {
      agent: false,
      ca: tls.cert,
      headers: {
        authorization: `Bearer ${asked.token ?? 'admin-token'}`,
        ...(asked.accept === undefined ? {} : { accept: asked.accept }),
      },
    });
    outgoing.end();
    const [incoming] = await once(outgoing, 'response');
    let text = '';
    try {
      for await (const chunk of incoming) {
        text += String(chunk);
        const lines = text.split('\n');
        text = lines.pop() ?? '';
        for (const line of lines) {
          yield JSON.parse(line);
        }
      }
    } finally {
      outgoing.destroy();
    }
  }
});

/** A self-signed certificate of a user. */
async function clientCertificate(name: string, organization: string): Promise<SelfSigned> {
  const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: '01',
      name: `CN=${name},O=${organization}`,
      keys,
      signingAlgorithm,
      notBefore: new Date(Date.now() - 3_600_000),
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
      ],
    },
    webcrypto,
  );
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { cert: certificate.toString('pem'), key };
}
