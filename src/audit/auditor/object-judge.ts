// Evaluations of an auditor: few at once, held to a share of the processor, and none again for objects that are alike.
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject, ObjectVerdict } from '../../engine/index.ts';
import type { EvaluationHost } from '../../evaluation/index.ts';
import type { GroupVersionResource } from '../../resources/index.ts';
import { KeptEntries } from '../../values/index.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Share of its time that each of its threads evaluates: an auditor with two takes one processor at most. */
const PROCESSOR_SHARE = 0.5;
/** A shorter rest costs more than it spares. Milliseconds. */
const MIN_REST_MS = 10;
/** Longest rest after an evaluation: those that wait for others use no processor. Milliseconds. */
const MAX_REST_MS = 500;
/** Verdicts that are kept for objects that are alike: some 5 MB. */
const MAX_SHARED = 10_000;
/** Evaluations of a policy in a row that ended at their time limit, after which it rests: it would delay all others. */
const MAX_TIMEOUTS = 3;
/** How long such a policy rests. Milliseconds. */
const TIMEOUT_REST_MS = 5 * 60_000;

/** Policies to ask about an object, with the keys of their verdicts. */
export type AskedPolicies = ReadonlyMap<PolicyVersion, string>;

export class ObjectJudge {
  readonly #host: Pick<EvaluationHost, 'evaluate'>;
  readonly #slots: Slots;
  readonly #shared = new KeptEntries<string, ObjectVerdict>({ maxEntries: MAX_SHARED });
  /** By policy. */
  readonly #timeouts = new Map<string, { count: number; readonly at: number }>();
  #debtMs = 0;
  /** Evaluations so far. */
  evaluations = 0;

  /** @param atOnce evaluations at once: the threads of the host */
  constructor(host: Pick<EvaluationHost, 'evaluate'>, atOnce: number) {
    this.#host = host;
    this.#slots = new Slots(atOnce);
  }

  /**
   * The verdicts of policies on an object; none of those that rest.
   * @param isUrgent whether a change caused it, which overtakes scans
   */
  async verdicts(
    object: JsonObject,
    resource: GroupVersionResource,
    asked: AskedPolicies,
    isUrgent: boolean,
  ): Promise<readonly ObjectVerdict[]> {
    if (this.#openOf(asked).length > 0) {
      using _slot = await this.#slots.take(isUrgent);
      // Objects that are alike may have been judged meanwhile.
      const open = this.#openOf(asked);
      const known = this.#knownOf(asked);
      return open.length === 0 ? known : [...known, ...(await this.#evaluate(object, resource, open))];
    }
    return this.#knownOf(asked);
  }

  /** Verdicts on objects that are alike. */
  #knownOf(asked: AskedPolicies): readonly ObjectVerdict[] {
    return [...asked].flatMap(([{ expires }, key]) => {
      const verdict = expires ? undefined : this.#shared.get(key);
      return verdict === undefined ? [] : [verdict];
    });
  }

  /** Policies to evaluate. */
  #openOf(asked: AskedPolicies): readonly PolicyVersion[] {
    return [...asked].flatMap(([policy, key]) =>
      (!policy.expires && this.#shared.get(key) !== undefined) || this.#rests(policy.id) ? [] : [policy],
    );
  }

  /** Keeps a verdict for objects with the same key. */
  share({ keys, expires }: PolicyVersion, resource: GroupVersionResource, key: string, verdict: ObjectVerdict): void {
    if (!expires && keys.isShared(resource)) {
      this.#shared.set(key, verdict);
    }
  }

  async #evaluate(
    object: JsonObject,
    resource: GroupVersionResource,
    policies: readonly PolicyVersion[],
  ): Promise<readonly ObjectVerdict[]> {
    const began = performance.now();
    const verdicts = await this.#host.evaluate({ object, resource }, { policies: policies.map(({ id }) => id) });
    this.evaluations += policies.length;
    verdicts.forEach((verdict) => this.#noteTimeout(verdict));
    await this.#rest(performance.now() - began);
    return verdicts;
  }

  async #rest(spentMs: number): Promise<void> {
    this.#debtMs += Math.min(MAX_REST_MS, spentMs * (1 / PROCESSOR_SHARE - 1));
    if (this.#debtMs >= MIN_REST_MS) {
      const restMs = this.#debtMs;
      this.#debtMs = 0;
      await sleep(restMs, undefined, { ref: false });
    }
  }

  #noteTimeout({ policy, outcome }: ObjectVerdict): void {
    if (outcome === 'timeout') {
      this.#timeouts.set(policy, { count: (this.#timeouts.get(policy)?.count ?? 0) + 1, at: performance.now() });
    } else {
      this.#timeouts.delete(policy);
    }
  }

  #rests(policy: string): boolean {
    const timeouts = this.#timeouts.get(policy);
    return (
      timeouts !== undefined && timeouts.count >= MAX_TIMEOUTS && performance.now() - timeouts.at < TIMEOUT_REST_MS
    );
  }
}

/** A bounded number of tasks at once, of which urgent ones come first. */
class Slots {
  #free: number;
  readonly #urgent: (() => void)[] = [];
  readonly #others: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(isUrgent: boolean): Promise<Disposable> {
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      const { promise, resolve } = Promise.withResolvers<void>();
      (isUrgent ? this.#urgent : this.#others).push(resolve);
      await promise;
    }
    return { [Symbol.dispose]: () => this.#release() };
  }

  #release(): void {
    const next = this.#urgent.shift() ?? this.#others.shift();
    if (next === undefined) {
      this.#free += 1;
    } else {
      next();
    }
  }
}
