// Stopping on signals, once and cleanly.

/** What ends a command that runs until it is told to stop, unless it has another use for one of them. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves at the first of the signals. A second one ends the process at once. */
export function stopSignal(signals: readonly NodeJS.Signals[] = STOP_SIGNALS): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isFirst = true;
  for (const signal of signals) {
    process.on(signal, () => {
      if (isFirst) {
        isFirst = false;
        // npm and its script both hand on a terminal's Ctrl-C: what arrives with the first signal is the same one.
        setTimeout(() => process.on(signal, () => process.exit(130)), 500).unref();
        resolve(signal);
      }
    });
  }
  return promise;
}
