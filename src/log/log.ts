// The log of the process: one JSON object or one line of text per event, with a constant message and key-value pairs.
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { inspect } from 'node:util';
import { Writable } from 'node:stream';
import { escapedControls, parseJson, styled } from '../values/index.ts';

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
    lines(destination, options.format === 'text' ? (json) => textLine(json, options.color ?? false) : escapedControls),
  );
}

const LEVEL_COLORS: Readonly<Record<string, 'gray' | 'blue' | 'yellow' | 'red'>> = {
  debug: 'gray',
  info: 'blue',
  warn: 'yellow',
  error: 'red',
};

/** A stream that formats pino's JSON lines. */
function lines(destination: NodeJS.WritableStream, format: (json: string) => string): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      destination.write(format(chunk.toString('utf8')));
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
  const message = onOneLine(String(msg));
  const details = onOneLine(pairs.join(' '));
  const shade = LEVEL_COLORS[name] ?? 'gray';
  const stamp = String(time).slice(11, 23);
  return color
    ? `${styled('gray', stamp, { validateStream: false })} ${styled(shade, label, { validateStream: false })} ${message} ${styled('gray', details, { validateStream: false })}\n`
    : `${String(time)} ${label} ${message} ${details}\n`;
}

/** Texts may come from policies, and must neither control a terminal nor begin a line. */
function onOneLine(text: string): string {
  return escapedControls(text).replaceAll('\n', String.raw`\n`);
}

function quoted(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}
