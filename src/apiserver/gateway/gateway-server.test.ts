import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:https';
import { connect, type Socket } from 'node:net';
import { afterEach, before, describe, it } from 'node:test';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { createGatewayServer, type GatewayTls, listen } from './gateway-server.ts';

/** More than the server keeps open. */
const CONNECTIONS = 5_100;

describe('the server of a gateway', () => {
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const sockets: Socket[] = [];
  let tls: GatewayTls;
  let server: ReturnType<typeof createGatewayServer>;
  let port: number;
  let ca: string;

  before(async () => {
    const authority = await createAuthority({ commonName: 'test CA', ...validity });
    const { cert, key } = await issueCertificate(authority, {
      commonName: 'test',
      usages: ['serverAuth'],
      dnsNames: ['localhost'],
      ipAddresses: [],
      ...validity,
    });
    ca = authority.cert;
    tls = { cert, key };
  });
  afterEach(() => {
    sockets.splice(0).forEach((socket) => socket.destroy());
    server.close();
  });

  async function start(headersMs?: number): Promise<void> {
    server = createGatewayServer(tls, (_request, response) => response.end('ok'), headersMs);
    port = await listen(server, 0, '127.0.0.1');
  }

  async function statusOf(): Promise<number | undefined> {
    const request = get({ host: '127.0.0.1', port, servername: 'localhost', ca, agent: false });
    const [response] = (await once(request, 'response')) as [{ statusCode?: number; resume(): void }];
    response.resume();
    return response.statusCode;
  }

  /** Connections that say this instead of a TLS handshake, and stay. */
  async function clients(count: number, says: string): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined);
      sockets.push(socket.resume());
      await once(socket, 'connect');
      socket.write(says);
    }
  }

  it('frees a connection that speaks no TLS, or nothing', async () => {
    await start(100);
    await clients(1, 'GET / HTTP/1.1\r\n\r\n');
    await clients(1, '');
    await open(0);
  });

  it('answers while there are more silent connections than it keeps', async () => {
    await start();
    await clients(CONNECTIONS, '');
    assert.equal(await statusOf(), 200);
  });

  /** Resolves when the server has so many connections. */
  async function open(count: number): Promise<void> {
    while ((await new Promise<number>((resolve) => server.getConnections((_, now) => resolve(now)))) !== count) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
});
