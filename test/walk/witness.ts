// Sends requests all the time, and compares what they get with what a reader of the policy is shown.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdmissionPolicyObject, findCondition, POLICY_ENFORCED } from '../../src/resources/index.ts';
import type { InstallLab } from '../e2e/install-lab.ts';

/** Interval of requests. Milliseconds. */
const PAUSE_MS = 100;

/** What the witness looks at. */
export interface Watched {
  /** The path of a policy of `builtin:cel` that rejects all requests, with a message in its settings. */
  readonly policy: string;
  /** The path of the collection of the objects that it rejects. */
  readonly path: string;
  readonly object: object;
}

/** What the reader was shown, and what requests got while that stood. */
interface Seen {
  readonly shown: string;
  /** The answer that this promises; undefined: it says that this is not known, or depends on the replica. */
  readonly promised: string | undefined;
  readonly answers: string[];
}

export class Witness {
  readonly #lab: InstallLab;
  readonly #watched: Watched;
  readonly #seen: Seen[] = [];
  #isOver = false;
  readonly #running: Promise<void>;

  /** Begins to send requests. The policy may be created later. */
  constructor(lab: InstallLab, watched: Watched) {
    this.#lab = lab;
    this.#watched = watched;
    this.#running = this.#run();
  }

  /**
   * Ends the requests. Fails if the reader was shown something else than what requests got. A status may be outdated until the next
   * one, which one request may meet.
   */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    const isWrong = ({ promised, answers: [first = promised, second = promised] }: Seen): boolean =>
      promised !== undefined && first !== promised && second !== promised;
    assert.equal(this.#seen.find(isWrong)?.shown, undefined, this.#trace());
    assert.ok(this.#seen.some(({ promised, answers }) => promised !== undefined && answers.length > 0));
  }

  #trace(): string {
    return this.#seen
      .map(({ shown, answers }) => `${shown}: ${answers.length} answers, ${[...new Set(answers)].join(', ')}`)
      .join('\n');
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const before = await this.#look();
      const answer = await this.#ask();
      const last = this.#seen.at(-1);
      const seen = last?.shown === before.shown ? last : { ...before, answers: [] };
      if (seen !== last) {
        this.#seen.push(seen);
      }
      // A request that began before a write of the status says nothing about it.
      if ((await this.#look()).shown === before.shown) {
        seen.answers.push(answer);
      }
      await sleep(PAUSE_MS);
    }
  }

  async #look(): Promise<Omit<Seen, 'answers'>> {
    const { body, status } = await this.#lab.cluster.request<AdmissionPolicyObject>(
      'GET',
      this.#watched.policy,
      undefined,
      { user: 'reader' },
    );
    if (status !== 200) {
      return { shown: String(status), promised: undefined };
    }
    const enforced = findCondition(body.status?.conditions, POLICY_ENFORCED);
    const { phase, serving } = body.status ?? {};
    const message = servedMessage(serving?.modules[0]?.settings);
    return {
      shown: [phase, enforced?.status, enforced?.reason, enforced?.message, message].join(' | '),
      promised: promisedAnswer({ phase, message, enforced: enforced?.status, reason: enforced?.reason }),
    };
  }

  /** `admitted`, the message of the policy, or `failed`. */
  async #ask(): Promise<string> {
    const answer = await this.#lab.answer(this.#watched.path, this.#watched.object);
    return answer === '201' ? 'admitted' : (/denied the request: \S+: (.*)$/s.exec(answer)?.[1] ?? `failed`);
  }
}

function servedMessage(settings: string | undefined): string {
  const { validations } = JSON.parse(settings ?? '{}') as { validations?: readonly { message: string }[] };
  return validations?.[0]?.message ?? '';
}

function promisedAnswer(shown: {
  readonly phase?: string | undefined;
  readonly message: string;
  readonly enforced: string | undefined;
  readonly reason: string | undefined;
}): string | undefined {
  switch (shown.enforced) {
    case 'False':
      return 'admitted';
    case 'True':
      if (shown.reason !== 'Serving') {
        return 'failed';
      }
      // While another revision is rolled out, replicas may differ.
      return shown.phase === 'Updating' ? undefined : shown.message;
    default:
      return undefined;
  }
}
