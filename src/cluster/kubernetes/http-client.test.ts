import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { ApiError } from '../api-error.ts';
import type { ClientCredentials, CredentialSource } from './connection.ts';
import { tokenCredentials } from './connection.ts';
import { HttpClient } from './http-client.ts';
import type { HttpClientOptions } from './http-client.ts';
import { answerJson, scriptedServer } from './testing/scripted-server.ts';
import { testCertificate } from './testing/certificates.ts';

function client(
  context: TestContext,
  connection: ConstructorParameters<typeof HttpClient>[0],
  options: Partial<HttpClientOptions> = {},
): HttpClient {
  const http = new HttpClient(connection, { userAgent: 'test', random: () => 0, ...options });
  context.after(() => http.close());
  return http;
}

const throttle = (response: ServerResponse, status = 429): void =>
  answerJson(response, { kind: 'Status', code: status, message: 'later' }, status, { 'retry-after': '0' });

describe('HttpClient', () => {
  it('waits as long as a throttling server requests, also for writes, which had no effect', async (context) => {
    const server = await scriptedServer(context, (_, response) =>
      server.seen.length < 3
        ? throttle(response, server.seen.length === 1 ? 429 : 503)
        : answerJson(response, { ok: true }),
    );
    const answer = await client(context, { server: server.url }).send({
      method: 'POST',
      path: '/x',
      body: Buffer.from('1'),
    });
    assert.equal(answer.status, 200);
    assert.deepEqual(
      server.seen.map(({ method, body }) => [method, body]),
      [
        ['POST', '1'],
        ['POST', '1'],
        ['POST', '1'],
      ],
    );
  });

  it('gives up on a server that always throttles', async (context) => {
    const server = await scriptedServer(context, (_, response) => throttle(response));
    const waiting = client(context, { server: server.url }).send({ method: 'GET', path: '/x' });
    await assert.rejects(waiting, (error) => error instanceof ApiError && error.code === 429);
    assert.equal(server.seen.length, 6);
  });

  it('does not repeat a request that was not throttled', async (context) => {
    const server = await scriptedServer(context, (_, response) =>
      answerJson(response, { kind: 'Status', code: 503, message: 'down' }, 503),
    );
    await assert.rejects(client(context, { server: server.url }).send({ method: 'GET', path: '/x' }), /down/);
    assert.equal(server.seen.length, 1);
  });

  it('repeats a GET once when the connection broke before a response, and never a write', async (context) => {
    const server = await scriptedServer(context, ({ url }, response) => {
      if (url === '/dead' || server.seen.length === 1) {
        response.socket?.destroy();
      } else {
        answerJson(response, {});
      }
    });
    const http = client(context, { server: server.url });
    assert.equal((await http.send({ method: 'GET', path: '/x' })).status, 200);
    assert.equal(server.seen.length, 2);
    await assert.rejects(http.send({ method: 'GET', path: '/dead' }), { code: 'unreachable' });
    assert.equal(server.seen.length, 4);
    await assert.rejects(http.send({ method: 'POST', path: '/dead' }), { code: 'unreachable' });
    assert.equal(server.seen.length, 5);
  });

  it('repeats a GET on a new connection when a kept one died silently, but no write', async (context) => {
    const sockets = new Set<unknown>();
    const server = await scriptedServer(context, (_, response) => {
      // Like a router that has lost its connections: only new ones get responses.
      if (!sockets.has(response.socket)) {
        sockets.add(response.socket);
        answerJson(response, {});
      }
    });
    const http = client(context, { server: server.url }, { staleConnectionMs: 250, requestTimeoutMs: 750 });
    await Promise.all(['/a', '/b', '/c'].map((path) => http.send({ method: 'GET', path })));
    assert.equal((await http.send({ method: 'GET', path: '/again' })).status, 200);
    assert.equal(sockets.size, 4);
    await assert.rejects(http.send({ method: 'POST', path: '/write' }), { code: 'timeout' });
    assert.equal(sockets.size, 4);
    assert.equal((await http.send({ method: 'POST', path: '/write' })).status, 200);
  });

  it('repeats a GET when a new connection dies before the response, then waits for the full timeout', async (context) => {
    const server = await scriptedServer(context, (_, response) => {
      if (server.seen.length > 1) {
        setTimeout(() => answerJson(response, {}), 120);
      }
    });
    const http = client(context, { server: server.url }, { staleConnectionMs: 30 });
    assert.equal((await http.send({ method: 'GET', path: '/x' })).status, 200);
    assert.equal(server.seen.length, 2);
  });

  it('does not wait long for the rest of a response', async (context) => {
    const server = await scriptedServer(context, ({ url }, response) => {
      if (url === '/dead' || server.seen.length === 1) {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{');
      } else {
        answerJson(response, {});
      }
    });
    const http = client(context, { server: server.url }, { staleConnectionMs: 30 });
    assert.equal((await http.send({ method: 'GET', path: '/x' })).status, 200);
    await assert.rejects(http.send({ method: 'GET', path: '/dead' }), { code: 'timeout' });
    assert.equal(server.seen.length, 4);
  });

  it('aborts a request that takes too long', async (context) => {
    const server = await scriptedServer(context, () => undefined);
    const http = client(context, { server: server.url }, { requestTimeoutMs: 30 });
    await assert.rejects(http.send({ method: 'GET', path: '/x' }), { code: 'timeout' });
  });

  it('stops reading a response that is too long', async (context) => {
    const server = await scriptedServer(context, (_, response) => answerJson(response, 'x'.repeat(1000)));
    const http = client(context, { server: server.url }, { maxAnswerBytes: 100 });
    await assert.rejects(http.send({ method: 'GET', path: '/x' }), { code: 'answer-malformed' });
  });

  it('rejects with the reason of the signal before, during and after the start of the response', async (context) => {
    const reason = new Error('enough');
    const server = await scriptedServer(context, ({ url }, response) => {
      if (url === '/started') {
        response.write('x');
      }
    });
    const http = client(context, { server: server.url });
    for (const path of ['/never', '/started']) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), 30);
      await assert.rejects(http.send({ method: 'GET', path, signal: controller.signal }), reason);
      await assert.rejects(http.send({ method: 'GET', path, signal: controller.signal }), reason);
    }
    const controller = new AbortController();
    const stream = await http.stream({ method: 'GET', path: '/started', signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(async () => {
      for await (const chunk of stream) {
        assert.ok(chunk);
      }
    }, reason);
  });

  it('requests new credentials once when the server rejects them', async (context) => {
    const server = await scriptedServer(context, ({ headers }, response) =>
      headers.authorization === 'Bearer new'
        ? answerJson(response, {})
        : answerJson(response, { kind: 'Status', code: 401, reason: 'Unauthorized', message: 'Unauthorized' }, 401),
    );
    const tokens = ['old', 'new', 'old', 'old'];
    let at = 0;
    const credentials: CredentialSource = {
      description: 'the token of users[0].user',
      current: () => Promise.resolve<ClientCredentials>({ authorization: `Bearer ${tokens[at]}` }),
      dropRefused: () => ++at > 0,
    };
    const http = client(context, { server: server.url, credentials, origin: 'context "dev"' });
    assert.equal((await http.send({ method: 'GET', path: '/x' })).status, 200);
    at = 2;
    await assert.rejects(http.send({ method: 'GET', path: '/x' }), {
      name: 'ApiError',
      code: 401,
      message: /Unauthorized: .* the token of users\[0\]\.user \(context "dev"\); .*log in again/,
    });
    assert.equal(server.seen.length, 4);
  });

  it('takes a denial with status 401 for what it is: the credentials were accepted', async (context) => {
    const message = 'admission webhook "validating.example.com" denied the request: log in to the registry first';
    const server = await scriptedServer(context, (_, response) =>
      answerJson(response, { kind: 'Status', code: 401, reason: 'Unauthorized', message }, 401),
    );
    const credentials: CredentialSource = {
      description: 'the token of users[0].user',
      current: () => Promise.resolve<ClientCredentials>({ authorization: 'Bearer good' }),
      dropRefused: () => true,
    };
    const http = client(context, { server: server.url, credentials });
    await assert.rejects(http.send({ method: 'POST', path: '/x' }), { name: 'ApiError', code: 401, message });
    assert.equal(server.seen.length, 1);
  });

  it('authenticates with a certificate, and verifies the server', async (context) => {
    const [own, other, user] = await Promise.all([
      testCertificate('server'),
      testCertificate('other'),
      testCertificate('alice'),
    ]);
    const server = await scriptedServer(context, ({ clientName }, response) => answerJson(response, { clientName }), {
      ...own,
      requestCert: true,
      rejectUnauthorized: false,
    });
    const credentials: CredentialSource = {
      description: 'a certificate',
      current: () => Promise.resolve({ clientCertificate: user }),
      dropRefused: () => false,
    };
    const trusting = client(context, { server: server.url, ca: own.cert, credentials });
    assert.equal((await trusting.send({ method: 'GET', path: '/x' })).body.toString(), '{"clientName":"alice"}');
    const mistaken = client(context, { server: server.url, ca: other.cert });
    await assert.rejects(mistaken.send({ method: 'GET', path: '/x' }), /cannot be trusted/);
    const careless = client(context, { server: server.url, insecureSkipTlsVerify: true });
    assert.equal((await careless.send({ method: 'GET', path: '/x' })).status, 200);
  });

  it('verifies the server for a configured name', async (context) => {
    const own = await testCertificate('server', ['kubernetes.example']);
    const server = await scriptedServer(context, (_, response) => answerJson(response, {}), own);
    const named = client(context, { server: server.url, ca: own.cert, tlsServerName: 'kubernetes.example' });
    assert.equal((await named.send({ method: 'GET', path: '/x' })).status, 200);
    await assert.rejects(
      client(context, { server: server.url, ca: own.cert }).send({ method: 'GET', path: '/x' }),
      /its certificate is for other names/,
    );
  });

  it('sends credentials, impersonation and user agent, below the path of the server', async (context) => {
    const server = await scriptedServer(context, (_, response) => answerJson(response, {}));
    const credentials: CredentialSource = {
      ...tokenCredentials('secret'),
      current: () =>
        Promise.resolve({
          authorization: 'Bearer secret',
          impersonate: { user: 'bob', groups: ['a', 'b'], extra: { 'example.com/x': ['1'] } },
        }),
    };
    await client(context, { server: `${server.url}/clusters/one/`, credentials }).send({
      method: 'GET',
      path: '/api?x=1',
    });
    const [seen] = server.seen;
    assert.equal(seen?.url, '/clusters/one/api?x=1');
    assert.equal(seen?.headers.authorization, 'Bearer secret');
    assert.equal(seen?.headers['user-agent'], 'test');
    assert.equal(seen?.headers['impersonate-user'], 'bob');
    assert.equal(seen?.headers['impersonate-group'], 'a, b');
    assert.equal(seen?.headers['impersonate-extra-example.com%2fx'], '1');
  });

  it('explains connection failures', async (context) => {
    assert.throws(() => client(context, { server: 'localhost:6443' }), { code: 'request-invalid' });
    const unreachable = client(context, { server: 'https://127.0.0.1:1', origin: 'context "dev"' });
    await assert.rejects(unreachable.send({ method: 'GET', path: '/x' }), {
      code: 'unreachable',
      message: /cannot reach the cluster at https:\/\/127\.0\.0\.1:1 \(context "dev"\): nothing listens there/,
    });
    const plain = await scriptedServer(context, (_, response) => answerJson(response, {}));
    const encrypted = client(context, { server: plain.url.replace('http:', 'https:') });
    await assert.rejects(encrypted.send({ method: 'GET', path: '/x' }), /does not speak TLS/);
  });

  it('sends no more requests at once than it may have connections', async (context) => {
    let [running, most] = [0, 0];
    const server = await scriptedServer(context, (_, response) => {
      running += 1;
      most = Math.max(most, running);
      setTimeout(() => {
        running -= 1;
        answerJson(response, { ok: true });
      }, 20);
    });
    const http = client(context, { server: server.url }, { maxConnections: 2 });
    await Promise.all(Array.from({ length: 8 }, () => http.send({ method: 'GET', path: '/x' })));
    assert.equal(server.seen.length, 8);
    assert.ok(most <= 2, `${most} at once`);
  });

  it('does not load undici, which would delay the start of every command', async () => {
    const url = new URL('http-client.ts', import.meta.url).href;
    const script = `await import(${JSON.stringify(url)}); console.log(process.moduleLoadList.join())`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
    assert.match(stdout, /NativeModule https/);
    assert.doesNotMatch(stdout, /undici/);
  });

  it('aborts its requests when it is closed', async (context) => {
    const server = await scriptedServer(context, () => undefined);
    const http = client(context, { server: server.url });
    const waiting = http.send({ method: 'GET', path: '/x' });
    setTimeout(() => http.close(), 20);
    await assert.rejects(waiting, /was closed/);
    await assert.rejects(http.send({ method: 'GET', path: '/x' }), /was closed/);
  });
});
