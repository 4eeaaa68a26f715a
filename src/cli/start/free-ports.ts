import type { Server } from 'node:http';
import { createPort, listen } from '../../https/index.ts';

/** Consecutive ports that are tried. */
const PORTS_TRIED = 20;

/** The host that is tried. */
const HOST = '127.0.0.1';

/**
 * The first free ports from these on, all different, for processes that are still to start. Prints each port that is in use.
 * @throws HttpsError 'port-busy'
 */
export async function freePorts(first: readonly number[]): Promise<readonly number[]> {
  const servers: Server[] = [];
  try {
    const ports: number[] = [];
    for (const port of first) {
      ports.push(
        await onFreePorts([port], async ([free = port]) => {
          const server = createPort('operations', { handler: (request) => request.socket.destroy() });
          servers.push(server);
          return await listen(server, free, HOST);
        }),
      );
    }
    return ports;
  } finally {
    await Promise.all(servers.filter(({ listening }) => listening).map((server) => server[Symbol.asyncDispose]()));
  }
}

/**
 * Starts a server on the first free ports, and prints each port that is in use.
 * @param start rejects with an error whose `code` is `port-busy` when a port is in use
 */
export async function onFreePorts<T>(
  first: readonly number[],
  start: (ports: readonly number[]) => Promise<T>,
): Promise<T> {
  const ports = [...first];
  for (;;) {
    try {
      return await start(ports);
    } catch (error) {
      const index = busyIndex(error, ports);
      const port = ports[index];
      if (port === undefined || port + 1 === (first[index] ?? 0) + PORTS_TRIED) {
        throw error;
      }
      ports[index] = port + 1;
      process.stdout.write(`Port ${port} is in use, trying the next one…\n`);
    }
  }
}

/** The index of the port that is in use; -1 for other errors. */
function busyIndex(error: unknown, ports: readonly number[]): number {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'port-busy') {
    return -1;
  }
  const { cause } = error;
  return cause instanceof Error && 'port' in cause ? ports.findIndex((port) => port === cause.port) : 0;
}
