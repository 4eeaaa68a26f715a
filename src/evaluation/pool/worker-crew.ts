// The workers of a pool: they all have the same policies and labels of namespaces, also those that take another one's place.
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import type { NamespacesChange, TableChange, WorkerStart } from '../evaluation-protocol.ts';
import { type MemberListener, PoolMember } from './pool-member.ts';
import type { PublishedTable } from './published-table.ts';

/** What workers are started with. */
export interface CrewOptions {
  /** How many there are. */
  readonly size: number;
  readonly start: Omit<WorkerStart, 'activity' | 'capabilities'>;
  /** A connection to whatever answers host capabilities, one for each worker. */
  readonly connectCapabilities: () => CapabilityConnection;
}

/** Workers that know the same. */
export class WorkerCrew {
  readonly #options: CrewOptions;
  readonly #table: PublishedTable;
  readonly #listener: MemberListener;
  readonly #members: PoolMember[] = [];
  /** Labels of all namespaces that workers were told of. */
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();
  /** Which change of the table was the last. */
  #version = 0;
  /** End the wait for workers to start. */
  readonly #starting = new Map<PoolMember, () => void>();
  readonly #awaitingVersion: { readonly version: number; readonly resolve: () => void }[] = [];
  #stopped = false;

  /** `table`: what is published in it already is what a new worker starts with. */
  constructor(options: CrewOptions, table: PublishedTable, listener: MemberListener) {
    this.#options = options;
    this.#table = table;
    this.#listener = listener;
  }

  /** The workers at any time, those that have not started yet included. */
  get members(): readonly PoolMember[] {
    return this.#members;
  }

  /** Starts the workers; resolves when each is ready, or when they are ended. */
  async start(): Promise<void> {
    await Promise.all(
      Array.from({ length: this.#options.size }, () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const member = this.#spawn();
        this.#members.push(member);
        this.#starting.set(member, resolve);
        return promise;
      }),
    );
  }

  /** A worker has started. */
  ready(member: PoolMember): void {
    member.isReady = true;
    this.#starting.get(member)?.();
    this.#starting.delete(member);
  }

  /** Tells every worker of a change that is in the table already; resolves when all have taken it up. */
  publish(change: TableChange, numbers: readonly number[]): Promise<void> {
    this.#version += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaitingVersion.push({ version: this.#version, resolve });
    for (const member of this.#members) {
      member.send({ type: 'table', version: this.#version, change, numbers });
    }
    return promise;
  }

  /** A worker has taken up a change of the table. */
  applied(member: PoolMember, version: number): void {
    member.version = version;
    const reached = Math.min(...this.#members.map((one) => one.version));
    while (this.#awaitingVersion[0] !== undefined && this.#awaitingVersion[0].version <= reached) {
      this.#awaitingVersion.shift()?.resolve();
    }
  }

  /** Tells every worker of namespaces. */
  tellNamespaces(change: NamespacesChange): void {
    if (change.isAll) {
      this.#namespaces.clear();
    }
    for (const [name, labels] of change.namespaces) {
      if (labels === undefined) {
        this.#namespaces.delete(name);
      } else {
        this.#namespaces.set(name, labels);
      }
    }
    for (const member of this.#members) {
      member.send({ type: 'namespaces', change });
    }
  }

  /** Starts a worker in the place of one that ends. */
  replace(member: PoolMember): void {
    const index = this.#members.indexOf(member);
    if (index === -1 || this.#stopped) {
      return;
    }
    const fresh = this.#spawn();
    this.#members[index] = fresh;
    const started = this.#starting.get(member);
    if (started !== undefined) {
      this.#starting.set(fresh, started);
    }
    fresh.send({ type: 'table', version: this.#version, ...this.#table.whole() });
    if (this.#namespaces.size > 0) {
      fresh.send({ type: 'namespaces', change: { isAll: true, namespaces: [...this.#namespaces] } });
    }
  }

  /** Ends all workers. Nobody waits for them any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#members.map((member) => member.terminate()));
    for (const resolve of [...this.#starting.values(), ...this.#awaitingVersion.map((one) => one.resolve)]) {
      resolve();
    }
  }

  #spawn(): PoolMember {
    return new PoolMember(this.#options.start, this.#options.connectCapabilities(), this.#listener);
  }
}
