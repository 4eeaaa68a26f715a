import type { ObjectVerdict } from '../engine/index.ts';
import { moduleUses } from '../engine/definition/index.ts';
import type { EvaluationHost, HostedPolicy } from '../evaluation/index.ts';
import type { JsonObject } from '../engine/index.ts';
import type { GroupVersionResource } from '../resources/index.ts';
import { KeptEntries } from '../values/index.ts';
import { VerdictKeys } from './verdict-key.ts';

/** Verdicts that are kept: some 5 MB. Pods of one workload follow each other in a list. */
const MAX_SHARED = 10_000;

/**
 * Verdicts of a host, each for all objects that are alike for a policy: replicas of a workload are judged once. Namespaces and parameters
 * are taken to stay as they are, so these verdicts are for one pass over a kind.
 */
export class SharedVerdicts {
  readonly #host: Pick<EvaluationHost, 'evaluate'>;
  readonly #keys: ReadonlyMap<string, VerdictKeys>;
  readonly #verdicts = new KeptEntries<string, ObjectVerdict>({ maxEntries: MAX_SHARED });

  /** @param policies that the host serves */
  constructor(host: Pick<EvaluationHost, 'evaluate'>, policies: readonly HostedPolicy[]) {
    this.#host = host;
    this.#keys = new Map(policies.flatMap((policy) => keysOf(policy)));
  }

  /** The verdicts of some policies on an object. */
  async of(
    object: JsonObject,
    resource: GroupVersionResource,
    policies: readonly string[],
  ): Promise<readonly ObjectVerdict[]> {
    const known: ObjectVerdict[] = [];
    const asked = new Map<string, string | undefined>();
    for (const id of policies) {
      const key = this.#keys.get(id)?.sharedKey({ object, resource });
      const verdict = key === undefined ? undefined : this.#verdicts.get(key);
      if (verdict === undefined) {
        asked.set(id, key);
      } else {
        known.push(verdict);
      }
    }
    const verdicts =
      asked.size === 0 ? [] : await this.#host.evaluate({ object, resource }, { policies: asked.keys() });
    for (const verdict of verdicts) {
      const key = asked.get(verdict.policy);
      // What failed once may succeed the next time.
      if (key !== undefined && (verdict.outcome === 'verdict' || verdict.outcome === 'skipped')) {
        this.#verdicts.set(key, verdict);
      }
    }
    return [...known, ...verdicts];
  }
}

/** None for policies whose verdicts depend on more than the object: objects that they look up, and rules that there are none of. */
function keysOf({ id, definition, match }: HostedPolicy): readonly (readonly [string, VerdictKeys])[] {
  const looksUp = moduleUses(definition).some(({ contextAwareResources }) => contextAwareResources.length > 0);
  return looksUp || match === undefined ? [] : [[id, new VerdictKeys({ definition, match, digests: {} })]];
}
