import type { PolicyHistoryEntry } from '../../resources/index.ts';
import { type HistoryEntry, recordHistory } from './compliance-history.ts';

/**
 * Adds a message to the history in a status.
 * @param now milliseconds since 1970
 */
export function withMessage(
  history: readonly PolicyHistoryEntry[] | undefined,
  message: string,
  now: number,
): readonly HistoryEntry[] {
  const entries = (history ?? []).map((entry) => ({
    ...entry,
    lastTimestamp: entry.lastTimestamp ?? '',
    message: entry.message ?? '',
  }));
  return recordHistory(entries, { lastTimestamp: microTime(now), message });
}

/** RFC 3339 with microseconds, as Open Cluster Management writes it. */
function microTime(now: number): string {
  return `${new Date(now).toISOString().slice(0, -1)}000Z`;
}
