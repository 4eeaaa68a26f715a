import type { Socket } from 'node:net';

/**
 * Ends a connection as a broken one ends, by a reset. One that is being ended already is only closed: Node cannot reset it while
 * its shutdown is under way (libuv answers EINVAL), never closes it then, and the process spins for ever when it is to exit.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) {
    socket.destroy();
  } else {
    socket.resetAndDestroy();
  }
}
