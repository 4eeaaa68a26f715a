// Going back, as people ask for it with an annotation: the spec of an earlier revision is written back, its modules pinned.
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type JsonValue,
  keyOf,
  type PolicyRevision,
  type ResourceType,
} from '../resources/index.ts';
import type { EventSink } from '../runtime/index.ts';
import { isDeepStrictEqual } from 'node:util';
import { FIELD_MANAGER } from './policy-kinds.ts';
import { revisionFacts } from './revision-store.ts';
import { pinnedSpec } from './rollout/pinned-spec.ts';
import { parseRevisionNumber } from './rollout-settings.ts';
import type { RevisionFacts } from './rollout/rollout-view.ts';

/** The event when a spec was written back. */
export const ROLLED_BACK = 'RolledBack';
/** The event when it could not be; the annotation is removed, the policy is as it was. */
export const ROLLBACK_FAILED = 'RollbackFailed';

/** Ask for the newest revision before the last that served. */
const PREVIOUS = 'previous';

/** Does what the annotation `rollback-to` of a policy says, and removes it. Resolves with what is in the cluster then. */
export async function rollBack(
  cluster: Cluster,
  type: ResourceType<AdmissionPolicyObject>,
  policy: AdmissionPolicyObject,
  revisions: readonly PolicyRevision[],
  events: EventSink,
  signal: AbortSignal,
): Promise<AdmissionPolicyObject> {
  const text = policy.metadata.annotations?.[ANNOTATIONS.rollbackTo] ?? '';
  const facts = revisions.map((revision) => revisionFacts(revision));
  const target = targetOf(text, facts);
  const removal = { op: 'remove', path: `/metadata/annotations/${ANNOTATIONS.rollbackTo.replaceAll('/', '~1')}` };
  const guard = { op: 'test', path: '/metadata/resourceVersion', value: policy.metadata.resourceVersion ?? '' };
  const patch = async (...operations: readonly JsonValue[]): Promise<AdmissionPolicyObject> =>
    await cluster.patch(
      type,
      keyOf(policy),
      { type: 'json', body: [guard, ...operations, removal] },
      { fieldManager: FIELD_MANAGER, signal },
    );
  if (target === undefined) {
    const kept = facts.map(({ number }) => number).join(', ');
    const patched = await patch();
    const why = text === PREVIOUS ? 'no earlier revision has served' : `there is no revision ${text}`;
    events.event(policy, 'Warning', ROLLBACK_FAILED, `${why}: revisions ${kept || 'none'} are kept`);
    return patched;
  }
  const spec = pinnedSpec(target.snapshot, target.modules);
  if (isDeepStrictEqual(spec, policy.spec)) {
    const patched = await patch();
    events.event(policy, 'Normal', ROLLED_BACK, `the spec is that of revision ${target.number} already`);
    return patched;
  }
  try {
    const patched = await patch({ op: 'replace', path: '/spec', value: spec as unknown as JsonValue });
    events.event(policy, 'Normal', ROLLED_BACK, `the spec of revision ${target.number} was written back`);
    return patched;
  } catch (error) {
    if (!(error instanceof ApiError) || ![400, 422].includes(error.code) || error.message.includes('test operation')) {
      throw error;
    }
    const patched = await patch();
    const message = `the spec of revision ${target.number} was not accepted: ${error.message}`;
    events.event(policy, 'Warning', ROLLBACK_FAILED, message);
    return patched;
  }
}

function targetOf(text: string, revisions: readonly RevisionFacts[]): RevisionFacts | undefined {
  const newest = revisions.at(-1);
  if (text === PREVIOUS) {
    return revisions.findLast(
      (one) => one !== newest && one.order > 0 && !isDeepStrictEqual(one.snapshot, newest?.snapshot),
    );
  }
  const number = parseRevisionNumber(text);
  return revisions.find((one) => one.number === number);
}
