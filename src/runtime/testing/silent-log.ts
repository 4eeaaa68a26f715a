import { pino } from 'pino';
import type { Logger } from 'pino';

/** A log without output. */
export function silentLog(): Logger {
  return pino({ level: 'silent' });
}

/** A log that collects its lines. */
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
