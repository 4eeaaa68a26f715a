import type { Logger } from 'pino';
import { errorText } from '../values/index.ts';
import { SYSTEM_CLOCK, pause } from './clock.ts';
import type { Clock } from './clock.ts';
import { RuntimeError } from './errors.ts';
import type { LeaderElector } from './leader-elector.ts';
import { aborted } from './runnable.ts';
import type { Runnable } from './runnable.ts';

/**
 * Groups start in this order: `cache`; `server` when caches are ready; `leader` when servers are ready, while this
 * process leads. They stop in reverse order.
 */
export type StartGroup = 'cache' | 'server' | 'leader';

/** Time for one group to stop: enough for a reconciliation or a request. Milliseconds. */
const DEFAULT_STOP_MS = 10_000;

export interface RuntimeOptions {
  readonly log: Logger;
  /** Default: this process always leads. */
  readonly elector?: LeaderElector;
  /** Time for each group to stop. Default: {@link DEFAULT_STOP_MS}. */
  readonly stopMs?: number;
  readonly clock?: Clock;
}

type RunnableState = 'waiting' | 'starting' | 'ready' | 'ended' | 'failed';

export interface RunnableStatus {
  readonly name: string;
  readonly group: StartGroup;
  readonly state: RunnableState;
  /** The message of its failure. */
  readonly error?: string;
}

interface Member {
  readonly group: StartGroup;
  readonly runnable: Runnable;
  state: RunnableState;
  error: string | undefined;
  /** Resolves when the current run has ended. Never rejects. */
  ended: Promise<void>;
}

/** Runs the runnables of a process, group by group, until it is stopped or one fails. */
export class Runtime {
  readonly #options: RuntimeOptions;
  readonly #clock: Clock;
  readonly #members: Member[] = [];
  readonly #failed = Promise.withResolvers<never>();
  #state: 'new' | 'running' | 'stopping' | 'stopped' = 'new';

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#failed.promise.catch(() => undefined);
  }

  /** Adds runnables, before {@link run}. */
  add(group: StartGroup, ...runnables: readonly Runnable[]): this {
    for (const runnable of runnables) {
      this.#members.push({ group, runnable, state: 'waiting', error: undefined, ended: Promise.resolve() });
    }
    return this;
  }

  /** The status of each runnable, in the order of {@link add}. */
  status(): readonly RunnableStatus[] {
    return this.#members.map(({ runnable: { name }, group, state, error }) => ({
      name,
      group,
      state,
      ...(error === undefined ? {} : { error }),
    }));
  }

  /**
   * Why this process is not ready, for `/readyz`; undefined when it is ready. A process that waits for leadership is
   * ready.
   */
  notReady(): string | undefined {
    if (this.#state !== 'running') {
      return this.#state === 'new' ? 'not started' : 'stopping';
    }
    const waiting = this.#members.filter(
      ({ group, state }) => group !== 'leader' && state !== 'ready' && state !== 'ended',
    );
    return waiting.length === 0 ? undefined : `waiting for ${waiting.map(({ runnable }) => runnable.name).join(', ')}`;
  }

  /**
   * Starts all groups, and stops them in reverse order when `signal` is aborted or a runnable fails. Can be called
   * once.
   * @throws the error of the first runnable that failed; RuntimeError 'stop-timeout' when some did not stop in time
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#state = 'running';
    const stops = new Map<StartGroup, AbortController>();
    let failure: { readonly error: unknown } | undefined;
    let leading: Promise<void> = Promise.resolve();
    const stopping = aborted(signal);
    try {
      for (const group of ['cache', 'server'] as const) {
        const stop = new AbortController();
        stops.set(group, stop);
        const ready = Promise.all(this.#start(group, stop.signal));
        await Promise.race([ready, stopping, this.#failed.promise]);
        if (signal.aborted) {
          break;
        }
      }
      if (!signal.aborted) {
        const stop = new AbortController();
        stops.set('leader', stop);
        leading = this.#lead(stop.signal);
        await Promise.race([stopping, this.#failed.promise]);
      }
    } catch (error) {
      failure = { error };
    }
    this.#state = 'stopping';
    const late = await this.#stop(stops, leading);
    this.#state = 'stopped';
    if (failure !== undefined) {
      throw failure.error;
    }
    if (late.length > 0) {
      throw new RuntimeError('stop-timeout', `did not stop within ${this.#stopMs} ms: ${late.join(', ')}`);
    }
  }

  get #stopMs(): number {
    return this.#options.stopMs ?? DEFAULT_STOP_MS;
  }

  #inGroup(group: StartGroup): readonly Member[] {
    return this.#members.filter((member) => member.group === group);
  }

  /** Starts a group. Each promise resolves when its runnable is ready or has ended. */
  #start(group: StartGroup, signal: AbortSignal): readonly Promise<void>[] {
    return this.#inGroup(group).map((member) => {
      const { runnable } = member;
      const log = this.#options.log.child({ runnable: runnable.name });
      member.state = 'starting';
      member.error = undefined;
      member.ended = Promise.try(() => runnable.start(signal)).then(
        () => {
          member.state = 'ended';
        },
        (error: unknown) => {
          member.state = signal.aborted ? 'ended' : 'failed';
          member.error = errorText(error);
          if (signal.aborted) {
            log.warn({ error: member.error }, 'failed while stopping');
          } else {
            log.error({ error: member.error }, 'failed');
            this.#failed.reject(error);
          }
        },
      );
      const ready = (runnable.ready ?? Promise.resolve()).then(
        () => {
          if (member.state === 'starting') {
            member.state = 'ready';
            log.debug('ready');
          }
        },
        // It ends without becoming ready.
        () => member.ended,
      );
      return Promise.race([ready, member.ended]);
    });
  }

  /** Runs the leader group while this process leads. Never rejects. */
  async #lead(signal: AbortSignal): Promise<void> {
    const members = this.#inGroup('leader');
    if (members.length === 0) {
      return;
    }
    const lead = async (leadership: AbortSignal): Promise<void> => {
      void Promise.all(this.#start('leader', leadership));
      await aborted(leadership);
      await Promise.all(members.map(({ ended }) => ended));
      if (!signal.aborted) {
        for (const member of members) {
          member.state = 'waiting';
        }
      }
    };
    try {
      await (this.#options.elector === undefined ? lead(signal) : this.#options.elector.run(signal, lead));
    } catch (error) {
      this.#failed.reject(error);
    }
  }

  /** The names of the runnables that did not stop in time. */
  async #stop(stops: ReadonlyMap<StartGroup, AbortController>, leading: Promise<void>): Promise<readonly string[]> {
    const late: string[] = [];
    for (const [group, stop] of [...stops].reverse()) {
      stop.abort();
      const enough = new AbortController();
      const all = Promise.all([
        ...this.#inGroup(group).map(({ ended }) => ended),
        group === 'leader' ? leading : undefined,
      ]);
      const isLate = await Promise.race([
        all.then(() => false),
        pause(this.#clock, this.#stopMs, enough.signal).then(() => true),
      ]);
      enough.abort();
      if (isLate) {
        const names = this.#inGroup(group)
          .filter(({ state }) => state !== 'ended' && state !== 'failed')
          .map(({ runnable }) => runnable.name);
        this.#options.log.error({ group, runnables: names }, 'not stopped in time');
        late.push(...names);
      }
    }
    return late;
  }
}
