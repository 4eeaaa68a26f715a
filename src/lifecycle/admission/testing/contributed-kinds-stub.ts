// A contributed kind whose warnings name other objects of the cluster.
import { POLICIES } from '../../../resources/index.ts';
import type { ContributedFindings, ContributedKinds } from '../contributed-kinds.ts';

export class ContributedKindsStub implements ContributedKinds {
  readonly name = 'stub';
  readonly kinds = [POLICIES];

  review(): ContributedFindings {
    return { errors: [], warnings: [{ code: 'not-found', field: 'spec', text: 'did you mean operator?' }] };
  }
}
