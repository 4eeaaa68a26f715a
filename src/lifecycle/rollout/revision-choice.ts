import type { RevisionFacts, RolloutView } from './rollout-view.ts';

/** The revision that is to serve: the pinned one, else the newest. Undefined: the policy is pinned to one that is not kept. */
export function desiredRevision({ pin, revisions }: RolloutView): RevisionFacts | undefined {
  return pin === undefined ? revisions.at(-1) : revisions.find(({ number }) => number === pin);
}

/** The revision that serves: of those that read so, the one that began last. */
export function servingRevision({ revisions }: Pick<RolloutView, 'revisions'>): RevisionFacts | undefined {
  return revisions
    .filter(({ state }) => state === 'Serving')
    .reduce<RevisionFacts | undefined>(
      (last, one) => (last === undefined || one.order > last.order ? one : last),
      undefined,
    );
}

/** Whether a revision could not get further, for now or for good; a hold is no failure. */
export function hasFailed({ state, reason }: RevisionFacts, heldReason: string): boolean {
  return state === 'Failed' || (state === 'Candidate' && reason !== '' && reason !== heldReason);
}
