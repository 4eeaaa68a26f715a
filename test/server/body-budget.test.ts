// Many clients that send large bodies slowly: the server limits the memory of pending bodies, and answers others.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { requiredLabel, requires, review, startServer, type TestServer, until } from './harness.ts';

const MEBIBYTE = 1024 * 1024;
const BODY_BYTES = 7 * MEBIBYTE;
/** Together they exceed the server's limit of 256 MiB. */
const CLIENTS = 48;

/** A client that sends a large body except its end. */
class SlowClient implements Disposable {
  received = '';
  readonly #socket: TLSSocket;
  readonly #closed: Promise<void>;

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => (this.received += chunk.toString()));
    // The connection of a refused client is closed while it sends.
    socket.on('error', () => undefined);
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  static async connect(server: TestServer): Promise<SlowClient> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = connect({ port: server.port, host: 'localhost', ca: server.folder.ca }, () => resolve());
    socket.once('error', reject);
    await promise;
    return new SlowClient(socket);
  }

  head(framing: string): void {
    this.#socket.write(
      `POST /validate/good HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`,
    );
  }

  /** Resolves when the bytes were sent, or the server closed the connection. */
  send(bytes: Uint8Array): Promise<void> {
    return Promise.race([this.#closed, new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve()))]);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Memory of this process, including the clients, after garbage collection. */
function used(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

describe('pending bodies', () => {
  it('are refused when they are too large together, and ordinary reviews are not', async () => {
    await using server = await startServer({ policies: { good: requires('app') } });
    using clients = new DisposableStack();
    const before = used();
    const almostAll = Buffer.alloc(BODY_BYTES - 1, 0x20);
    const slow: SlowClient[] = [];
    for (let index = 0; index < CLIENTS; index += 1) {
      const client = clients.use(await SlowClient.connect(server));
      slow.push(client);
      client.head(`Content-Length: ${BODY_BYTES}`);
      await client.send(almostAll);
    }
    const refused = (): SlowClient[] => slow.filter(({ received }) => received !== '');
    await until(() => refused().length >= CLIENTS - 36);
    for (const { received } of refused()) {
      assert.match(received, /^HTTP\/1\.1 503 /);
      assert.match(received, /connection: close/i);
      assert.match(received, /more requests are on their way than can be held; try again later/);
    }
    assert.ok(refused().length < CLIENTS, 'some are held');
    assert.ok(used() - before < 320 * MEBIBYTE, `${used() - before} bytes are held`);
    const labels = { status: '503' };
    assert.equal(await server.metric('portcullis_requests_refused_total', labels), refused().length);
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.review('good', review())));
    assert.ok(answers.every((answer) => requiredLabel(answer) === 'app'));
    // Room reserved for ordinary reviews: 6 MiB of them at once.
    const ordinary: SlowClient[] = [];
    const text = JSON.stringify(
      review({ object: { metadata: { name: 'x', annotations: { a: 'x'.repeat(60_000) } } } }),
    );
    for (let index = 0; index < 100; index += 1) {
      const client = clients.use(await SlowClient.connect(server));
      ordinary.push(client);
      client.head(`Content-Length: ${text.length}`);
      await client.send(Buffer.from(text.slice(0, -1)));
    }
    await Promise.all(ordinary.map((client) => client.send(Buffer.from(text.slice(-1)))));
    await until(() => ordinary.every(({ received }) => received !== ''));
    assert.deepEqual([...new Set(ordinary.map(({ received }) => received.split(' ', 2)[1]))], ['200']);
    clients.dispose();
    // Their memory is free again.
    const big = review({ object: { metadata: { name: 'x', annotations: { big: 'x'.repeat(6 * MEBIBYTE) } } } });
    await until(async () => (await server.post('/validate/good', JSON.stringify(big))).status === 200);
  });

  it('in many tiny chunks take no more memory than their size', async () => {
    await using server = await startServer({ policies: { good: requires('app') } });
    using client = await SlowClient.connect(server);
    const before = used();
    client.head('Transfer-Encoding: chunked');
    // Half a million chunks of one byte; as a list of buffers they took some 100 MiB.
    const pieces = Buffer.from('1\r\n \r\n'.repeat(50_000));
    for (let sent = 0; sent < 10; sent += 1) {
      await client.send(pieces);
    }
    // Until the server has read them.
    await sleep(1_000);
    assert.equal(client.received, '');
    const grown = used() - before;
    assert.ok(grown < 20 * MEBIBYTE, `${grown} bytes are held`);
    const rest = Buffer.from(JSON.stringify(review()));
    await client.send(Buffer.from(`${rest.length.toString(16)}\r\n${rest.toString()}\r\n0\r\n\r\n`));
    await until(() => /has no label \\"app\\"/.test(client.received));
  });
});
