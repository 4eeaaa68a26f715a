import { pino } from 'pino';
import type { Logger } from 'pino';
import type { LogMessage } from './evaluation-protocol.ts';

/** A log whose entries the main thread writes: it owns the log, and decides what is written. */
export function forwardingLog(forward: (entry: LogMessage) => void): Logger {
  return pino(
    { level: 'debug', base: null, timestamp: false, formatters: { level: (label) => ({ level: label }) } },
    {
      write(line) {
        const { level, msg, ...fields } = JSON.parse(line) as { level: LogMessage['level']; msg: string };
        forward({ level, message: msg, fields });
      },
    },
  );
}
