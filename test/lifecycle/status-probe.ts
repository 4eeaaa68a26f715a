// Asks all the time what requests of policies get, and what their statuses say about it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { labelOf, POLICIES, type RolloutLab } from './rollout-lab.ts';
import { type Claim, claimOf, type Effect, falseClaim, type Sample, traceOf } from './status-claims.ts';

/** Pause between rounds of requests. Milliseconds. */
const PAUSE_MS = 10;
/** Requests in a row that get the same before it counts as settled: connections of API servers lead to one replica each. */
const SETTLED = 5;

export interface ProbedPolicy {
  readonly name: string;
  /** What the policy is for, without the label that it requires. */
  readonly object: KubernetesObject;
}

/** Sends a request for each policy, and reads all statuses before, over and over. */
export class StatusProbe implements AsyncDisposable {
  readonly #lab: RolloutLab;
  readonly #policies: readonly ProbedPolicy[];
  readonly #samples: ReadonlyMap<string, Sample[]>;
  readonly #running: Promise<void>;
  #isOver = false;
  #isFresh = false;
  #configured: number;

  constructor(lab: RolloutLab, policies: readonly ProbedPolicy[]) {
    this.#lab = lab;
    this.#policies = policies;
    this.#samples = new Map(policies.map(({ name }) => [name, []]));
    this.#configured = this.#configurations();
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** All processes have ended: none that starts later knows what was so before. Resolves after a request of each policy. */
  async forget(): Promise<void> {
    const before = this.#rounds();
    await this.#lab.eventually(
      // The round that runs now may have begun before.
      async () => assert.ok(this.#rounds() > before),
      () => 'a round of requests',
    );
    this.#isFresh = true;
    await this.#lab.eventually(
      async () => assert.ok(!this.#isFresh && this.#rounds() > before + 1),
      () => 'another round of requests',
    );
  }

  /** Waits until requests of each policy get this, and its status says so. */
  async settle(effects: ReadonlyMap<string, Effect>): Promise<void> {
    let late: string | undefined;
    await this.#lab.eventually(
      async () => {
        late = [...effects].find(([name, effect]) => !this.#isSettled(name, effect))?.[0];
        assert.equal(late, undefined);
      },
      () =>
        `requests of ${late} to be ${effects.get(late ?? '')}, and its status to say so:\n${this.trace(late ?? '')}`,
    );
  }

  /** What the status of a policy says. */
  claim(name: string): Claim | undefined {
    return this.#of(name).at(-1)?.claim;
  }

  /** @throws when a status said what was not so */
  assertTrue(): void {
    for (const { name } of this.#policies) {
      assert.equal(falseClaim(this.#of(name)), undefined, `${name}:\n${this.trace(name)}`);
    }
  }

  trace(name: string): string {
    return traceOf(this.#of(name));
  }

  #isSettled(name: string, effect: Effect): boolean {
    const last = this.#of(name).slice(-SETTLED);
    const isSaid = last.every(({ claim }) => claim === undefined || claim.effect === effect);
    return last.length === SETTLED && isSaid && last.every((sample) => sample.effect === effect);
  }

  #of(name: string): Sample[] {
    return this.#samples.get(name) ?? assert.fail(`${name} is not probed`);
  }

  #rounds(): number {
    return this.#of(this.#policies[0]?.name ?? '').length;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const claims = await this.#claims();
      const isFresh = this.#isFresh;
      const isConfigured = this.#isConfigured();
      const marks = { ...(isFresh && { isFresh }), ...(isConfigured && { isConfigured }) };
      const effects = await Promise.all(this.#policies.map(async (policy) => await this.#effect(policy)));
      for (const [index, { name }] of this.#policies.entries()) {
        const effect = effects[index] ?? assert.fail();
        this.#of(name).push({ claim: claims.get(name), effect, ...marks });
      }
      this.#isFresh &&= !isFresh;
      await sleep(PAUSE_MS);
    }
  }

  async #claims(): Promise<ReadonlyMap<string, Claim | undefined>> {
    const { items } = await this.#lab.cluster.list(POLICIES, {});
    return new Map(items.map(({ metadata, status }) => [metadata.name ?? '', claimOf(status)]));
  }

  async #effect({ object }: ProbedPolicy): Promise<Effect> {
    const message = await this.#lab.rejectionOf(object);
    return message === undefined ? 'admitted' : labelOf(message) === undefined ? 'rejected' : 'judged';
  }

  /** Whether the API server may still use what a configuration was before. */
  #isConfigured(): boolean {
    const before = this.#configured;
    this.#configured = this.#configurations();
    return !this.#lab.target.usesConfigurationsAtOnce && this.#configured > before;
  }

  #configurations(): number {
    return this.#lab.proxy.writes('controller', 'admin').filter(({ path }) => path.includes('webhookconfigurations'))
      .length;
  }
}
