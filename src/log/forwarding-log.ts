import { pino } from 'pino';
import type { Logger } from 'pino';
import type { LogEntry } from './log-entry.ts';
import { parseJson } from '../values/index.ts';

/** A log for other threads, whose entries the main thread writes. */
export function forwardingLog(forward: (entry: LogEntry) => void): Logger {
  return pino(
    { level: 'debug', base: null, timestamp: false, formatters: { level: (label) => ({ level: label }) } },
    {
      write(line) {
        const { level, msg, ...fields } = parseJson(line) as { level: LogEntry['level']; msg: string };
        forward({ level, message: msg, fields });
      },
    },
  );
}
