// The connection to one replica: kept up whatever happens, with what the replica says.
import type { Logger } from 'pino';
import { pause } from '../../runtime/index.ts';
import type { Clock } from '../../runtime/index.ts';
import { CONTROL_PROTOCOL, parseControlAddress, replicaMessages } from '../../control/index.ts';
import type { ControlAddress, ControlClient, ReplicaMessage, RevisionReport } from '../../control/index.ts';
import type { KnownReplica } from './replica-directory.ts';
import { ReplicaReports } from './replica-reports.ts';
import { errorText } from '../../values/index.ts';
import { doubledWait } from './replica-timing.ts';
import type { ReplicaTiming } from './replica-timing.ts';

/** What became of a replica: it says something else of some policies, or it came or was lost. */
export type LinkChange = ReadonlySet<string> | 'state';

export interface ReplicaLinkOptions {
  /** `metadata.name` of the PolicyServerReplica. */
  readonly name: string;
  /** `spec.controlAddress` */
  readonly address: string | undefined;
  readonly client: ControlClient;
  readonly timing: ReplicaTiming;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly changed: (change: LinkChange) => void;
}

/** How a connection ended. */
interface End {
  readonly why: string;
  /** Whether the replica was heard completely. */
  readonly wasComplete: boolean;
  /** Whether it just ended, as connections do, and the replica may be back at once. */
  readonly isCut: boolean;
}

/** Somebody who is not the replica, or does not speak as one. */
class Stranger extends Error {}

/**
 * Talks to a replica until it is told to stop. A cut is not a loss yet: a replica that is back within `returnMs` was
 * connected all the time. What it said stays until it has said everything anew. One that is lost again and again counts the
 * later the more often.
 */
export class ReplicaLink {
  readonly #options: ReplicaLinkOptions;
  readonly #address: ControlAddress | undefined;
  #state: KnownReplica['state'] = 'connecting';
  #reports = new ReplicaReports();
  #problem = '';
  #lost = new AbortController();
  /** The connection that there is, and how many ticks it may still be silent. */
  #connection: AbortController | undefined;
  #ticksLeft = 0;
  /** How long it may still take to be heard completely, until the replica is lost. */
  #patience: { ticksLeft: number; readonly why: () => string } | undefined;
  /** Losses since it was steady, and the ticks until it is. */
  #losses = 0;
  #unsteadyTicks = 0;
  /** How long one that is heard, and was lost again and again, does not count yet. */
  #holdTicks = 0;
  /** Ends the wait for the next try. */
  #waiting: AbortController | undefined;

  constructor(options: ReplicaLinkOptions) {
    this.#options = options;
    this.#address = parseControlAddress(options.address ?? '');
  }

  get state(): KnownReplica['state'] {
    return this.#state;
  }

  /** Where requests to it go; undefined unless it is connected. */
  get address(): ControlAddress | undefined {
    return this.#state === 'connected' ? this.#address : undefined;
  }

  /** Aborted when it is lost, while it is connected. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Why it is not connected, as far as that is known. */
  get problem(): string {
    return this.#problem;
  }

  reports(policy: string): readonly RevisionReport[] {
    return this.#state === 'connected' ? this.#reports.of(policy) : [];
  }

  /**
   * To be called each `tickMs`. It is counted in ticks, not in time, how long a replica may take: when this process itself
   * was busy, what the replica has said meanwhile waits to be read.
   */
  tick(): void {
    this.#ticksLeft -= 1;
    if (this.#ticksLeft === 0) {
      this.#connection?.abort(new Error('it said nothing for too long'));
    }
    if (this.#holdTicks > 0) {
      this.#holdTicks -= 1;
      if (this.#holdTicks === 0) {
        this.#connected();
      }
    }
    if (this.#state === 'connected' && this.#unsteadyTicks > 0) {
      this.#unsteadyTicks -= 1;
      this.#losses = this.#unsteadyTicks === 0 ? 0 : this.#losses;
    }
    if (this.#patience !== undefined) {
      this.#patience.ticksLeft -= 1;
      if (this.#patience.ticksLeft <= 0) {
        this.#lose(this.#patience.why());
      }
    }
  }

  /** Tries at once, where it waits for the next try. */
  retry(): void {
    this.#waiting?.abort();
  }

  /** Runs until `signal` is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    if (this.#address === undefined) {
      this.#lose(`expected spec.controlAddress as host:port, got ${JSON.stringify(this.#options.address)}`);
      return;
    }
    this.#patience = {
      ticksLeft: this.#ticks(timing.connectingMs),
      why: () => (this.#problem === '' ? `not heard completely within ${timing.connectingMs} ms` : this.#problem),
    };
    signal.addEventListener('abort', () => this.retry(), { once: true });
    let failures = 0;
    while (!signal.aborted) {
      const began = clock.now();
      const end = await this.#connect(this.#address, signal);
      if (signal.aborted) {
        break;
      }
      this.#ended(end);
      const wasStable = end.wasComplete && clock.now() - began >= timing.stableMs;
      failures = wasStable ? 0 : failures + 1;
      this.#waiting = new AbortController();
      await pause(clock, doubledWait(timing.retryMs, timing.retryCapMs, failures, random), this.#waiting.signal);
      this.#waiting = undefined;
    }
    this.#patience = undefined;
    this.#lost.abort(new Error('the controller stops'));
  }

  /** One connection, from beginning to end. */
  async #connect(address: ControlAddress, signal: AbortSignal): Promise<End> {
    const { client, clock } = this.#options;
    const connection = new AbortController();
    const stop = (): void => connection.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#connection = connection;
    const conversation = new Conversation(this.#options.name);
    try {
      this.#expectWithin(this.#options.timing.connectingMs);
      const response = await client.open(address, '/stream', connection.signal);
      this.#expectWithin(this.#options.timing.silenceMs);
      for await (const message of replicaMessages(response, clock, connection.signal)) {
        this.#expectWithin(this.#options.timing.silenceMs);
        this.#take(conversation.hear(message));
      }
      return { why: 'the connection was closed', wasComplete: conversation.isComplete, isCut: true };
    } catch (error) {
      const isSilent = connection.signal.aborted;
      return {
        why: errorText(isSilent ? connection.signal.reason : error),
        wasComplete: conversation.isComplete,
        isCut: !isSilent && !(error instanceof Stranger || error instanceof TypeError || error instanceof RangeError),
      };
    } finally {
      this.#connection = undefined;
      signal.removeEventListener('abort', stop);
      // Leaves no half of it behind, whatever ended it.
      connection.abort();
    }
  }

  #expectWithin(ms: number): void {
    this.#ticksLeft = this.#ticks(ms);
  }

  #ticks(ms: number): number {
    return Math.ceil(ms / this.#options.timing.tickMs);
  }

  #take(news: Heard): void {
    switch (news.type) {
      case 'nothing':
        return;
      case 'all':
        this.#heardAll(news.reports);
        return;
      case 'some': {
        const changed = this.#reports.apply(news.report);
        if (changed.size > 0 && this.#state === 'connected') {
          this.#options.changed(changed);
        }
        return;
      }
      default:
        news satisfies never;
    }
  }

  #heardAll(reports: ReplicaReports): void {
    this.#patience = undefined;
    const before = this.#reports;
    this.#reports = reports;
    if (this.#state === 'connected') {
      const changed = before.differences(reports);
      if (changed.size > 0) {
        this.#options.changed(changed);
      }
      return;
    }
    this.#holdTicks = this.#losses < 2 ? 0 : this.#ticks(this.#holdMs());
    if (this.#holdTicks === 0) {
      this.#connected();
    }
  }

  #holdMs(): number {
    const { holdMs, holdCapMs } = this.#options.timing;
    return Math.min(holdCapMs, holdMs * 2 ** Math.min(this.#losses - 2, 20));
  }

  #connected(): void {
    this.#unsteadyTicks = this.#ticks(this.#options.timing.steadyMs);
    this.#state = 'connected';
    this.#problem = '';
    this.#lost = new AbortController();
    this.#options.log.info('replica connected');
    this.#options.changed('state');
  }

  #ended({ why, wasComplete, isCut }: End): void {
    const { timing, log } = this.#options;
    this.#holdTicks = 0;
    if (this.#state === 'connected' && wasComplete && isCut) {
      log.debug({ reason: why }, 'connection to replica cut');
      this.#patience = { ticksLeft: this.#ticks(timing.returnMs), why: () => why };
    } else if (this.#state === 'connecting' && isCut) {
      this.#problem = why;
    } else {
      this.#lose(why);
    }
  }

  #lose(why: string): void {
    this.#patience = undefined;
    const isNews = this.#state !== 'lost';
    if (isNews || why !== this.#problem) {
      this.#options.log.warn({ reason: why }, 'replica lost');
    }
    this.#problem = why;
    if (isNews) {
      this.#losses += 1;
      this.#state = 'lost';
      this.#reports = new ReplicaReports();
      this.#lost.abort(new Error(why));
      this.#options.changed('state');
    }
  }
}

/** What a message says. */
type Heard =
  | { readonly type: 'nothing' }
  /** Everything was said, for the first time on a connection. */
  | { readonly type: 'all'; readonly reports: ReplicaReports }
  | { readonly type: 'some'; readonly report: Extract<ReplicaMessage, { readonly type: 'report' }> };

/** The order of messages on one connection: a greeting, everything in parts, then what differs. */
class Conversation {
  readonly #replica: string;
  #isGreeted = false;
  #parts: ReplicaReports | undefined = new ReplicaReports();

  constructor(replica: string) {
    this.#replica = replica;
  }

  /** Whether everything was said. */
  get isComplete(): boolean {
    return this.#parts === undefined;
  }

  /** @throws Stranger when it is not for the controller to hear */
  hear(message: ReplicaMessage): Heard {
    if (message.type === 'hello') {
      this.#greet(message);
      return { type: 'nothing' };
    }
    if (!this.#isGreeted) {
      throw new Stranger(`expected hello first, got ${message.type}`);
    }
    if (message.type === 'alive') {
      return { type: 'nothing' };
    }
    const parts = this.#parts;
    if (parts === undefined) {
      return { type: 'some', report: message };
    }
    parts.apply(message);
    if (!message.isComplete) {
      return { type: 'nothing' };
    }
    this.#parts = undefined;
    return { type: 'all', reports: parts };
  }

  #greet({ protocol, replica, version }: Extract<ReplicaMessage, { readonly type: 'hello' }>): void {
    if (this.#isGreeted) {
      throw new Stranger('expected one hello, got another one');
    }
    if (protocol !== CONTROL_PROTOCOL) {
      throw new Stranger(
        `expected version ${CONTROL_PROTOCOL} of the control protocol, got ${protocol} from version ${version} of the product; run controller and policy servers of the same version`,
      );
    }
    if (replica !== this.#replica) {
      throw new Stranger(
        `expected replica ${this.#replica} at its control address, got ${replica}; does another process have its port?`,
      );
    }
    this.#isGreeted = true;
  }
}
