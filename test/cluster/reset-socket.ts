import type { Socket } from 'node:net';

/**
 * Resets a connection, as a network fault does. A connection that is shutting down is only closed, because Node.js cannot reset it
 * then: libuv returns EINVAL, the socket is never closed, and the process loops for ever at its exit.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) {
    socket.destroy();
  } else {
    socket.resetAndDestroy();
  }
}
