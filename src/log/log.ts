// The log of the process: one JSON object or one line of text per event, with a constant message and key-value pairs.
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { inspect, styleText } from 'node:util';
import { Writable } from 'node:stream';
import { parseJson } from '../values/index.ts';

export type { Logger } from 'pino';

/** Format of log lines. */
export type LogFormat = 'text' | 'json';

/** Levels in increasing importance; `silent` writes nothing. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Options of {@link createLog}. */
export interface LogOptions {
  /** Minimum level. Default: info. */
  readonly level?: LogLevel;
  /** Default: json. */
  readonly format?: LogFormat;
  /** Colours in text lines. Default: false. */
  readonly color?: boolean;
  /** Default: stdout. */
  readonly destination?: NodeJS.WritableStream;
}

/** Creates the log of a process. */
export function createLog(options: LogOptions = {}): Logger {
  const destination = options.destination ?? process.stdout;
  return pino(
    {
      level: options.level ?? 'info',
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    options.format === 'text' ? textLines(destination, options.color ?? false) : (destination as Writable),
  );
}

const LEVEL_COLORS: Readonly<Record<string, 'gray' | 'blue' | 'yellow' | 'red'>> = {
  debug: 'gray',
  info: 'blue',
  warn: 'yellow',
  error: 'red',
};

/** A stream that formats pino's JSON lines as text. */
function textLines(destination: NodeJS.WritableStream, color: boolean): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      destination.write(textLine(chunk.toString('utf8'), color));
      done();
    },
  });
}

function textLine(json: string, color: boolean): string {
  const { level, time, msg, ...fields } = parseJson(json) as Record<string, unknown>;
  const name = String(level);
  const label = name.toUpperCase().padEnd(5);
  const pairs = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? quoted(value) : inspect(value, { breakLength: Infinity })}`,
  );
  const shade = LEVEL_COLORS[name] ?? 'gray';
  const stamp = String(time).slice(11, 23);
  return color
    ? `${styleText('gray', stamp, { validateStream: false })} ${styleText(shade, label, { validateStream: false })} ${String(msg)} ${styleText('gray', pairs.join(' '), { validateStream: false })}\n`
    : `${String(time)} ${label} ${String(msg)} ${pairs.join(' ')}\n`;
}

function quoted(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}
