import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { it } from 'node:test';
import { resetSocket } from './reset-socket.ts';

it('a connection that is being ended is closed, and no handle of it stays', async () => {
  const closed: Promise<unknown>[] = [];
  const failed: Error[] = [];
  const server = createServer((socket: Socket) => {
    closed.push(once(socket, 'close'));
    socket.on('error', (error) => failed.push(error));
    socket.end();
    process.nextTick(() => resetSocket(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  await once(client.resume(), 'close');
  await Promise.all(closed);
  assert.deepEqual(failed, []);
  server.close();
  await once(server, 'close');
});
