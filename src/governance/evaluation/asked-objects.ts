// The objects of a cluster, as a thread that evaluates sees them.
import { compareStrings } from '../../go/index.ts';
import {
  keyOf,
  keyText,
  type KubernetesObject,
  parseLabelSelector,
  type ResourceType,
  type Selector,
} from '../../resources/index.ts';
import { asJson, parseJson } from '../../values/index.ts';
import type { CertificateSecret } from '../certificates/secret-certificates.ts';
import { ObjectReadError, type ObjectSource } from '../configuration/index.ts';
import type { ListAnswer, NoAnswer, ObjectAnswer, TemplateObjects } from '../templates/index.ts';
import {
  type AskForObject,
  type ForeseenAnswer,
  NotYetRead,
  type ObjectQuestion,
  type QuestionAnswer,
} from './object-questions.ts';

type Listed = Extract<ObjectQuestion, { readonly from: number }>;

/** Asks the main thread for objects, for each one once: all of an evaluation is about the same objects. */
export class AskedObjects implements ObjectSource {
  readonly #foreseen: ReadonlyMap<string, QuestionAnswer>;
  readonly #ask: AskForObject;
  readonly #known = new Map<string, () => unknown>();
  /** Whether the main thread has to read something before the evaluation can end. */
  isUnread = false;

  /**
   * @param foreseen answers to questions that it need not ask
   * @throws by each read: NotYetRead, ObjectReadError
   */
  constructor(foreseen: readonly ForeseenAnswer[], ask: AskForObject) {
    this.#foreseen = new Map(foreseen);
    this.#ask = ask;
  }

  kind(apiVersion: string, kind: string): ResourceType | undefined {
    return this.#once({ of: 'kind', apiVersion, kind }, (question) => this.#value(question)) as
      | ResourceType
      | undefined;
  }

  get(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    const found = this.#once({ of: 'object', type, namespace, name }, (question) => this.#value(question));
    return found as KubernetesObject | undefined;
  }

  list(type: ResourceType, namespace: string, selector: Selector): readonly KubernetesObject[] {
    return this.#pages('objects', type, namespace, selector, (object: KubernetesObject) => keyText(keyOf(object)));
  }

  names(type: ResourceType, namespace: string, selector: Selector): readonly string[] {
    return this.#pages('names', type, namespace, selector, (name: string) => name);
  }

  namespaces(): readonly KubernetesObject[] {
    return this.#once({ of: 'namespaces' }, (question) => this.#value(question)) as readonly KubernetesObject[];
  }

  /** The certificates in the Secrets of a namespace. */
  certificates(type: ResourceType, namespace: string, selector: Selector): readonly CertificateSecret[] {
    return this.#pages(
      'certificates',
      type,
      namespace,
      selector,
      ({ found }: CertificateSecret) => found?.secret ?? '',
    );
  }

  /** All pages of a list, sorted by `key`. */
  #pages<Value>(
    of: Listed['of'],
    type: ResourceType,
    namespace: string,
    selector: Selector,
    key: (value: Value) => string,
  ): readonly Value[] {
    return this.#once({ of, type, namespace, selector: selector.toString(), from: 0 }, (first) => {
      const all: (readonly [key: string, value: Value])[] = [];
      for (let from: number | undefined = 0; from !== undefined;) {
        const page = this.#asked({ ...first, from });
        (page.value as readonly Value[]).forEach((value) => all.push([key(value), value]));
        from = page.next;
      }
      return all.sort(([left], [right]) => compareStrings(left, right)).map(([, value]) => value);
    }) as readonly Value[];
  }

  #value(question: ObjectQuestion): unknown {
    return this.#asked(question).value ?? undefined;
  }

  #asked(question: ObjectQuestion): { readonly value: unknown; readonly next: number | undefined } {
    const answer = this.#foreseen.get(JSON.stringify(question)) ?? this.#ask(question);
    switch (answer.state) {
      case 'found':
        return { value: parseJson(answer.text), next: answer.next };
      case 'unread':
        throw new NotYetRead();
      case 'unreadable':
        throw new ObjectReadError('unreadable', answer.reason);
      default:
        return answer satisfies never;
    }
  }

  /** The answer to a question, the same one each time, also when there is none. */
  #once<Question extends ObjectQuestion>(question: Question, ask: (question: Question) => unknown): unknown {
    const key = JSON.stringify(question);
    const known = this.#known.get(key);
    if (known !== undefined) {
      return known();
    }
    try {
      const value = ask(question);
      this.#known.set(key, () => value);
      return value;
    } catch (error) {
      this.isUnread ||= error instanceof NotYetRead;
      this.#known.set(key, () => {
        throw error;
      });
      throw error;
    }
  }
}

/** Objects for templates: answers instead of errors. */
export function templateObjects(objects: ObjectSource): TemplateObjects {
  return {
    get: (apiVersion, kind, namespace, name) =>
      answered<ObjectAnswer>(objects, apiVersion, kind, (type) => {
        const object = objects.get(type, namespace, name);
        return object === undefined ? { state: 'absent' } : { state: 'found', object: asJson(object) };
      }),
    list: (apiVersion, kind, namespace, selector) =>
      answered<ListAnswer>(objects, apiVersion, kind, (type) => ({
        state: 'found',
        objects: objects.list(type, namespace, parseLabelSelector(selector)).map((object) => asJson(object)),
      })),
  };
}

function answered<Answer>(
  objects: ObjectSource,
  apiVersion: string,
  kind: string,
  read: (type: ResourceType) => Answer,
): Answer | NoAnswer {
  try {
    const type = objects.kind(apiVersion, kind);
    return type === undefined ? { state: 'unserved' } : read(type);
  } catch (error) {
    if (error instanceof NotYetRead) {
      return { state: 'unknown' };
    }
    if (error instanceof ObjectReadError) {
      return { state: 'unreadable', reason: error.message };
    }
    throw error;
  }
}
