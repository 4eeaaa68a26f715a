const SECOND_MS = 1000;

/**
 * Age in kubectl's format: `45s`, `3m20s`, `5h`, `12d`; `<unknown>` without a timestamp, `<invalid>` for a future one.
 * @param timestamp RFC 3339
 * @param now milliseconds since 1970
 */
export function ageOf(timestamp: string | null | undefined, now: number): string {
  const then = timestamp === undefined || timestamp === null ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(then) ? '<unknown>' : humanDuration(now - then);
}

/** A duration in milliseconds in kubectl's format: at most two units, the second one only for small counts. */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / SECOND_MS);
  // Clocks differ a little: one second ahead counts as now.
  if (seconds < -1) {
    return '<invalid>';
  }
  const minutes = Math.trunc(seconds / 60);
  const hours = Math.trunc(seconds / 3600);
  const days = Math.trunc(hours / 24);
  const years = Math.trunc(days / 365);
  if (seconds < 0) {
    return '0s';
  } else if (seconds < 120) {
    return `${seconds}s`;
  } else if (minutes < 10) {
    return `${minutes}m${rest(seconds % 60, 's')}`;
  } else if (minutes < 180) {
    return `${minutes}m`;
  } else if (hours < 8) {
    return `${hours}h${rest(minutes % 60, 'm')}`;
  } else if (hours < 48) {
    return `${hours}h`;
  } else if (days < 8) {
    return `${days}d${rest(hours % 24, 'h')}`;
  } else if (days < 365 * 2) {
    return `${days}d`;
  } else if (years < 8) {
    return `${years}y${rest(days % 365, 'd')}`;
  }
  return `${years}y`;
}

function rest(count: number, unit: string): string {
  return count === 0 ? '' : `${count}${unit}`;
}
