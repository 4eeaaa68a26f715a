// Listening on an address, and formatting addresses.
import type { AddressInfo, Server } from 'node:net';
import { HttpsError } from './errors.ts';

/**
 * Listens on a port; 0 for a free one. Resolves with the port.
 * @throws HttpsError 'port-busy'
 */
export function listen(server: Server, port: number, host: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const fail = (error: NodeJS.ErrnoException): void => {
    const { code } = error;
    const why = code === 'EACCES' ? 'not permitted' : 'the port is in use';
    reject(
      code === 'EADDRINUSE' || code === 'EACCES'
        ? new HttpsError('port-busy', `cannot listen on ${host}:${port}: ${why}`, { cause: error })
        : error,
    );
  };
  server.once('error', fail);
  server.listen(port, host, () => {
    server.off('error', fail);
    resolve((server.address() as AddressInfo).port);
  });
  return promise;
}

/** A host in front of a port: IPv6 addresses in brackets. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
