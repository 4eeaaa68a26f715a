// The loop of `portcullis test --watch`.
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText, ownSequence, styled } from '../../../values/index.ts';
import { CliError } from '../../errors.ts';
import { stopSignal } from '../../signals.ts';

/** Polling interval. Milliseconds. */
const WATCH_MS = 300;
/** Polling takes at most this share of the time, however many files there are. */
const WATCH_SHARE = 0.05;
/** Clears the screen and the scrollback of a terminal, and moves to the first line. */
const CLEAR = ['\u001B[2J', '\u001B[3J', '\u001B[H'].map(ownSequence).join('');

/**
 * Runs rounds until Ctrl-C, and prints what they report.
 * @param round the text to print; empty when nothing has changed. Errors are printed, too
 */
export async function watchChanges(round: () => Promise<string>): Promise<void> {
  const ended = new AbortController();
  void stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP']).then(() => ended.abort());
  let shown = '';
  while (!ended.signal.aborted) {
    const start = performance.now();
    const text = await reportOf(round);
    if (text !== shown && text !== '') {
      shown = text;
      process.stdout.write(process.stdout.isTTY ? `${CLEAR}${text}` : text);
    }
    // The next change may come soon after a run, however long it took.
    const polling = text === '' ? performance.now() - start : 0;
    await sleep(Math.max(WATCH_MS, polling / WATCH_SHARE), undefined, { signal: ended.signal }).catch(() => undefined);
  }
}

async function reportOf(round: () => Promise<string>): Promise<string> {
  try {
    const report = await round();
    const hint = styled('gray', 'Watching for changes; Ctrl-C stops.', { stream: process.stdout });
    return report === '' ? '' : `${report}\n${hint}\n`;
  } catch (error) {
    return `${problemText(error)}\n`;
  }
}

/** The message of an error, with its hint. */
export function problemText(error: unknown): string {
  const hint = error instanceof CliError && error.hint !== undefined ? `\n${error.hint}` : '';
  return `${errorText(error)}${hint}`;
}
