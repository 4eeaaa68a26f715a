// Revisions that a change of annotations restores. An earlier revision may match more than the spec does now, so who restores it
// needs the rights of its author.
import { isDeepStrictEqual } from 'node:util';
import { ANNOTATIONS, isJsonObject, type JsonObject, type PolicyRevision, snapshotOf } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import { parseRevisionNumber, PREVIOUS } from '../../rollout/index.ts';
import { type AuthorRightsNeeded, neededRights } from './needed-rights.ts';

type Annotations = Readonly<Record<string, string>>;

/** An annotation that makes the controller serve a revision of its choice. */
export interface RestoredRevision {
  readonly annotation: string;
  /** A number or `previous`; empty for a pin that ends, after which the declared spec serves. */
  readonly value: string;
}

/** The revisions that a change of a policy's annotations restores. */
export function restoredRevisions(annotations: Annotations, before: Annotations): readonly RestoredRevision[] {
  return [ANNOTATIONS.rollbackTo, ANNOTATIONS.pin].flatMap((annotation) => {
    const value = annotations[annotation] ?? '';
    const isChanged = value !== (before[annotation] ?? '');
    return isChanged && (value !== '' || annotation === ANNOTATIONS.pin) ? [{ annotation, value }] : [];
  });
}

/**
 * The rights needed for what an annotation restores. `previous` means any revision that served: which one, is decided later, by
 * what is declared then. The declared spec counts where no such revision exists.
 */
export function rightsToRestore(
  { annotation, value }: RestoredRevision,
  revisions: readonly PolicyRevision[],
  declared: JsonObject,
): readonly AuthorRightsNeeded[] {
  const number = parseRevisionNumber(value);
  const restored = revisions.filter(({ spec, status }) =>
    value === PREVIOUS ? (status?.order ?? 0) > 0 : spec.revision === number,
  );
  const specs = restored.map((one) => ({ spec: asJson(snapshotOf(one)), name: `revision ${one.spec.revision}` }));
  const all: AuthorRightsNeeded[] = [];
  for (const { spec, name } of specs.length === 0 ? [{ spec: declared, name: 'the spec' }] : specs) {
    const rights = neededRights(isJsonObject(spec) ? spec : {});
    const at = { field: `metadata.annotations[${annotation}]`, hint: `${name} matches or reads it` };
    // Most revisions differ in settings only.
    if (!all.some((one) => isDeepStrictEqual({ ...one, at }, { ...rights, at }))) {
      all.push({ ...rights, at });
    }
  }
  return all;
}
