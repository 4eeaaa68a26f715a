// What a thread that evaluates asks the main thread for: it has no credentials and no caches. It sleeps until the main thread has
// answered, at once, from its caches.
import type { ResourceType } from '../../resources/index.ts';

/** What a thread asks for. */
export type ObjectQuestion =
  | { readonly of: 'kind'; readonly apiVersion: string; readonly kind: string }
  | { readonly of: 'object'; readonly type: ResourceType; readonly namespace: string; readonly name: string }
  /** All objects of a namespace, their names, or the certificates in Secrets: a page of them, which begins at `from`. */
  | {
      readonly of: 'objects' | 'names' | 'certificates';
      readonly type: ResourceType;
      readonly namespace: string;
      readonly selector: string;
      readonly from: number;
    }
  | { readonly of: 'namespaces' };

/** The answer to a question. */
export type QuestionAnswer =
  /** JSON, which takes the main thread less time than a copy. `next` is where the next page begins. */
  | { readonly state: 'found'; readonly text: string; readonly next?: number }
  /** It has not been read from the cluster yet. */
  | { readonly state: 'unread' }
  | { readonly state: 'unreadable'; readonly reason: string };

/** A question as JSON, and its answer. */
export type ForeseenAnswer = readonly [question: string, answer: QuestionAnswer];

/** Asks the main thread, and waits. */
export type AskForObject = (question: ObjectQuestion) => QuestionAnswer;

/** Thrown for what was not read yet. */
export class NotYetRead extends Error {
  override readonly name = 'NotYetRead';
}
