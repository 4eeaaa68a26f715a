import { ExceptionTable, exceptionsKey, type JsonObject, type ObjectVerdict } from '../engine/index.ts';
import { moduleUses } from '../engine/definition/index.ts';
import type { EvaluationHost, ExistingObject, HostedPolicy } from '../evaluation/index.ts';
import type { GroupVersionResource } from '../resources/index.ts';
import { KeptEntries, textOf, valueAt } from '../values/index.ts';
import { VerdictKeys } from './verdict-key.ts';

/** Verdicts that are kept: some 5 MB. Pods of one workload follow each other in a list. */
const MAX_SHARED = 10_000;

/** The verdicts of policies that were asked about one object together. */
type Evaluation = Promise<readonly ObjectVerdict[]>;

/**
 * Verdicts of a host, each for all objects that are alike for a policy: replicas of a workload are judged once. Namespaces and parameters
 * are taken to stay as they are, so these verdicts are for one pass over a kind.
 */
export class SharedVerdicts {
  readonly #host: Pick<EvaluationHost, 'evaluate'>;
  readonly #exceptions: ExceptionTable;
  readonly #keys: ReadonlyMap<string, VerdictKeys>;
  /** By the keys of verdicts, also those under way. */
  readonly #evaluations = new KeptEntries<string, Evaluation>({ maxEntries: MAX_SHARED });

  /**
   * @param policies that the host serves
   * @param exceptions that it evaluates with
   */
  constructor(
    host: Pick<EvaluationHost, 'evaluate'>,
    policies: readonly HostedPolicy[],
    exceptions: ExceptionTable = new ExceptionTable(),
  ) {
    this.#host = host;
    this.#exceptions = exceptions;
    this.#keys = new Map(policies.flatMap((policy) => keysOf(policy)));
  }

  /** The verdicts of some policies on an object. */
  async of(
    object: JsonObject,
    resource: GroupVersionResource,
    policies: readonly string[],
  ): Promise<readonly ObjectVerdict[]> {
    const shared = new Map<string, Evaluation>();
    const asked = new Map<string, string | undefined>();
    for (const id of policies) {
      const key = this.#mayBeExcepted(id, object) ? undefined : this.#keys.get(id)?.sharedKey({ object, resource });
      const evaluation = key === undefined ? undefined : this.#evaluations.get(key);
      if (evaluation === undefined) {
        asked.set(id, key);
      } else {
        shared.set(id, evaluation);
      }
    }
    const verdicts = await Promise.all([
      asked.size === 0 ? [] : this.#ask({ object, resource }, asked),
      ...[...shared].map(([id, evaluation]) => verdictOf(id, evaluation)),
    ]);
    return verdicts.flat();
  }

  async #ask(object: ExistingObject, keys: ReadonlyMap<string, string | undefined>): Promise<readonly ObjectVerdict[]> {
    const evaluation = this.#host.evaluate(object, { policies: keys.keys() });
    const shared = [...keys].flatMap(([id, key]) => (key === undefined ? [] : [{ id, key }]));
    for (const { key } of shared) {
      this.#evaluations.set(key, evaluation);
    }
    const lasting = new Set<string>();
    try {
      const verdicts = await evaluation;
      for (const { policy, outcome } of verdicts) {
        if (outcome === 'verdict' || outcome === 'skipped') {
          lasting.add(policy);
        }
      }
      return verdicts;
    } finally {
      // What failed once may succeed the next time.
      for (const { key } of shared.filter(({ id }) => !lasting.has(id))) {
        this.#evaluations.delete(key);
      }
    }
  }

  /** Exceptions are for objects by fields that the policy may not read. */
  #mayBeExcepted(policy: string, object: JsonObject): boolean {
    const namespace = textOf(valueAt(object, 'metadata', 'namespace'));
    return exceptionsKey(this.#exceptions.of(policy, namespace, -Infinity)) !== '';
  }
}

async function verdictOf(policy: string, evaluation: Evaluation): Promise<readonly ObjectVerdict[]> {
  return (await evaluation).filter((verdict) => verdict.policy === policy);
}

/** None for policies whose verdicts depend on more than the object: objects that they look up, and rules that there are none of. */
function keysOf({ id, definition, match }: HostedPolicy): readonly (readonly [string, VerdictKeys])[] {
  const looksUp = moduleUses(definition).some(({ contextAwareResources }) => contextAwareResources.length > 0);
  return looksUp || match === undefined ? [] : [[id, new VerdictKeys({ definition, match, digests: {} })]];
}
