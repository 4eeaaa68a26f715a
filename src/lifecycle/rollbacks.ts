// Going back, as people ask for it with an annotation: the spec of an earlier revision is written back, its modules pinned.
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

/** The event when a spec was written back. */
export const ROLLED_BACK = 'RolledBack';

/** Of an annotation that says something else, what is quoted. Characters. */
const MAX_SHOWN = 40;
/** How an API server says that it, or an admission webhook of somebody, will not have a spec. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

/** Asks for the newest revision that served and is not what the spec says. */
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
  const target = targetOf(text, policy.spec, facts);
  const removal = { op: 'remove', path: `/metadata/annotations/${ANNOTATIONS.rollbackTo.replaceAll('/', '~1')}` };
  // Of what was looked at: anything newer is a conflict.
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
    const why = text === PREVIOUS ? 'no other revision has served' : `there is no revision ${shown(text)}`;
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

/** A number as it is; whatever else somebody wrote so that it is seen. */
function shown(text: string): string {
  return parseRevisionNumber(text) === undefined ? JSON.stringify(text.slice(0, MAX_SHOWN)) : text;
}
