import { terminalOutput } from '../values/index.ts';

/**
 * Lets nothing that controls a terminal out of this process but what it has written itself: names, messages, files and answers of
 * servers come from others, and every command prints some.
 */
export function guardOutput(streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams) {
    const write = stream.write.bind(stream) as (chunk: unknown, ...rest: readonly unknown[]) => boolean;
    stream.write = (chunk: Uint8Array | string, ...rest: readonly unknown[]): boolean =>
      write(terminalOutput(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')), ...rest);
  }
}
