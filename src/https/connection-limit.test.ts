import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server, type ServerResponse } from 'node:http';
import { Agent, createServer, get, type Server as SecureServer } from 'node:https';
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net';
import { before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createAuthority, issueCertificate, type CertifiedKey } from './certificate-authority.ts';
import { type ConnectionLimitOptions, type ConnectionState, limitConnections } from './connection-limit.ts';

const MAX = 4;
const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };

describe('the limit on connections', () => {
  let authority: CertifiedKey;
  let certificate: CertifiedKey;
  before(async () => {
    authority = await createAuthority({ commonName: 'test CA', ...validity });
    certificate = await issueCertificate(authority, {
      commonName: 'test',
      usages: ['serverAuth'],
      dnsNames: [],
      ipAddresses: ['127.0.0.1'],
      ...validity,
    });
  });

  it('closes the oldest connection without a finished handshake first', async () => {
    await using server = await secureServer({ max: MAX });
    const answered = await server.request();
    const silent = await server.silent(2);
    const [oldest, ...others] = await server.handshakes(1);
    const newest = await server.handshakes(1);
    await closed(oldest);
    assert.deepEqual(server.closed, ['handshake']);
    assert.ok([...silent, ...others, ...newest].every(isOpen));
    assert.equal(await answered(), 200);
  });

  it('then the oldest connection without a request, then the one that is idle the longest', async () => {
    await using server = await secureServer({ max: 2 });
    const first = await server.request();
    const [silent] = await server.silent(1);
    const second = await server.request();
    await closed(silent);
    assert.equal(await first(), 200, 'the first is the last that was used now');
    const third = await server.request();
    assert.deepEqual(server.closed, ['silent', 'idle']);
    assert.deepEqual([await first(), await third()], [200, 200]);
    await assert.rejects(second(), /socket hang up|ECONNRESET|closed/);
  });

  it('never closes a connection with a request, and refuses new ones while all have one', async () => {
    await using server = await secureServer({ max: 2 });
    const running = [server.hang(), server.hang()];
    await server.hanging(2);
    const [refused] = await server.handshakes(1);
    await closed(refused);
    server.answerAll();
    assert.deepEqual(await Promise.all(running), [200, 200]);
    assert.deepEqual(server.closed, []);
  });

  it('closes connections that never complete their request before it refuses new ones', async () => {
    const states: ConnectionState[] = [];
    const server = createHttpServer((request, response) => {
      request.resume().on('end', () => response.end('ok'));
    });
    limitConnections(server, { max: 3, closed: (state) => states.push(state) });
    const port = await listening(server);
    const sockets: Socket[] = [];
    while (sockets.length < 3) {
      const socket = connectTcp(port, '127.0.0.1').on('error', () => undefined);
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
      await once(server, 'request');
      sockets.push(socket);
    }
    const whole = connectTcp(port, '127.0.0.1').on('error', () => undefined);
    whole.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1');
    const [answer] = (await once(whole, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 200 /);
    assert.deepEqual(states, ['receiving']);
    [whole, ...sockets].forEach((socket) => socket.destroy());
    server.close();
  });

  it('limits unfinished handshakes of one address, whatever else is open', async () => {
    await using server = await secureServer({ max: 100, maxHandshakesPerAddress: 2 });
    const finished = await server.silent(5);
    const [first, ...others] = await server.handshakes(3);
    await closed(first);
    assert.ok([...finished, ...others].every(isOpen));
    assert.deepEqual(server.closed, ['handshake']);
  });

  it('forgets connections that end, in each state', async () => {
    await using server = await secureServer({ max: MAX });
    for (let round = 0; round < 5; round += 1) {
      const sockets = [...(await server.handshakes(1)), ...(await server.silent(1))];
      const answered = await server.request();
      assert.equal(await answered(), 200);
      await Promise.all(sockets.map(async (socket) => closed(socket.destroy())));
      answered.agent.destroy();
      await server.empty();
    }
    assert.deepEqual(server.closed, [], 'no connection had to make room');
  });

  it('applies to plain HTTP, where connections without a request go first', async () => {
    const states: ConnectionState[] = [];
    const server = createHttpServer((_request, response) => response.end('ok'));
    limitConnections(server, { max: 1, closed: (state) => states.push(state) });
    const port = await listening(server);
    const [first, second] = [connectTcp(port, '127.0.0.1'), connectTcp(port, '127.0.0.1')];
    await Promise.race([closed(first), closed(second)]);
    assert.deepEqual(states, ['silent']);
    first.destroy();
    second.destroy();
    server.close();
  });

  async function secureServer(options: ConnectionLimitOptions): Promise<LimitedServer> {
    const server = createServer({ ...certificate, keepAliveTimeout: 60_000 });
    const limited = new LimitedServer(server, authority.cert, options);
    await listening(server);
    return limited;
  }
});

/** A server that answers at once, or hangs until told for `/hang`; and its clients. */
class LimitedServer implements AsyncDisposable {
  readonly closed: ConnectionState[] = [];
  readonly #server: SecureServer;
  readonly #ca: string;
  readonly #waiting: ServerResponse[] = [];
  readonly #sockets: Socket[] = [];
  readonly #agents: Agent[] = [];

  constructor(server: SecureServer, ca: string, options: ConnectionLimitOptions) {
    this.#server = server;
    this.#ca = ca;
    limitConnections(server, { ...options, closed: (state) => this.closed.push(state) });
    server.on('request', (request, response: ServerResponse) => {
      if (request.url === '/hang') {
        this.#waiting.push(response);
      } else {
        response.end('ok');
      }
    });
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** TCP connections that send nothing, accepted one after the other. */
  async handshakes(count: number): Promise<Socket[]> {
    return this.#connect(count, 'connection', () => connectTcp(this.#port, '127.0.0.1'));
  }

  /** TLS connections without a request. */
  async silent(count: number): Promise<Socket[]> {
    return this.#connect(count, 'secureConnection', () =>
      connectTls({ port: this.#port, host: '127.0.0.1', ca: this.#ca }),
    );
  }

  async #connect(count: number, event: string, connect: () => Socket): Promise<Socket[]> {
    const sockets: Socket[] = [];
    for (let index = 0; index < count; index += 1) {
      const accepted = once(this.#server, event);
      const socket = connect().on('error', () => undefined);
      sockets.push(socket.resume());
      await accepted;
    }
    this.#sockets.push(...sockets);
    return sockets;
  }

  /** Sends a request on a connection of its own. Returns a function that sends another one on it. */
  async request(): Promise<(() => Promise<number>) & { readonly agent: Agent }> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agents.push(agent);
    let isReused = false;
    const send = async (): Promise<number> => {
      const { status, reused } = await this.#get('/', agent);
      assert.equal(reused, isReused, 'the connection was closed');
      isReused = true;
      return status;
    };
    assert.equal(await send(), 200);
    return Object.assign(send, { agent });
  }

  /** A request that is answered by {@link answerAll}. */
  async hang(): Promise<number> {
    const agent = new Agent();
    this.#agents.push(agent);
    return (await this.#get('/hang', agent)).status;
  }

  async hanging(count: number): Promise<void> {
    while (this.#waiting.length < count) {
      await once(this.#server, 'request');
    }
  }

  answerAll(): void {
    for (const response of this.#waiting.splice(0)) {
      response.end('ok');
    }
  }

  /** Resolves when no connection is open. */
  async empty(): Promise<void> {
    while ((await new Promise<number>((resolve) => this.#server.getConnections((_, count) => resolve(count)))) > 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #get(path: string, agent: Agent): Promise<{ status: number; reused: boolean }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; reused: boolean }>();
    const options = { port: this.#port, host: '127.0.0.1', path, agent, ca: this.#ca };
    const request = get(options, (response) => {
      response.resume();
      response.once('end', () => resolve({ status: response.statusCode ?? 0, reused: request.reusedSocket }));
    });
    request.once('error', reject);
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sockets.forEach((socket) => socket.destroy());
    this.#agents.forEach((agent) => agent.destroy());
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function listening(server: Server | SecureServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function closed(socket: Socket | undefined): Promise<void> {
  if (socket?.closed === false) {
    await once(socket, 'close');
  }
}

function isOpen(socket: Socket): boolean {
  return !socket.destroyed;
}
