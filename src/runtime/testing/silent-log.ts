import { pino } from 'pino';
import type { Logger } from 'pino';

/** A log that nobody reads. */
export function silentLog(): Logger {
  return pino({ level: 'silent' });
}

/** A log whose lines a test reads. */
export function keptLog(): {
  readonly log: Logger;
  readonly lines: { level: number; msg: string; [field: string]: unknown }[];
} {
  const lines: { level: number; msg: string; [field: string]: unknown }[] = [];
  const log = pino(
    { level: 'debug', base: null, timestamp: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  return { log, lines };
}
