import { ANNOTATIONS } from '../../resources/index.ts';
import type { AnnotationProblem } from '../rollout-settings.ts';

/** What the annotation says of a policy that is to have a webhook for itself. */
const OWN = 'Own';

type Annotations = Readonly<Record<string, string>>;

/** Whether a policy asks that API servers ask about it by itself. */
export function asksForOwnWebhook(annotations: Annotations = {}): boolean {
  return Object.hasOwn(annotations, ANNOTATIONS.webhook) && annotations[ANNOTATIONS.webhook] === OWN;
}

/** What is wrong with the annotation, if anything. */
export function webhookAnnotationProblems(annotations: Annotations): readonly AnnotationProblem[] {
  const isWrong = Object.hasOwn(annotations, ANNOTATIONS.webhook) && annotations[ANNOTATIONS.webhook] !== OWN;
  return isWrong ? [{ annotation: ANNOTATIONS.webhook, message: `expected "${OWN}", or no such annotation` }] : [];
}
