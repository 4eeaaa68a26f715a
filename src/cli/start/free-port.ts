/** Consecutive ports that are tried. */
const PORTS_TRIED = 20;

/**
 * Starts a server on the first free port, and prints each port that is in use.
 * @param start rejects with an error whose `code` is `port-busy` when the port is in use
 */
export async function onFreePort<T>(first: number, start: (port: number) => Promise<T>): Promise<T> {
  return await onFreePorts([first], ([port = first]) => start(port));
}

/** As {@link onFreePort}, for a server with several ports: only the port that is in use changes. */
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
