// How far an audit is, for a terminal.
import type { AuditProgress } from '../../audit/index.ts';
import { groupResourceOf } from '../../resources/index.ts';
import { countText } from '../output.ts';

const MS_PER_SECOND = 1_000;
/** Rates of the first moments say little. Milliseconds. */
const MIN_RATED_MS = 500;

/** Says how many objects of a kind were judged, how fast, and how long the rest takes. */
export class ProgressText {
  readonly #now: () => number;
  #startedAt = 0;

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  of({ listing, judged, remaining }: AuditProgress): string {
    const kind = groupResourceOf(listing.type);
    if (judged === 0) {
      this.#startedAt = this.#now();
      return `auditing ${kind}`;
    }
    const elapsedMs = this.#now() - this.#startedAt;
    const rate = (judged / Math.max(elapsedMs, 1)) * MS_PER_SECOND;
    const total = remaining === undefined ? '' : ` of ${countText(judged + remaining)}`;
    const left = remaining === undefined ? '' : `, ${countText(Math.ceil(remaining / rate))} s left`;
    const speed = elapsedMs < MIN_RATED_MS ? '' : ` (${countText(rate)}/s${left})`;
    return `auditing ${kind}: ${countText(judged)}${total}${speed}`;
  }
}
