import { isJsonObject } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { PolicyLogEntry } from './host-port.ts';

/** Maximum length of a logged message or field, in characters. */
const MAX_LOG_TEXT = 4_096;
/** Maximum number of fields of a line; the SDKs send five at most. */
const MAX_LOG_FIELDS = 32;

const LEVELS: Readonly<Record<string, PolicyLogEntry['level']>> = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
};

/**
 * The payload of `tracing/log` (`{level, message, …}`) as a log entry; a payload of another shape is logged unchanged.
 */
export function logEntry(policy: string, payload: JsonValue): PolicyLogEntry {
  if (!isJsonObject(payload)) {
    return { policy, level: 'info', message: shorten(JSON.stringify(payload)), fields: {} };
  }
  const { level, message, ...rest } = payload;
  const name = typeof level === 'string' ? level.toLowerCase() : '';
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(rest).slice(0, MAX_LOG_FIELDS)) {
    const value = rest[key];
    // Strings are logged as they are, other values as JSON text.
    const shown = typeof value === 'string' ? shorten(value) : shorten(JSON.stringify(value));
    Object.defineProperty(fields, shorten(key), { value: shown, enumerable: true, configurable: true, writable: true });
  }
  return {
    policy,
    level: (Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined) ?? 'info',
    message: shorten(typeof message === 'string' ? message : JSON.stringify(message ?? '')),
    fields,
  };
}

export function shorten(text: string): string {
  return text.length > MAX_LOG_TEXT ? `${text.slice(0, MAX_LOG_TEXT)}…` : text;
}
