// Rollbacks by annotation: writes the spec of an earlier revision back to the policy, with its modules pinned.
import type { Cluster } from '../../cluster/index.ts';
import { pinnedSpec, previousRevision, secondRollbackNote } from '../../control/index.ts';
import {
  ANNOTATIONS,
  CONTROLLER_FIELD_MANAGER,
  type JsonValue,
  keyOf,
  LAST_APPLIED_ANNOTATION,
  type PolicyRevision,
  type ResourceType,
  ROLLBACK_FAILED,
} from '../../resources/index.ts';
import { errorKind, type EventSink } from '../../runtime/index.ts';
import { isDeepStrictEqual } from 'node:util';
import { returnedFields } from './field-owners.ts';
import { lastAppliedAfter } from './last-applied.ts';
import { type RevisedPolicy, revisionFacts } from './revision-store.ts';
import { parseRevisionNumber } from '../rollout-settings.ts';
import type { RevisionFacts } from '../rollout-view.ts';
import { asJson, errorText } from '../../values/index.ts';

/** Reason of the event for a rollback. */
const ROLLED_BACK = 'RolledBack';

/** Characters of an invalid annotation that a message quotes. */
const MAX_QUOTED = 40;

/** Selects the newest revision that served and differs from what is declared. */
export const PREVIOUS = 'previous';

/** Writes a JSON patch. Conflicts if the policy was written since `before`. @throws ApiError */
type Write<Policy> = (before: Policy, ...operations: readonly JsonValue[]) => Promise<Policy>;

const ANNOTATION_PATH = annotationPath(ANNOTATIONS.rollbackTo);
const REMOVAL = { op: 'remove', path: ANNOTATION_PATH };

/** Rolls a policy back as its annotation `rollback-to` says, and removes the annotation. @returns the policy in the cluster */
export async function rollBack<Policy extends RevisedPolicy>(
  cluster: Cluster,
  type: ResourceType<Policy>,
  policy: Policy,
  revisions: readonly PolicyRevision[],
  events: EventSink,
  signal: AbortSignal,
): Promise<Policy> {
  const write: Write<Policy> = async (before, ...operations) => {
    const guard = replacement('/metadata/resourceVersion', before.metadata.resourceVersion ?? '');
    const patch = { type: 'json', body: [guard, ...operations] } as const;
    return await cluster.patch(type, keyOf(policy), patch, { fieldManager: CONTROLLER_FIELD_MANAGER, signal });
  };
  const text = policy.metadata.annotations?.[ANNOTATIONS.rollbackTo] ?? '';
  const facts = revisions.map((revision) => revisionFacts<object>(revision));
  const target = targetOf(text, policy.spec, facts);
  if (target !== undefined) {
    const note =
      text === PREVIOUS
        ? secondRollbackNote(
            facts.map(({ number, rollbackOf }) => ({ revision: number, rollbackOf })),
            `${ANNOTATIONS.rollbackTo}=NUMBER`,
          )
        : undefined;
    return await restore(write, policy, target, note, events);
  }
  const patched = await write(policy, REMOVAL);
  const kept = facts.map(({ number }) => number).join(', ');
  const why = text === PREVIOUS ? 'no other revision has served' : `there is no revision ${quoted(text)}`;
  events.event(policy, 'Warning', ROLLBACK_FAILED, `${why}: revisions ${kept || 'none'} are kept`);
  return patched;
}

async function restore<Policy extends RevisedPolicy>(
  write: Write<Policy>,
  policy: Policy,
  { number, snapshot, modules }: RevisionFacts<object>,
  note: string | undefined,
  events: EventSink,
): Promise<Policy> {
  // Another attempt restores the same revision, because its number replaces `previous`. The response has what caches drop.
  const before = await write(policy, replacement(ANNOTATION_PATH, String(number)));
  const spec = pinnedSpec(snapshot, modules);
  if (isDeepStrictEqual(spec, policy.spec)) {
    const patched = await write(before, ...handover(before, before), REMOVAL);
    events.event(policy, 'Normal', ROLLED_BACK, `the spec is that of revision ${number} already`);
    return patched;
  }
  let restored: Policy;
  try {
    restored = await write(before, ...restoration(before, spec));
  } catch (error) {
    const kind = errorKind(error);
    // API servers and admission webhooks say either of a spec.
    if (kind !== 'refused' && kind !== 'forbidden') {
      throw error;
    }
    const patched = await write(before, REMOVAL);
    const message = `the spec of revision ${number} was not accepted: ${errorText(error)}`;
    events.event(policy, 'Warning', ROLLBACK_FAILED, message);
    return patched;
  }
  // An API server makes the writer of a field its owner, so this takes another request.
  const patched = await write(restored, ...handover(before, restored), REMOVAL);
  const message = [`the spec of revision ${number} was written back`, ...(note === undefined ? [] : [note])].join('; ');
  events.event(policy, 'Normal', ROLLED_BACK, message);
  return patched;
}

/** Returns the fields of the spec to their owners. */
function handover(before: RevisedPolicy, restored: RevisedPolicy): readonly JsonValue[] {
  const fields = returnedFields(before, restored);
  return fields.length === 0 ? [] : [replacement('/metadata/managedFields', fields.map(asJson))];
}

/** The changes that restore a spec. */
function restoration(policy: RevisedPolicy, spec: object): readonly JsonValue[] {
  const lastApplied = lastAppliedAfter(policy, spec);
  return [
    replacement('/spec', asJson(spec)),
    ...(lastApplied === undefined ? [] : [replacement(annotationPath(LAST_APPLIED_ANNOTATION), lastApplied)]),
  ];
}

function replacement(path: string, value: JsonValue): JsonValue {
  return { op: 'replace', path, value };
}

function annotationPath(annotation: string): string {
  return `/metadata/annotations/${annotation.replaceAll('/', '~1')}`;
}

function targetOf(
  text: string,
  spec: object,
  revisions: readonly RevisionFacts<object>[],
): RevisionFacts<object> | undefined {
  if (text === PREVIOUS) {
    return previousRevision(spec, revisions);
  }
  const number = parseRevisionNumber(text);
  return revisions.find((one) => one.number === number);
}

/** Quotes text that is no revision number. */
function quoted(text: string): string {
  return parseRevisionNumber(text) === undefined ? JSON.stringify(text.slice(0, MAX_QUOTED)) : text;
}
