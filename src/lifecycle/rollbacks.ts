// Rollbacks by annotation: writes the spec of an earlier revision back to the policy, with its modules pinned.
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  ANNOTATIONS,
  type JsonValue,
  keyOf,
  type PolicyRevision,
  type ResourceType,
  ROLLBACK_FAILED,
} from '../resources/index.ts';
import type { EventSink } from '../runtime/index.ts';
import { isDeepStrictEqual } from 'node:util';
import { FIELD_MANAGER } from './field-manager.ts';
import { revisionFacts } from './revision-store.ts';
import { pinnedSpec } from './rollout/pinned-spec.ts';
import { parseRevisionNumber } from './rollout-settings.ts';
import type { RevisionFacts } from './rollout/rollout-view.ts';

/** Reason of the event for a rollback. */
export const ROLLED_BACK = 'RolledBack';

/** Characters of an invalid annotation that a message quotes. */
const MAX_QUOTED = 40;
/** HTTP status codes of a spec that API servers or admission webhooks reject. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

/** Selects the newest revision that served and differs from the spec. */
const PREVIOUS = 'previous';

/** Rolls a policy back as its annotation `rollback-to` says, and removes the annotation. @returns the policy in the cluster */
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
  const target = targetOf(text, policy.spec, facts);
  const removal = { op: 'remove', path: `/metadata/annotations/${ANNOTATIONS.rollbackTo.replaceAll('/', '~1')}` };
  // Conflicts if the policy was written since.
  const guard = { op: 'replace', path: '/metadata/resourceVersion', value: policy.metadata.resourceVersion ?? '' };
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
    const why = text === PREVIOUS ? 'no other revision has served' : `there is no revision ${quoted(text)}`;
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
    if (!(error instanceof ApiError) || !REFUSALS.has(error.code)) {
      throw error;
    }
    const patched = await patch();
    const message = `the spec of revision ${target.number} was not accepted: ${error.message}`;
    events.event(policy, 'Warning', ROLLBACK_FAILED, message);
    return patched;
  }
}

function targetOf(
  text: string,
  spec: AdmissionPolicySpec,
  revisions: readonly RevisionFacts[],
): RevisionFacts | undefined {
  if (text === PREVIOUS) {
    return revisions.findLast(
      ({ order, snapshot, modules }) =>
        order > 0 && !isDeepStrictEqual(snapshot, spec) && !isDeepStrictEqual(pinnedSpec(snapshot, modules), spec),
    );
  }
  const number = parseRevisionNumber(text);
  return revisions.find((one) => one.number === number);
}

/** Quotes text that is no revision number. */
function quoted(text: string): string {
  return parseRevisionNumber(text) === undefined ? JSON.stringify(text.slice(0, MAX_QUOTED)) : text;
}
