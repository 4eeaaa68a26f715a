import { ANNOTATIONS, refreshRequest } from '../../resources/index.ts';
import type { AnnotationProblem } from '../../rollout/index.ts';

/** The problem of an invalid annotation `refresh`, if it is there. */
export function refreshAnnotationProblems(annotations: Readonly<Record<string, string>>): readonly AnnotationProblem[] {
  const isWrong = Object.hasOwn(annotations, ANNOTATIONS.refresh) && refreshRequest(annotations) === undefined;
  const message = 'expected 1 to 64 printable ASCII characters, such as the time';
  return isWrong ? [{ annotation: ANNOTATIONS.refresh, message }] : [];
}
