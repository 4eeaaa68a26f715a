// Warning events for invalid annotations: one for each mistake, not one for each reconciliation.
import { keyOf, keyText, type KubernetesObject } from '../resources/index.ts';
import type { EventSink } from '../runtime/index.ts';
import type { AnnotationProblem } from '../rollout/index.ts';

/** Reason of the event for an invalid annotation, which has no effect. */
const INVALID_ANNOTATION = 'InvalidAnnotation';

export class AnnotationWarnings {
  readonly #events: EventSink;
  /** The last warning about each object, by kind and key. */
  readonly #reported = new Map<string, string>();

  constructor(events: EventSink) {
    this.#events = events;
  }

  /** Reports the problems of an object, unless they were reported already. */
  report(object: KubernetesObject, problems: readonly AnnotationProblem[]): void {
    const { annotations = {}, uid } = object.metadata;
    const text = problems
      .map(
        ({ annotation, message }) =>
          `annotation ${annotation}: ${message}, got ${JSON.stringify(annotations[annotation])}; the annotation is ignored`,
      )
      .join('; ');
    const subject = subjectOf(object);
    // With the uid, so that a new object of the same name gets its own event.
    const warning = `${uid ?? ''} ${text}`;
    if (text === '') {
      this.#reported.delete(subject);
    } else if (this.#reported.get(subject) !== warning) {
      this.#reported.set(subject, warning);
      this.#events.event(object, 'Warning', INVALID_ANNOTATION, text);
    }
  }

  /** Forgets a deleted object. */
  forget(object: Pick<KubernetesObject, 'kind' | 'metadata'>): void {
    this.#reported.delete(subjectOf(object));
  }
}

function subjectOf({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  return `${kind} ${keyText(keyOf({ metadata } as KubernetesObject))}`;
}
