import type { Review } from '../review/admission-review.ts';
import type { Exception } from './exception.ts';

/** What is excepted from a policy. */
export interface Excepted {
  /** The exception from the whole policy, if there is one. */
  readonly whole?: Exception;
  /** Exceptions from members of a group, by member. */
  readonly members: ReadonlyMap<string, Exception>;
}

/** Exceptions with conditions that are asked about one request: each may cost as much as the match conditions of a policy. */
const MAX_CONDITIONAL = 10;

/**
 * The only function that decides whether an exception applies.
 * @param candidates exceptions from the policy that have not ended
 * @param reviews of the same request: that of a workload, and that of the pod of its template
 * @param asksConditions false: there is no time left, and exceptions with conditions do not apply
 */
export function matchingExceptions(
  policy: string,
  candidates: readonly Exception[],
  reviews: readonly Review[],
  asksConditions: boolean,
): Excepted {
  const members = new Map<string, Exception>();
  let asked = 0;
  for (const exception of candidates) {
    const selected = reviews.filter((review) => exception.selects(review));
    if (selected.length > 0 && exception.hasConditions) {
      asked += 1;
    }
    const mayAsk = asksConditions && asked <= MAX_CONDITIONAL;
    if (selected.some((review) => !exception.hasConditions || (mayAsk && exception.meetsConditions(review)))) {
      const only = exception.membersOf(policy);
      if (only === undefined) {
        return { whole: exception, members: new Map() };
      }
      only.forEach((member) => members.set(member, members.get(member) ?? exception));
    }
  }
  return { members };
}
