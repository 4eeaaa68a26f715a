import { createLog, type Logger } from '../../log/index.ts';

/** A log of warnings and errors in text form. */
export function startLog(): Logger {
  return createLog({ level: 'warn', format: 'text', color: process.stdout.isTTY });
}
