// All processes are killed, all caches are lost, and the source of modules is down. A probe asks all the time what requests get,
// and what the status says is compared with it.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findCondition, type JsonObject, POLICY_ENFORCED } from '../../src/resources/index.ts';
import { labelOf, POLICIES, requiresLabel, type RolloutLab } from './rollout-lab.ts';

/** What a request gets. */
type Effect = 'judged' | 'rejected' | 'admitted';

/** Interval of probes. Milliseconds. */
const PAUSE_MS = 25;

interface Claim {
  /** The text of the condition Enforced. */
  readonly text: string;
  /** What it says that requests get; undefined: it says that this is not known. */
  readonly effect: Effect | undefined;
}

/** Asks what requests get, and reads before and after each what the status says. */
class Probe implements AsyncDisposable {
  readonly #lab: RolloutLab;
  readonly #name: string;
  /** Each status with what requests got while it stood. */
  readonly statuses: { readonly claim: Claim; readonly effects: Effect[] }[] = [];
  readonly #running: Promise<void>;
  #isOver = false;

  constructor(lab: RolloutLab, name: string) {
    this.#lab = lab;
    this.#name = name;
    this.#running = this.#run();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** The status and what requests get, when both stay what they are. */
  async settles(effect: Effect, text: RegExp): Promise<void> {
    await this.#lab.eventually(
      async () => {
        const { claim, effects } = this.statuses.at(-1) ?? assert.fail('no status yet');
        assert.match(claim.text, text);
        assert.deepEqual(
          effects.slice(-5),
          Array.from({ length: 5 }, () => effect),
        );
      },
      () => `requests to be ${effect}, and the status to be ${text}; ${this.trace()}`,
    );
  }

  /**
   * A status is true when it is written; it may be outdated until the next one, which one request may meet: replicas switch while it
   * is on its way to the API server.
   */
  assertTrue(): void {
    const isWrong = this.statuses.find(
      ({ claim, effects: [first = claim.effect, second = claim.effect] }) =>
        claim.effect !== undefined && first !== claim.effect && second !== claim.effect,
    );
    assert.equal(isWrong?.claim.text, undefined, this.trace());
  }

  trace(): string {
    return this.statuses.map(({ claim, effects }) => `${claim.text}: ${inShort(effects)}`).join('\n');
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const claimed = await this.#claim();
      const effect = await this.#effect();
      const last = this.statuses.at(-1);
      const status = last?.claim.text === claimed.text ? last : { claim: claimed, effects: [] };
      if (status !== last) {
        this.statuses.push(status);
      }
      // A request that began before a write of the status says nothing about it.
      if ((await this.#claim()).text === claimed.text) {
        status.effects.push(effect);
      }
      await sleep(PAUSE_MS);
    }
  }

  async #claim(): Promise<Claim> {
    const { status } = await this.#lab.policy(this.#name);
    const { status: value, reason, message = '' } = findCondition(status?.conditions, POLICY_ENFORCED) ?? {};
    const text = `${value} ${reason}: ${message}`;
    switch (value) {
      case 'True':
        return {
          text,
          effect: /admitted|mode monitor/.test(message) ? 'admitted' : reason === 'Serving' ? 'judged' : 'rejected',
        };
      case 'False':
        return { text, effect: 'admitted' };
      default:
        return { text, effect: undefined };
    }
  }

  async #effect(): Promise<Effect> {
    const message = await this.#lab.refusal(this.#name);
    return message === undefined ? 'admitted' : labelOf(message) === undefined ? 'rejected' : 'judged';
  }
}

function inShort(effects: readonly Effect[]): string {
  const runs: [effect: Effect, count: number][] = [];
  for (const effect of effects) {
    const last = runs.at(-1);
    if (last?.[0] === effect) {
      last[1] += 1;
    } else {
      runs.push([effect, 1]);
    }
  }
  return runs.map(([effect, count]) => `${count} ${effect}`).join(', ');
}

export interface Disaster {
  readonly name: string;
  readonly spec?: JsonObject;
  /** Changes while everything is down. */
  readonly whileDown?: JsonObject;
  readonly first: 'controllers' | 'servers';
  readonly flags?: readonly string[];
  /** What requests get, and what the status says, after the start. */
  readonly meanwhile: readonly [Effect, RegExp];
  /** A further change, and what comes of it. */
  readonly change?: JsonObject;
  readonly after?: readonly [Effect, RegExp];
}

const IGNORE = { failurePolicy: 'Ignore' };
const REJECTED = ['rejected', /^True FailurePolicy: requests are rejected \(failurePolicy Fail/] as const;
const ADMITTED = [
  'admitted',
  /^True FailurePolicy: requests are admitted with a warning \(failurePolicy Ignore\)$/,
] as const;
const MONITORED = ['admitted', /^True FailurePolicy: requests are admitted \(mode monitor\)$/] as const;

const NOT_ENFORCED = ['admitted', /^False DegradedIgnored: /] as const;

export const DISASTERS: readonly Disaster[] = [
  { name: 'ignoring', whileDown: IGNORE, first: 'controllers', meanwhile: ADMITTED },
  {
    name: 'late',
    first: 'servers',
    meanwhile: REJECTED,
    change: { ...IGNORE, settings: { labels: ['other'] } },
    after: REJECTED,
  },
  { name: 'ending', flags: ['--degraded-policies=ignore'], first: 'controllers', meanwhile: NOT_ENFORCED },
  { name: 'monitoring', first: 'controllers', meanwhile: REJECTED, change: { mode: 'monitor' }, after: MONITORED },
  {
    name: 'stricter',
    spec: IGNORE,
    first: 'servers',
    meanwhile: ADMITTED,
    change: { failurePolicy: 'Fail' },
    after: REJECTED,
  },
];

/** Loses everything while a policy serves, starts it again, and compares the status with what requests get. */
export async function recovers(
  lab: RolloutLab,
  { name, spec = {}, whileDown, first, flags = [], ...rest }: Disaster,
): Promise<void> {
  await lab.namespace(name);
  await lab.create(requiresLabel(name, await lab.module(`${name}.wasm`), 'kept', spec));
  await lab.reaches(name, 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
  await using probe = new Probe(lab, name);
  await probe.settles('judged', /^True Serving/);
  await lab.endProcesses('SIGKILL');
  lab.web.isDown = true;
  try {
    await Promise.all(lab.replicas.map(({ folder }) => rm(join(folder, 'data'), { recursive: true, force: true })));
    lab.controllers.length = 0;
    if (whileDown !== undefined) {
      await lab.change(name, whileDown);
    }
    const starts = {
      controllers: () => lab.addController(false, flags),
      servers: () => Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica))),
    };
    await starts[first]();
    await starts[first === 'servers' ? 'controllers' : 'servers']();
    await probe.settles(...rest.meanwhile);
    if (rest.change !== undefined && rest.after !== undefined) {
      const { metadata } = await lab.change(name, rest.change);
      await lab.eventually(
        async () => assert.equal((await lab.policy(name)).status?.observedGeneration, metadata.generation),
        () => 'the status to be about the change',
      );
      await probe.settles(...rest.after);
    }
  } finally {
    // Restored for later cases, even after a failure.
    lab.web.isDown = false;
  }
  await lab.reaches(name, 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
  await probe.end();
  probe.assertTrue();
  await lab.cluster.delete(POLICIES, { name });
}
