/** Consecutive ports that are tried. */
const PORTS_TRIED = 20;

/**
 * Starts a server on the first free port, and prints each port that is in use.
 * @param start rejects with an error whose `code` is `port-busy` when the port is in use
 */
export async function onFreePort<T>(first: number, start: (port: number) => Promise<T>): Promise<T> {
  for (let port = first; ; port += 1) {
    try {
      return await start(port);
    } catch (error) {
      const isBusy = error instanceof Error && 'code' in error && error.code === 'port-busy';
      if (!isBusy || port + 1 === first + PORTS_TRIED) {
        throw error;
      }
      process.stdout.write(`Port ${port} is in use, trying the next one…\n`);
    }
  }
}
