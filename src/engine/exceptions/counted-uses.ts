import type { Review } from '../review/admission-review.ts';
import type { Judgement } from '../verdict/observation.ts';

/** The exceptions that a request uses, by `metadata.uid`. Dry runs do not count: tools repeat them all the time. */
export function countedUses(review: Review, { used = [] }: Judgement): readonly string[] {
  return used.length > 0 && review.requester()?.isDryRun !== true ? used : [];
}
