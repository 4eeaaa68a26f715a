import { MAX_HISTORY } from '../../resources/index.ts';
import { inertText } from '../../values/index.ts';

/** Length of a message, as upstream. Characters. */
const MAX_HISTORY_MESSAGE_LENGTH = 4096;
const TRUNCATED = '...[truncated]';

/** One message of a template. */
export interface HistoryEntry {
  /** RFC 3339 with microseconds: when the message was last new. */
  readonly lastTimestamp: string;
  readonly message: string;
  /** Name of the event, for policies. */
  readonly eventName?: string;
  /** How often the message was new while it alternated with another one; absent for once. */
  readonly count?: number;
  /** The first time of these; absent for once. */
  readonly firstTimestamp?: string;
}

/**
 * Adds a message, newest first. The message that is the newest already changes nothing, so that nothing has to be
 * written. Two messages that alternate keep two entries, with counts, so that they do not displace all others:
 * A, B, A, B becomes B twice, A twice.
 */
export function recordHistory(entries: readonly HistoryEntry[], next: HistoryEntry): readonly HistoryEntry[] {
  const message = inertText(truncated(next.message));
  const [newest, earlier, ...rest] = entries;
  if (newest?.message === message) {
    return entries;
  }
  if (newest === undefined || earlier?.message !== message) {
    return [{ ...next, message }, ...entries].slice(0, MAX_HISTORY);
  }
  const { count = 1, firstTimestamp = earlier.lastTimestamp } = earlier;
  return [{ ...next, message, count: count + 1, firstTimestamp }, newest, ...rest].slice(0, MAX_HISTORY);
}

function truncated(message: string): string {
  return message.length <= MAX_HISTORY_MESSAGE_LENGTH
    ? message
    : `${message.slice(0, MAX_HISTORY_MESSAGE_LENGTH - TRUNCATED.length).toWellFormed()}${TRUNCATED}`;
}
