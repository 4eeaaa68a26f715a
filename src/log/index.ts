export { forwardingLog } from './forwarding-log.ts';
export type { LogEntry } from './log-entry.ts';
export { LOG_LEVELS, createLog } from './log.ts';
export type { LogFormat, LogLevel, Logger } from './log.ts';
