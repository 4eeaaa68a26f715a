import { ANNOTATIONS } from '../../resources/index.ts';
import type { AnnotationProblem } from '../../rollout/index.ts';

/** The value of the annotation that gives a policy its own webhook. */
const OWN = 'Own';

type Annotations = Readonly<Record<string, string>>;

export function wantsOwnWebhook(annotations: Annotations = {}): boolean {
  return Object.hasOwn(annotations, ANNOTATIONS.webhook) && annotations[ANNOTATIONS.webhook] === OWN;
}

export function webhookAnnotationProblems(annotations: Annotations): readonly AnnotationProblem[] {
  const isWrong = Object.hasOwn(annotations, ANNOTATIONS.webhook) && annotations[ANNOTATIONS.webhook] !== OWN;
  return isWrong ? [{ annotation: ANNOTATIONS.webhook, message: `expected "${OWN}", or no such annotation` }] : [];
}
