// Offers recorded requests to the user that the server runs as, on the same machine or in the same container: to nobody by the network.
import { lstat, mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';

/** Rights of others to the folder: none. */
const OTHERS = 0o077;

/**
 * Gives whoever connects to a socket what `list` returns.
 * @throws Error when the folder of the socket is open to other users
 */
export async function offerRequests(path: string, list: () => Buffer): Promise<AsyncDisposable> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = await lstat(folder);
  if (uid !== process.getuid?.() || (mode & OTHERS) !== 0) {
    throw new Error(`${folder} is open to other users: expected a folder of this user with mode 700`);
  }
  await rm(path, { force: true });
  const server = createServer((socket) => socket.on('error', () => socket.destroy()).end(list()));
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject).listen(path, listening.resolve);
  await listening.promise;
  return {
    [Symbol.asyncDispose]: async () => {
      server.close();
      await rm(path, { force: true });
    },
  };
}
