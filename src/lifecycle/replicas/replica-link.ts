// The connection to one replica, with its reports. Reconnects until it is stopped.
import type { Logger } from 'pino';
import { pause } from '../../runtime/index.ts';
import type { Clock } from '../../runtime/index.ts';
import { CONTROL_PROTOCOL, parseControlAddress, replicaMessages } from '../../control/index.ts';
import type {
  ControlAddress,
  ControlClient,
  ExceptionUse,
  ReplicaMessage,
  RevisionReport,
} from '../../control/index.ts';
import { ClockOffset } from './clock-offset.ts';
import type { KnownReplica } from './replica-directory.ts';
import { ReplicaReports } from './replica-reports.ts';
import { errorText } from '../../values/index.ts';
import { backoffMs } from './replica-timing.ts';
import type { ReplicaTiming } from './replica-timing.ts';

/** A change of a replica: other reports on some policies, another connection state, or another offset of its clock. */
export type LinkChange = ReadonlySet<string> | 'state' | 'clock';

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
  /** Called with the reports of every message. */
  readonly received: (reports: readonly RevisionReport[]) => void;
  /** Called with the uses of exceptions of every message. */
  readonly used: (uses: readonly ExceptionUse[]) => void;
}

/** The end of a connection. */
interface ConnectionEnd {
  readonly reason: string;
  /** Whether the replica had sent all reports. */
  readonly wasComplete: boolean;
  /** Whether the connection broke without a fault of the replica, which may be back at once. */
  readonly isBroken: boolean;
}

/** The other side is not the expected replica, or violates the protocol. */
class ProtocolError extends Error {}

/**
 * Keeps a connection to a replica until it is stopped. A broken connection is not a loss yet: a replica that is back
 * within `returnMs` counts as connected throughout. Its reports stay valid until it has sent all again. After repeated
 * losses, a replica counts as connected only after a growing delay.
 */
export class ReplicaLink {
  readonly #options: ReplicaLinkOptions;
  readonly #address: ControlAddress | undefined;
  #state: KnownReplica['state'] = 'connecting';
  #reports = new ReplicaReports();
  #failure = '';
  #lost = new AbortController();
  /** The current connection, and the ticks until it is too silent. */
  #connection: AbortController | undefined;
  #ticksLeft = 0;
  /** The time until the replica is lost unless it has sent all reports. */
  #deadline: { ticksLeft: number; readonly reason: () => string } | undefined;
  /** Losses since the link was steady, and the ticks until it is. */
  #losses = 0;
  #unsteadyTicks = 0;
  /** Ticks until a replica that was lost repeatedly counts as connected. */
  #holdTicks = 0;
  /** Ends the delay before the next attempt. */
  #waiting: AbortController | undefined;
  #isEnding = false;
  #clockOffset: ClockOffset;
  /** Whether the process of this connection, or of the one before, counts uses of exceptions. */
  #reportsUses = false;

  constructor(options: ReplicaLinkOptions) {
    this.#options = options;
    this.#clockOffset = new ClockOffset(options.timing.clockMs);
    this.#address = parseControlAddress(options.address ?? '');
  }

  get state(): KnownReplica['state'] {
    return this.#state;
  }

  /** The address for requests; undefined unless the replica is connected. */
  get address(): ControlAddress | undefined {
    return this.#state === 'connected' ? this.#address : undefined;
  }

  /** Aborted when a connected replica is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** See {@link ClockOffset}. */
  get clockOffsetMs(): number | undefined {
    return this.#state === 'connected' ? this.#clockOffset.ms : undefined;
  }

  get reportsUses(): boolean {
    return this.#state === 'connected' && this.#reportsUses;
  }

  reports(policy: string): readonly RevisionReport[] {
    return this.#state === 'connected' ? this.#reports.of(policy) : [];
  }

  /**
   * Called every `tickMs`. Time limits count ticks instead of time: if this process was busy, messages of the replica
   * have arrived and wait to be read.
   */
  tick(): void {
    this.#ticksLeft -= 1;
    if (this.#ticksLeft === 0) {
      this.#connection?.abort(new Error('no message within the limit'));
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
    if (this.#deadline !== undefined) {
      this.#deadline.ticksLeft -= 1;
      if (this.#deadline.ticksLeft <= 0) {
        this.#lose(this.#deadline.reason());
      }
    }
  }

  /** Ends the delay before the next attempt. */
  retry(): void {
    this.#waiting?.abort();
  }

  /** Ends with the current connection: a replica that stops removes its object first, and still reports. */
  end(): void {
    this.#isEnding = true;
    this.retry();
  }

  /** Runs until `signal` is aborted, or until the end. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timing, random } = this.#options;
    if (this.#address === undefined) {
      this.#lose(`expected spec.controlAddress as host:port, got ${JSON.stringify(this.#options.address)}`);
      return;
    }
    this.#deadline = {
      ticksLeft: this.#ticks(timing.connectingMs),
      reason: () => (this.#failure === '' ? `no complete report within ${timing.connectingMs} ms` : this.#failure),
    };
    signal.addEventListener('abort', () => this.retry(), { once: true });
    let failures = 0;
    while (!signal.aborted && !this.#isEnding) {
      const startedAt = clock.now();
      const end = await this.#connect(this.#address, signal);
      if (signal.aborted || this.#isEnding) {
        break;
      }
      this.#ended(end);
      const wasStable = end.wasComplete && clock.now() - startedAt >= timing.stableMs;
      failures = wasStable ? 0 : failures + 1;
      this.#waiting = new AbortController();
      await pause(clock, backoffMs(timing.retryMs, timing.retryCapMs, failures, random), this.#waiting.signal);
      this.#waiting = undefined;
    }
    this.#deadline = undefined;
    this.#lost.abort(new Error('the controller stops'));
  }

  /** One connection, from start to end. */
  async #connect(address: ControlAddress, signal: AbortSignal): Promise<ConnectionEnd> {
    const { client, clock } = this.#options;
    const connection = new AbortController();
    const stop = (): void => connection.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#connection = connection;
    const messages = new MessageSequence(this.#options.name);
    try {
      this.#limitSilence(this.#options.timing.connectingMs);
      const response = await client.open(address, '/stream', connection.signal);
      this.#limitSilence(this.#options.timing.silenceMs);
      for await (const message of replicaMessages(response, clock, connection.signal)) {
        this.#limitSilence(this.#options.timing.silenceMs);
        this.#apply(messages.receive(message));
        if (message.type === 'report') {
          this.#options.received(message.revisions);
        } else if (message.type === 'exceptions') {
          this.#reportsUses = true;
          this.#options.used(message.uses);
        } else if (message.type === 'alive' && message.time !== undefined) {
          this.#noteTime(message.time);
        }
      }
      return { reason: 'the connection was closed', wasComplete: messages.isComplete, isBroken: true };
    } catch (error) {
      const isSilent = connection.signal.aborted;
      return {
        reason: errorText(isSilent ? connection.signal.reason : error),
        wasComplete: messages.isComplete,
        isBroken:
          !isSilent && !(error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError),
      };
    } finally {
      this.#connection = undefined;
      signal.removeEventListener('abort', stop);
      // Closes the connection in every case.
      connection.abort();
    }
  }

  #noteTime(time: string): void {
    const { clock, log, changed } = this.#options;
    if (this.#clockOffset.note(Date.parse(time), clock.date(), clock.now()) && this.#state === 'connected') {
      log.warn({ clockOffsetMs: this.#clockOffset.ms }, 'the clock of a replica differs more, or less, than before');
      changed('clock');
    }
  }

  #limitSilence(ms: number): void {
    this.#ticksLeft = this.#ticks(ms);
  }

  #ticks(ms: number): number {
    return Math.ceil(ms / this.#options.timing.tickMs);
  }

  #apply(received: Received): void {
    switch (received.type) {
      case 'nothing':
        return;
      case 'all':
        this.#receivedAll(received.reports);
        return;
      case 'some': {
        const changed = this.#reports.apply(received.report);
        if (changed.size > 0 && this.#state === 'connected') {
          this.#options.changed(changed);
        }
        return;
      }
      default:
        received satisfies never;
    }
  }

  #receivedAll(reports: ReplicaReports): void {
    this.#deadline = undefined;
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
    this.#failure = '';
    this.#lost = new AbortController();
    this.#options.log.info('replica connected');
    this.#options.changed('state');
  }

  #ended({ reason, wasComplete, isBroken }: ConnectionEnd): void {
    const { timing, log } = this.#options;
    this.#holdTicks = 0;
    if (this.#state === 'connected' && wasComplete && isBroken) {
      log.debug({ reason }, 'connection to replica broken');
      this.#deadline = { ticksLeft: this.#ticks(timing.returnMs), reason: () => reason };
    } else if (this.#state === 'connecting' && isBroken) {
      this.#failure = reason;
    } else {
      this.#lose(reason);
    }
  }

  #lose(reason: string): void {
    this.#deadline = undefined;
    const isNew = this.#state !== 'lost';
    if (isNew || reason !== this.#failure) {
      this.#options.log.warn({ reason }, 'replica lost');
    }
    this.#failure = reason;
    if (isNew) {
      this.#losses += 1;
      this.#state = 'lost';
      this.#reports = new ReplicaReports();
      this.#reportsUses = false;
      this.#clockOffset = new ClockOffset(this.#options.timing.clockMs);
      this.#lost.abort(new Error(reason));
      this.#options.changed('state');
    }
  }
}

/** The meaning of a message. */
type Received =
  | { readonly type: 'nothing' }
  /** The first complete report of a connection. */
  | { readonly type: 'all'; readonly reports: ReplicaReports }
  | { readonly type: 'some'; readonly report: Extract<ReplicaMessage, { readonly type: 'report' }> };

/** The order of messages on a connection: hello, all reports, then changes. */
class MessageSequence {
  readonly #replica: string;
  #hasHello = false;
  #parts: ReplicaReports | undefined = new ReplicaReports();

  constructor(replica: string) {
    this.#replica = replica;
  }

  /** Whether all reports have arrived. */
  get isComplete(): boolean {
    return this.#parts === undefined;
  }

  /** @throws ProtocolError */
  receive(message: ReplicaMessage): Received {
    if (message.type === 'hello') {
      this.#acceptHello(message);
      return { type: 'nothing' };
    }
    if (!this.#hasHello) {
      throw new ProtocolError(`expected hello first, got ${message.type}`);
    }
    if (message.type === 'alive' || message.type === 'exceptions') {
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

  #acceptHello({ protocol, replica, version }: Extract<ReplicaMessage, { readonly type: 'hello' }>): void {
    if (this.#hasHello) {
      throw new ProtocolError('expected one hello, got another one');
    }
    if (protocol !== CONTROL_PROTOCOL) {
      throw new ProtocolError(
        `expected version ${CONTROL_PROTOCOL} of the control protocol, got ${protocol} from version ${version} of Portcullis; run controller and policy servers of the same version`,
      );
    }
    if (replica !== this.#replica) {
      throw new ProtocolError(
        `expected replica ${this.#replica} at its control address, got ${replica}; does another process have its port?`,
      );
    }
    this.#hasHello = true;
  }
}
