import { monitoredLogEntry } from '../../engine/definition/index.ts';
import type { MonitoredVerdict } from '../../engine/index.ts';
import type { Logger } from '../../log/index.ts';

/** Lines of one policy in a window: all lines of a trial by hand; under load, enough to see what it would reject. */
export const MAX_MONITORED_LINES = 20;
const WINDOW_MS = 1_000;

interface Window {
  /** Milliseconds. */
  readonly end: number;
  lines: number;
  /** Number of lines left out since the last one, in this window and before. */
  suppressed: number;
}

/** Logs what policies in monitor mode would have rejected or changed, at a limited rate for each policy. */
export class MonitoredLog {
  readonly #log: Logger;
  readonly #windows = new Map<string, Window>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param now milliseconds of any monotonic clock */
  write(verdict: MonitoredVerdict, now: number = performance.now()): void {
    let window = this.#windows.get(verdict.policy);
    if (window === undefined || now >= window.end) {
      window = { end: now + WINDOW_MS, lines: 0, suppressed: window?.suppressed ?? 0 };
      this.#windows.set(verdict.policy, window);
    }
    if (window.lines >= MAX_MONITORED_LINES) {
      window.suppressed += 1;
      return;
    }
    const { policy, level, message, fields } = monitoredLogEntry(verdict);
    const suppressed = window.suppressed === 0 ? {} : { suppressed: window.suppressed };
    window.lines += 1;
    window.suppressed = 0;
    this.#log[level]({ policy, ...fields, ...suppressed }, message);
  }

  /** Forgets a removed policy. */
  forget(policy: string): void {
    this.#windows.delete(policy);
  }
}
