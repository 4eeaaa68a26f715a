// What annotations do not say as they have to, told as an event on the object that has them: once, not at each look.
import { keyOf, keyText, type KubernetesObject } from '../resources/index.ts';
import type { EventSink } from '../runtime/index.ts';
import type { AnnotationProblem } from './rollout-settings.ts';

/** The event when an annotation does not say what it has to; it is taken as absent. */
export const INVALID_ANNOTATION = 'InvalidAnnotation';

export class Complaints {
  readonly #events: EventSink;
  /** What was told of objects, by kind and key. */
  readonly #told = new Map<string, string>();

  constructor(events: EventSink) {
    this.#events = events;
  }

  /** Tells of all problems of an object; when there are none, what was told of it is forgotten. */
  about(object: KubernetesObject, problems: readonly AnnotationProblem[]): void {
    const { annotations = {}, uid } = object.metadata;
    const text = problems
      .map(
        ({ annotation, message }) =>
          `annotation ${annotation}: ${message}, got ${JSON.stringify(annotations[annotation])}; it is taken as absent`,
      )
      .join('; ');
    const subject = subjectOf(object);
    // One of the same name that is made anew is told of anew.
    const told = `${uid ?? ''} ${text}`;
    if (text === '') {
      this.#told.delete(subject);
    } else if (this.#told.get(subject) !== told) {
      this.#told.set(subject, told);
      this.#events.event(object, 'Warning', INVALID_ANNOTATION, text);
    }
  }

  /** An object that is gone. */
  forget(object: Pick<KubernetesObject, 'kind' | 'metadata'>): void {
    this.#told.delete(subjectOf(object));
  }
}

function subjectOf({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  return `${kind} ${keyText(keyOf({ metadata } as KubernetesObject))}`;
}
