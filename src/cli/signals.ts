// Stopping on signals, once and cleanly.

/** Resolves at the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isFirst = true;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
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
