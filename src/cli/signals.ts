/** The signals that stop a long-running command. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves at the first signal. A second one ends the process at once. */
export function stopSignal(signals: readonly NodeJS.Signals[] = STOP_SIGNALS): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isFirst = true;
  for (const signal of signals) {
    process.on(signal, () => {
      if (isFirst) {
        isFirst = false;
        // Under npm, one Ctrl-C arrives several times: from the terminal, and forwarded by npm and tools/run.mjs.
        setTimeout(() => process.on(signal, () => process.exit(130)), 500).unref();
        resolve(signal);
      }
    });
  }
  return promise;
}
