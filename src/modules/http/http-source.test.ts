import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';

import { downloadModule } from './http-source.ts';
import type { DownloadOptions } from './http-source.ts';
import { MAX_REDIRECTS } from './http-transfer.ts';
import { parseReference } from '../reference/module-reference.ts';
import type { HttpReference } from '../reference/module-reference.ts';
import { DEFAULT_SOURCES } from '../sources/sources.ts';
import { TestAuthority } from '../testing/test-authority.ts';
import { testModule } from '../testing/test-module.ts';
import { TestServer } from '../testing/test-server.ts';

const MODULE = testModule('the content of a policy '.repeat(100));
const authority = await TestAuthority.create();
const identity = await authority.issue();

async function download(url: string, options: Partial<DownloadOptions> = {}): Promise<Uint8Array> {
  const reference = parseReference(url) as HttpReference;
  return await downloadModule(reference, { sources: DEFAULT_SOURCES, maxBytes: 10_000, ...options });
}

function sendModule(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/wasm', 'content-length': MODULE.length }).end(MODULE);
}

function redirect(response: ServerResponse, location?: string, status = 302): void {
  response.writeHead(status, location === undefined ? {} : { location }).end();
}

describe('downloadModule', () => {
  it('returns the bytes and reports progress', async () => {
    await using server = await TestServer.start((_request, response) => sendModule(response));
    const seen: [number, number | undefined][] = [];
    const bytes = await download(`${server.origin}/policy.wasm`, {
      onProgress: (received, total) => seen.push([received, total]),
    });
    assert.deepEqual(Buffer.from(bytes), Buffer.from(MODULE));
    assert.deepEqual(seen.at(-1), [MODULE.length, MODULE.length]);
  });

  for (const [status, code, says] of [
    [401, 'source-unauthorized', /needs credentials/],
    [403, 'source-access-denied', /may not read/],
    [404, 'source-not-found', /no such module/],
    [410, 'source-not-found', /no such module/],
    [429, 'source-rate-limited', /limits the rate of requests/],
    [500, 'source-failed', /server failed/],
    [503, 'source-failed', /server failed/],
    [204, 'source-status', /expected 200/],
  ] as const) {
    it(`refuses status ${status} and says what to do`, async () => {
      await using server = await TestServer.start((_request, response) => response.writeHead(status).end());
      await assert.rejects(download(`${server.origin}/x?token=s3cr3t`), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, says);
        assert.match(error.message, new RegExp(`/x\\?… answered ${status}`));
        return true;
      });
    });
  }

  it('says when the server is not there', async () => {
    const server = await TestServer.start(() => undefined);
    await server[Symbol.asyncDispose]();
    await assert.rejects(download(`${server.origin}/x`), { code: 'source-unreachable', message: /ECONNREFUSED/ });
  });

  it('says when the server does not speak HTTP', async () => {
    await using server = await rawServer((socket) => socket.end('SSH-2.0-x\r\n'));
    await assert.rejects(download(`${server.origin}/x`), { code: 'source-unreachable' });
  });
});

describe('time limits of downloadModule', () => {
  it('end a server that accepts and says nothing', async () => {
    await using server = await TestServer.start(() => undefined);
    await assert.rejects(download(`${server.origin}/x`, { timeouts: { idleMs: 30 } }), {
      code: 'source-timeout',
      message: /the next byte within 30 ms/,
    });
  });

  it('end a server that stops in the middle', async () => {
    await using server = await TestServer.start((_request, response) => {
      response.writeHead(200, { 'content-length': MODULE.length }).write(MODULE.subarray(0, 600));
    });
    await assert.rejects(download(`${server.origin}/x`, { timeouts: { idleMs: 30 } }), { code: 'source-timeout' });
  });

  it('end a server that drips', async () => {
    await using server = await TestServer.start((_request, response) => {
      let sent = 0;
      const drip = setInterval(() => response.write(MODULE.subarray(sent, ++sent)), 5);
      response.once('close', () => clearInterval(drip));
    });
    await assert.rejects(download(`${server.origin}/x`, { timeouts: { idleMs: 5000, totalMs: 60 } }), {
      code: 'source-timeout',
      message: /the whole transfer within 60 ms/,
    });
  });

  it('end with the reason of the caller when that comes first', async () => {
    await using server = await TestServer.start(() => undefined);
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 10);
    await assert.rejects(download(`${server.origin}/x`, { signal: controller.signal }), reason);
    await assert.rejects(download(`${server.origin}/x`, { signal: AbortSignal.abort(reason) }), reason);
  });
});

describe('redirects of downloadModule', () => {
  const hops: RequestListener = ({ url = '' }, response) => {
    const left = Number(url.slice(1));
    if (left === 0) {
      sendModule(response);
    } else {
      redirect(response, `/${left - 1}`, left % 2 === 0 ? 301 : 307);
    }
  };

  it('are followed up to the limit', async () => {
    await using server = await TestServer.start(hops);
    assert.equal((await download(`${server.origin}/${MAX_REDIRECTS}`)).length, MODULE.length);
    assert.equal(server.requests, MAX_REDIRECTS + 1);
    await assert.rejects(download(`${server.origin}/${MAX_REDIRECTS + 1}`), {
      code: 'source-redirect',
      message: /too often/,
    });
  });

  it('that go in a circle end', async () => {
    await using server = await TestServer.start((_request, response) => redirect(response, '/x'));
    await assert.rejects(download(`${server.origin}/x`), { code: 'source-redirect' });
    assert.equal(server.requests, MAX_REDIRECTS + 1);
  });

  for (const [location, says] of [
    ['file:///etc/passwd', /redirects to file:/],
    ['data:application/wasm;base64,AGFzbQEAAAA=', /redirects to data:/],
    ['http://[', /without a valid Location/],
    [undefined, /without a valid Location/],
  ] as const) {
    it(`to ${location ?? 'nothing'} are refused`, async () => {
      await using server = await TestServer.start((_request, response) => redirect(response, location));
      await assert.rejects(download(`${server.origin}/x`), { code: 'source-redirect', message: says });
    });
  }

  it('from https to http are refused', async () => {
    await using plain = await TestServer.start((_request, response) => sendModule(response));
    await using server = await TestServer.start((_request, response) => redirect(response, plain.origin), identity);
    await assert.rejects(download(`${server.origin}/x`, { sources: authority.sourcesFor(server.host) }), {
      code: 'source-redirect',
      message: /https to http/,
    });
    assert.equal(plain.requests, 0);
  });

  it('take credentials along to the same origin only', async () => {
    const seen: (string | undefined)[] = [];
    await using other = await TestServer.start(({ headers }, response) => {
      seen.push(headers.authorization);
      sendModule(response);
    });
    await using server = await TestServer.start(({ headers, url }, response) => {
      seen.push(headers.authorization);
      redirect(response, url === '/1' ? '/2' : other.origin.replace('//', '//evil:pw@'));
    });
    await download(`${server.origin.replace('//', '//joe:pa%3Ass@')}/1`);
    const basic = `Basic ${Buffer.from('joe:pa:ss').toString('base64')}`;
    assert.deepEqual(seen, [basic, basic, undefined]);
  });
});

describe('content that downloadModule gets', () => {
  async function refused(
    respond: (response: ServerResponse) => void,
    expected: { code: string; message?: RegExp },
  ): Promise<void> {
    await using server = await TestServer.start((_request, response) => respond(response));
    await assert.rejects(download(`${server.origin}/x`), expected);
  }

  it('is too large by its announcement', async () => {
    await refused((response) => response.writeHead(200, { 'content-length': 10_001 }).flushHeaders(), {
      code: 'module-too-large',
      message: /at most 10000 bytes, got 10001/,
    });
  });

  it('is too large without an announcement', async () => {
    const closed = Promise.withResolvers<void>();
    await refused(
      (response) => {
        response.once('close', closed.resolve);
        const pump = (): void => {
          while (!response.destroyed && response.write(MODULE)) {
            // Until the other side no longer takes any.
          }
          response.once('drain', pump);
        };
        response.writeHead(200);
        pump();
      },
      { code: 'module-too-large' },
    );
    await closed.promise;
  });

  it('is cut off', async () => {
    await refused(
      (response) => {
        response.writeHead(200, { 'content-length': MODULE.length });
        response.write(MODULE.subarray(0, 600), () => response.destroy());
      },
      { code: 'source-truncated' },
    );
    await refused(
      (response) => {
        response.writeHead(200);
        response.write(MODULE.subarray(0, 600), () => response.destroy());
      },
      { code: 'source-truncated' },
    );
  });

  for (const [what, body, says] of [
    ['an HTML page', '<!DOCTYPE html><title>Sign in</title>', /an HTML page/],
    ['JSON', '{"errors":[]}', /JSON text/],
    ['an OCI manifest', '{"schemaVersion":2,"layers":[]}', /an OCI manifest/],
    ['XML', '<?xml version="1.0"?><Error/>', /an XML document/],
    ['a Git LFS pointer', 'version https://git-lfs.github.com/spec/v1\noid', /Git LFS/],
    ['WebAssembly text', '(module)', /wat2wasm/],
    ['an OPA bundle', Buffer.from([0x1f, 0x8b, 8, 0]), /gzip archive/],
    ['a component', Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]), /component/],
    ['another version', Buffer.from([0, 0x61, 0x73, 0x6d, 2, 0, 0, 0]), /version other than 1/],
    ['half a preamble', Buffer.from([0, 0x61, 0x73, 0x6d]), /only the first 4 bytes/],
    ['text', 'not found', /plain text/],
    ['bytes', Buffer.from([0xca, 0xfe, 0xba, 0xbe]), /begin with cafebabe/],
    ['nothing', '', /nothing/],
  ] as const) {
    it(`is ${what}`, async () => {
      await refused((response) => response.writeHead(200, { 'content-type': 'text/html' }).end(body), {
        code: 'not-wasm',
        message: says,
      });
    });
  }

  it('is given up as soon as it is known not to be a module', async () => {
    await refused((response) => response.writeHead(200).write('<html>'.repeat(200)), { code: 'not-wasm' });
  });
});

describe('TLS of downloadModule', () => {
  it('accepts the authority of the host, given as text', async () => {
    await using server = await TestServer.start((_request, response) => sendModule(response), identity);
    assert.equal(
      (await download(`${server.origin}/x`, { sources: authority.sourcesFor(server.host) })).length,
      MODULE.length,
    );
  });

  it('refuses an authority that is unknown, or known for another host only', async () => {
    await using server = await TestServer.start((_request, response) => sendModule(response), identity);
    for (const sources of [DEFAULT_SOURCES, authority.sourcesFor('other.test')]) {
      await assert.rejects(download(`${server.origin}/x`, { sources }), {
        code: 'source-untrusted',
        message: /source_authorities/,
      });
    }
    assert.equal(server.requests, 0);
  });

  it('accepts any certificate of an insecure source', async () => {
    await using server = await TestServer.start((_request, response) => sendModule(response), identity);
    const sources = { ...DEFAULT_SOURCES, insecureSources: [server.host] };
    assert.equal((await download(`${server.origin}/x`, { sources })).length, MODULE.length);
  });

  it('refuses a certificate for another name', async () => {
    const other = await authority.issue('other.test');
    await using server = await TestServer.start((_request, response) => sendModule(response), other);
    await assert.rejects(download(`${server.origin}/x`, { sources: authority.sourcesFor(server.host) }), {
      code: 'source-untrusted',
      message: /ALTNAME/,
    });
  });
});

describe('proxies of downloadModule', () => {
  it('are used for https and http, except for hosts that need none', async () => {
    const tunnels: string[] = [];
    await using server = await TestServer.start((_request, response) => sendModule(response), identity);
    await using plain = await TestServer.start((_request, response) => sendModule(response));
    await using proxy = await rawServer((socket) => {
      socket.once('data', (head) => {
        const [method = '', target = ''] = head.toString().split(' ');
        tunnels.push(`${method} ${target}`);
        const upstream = connect(Number(new URL(method === 'CONNECT' ? `http://${target}` : target).port), '127.0.0.1');
        if (method === 'CONNECT') {
          socket.write('HTTP/1.1 200 OK\r\n\r\n');
        } else {
          upstream.write(head);
        }
        pipe(socket, upstream);
      });
    });
    const proxies = { httpProxy: proxy.origin, httpsProxy: proxy.origin };
    const sources = { ...authority.sourcesFor(server.host), proxies };
    await download(`${server.origin}/x`, { sources });
    await download(`${plain.origin}/x`, { sources });
    assert.deepEqual(tunnels, [`CONNECT ${server.host}`, `GET ${plain.origin}/x`]);
    await download(`${plain.origin}/x`, { sources: { ...sources, proxies: { ...proxies, noProxy: '127.0.0.1' } } });
    assert.equal(tunnels.length, 2);
  });
});

function pipe(one: Socket, other: Socket): void {
  other.on('error', () => undefined);
  one.once('close', () => other.destroy());
  one.pipe(other).pipe(one);
}

/** A TCP server for what an HTTP server would not do. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<AsyncDisposable & { origin: string }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      sockets.forEach((socket) => socket.destroy());
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
