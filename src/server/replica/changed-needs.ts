// What evaluation looks up for the versions of policies that are wanted.
import { type ChangedNeeds, objectNeeds, type PolicyUids } from '../../evaluation/object-feeds/index.ts';
import type { WantedChanges, WantedPolicy } from '../policies/wanted-policy.ts';

/** The needs of all revisions of policies that serve, may serve soon, or wait for other parameters. */
export function changedNeeds(changes: WantedChanges): ChangedNeeds {
  return new Map([...changes].map(([id, wanted]) => [id, wanted && needsOf(wanted)]));
}

/** The policies that exceptions may be for. */
export function changedUids(changes: WantedChanges): PolicyUids {
  return new Map([...changes].map(([id, wanted]) => [id, wanted?.policyUid]));
}

function needsOf({ serving, staged, failed, waiting }: WantedPolicy): ReturnType<typeof objectNeeds> {
  const revisions = [serving, ...staged, waiting].map((one) => one?.snapshot);
  return objectNeeds(
    revisions,
    [serving, ...staged, failed].map((one) => one?.match),
  );
}
