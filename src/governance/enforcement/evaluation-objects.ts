// The objects that an evaluation reads. Evaluation is synchronous: objects that are not cached yet are read after it, and then it
// starts again.
import { ApiError } from '../../cluster/index.ts';
import {
  groupVersionOf,
  type KubernetesObject,
  type ObjectKey,
  parseLabelSelector,
  type ResourceType,
  type Selector,
} from '../../resources/index.ts';
import { asJson, errorText } from '../../values/index.ts';
import { Stalled } from '../../runtime/index.ts';
import { ObjectReadError, type ObjectSource } from '../configuration/index.ts';
import { type KindMappings, typeKey } from '../objects/kind-mappings.ts';
import type { KindObjects, ObjectReader, ObjectSelection } from '../objects/watched-kinds.ts';
import { POLICY_REASONS } from '../policy-reasons.ts';
import type { ListAnswer, NoAnswer, ObjectAnswer, TemplateObjects } from '../templates/index.ts';

/** Thrown for a kind that was not read yet. */
export class NotYetRead extends Error {
  override readonly name = 'NotYetRead';
}

export interface EvaluationObjectsOptions {
  readonly mappings: KindMappings;
  readonly reader: ObjectReader;
  readonly namespaces: () => readonly KubernetesObject[];
}

/** Maximum number of rounds of one evaluation: each reads the kinds that the previous one missed. Policies need a few. */
const MAX_ROUNDS = 50;

/** The objects of a kind, or why they cannot be read. */
type Opened = { readonly objects: KindObjects } | { readonly failure: string };

/** The objects of one pass. */
export class EvaluationObjects implements ObjectSource {
  readonly #options: EvaluationObjectsOptions;
  readonly #types = new Map<string, ResourceType | undefined>();
  readonly #opened = new Map<string, Opened>();
  readonly #missing = new Map<string, () => Promise<void>>();
  readonly #selections = new Map<string, ObjectSelection>();
  readonly #missingGroups = new Set<string>();
  #signal: AbortSignal = AbortSignal.abort();

  constructor(options: EvaluationObjectsOptions) {
    this.#options = options;
  }

  /** What the last evaluation read: a change of it requires another evaluation. */
  get selections(): readonly ObjectSelection[] {
    return [...this.#selections.values()];
  }

  /** Groups of kinds that the cluster does not serve. */
  get missingGroups(): ReadonlySet<string> {
    return this.#missingGroups;
  }

  /** Why kinds could not be read. */
  get failures(): readonly string[] {
    return [...this.#opened.values()].flatMap((one) => ('failure' in one ? [one.failure] : []));
  }

  /**
   * Evaluates until nothing is missing.
   * @throws what `evaluate` throws, ApiError and ClusterError of reads, Stalled after too many rounds
   */
  async evaluate<Result>(evaluate: () => Result, signal: AbortSignal): Promise<Result> {
    this.#signal = signal;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      this.#selections.clear();
      try {
        const result = evaluate();
        if (this.#missing.size === 0) {
          return result;
        }
      } catch (error) {
        if (!(error instanceof NotYetRead)) {
          throw error;
        }
      }
      const reads = [...this.#missing.values()];
      this.#missing.clear();
      await Promise.all(reads.map((read) => read()));
      signal.throwIfAborted();
    }
    throw new Stalled(
      POLICY_REASONS.tooManyKinds,
      `templates look up the kinds of objects one after the other, in more than ${MAX_ROUNDS} steps`,
    );
  }

  kind(apiVersion: string, kind: string): ResourceType | undefined {
    const key = `${apiVersion} ${kind}`;
    if (!this.#types.has(key)) {
      this.#missing.set(key, async () => {
        const type = await this.#options.mappings.find(apiVersion, kind, this.#signal);
        this.#types.set(key, type);
        if (type === undefined) {
          this.#missingGroups.add(groupVersionOf(apiVersion).group);
        }
      });
      throw new NotYetRead();
    }
    return this.#types.get(key);
  }

  get(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    const key = keyIn(type, namespace, name);
    this.#select({ type, ...key });
    return this.#objects(type).get(key);
  }

  list(type: ResourceType, namespace: string, selector: Selector): readonly KubernetesObject[] {
    const isOne = type.namespaced && namespace !== '';
    this.#select(isOne ? { type, namespace } : { type });
    const objects = this.#objects(type).list(isOne ? namespace : undefined);
    return objects.filter(({ metadata }) => selector.matches(metadata.labels ?? {})).toSorted(byName);
  }

  namespaces(): readonly KubernetesObject[] {
    return this.#options.namespaces();
  }

  /** The same objects for templates, as answers instead of errors. */
  get templates(): TemplateObjects {
    return {
      get: (apiVersion, kind, namespace, name) =>
        this.#answer<ObjectAnswer>(apiVersion, kind, (type) => {
          const object = this.get(type, namespace, name);
          return object === undefined ? { state: 'absent' } : { state: 'found', object: asJson(object) };
        }),
      list: (apiVersion, kind, namespace, selector) =>
        this.#answer<ListAnswer>(apiVersion, kind, (type) => ({
          state: 'found',
          objects: this.list(type, namespace, parseLabelSelector(selector)).map((object) => asJson(object)),
        })),
    };
  }

  #answer<Answer>(apiVersion: string, kind: string, read: (type: ResourceType) => Answer): Answer | NoAnswer {
    try {
      const type = this.kind(apiVersion, kind);
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

  #select(selection: ObjectSelection): void {
    const { type, namespace = '', name = '' } = selection;
    this.#selections.set(`${typeKey(type)} ${namespace}/${name}`, selection);
  }

  #objects(type: ResourceType): KindObjects {
    const key = typeKey(type);
    const known = this.#opened.get(key);
    if (known === undefined) {
      this.#missing.set(key, async () => {
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

function keyIn(type: ResourceType, namespace: string, name: string): ObjectKey {
  return type.namespaced && namespace !== '' ? { namespace, name } : { name };
}

function byName(left: KubernetesObject, right: KubernetesObject): number {
  const [a, b] = [left.metadata, right.metadata].map(({ namespace = '', name = '' }) => `${namespace}/${name}`);
  return (a ?? '') < (b ?? '') ? -1 : 1;
}
