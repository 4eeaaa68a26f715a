// The objects that an evaluation reads, in the main thread. A thread that evaluates gets them from here, at once: what is not cached
// yet is read after its job, and then the job starts again, so that no thread waits for the cluster.
import { ApiError } from '../../cluster/index.ts';
import {
  groupVersionOf,
  type KubernetesObject,
  type ObjectKey,
  parseLabelSelector,
  type ResourceType,
} from '../../resources/index.ts';
import { Stalled } from '../../runtime/index.ts';
import { errorText, textOf } from '../../values/index.ts';
import type { KnownCertificates } from '../certificates/secret-certificates.ts';
import { ObjectReadError } from '../configuration/index.ts';
import { type KindMappings, typeKey } from '../objects/kind-mappings.ts';
import type { MissingKinds } from '../objects/missing-kinds.ts';
import type { KindObjects, ObjectReader, ReadSelection } from '../objects/watched-kinds.ts';
import { POLICY_REASONS } from '../policy/policy-reasons.ts';
import { type ForeseenAnswer, NotYetRead, type ObjectQuestion, type QuestionAnswer } from './object-questions.ts';

export interface EvaluationObjectsOptions {
  /** The policy, which is enqueued when something changes that it has read. */
  readonly key: ObjectKey;
  /** Absent, as {@link missing}: the evaluation asks for no kinds. */
  readonly mappings?: Pick<KindMappings, 'find'>;
  /** Reads as the governance account. */
  readonly reader: ObjectReader;
  readonly missing?: Pick<MissingKinds, 'add' | 'set'>;
  readonly namespaces: () => readonly KubernetesObject[];
  readonly certificates?: KnownCertificates;
  /** Objects that the evaluation is sure to ask for: the thread gets them with its job, and asks for nothing. Default: none. */
  readonly foreseen?: readonly ForeseenObject[];
}

/** An object of a policy, as far as it is known before its templates are resolved. */
export interface ForeseenObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty where only the kind is known. */
  readonly namespace: string;
  readonly name: string;
}

/** Maximum number of rounds of one evaluation: each reads the kinds that the previous one missed. Policies need a few. */
const MAX_ROUNDS = 50;
/** Characters of a page of objects: some milliseconds of the main thread. One object may be longer. */
const PAGE_CHARACTERS = 500_000;
/** Objects of a page. */
const PAGE_OBJECTS = 500;
/**
 * Characters of the objects that one job gets: 20,000 objects of 3 KB, which is more than a policy may have. They take the main
 * thread half a second together, in pages.
 */
const MAX_CHARACTERS = 64_000_000;
/** What a search through one object of a list costs, in characters. */
const SEARCH_CHARACTERS = 32;

const READS_TOO_MUCH = `the policy reads more than ${MAX_CHARACTERS / 1_000_000} million characters of objects: look up fewer objects, or split it`;

/** The objects of a kind, or why they cannot be read. */
type Opened = { readonly objects: KindObjects } | { readonly failure: string };

type ListQuestion = Extract<ObjectQuestion, { readonly from: number }>;

/** The objects of one evaluation. */
export class EvaluationObjects {
  readonly #options: EvaluationObjectsOptions;
  readonly #types = new Map<string, ResourceType | undefined>();
  readonly #opened = new Map<string, Opened>();
  readonly #unread = new Map<string, () => Promise<void>>();
  readonly #selections = new Map<string, ReadSelection>();
  readonly #missingGroups = new Set<string>();
  /** What the present round was given. */
  readonly #given = new Map<string, KubernetesObject>();
  readonly #lists = new Map<string, readonly KubernetesObject[]>();
  #foreseen: readonly ForeseenAnswer[] = [];
  #left = MAX_CHARACTERS;
  #signal: AbortSignal = AbortSignal.abort();

  constructor(options: EvaluationObjectsOptions) {
    this.#options = options;
  }

  /** What the last round read: a change of it requires another evaluation. */
  get selections(): readonly ReadSelection[] {
    return [...this.#selections.values()];
  }

  /** Why kinds could not be read. */
  get failures(): readonly string[] {
    return [...this.#opened.values()].flatMap((one) => ('failure' in one ? [one.failure] : []));
  }

  /** Answers that the thread gets with its job. */
  get foreseen(): readonly ForeseenAnswer[] {
    return this.#foreseen;
  }

  /** The object that the last round was given. */
  given(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    return this.#given.get(selectionKey({ type, ...keyIn(type, namespace, name) }));
  }

  /**
   * Evaluates until nothing is unread. From then on, the policy is enqueued when something changes that the last round has read.
   * @param evaluate undefined: something was not read yet
   * @throws what `evaluate` throws, ApiError and ClusterError of reads, Stalled after too many rounds
   */
  async evaluate<Result>(evaluate: () => Promise<Result | undefined>, signal: AbortSignal): Promise<Result> {
    this.#signal = signal;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      this.#startRound();
      const result = this.#unread.size === 0 ? await evaluate() : undefined;
      if (result !== undefined && this.#unread.size === 0) {
        this.#follow();
        return result;
      }
      const reads = [...this.#unread.values()];
      this.#unread.clear();
      await Promise.all(reads.map((read) => read()));
      signal.throwIfAborted();
    }
    throw new Stalled(
      POLICY_REASONS.tooManyKinds,
      `templates look up the kinds of objects one after the other, in more than ${MAX_ROUNDS} steps`,
    );
  }

  /** Answers a question of the thread, without waiting. */
  answer(question: ObjectQuestion): QuestionAnswer {
    try {
      return this.#answer(question);
    } catch (error) {
      return error instanceof NotYetRead ? { state: 'unread' } : { state: 'unreadable', reason: errorText(error) };
    }
  }

  #startRound(): void {
    this.#selections.clear();
    this.#given.clear();
    this.#lists.clear();
    this.#left = MAX_CHARACTERS;
    this.#foreseen = this.#foreseenAnswers(this.#options.foreseen ?? []);
  }

  /** Answers that go with the job, a page of them at most: one turn of the main thread makes them. The thread asks for the others. */
  #foreseenAnswers(all: readonly ForeseenObject[]): readonly ForeseenAnswer[] {
    const answers: ForeseenAnswer[] = [];
    const left = this.#left;
    for (const one of all.slice(0, PAGE_OBJECTS)) {
      if (left - this.#left >= PAGE_CHARACTERS) {
        break;
      }
      answers.push(...this.#foresee(one));
    }
    return answers;
  }

  #foresee({ apiVersion, kind, namespace, name }: ForeseenObject): readonly ForeseenAnswer[] {
    const answered = (question: ObjectQuestion): ForeseenAnswer => [JSON.stringify(question), this.answer(question)];
    const kindAnswer = answered({ of: 'kind', apiVersion, kind });
    const type = this.#types.get(`${apiVersion} ${kind}`);
    return type === undefined || name === '' || type.namespaced !== (namespace !== '')
      ? [kindAnswer]
      : [kindAnswer, answered({ of: 'object', type, namespace, name })];
  }

  /** Ends what only earlier rounds and evaluations followed. */
  #follow(): void {
    const { key, reader, missing } = this.#options;
    reader.use(key, this.selections);
    missing?.set(key, this.#missingGroups);
  }

  #answer(question: ObjectQuestion): QuestionAnswer {
    switch (question.of) {
      case 'kind':
        // Takes nothing of what the policy may read: without its kind, no object of it could say why it is not compared.
        return { state: 'found', text: JSON.stringify(this.#kind(question.apiVersion, question.kind) ?? null) };
      case 'object':
        return this.#text(this.#get(question.type, question.namespace, question.name));
      case 'namespaces':
        return this.#text(this.#options.namespaces().map(selectable));
      case 'objects':
        return this.#page(question, (object) => object);
      case 'names':
        return this.#page(question, ({ metadata }) => metadata.name ?? '');
      case 'certificates':
        // Reading certificates takes longer than their answer is long: some 0.1 ms for each KB.
        return this.#page(question, (secret) => this.#options.certificates?.in(secret), valueCharacters);
      default:
        return question satisfies never;
    }
  }

  #text(value: unknown): QuestionAnswer {
    const text = JSON.stringify(value ?? null);
    this.#spend(text.length);
    return { state: 'found', text };
  }

  /** @param readOf characters that are read for what is shown. Default: none */
  #page(
    question: ListQuestion,
    shown: (object: KubernetesObject) => unknown,
    readOf: (object: KubernetesObject) => number = () => 0,
  ): QuestionAnswer {
    const objects = this.#list(question);
    const texts: string[] = [];
    let length = 0;
    let read = 0;
    let at = question.from;
    for (; at < objects.length && length + read < PAGE_CHARACTERS && texts.length < PAGE_OBJECTS; at += 1) {
      const object = objects[at] as KubernetesObject;
      const text = JSON.stringify(shown(object));
      texts.push(text);
      length += text.length;
      read += readOf(object);
    }
    this.#spend(length);
    return { state: 'found', text: `[${texts.join(',')}]`, ...(at < objects.length ? { next: at } : {}) };
  }

  #spend(characters: number): void {
    this.#left -= characters;
    if (this.#left < 0) {
      throw new ObjectReadError('unreadable', READS_TOO_MUCH);
    }
  }

  #kind(apiVersion: string, kind: string): ResourceType | undefined {
    const key = `${apiVersion} ${kind}`;
    if (!this.#types.has(key)) {
      this.#unread.set(key, async () => {
        const type = await this.#options.mappings?.find(apiVersion, kind, this.#signal);
        this.#types.set(key, type);
        if (type === undefined) {
          const { group } = groupVersionOf(apiVersion);
          this.#missingGroups.add(group);
          this.#options.missing?.add(this.#options.key, group);
        }
      });
      throw new NotYetRead();
    }
    return this.#types.get(key);
  }

  #get(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    const key = keyIn(type, namespace, name);
    const selection = this.#select({ type, ...key });
    const object = this.#objects(type).get(key);
    if (object !== undefined) {
      this.#given.set(selection, object);
    }
    return object;
  }

  /** The objects of a list, the same ones for all of its pages. The thread sorts them: here, many would take too long. */
  #list({ type, namespace, selector }: ListQuestion): readonly KubernetesObject[] {
    const isOne = type.namespaced && namespace !== '';
    const selection = this.#select(isOne ? { type, namespace } : { type });
    const id = `${selection} ${selector}`;
    const known = this.#lists.get(id);
    if (known !== undefined) {
      return known;
    }
    const objects = this.#objects(type).list(isOne ? namespace : undefined);
    this.#spend(objects.length * SEARCH_CHARACTERS);
    const labels = parseLabelSelector(selector);
    const found = objects.filter(({ metadata }) => labels.matches(metadata.labels ?? {}));
    this.#lists.set(id, found);
    return found;
  }

  /** Follows what is read, from now on: an evaluation takes time. @returns the key of the selection */
  #select(selection: ReadSelection): string {
    const key = selectionKey(selection);
    if (!this.#selections.has(key)) {
      this.#selections.set(key, selection);
      this.#options.reader.add(this.#options.key, selection);
    }
    return key;
  }

  #objects(type: ResourceType): KindObjects {
    const key = typeKey(type);
    const known = this.#opened.get(key);
    if (known === undefined) {
      this.#unread.set(key, async () => {
        this.#opened.set(key, await this.#open(type));
      });
      throw new NotYetRead();
    }
    if ('failure' in known) {
      throw new ObjectReadError('unreadable', known.failure);
    }
    return known.objects;
  }

  async #open(type: ResourceType): Promise<Opened> {
    try {
      return { objects: await this.#options.reader.open(type, this.#signal) };
    } catch (error) {
      if (error instanceof ApiError) {
        return { failure: errorText(error) };
      }
      throw error;
    }
  }
}

function selectionKey({ type, namespace = '', name = '' }: ReadSelection): string {
  return `${typeKey(type)} ${namespace}/${name}`;
}

function keyIn(type: ResourceType, namespace: string, name: string): ObjectKey {
  return type.namespaced && namespace !== '' ? { namespace, name } : { name };
}

/** The length of the values of a Secret. */
function valueCharacters({ data }: KubernetesObject): number {
  return Object.values(data ?? {}).reduce<number>((sum, value) => sum + textOf(value).length, 0);
}

/** What selectors of namespaces look at. */
function selectable({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, labels, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(labels === undefined ? {} : { labels }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
  };
}
