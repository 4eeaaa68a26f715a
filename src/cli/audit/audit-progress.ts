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
  #listing: AuditProgress['listing'] | undefined;
  #startedAt = 0;

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startedAt = now();
  }

  of({ listing, judged, remaining }: AuditProgress): string {
    if (listing !== this.#listing) {
      this.#startedAt = this.#listing === undefined ? this.#startedAt : this.#now();
      this.#listing = listing;
    }
    const elapsedMs = this.#now() - this.#startedAt;
    const total = remaining === undefined ? '' : ` of ${countText(judged + remaining)}`;
    const rate = (judged / Math.max(elapsedMs, 1)) * MS_PER_SECOND;
    const left = remaining === undefined || rate === 0 ? '' : `, ${countText(Math.ceil(remaining / rate))} s left`;
    const speed = elapsedMs < MIN_RATED_MS ? '' : ` (${countText(rate)}/s${left})`;
    return `auditing ${groupResourceOf(listing.type)}: ${countText(judged)}${total}${speed}`;
  }
}
