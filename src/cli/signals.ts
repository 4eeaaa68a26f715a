import { isSupervised, whenOrphaned } from './supervised.ts';

/** The signals that stop a long-running command. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A terminal sends these to a supervisor and its processes; the supervisor decides. */
const TERMINAL_SIGNALS = ['SIGINT', 'SIGHUP'] as const;

/** Why a long-running command stops: a signal, or the end of its supervisor. */
export type StopReason = NodeJS.Signals | 'orphaned';

/** Resolves at the first signal. A second one ends the process at once. Under a supervisor only SIGTERM counts, and its end. */
export function stopSignal(signals: readonly NodeJS.Signals[] = STOP_SIGNALS): Promise<StopReason> {
  const { promise, resolve } = Promise.withResolvers<StopReason>();
  if (isSupervised()) {
    TERMINAL_SIGNALS.forEach((signal) => process.on(signal, () => undefined));
    process.on('SIGTERM', () => resolve('SIGTERM'));
    whenOrphaned(() => resolve('orphaned'));
    return promise;
  }
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
