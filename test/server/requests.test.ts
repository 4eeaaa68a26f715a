// Invalid requests: each gets a clear answer, and others are served.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { eventually } from '../cluster/eventually.ts';
import { requiredLabel, requires, review, startServer, type TestServer } from './harness.ts';

const MEBIBYTE = 1024 * 1024;
/** Larger than the limit of a body. */
const TOO_LARGE = 7 * MEBIBYTE + 1;

describe('bad requests', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      policies: { labels: requires('app') },
      clientTimeouts: { headersMs: 300, requestMs: 600, checkMs: 50 },
    });
  });
  after(() => server[Symbol.asyncDispose]());
  afterEach(async () => {
    assert.equal(requiredLabel(await server.review('labels', review())), 'app', 'the policy still answers');
  });

  async function refused(
    body: string | Uint8Array,
    options: Parameters<TestServer['post']>[2] = {},
    path = '/validate/labels',
  ): Promise<{ status: number; message: string }> {
    const { status, headers, json, text } = await server.post(path, body, options);
    assert.equal(headers['content-type'], 'application/json', text);
    const answer = json as { status: number; message: string };
    assert.deepEqual(Object.keys(answer).toSorted(), ['message', 'status']);
    assert.equal(answer.status, status);
    return answer;
  }

  it('an empty body is 400', async () => {
    const { status, message } = await refused('');
    assert.equal(status, 400);
    assert.match(message, /empty|nothing|JSON/i);
  });

  it('a body that is not JSON is 400', async () => {
    for (const body of ['{', 'hello', '{"request":', '\u0000', '[1,]', Buffer.from([0xff, 0xfe, 0x80])]) {
      assert.equal((await refused(body)).status, 400, String(body));
      assert.equal((await refused(body, {}, '/validate_raw/labels')).status, 400, String(body));
    }
  });

  it('JSON of another shape is 422', async () => {
    const { request } = review();
    for (const value of [
      null,
      [],
      'text',
      1,
      {},
      { request: null },
      { request: [] },
      { request: 'text' },
      { request: { ...request, uid: 1 } },
      { request: { ...request, kind: 'Pod' } },
      { request: { ...request, operation: undefined } },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
    ]) {
      assert.equal((await refused(JSON.stringify(value))).status, 422, JSON.stringify(value));
    }
    assert.equal((await refused(JSON.stringify({ other: 1 }), {}, '/validate_raw/labels')).status, 422);
  });

  it('a body that is nested 100,000 deep is refused, and the worker survives', async () => {
    const depth = 100_000;
    const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    const restarts = await server.metric('portcullis_worker_restarts_total');
    for (const body of [
      deep,
      `${'['.repeat(depth)}${']'.repeat(depth)}`,
      '['.repeat(depth),
      JSON.stringify(review({ object: 'HERE' })).replace('"HERE"', deep),
    ]) {
      const { status } = await refused(body);
      assert.ok(status === 400 || status === 422, String(status));
    }
    const raw = await refused(`{"request":${deep}}`, {}, '/validate_raw/labels');
    assert.ok(raw.status === 400 || raw.status === 422, String(raw.status));
    assert.equal(await server.metric('portcullis_worker_restarts_total'), restarts);
  });

  it('a body of over 7 MiB is 413, announced or not, and one of 7 MiB is read', async () => {
    const labels = { status: '413' };
    const before = await server.metric('portcullis_requests_refused_total', labels);
    assert.equal((await refused(Buffer.alloc(TOO_LARGE, 0x20))).status, 413);
    assert.equal((await postChunked(server, TOO_LARGE)).status, 413);
    // No worker received them.
    assert.equal(await server.metric('portcullis_requests_refused_total', labels), before + 2);
    assert.equal((await refused(Buffer.alloc(TOO_LARGE - 1, 0x20))).status, 400);
  });

  it('a body that announces too large a size is 413 before it is sent', async () => {
    const answer = await raw(server, `${head('labels')}Content-Length: 100000000000\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /connection: close/i);
  });

  it('reads the largest object that API servers accept', async () => {
    const big = review({ object: { metadata: { name: 'x', annotations: { big: 'x'.repeat(3 * MEBIBYTE) } } } });
    assert.equal(requiredLabel(await server.review('labels', big)), 'app');
  });

  it('another content type is 415', async () => {
    const body = JSON.stringify(review());
    for (const type of ['text/plain', 'application/yaml', 'application/json-patch+json', 'application/jsonx', '']) {
      assert.equal((await refused(body, { headers: { 'content-type': type } })).status, 415, type);
    }
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/json;charset=utf-8']) {
      assert.equal(
        (await server.post('/validate/labels', body, { headers: { 'content-type': type } })).status,
        200,
        type,
      );
    }
  });

  it('another method is 405, and the answer names the expected one', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await server.post('/validate/labels', '', { method });
      assert.equal(answer.status, 405, method);
      assert.equal(answer.headers['allow'], 'POST', method);
    }
  });

  it('a path with broken escapes is 400', async () => {
    assert.equal((await refused(JSON.stringify(review()), {}, '/validate/%zz')).status, 400);
  });

  it('what is not HTTP is 400 and ends the connection', async () => {
    assert.match(await raw(server, 'EHLO mail.example.com\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(
      await raw(server, `POST /validate/labels HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`),
      /^HTTP\/1\.1 431 /,
    );
  });

  it('a client that is slow with its headers is disconnected', async () => {
    assert.match(await raw(server, 'POST /validate/labels HTTP/1.1\r\nHost: x\r\n'), /^HTTP\/1\.1 408 /);
  });

  it('a client that is slow with its body is disconnected', async () => {
    assert.match(await raw(server, `${head('labels')}Content-Length: 1000\r\n\r\n{"request":`), /^HTTP\/1\.1 408 /);
  });

  it('a silent client is disconnected, before and after the handshake', async () => {
    assert.match(await raw(server, ''), /^HTTP\/1\.1 408 |^$/);
    const socket = connectTcp(server.port, '127.0.0.1');
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.resume();
    await promise;
  });

  it('6,000 silent connections keep nobody out', async () => {
    const patient = await startServer({ policies: { labels: requires('app') } });
    const silent = Array.from({ length: 6_000 }, () =>
      connectTcp(patient.port, '127.0.0.1').on('error', () => undefined),
    );
    try {
      await Promise.all(silent.map(async (socket) => once(socket, 'connect')));
      assert.equal(requiredLabel(await patient.review('labels', review())), 'app');
      // The system has accepted the last ones before the server did.
      await eventually(async () => {
        assert.ok((await patient.metric('portcullis_connections_closed_total')) >= 1_000);
      });
    } finally {
      silent.forEach((socket) => socket.destroy());
      await patient[Symbol.asyncDispose]();
    }
  });

  it('a client that disconnects during a request has no effect', async () => {
    for (let index = 0; index < 20; index += 1) {
      const socket = await connected(server);
      socket.write(`${head('labels')}Content-Length: 1000\r\n\r\n{"request":`);
      socket.destroy();
      const whole = await connected(server);
      const body = JSON.stringify(review());
      whole.write(`${head('labels')}Content-Length: ${body.length}\r\n\r\n${body}`);
      whole.destroy();
    }
    assert.equal(await server.metric('portcullis_worker_restarts_total'), 0);
  });

  it('pipelined requests are answered in order', async () => {
    const one = (label: string): string => {
      const body = JSON.stringify(review({ object: { metadata: { name: label } } }));
      return `${head('labels')}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    };
    const socket = await connected(server);
    socket.write(Array.from({ length: 10 }, (_, index) => one(`pod-${index}`)).join(''));
    let text = '';
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if ([...text.matchAll(/HTTP\/1\.1 200/g)].length === 10 && text.includes('pod-9')) {
          resolve();
        }
      });
    });
    socket.destroy();
    assert.deepEqual(
      [...text.matchAll(/Pod \\"(pod-\d)\\"/g)].map(([, name]) => name),
      Array.from({ length: 10 }, (_, index) => `pod-${index}`),
    );
  });

  it('counts refused requests', async () => {
    for (const status of ['404', '405', '413', '415']) {
      await server.post('/validate/unknown', '{}');
      assert.ok((await server.metric('portcullis_requests_refused_total', { status })) > 0, status);
    }
  });
});

function head(policy: string): string {
  return `POST /validate/${policy} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
}

function connected(server: TestServer): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({ port: server.port, host: 'localhost', ca: server.folder.ca }, () => resolve(socket));
  socket.on('error', reject);
  return promise;
}

/** Sends text on a new connection, and returns everything until the server closes it. */
async function raw(server: TestServer, text: string): Promise<string> {
  const socket = await connected(server);
  let received = '';
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('close', () => resolve(received));
  socket.write(text);
  return await promise;
}

/** Sends a body in chunks, without a Content-Length. */
async function postChunked(server: TestServer, size: number): Promise<{ status: number }> {
  const socket = await connected(server);
  const { promise, resolve } = Promise.withResolvers<{ status: number }>();
  socket.once('data', (chunk: Buffer) => resolve({ status: Number(chunk.toString().split(' ', 2)[1]) }));
  socket.write(`${head('labels')}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = Buffer.alloc(MEBIBYTE, 0x20);
  for (let sent = 0; sent < size; sent += chunk.length) {
    socket.write(`${chunk.length.toString(16)}\r\n`);
    socket.write(chunk);
    socket.write('\r\n');
  }
  socket.write('0\r\n\r\n');
  const answer = await promise;
  socket.destroy();
  return answer;
}
