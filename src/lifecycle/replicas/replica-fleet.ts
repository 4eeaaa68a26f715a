// The replicas of one leadership: a link for each object, their reports, and pre-validations on them.
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { keyOf, keyText } from '../../resources/index.ts';
import type { PolicyServerReplica } from '../../resources/index.ts';
import type { Change, Clock } from '../../runtime/index.ts';
import { ControlClient, prevalidateOn, PREVALIDATION_TIMEOUT_MS } from '../../control/index.ts';
import type {
  ControlAddress,
  ControlTls,
  PrevalidationRequest,
  PrevalidationResult,
  RevisionReport,
} from '../../control/index.ts';
import { removeDeparted } from './departed-replica.ts';
import { errorText } from '../../values/index.ts';
import type { ExceptionReports } from './exception-reports.ts';
import { MonitoredReports } from './monitored-reports.ts';
import type { KnownReplica, ReplicaChange } from './replica-directory.ts';
import { ReplicaLink } from './replica-link.ts';
import type { LinkChange } from './replica-link.ts';
import type { ReplicaTiming } from './replica-timing.ts';

/**
 * Replicas on which a policy is tried when connections break: a policy that crashes replicas must not reach all of
 * them.
 */
const MAX_PREVALIDATION_TRIES = 2;
/**
 * Most replicas of all PolicyServers together, each with a connection: three for each of a hundred PolicyServers, twice while
 * Deployments are rolled out, and room to grow.
 */
const MAX_REPLICAS = 1_000;
/** Most replicas of one PolicyServer, so that objects which name it leave room for others. */
export const MAX_REPLICAS_OF_SERVER = 200;

export interface ReplicaFleetOptions {
  readonly cluster: Cluster;
  readonly tls: ControlTls;
  readonly timing: ReplicaTiming;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly exceptions: Pick<ExceptionReports, 'receive' | 'gone'>;
  readonly notify: (change: ReplicaChange) => void;
}

/** A replica object with its link. */
class Replica implements KnownReplica {
  readonly name: string;
  readonly policyServer: string;
  readonly link: ReplicaLink;
  /** Whether its object existed when the controller started. */
  readonly isInitial: boolean;
  readonly stop = new AbortController();
  /** The newest version of its object. */
  object: PolicyServerReplica;
  /** Pre-validations that run on it. */
  prevalidations = 0;
  isUnready = false;
  removal: AbortController | undefined;

  constructor(object: PolicyServerReplica, isInitial: boolean, link: ReplicaLink) {
    this.name = object.metadata.name ?? '';
    this.policyServer = object.spec.policyServer;
    this.object = object;
    this.isInitial = isInitial;
    this.link = link;
  }

  get state(): KnownReplica['state'] {
    return this.link.state;
  }

  get reportsUses(): boolean {
    return this.link.reportsUses;
  }

  get clockOffsetMs(): number | undefined {
    return this.link.clockOffsetMs;
  }

  get nodeName(): string | undefined {
    return this.object.spec.nodeName;
  }

  reports(policy: string): readonly RevisionReport[] {
    return this.link.reports(policy);
  }
}

/** The replicas during one leadership. */
export class ReplicaFleet {
  readonly monitored = new MonitoredReports();
  readonly #options: ReplicaFleetOptions;
  readonly #client: ControlClient;
  readonly #byName = new Map<string, Replica>();
  /** Objects beyond the limits, by name. */
  readonly #surplus = new Map<string, PolicyServerReplica>();
  /** Removed replicas whose last reports may still arrive, each with a function that cancels the wait. */
  readonly #ending = new Map<Replica, () => void>();
  /** Replicas of a server, sorted by name; computed on demand. */
  readonly #byServer = new Map<string, readonly Replica[]>();
  readonly #changes = new Map<string, Set<string> | 'all'>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #cancelTick: () => void;
  #notifying: NodeJS.Immediate | undefined;
  #isStarted = false;
  #turn = 0;

  constructor(options: ReplicaFleetOptions) {
    this.#options = options;
    this.#client = new ControlClient(options.tls);
    const tick = (): void => {
      this.#cancelTick = options.clock.after(options.timing.tickMs, tick);
      for (const { link } of this.#byName.values()) {
        link.tick();
      }
    };
    this.#cancelTick = options.clock.after(options.timing.tickMs, tick);
  }

  /** Whether a removed replica may still report. */
  isEnding(name: string): boolean {
    return this.#ending.keys().some((replica) => replica.name === name);
  }

  known(): Iterable<Replica> {
    return this.#byName.values();
  }

  replicas(policyServer: string): readonly Replica[] | undefined {
    const replicas = this.#ofServer(policyServer);
    const isComplete = replicas.every(({ isInitial, state }) => !isInitial || state !== 'connecting');
    return this.#isStarted && isComplete ? replicas : undefined;
  }

  /** All replica objects have been added. `policyServers` includes servers without replicas. */
  started(policyServers: readonly string[]): void {
    this.#isStarted = true;
    for (const server of new Set([...policyServers, ...[...this.known()].map(({ policyServer }) => policyServer)])) {
      this.#collectChange(server, 'all');
    }
  }

  replicaChanged({ before, after }: Change<PolicyServerReplica>): void {
    const name = after?.metadata.name ?? before?.metadata.name ?? '';
    const known = this.#byName.get(name);
    if (known !== undefined && after !== undefined && isSameReplica(known.object, after)) {
      known.object = after;
      // A process that starts writes it before its pod is ready.
      this.#setUnready(known, false);
      // The process that wrote the object is alive: reconnect without waiting.
      known.link.retry();
      return;
    }
    this.#surplus.delete(name);
    if (known !== undefined) {
      this.#remove(known);
    }
    if (after !== undefined && after.metadata.deletionTimestamp === undefined) {
      // A replica that restarted together with the controller has a new address before the old one failed.
      const isAwaited = known?.isInitial === true && known.state === 'connecting';
      this.#addWithinLimits(after, !this.#isStarted || isAwaited);
    }
    if (known !== undefined) {
      this.#addSurplus();
    }
  }

  #addWithinLimits(object: PolicyServerReplica, isInitial: boolean): void {
    if (this.#hasRoom(object)) {
      this.#add(object, isInitial);
      return;
    }
    const { name = '' } = object.metadata;
    this.#surplus.set(name, object);
    const { policyServer } = object.spec;
    this.#options.log.warn({ replica: name, policyServer }, 'replica ignored: there are too many');
  }

  #addSurplus(): void {
    for (const [name, object] of this.#surplus) {
      if (this.#hasRoom(object)) {
        this.#surplus.delete(name);
        this.#add(object, false);
        return;
      }
    }
  }

  #hasRoom({ spec }: PolicyServerReplica): boolean {
    return this.#byName.size < MAX_REPLICAS && this.#ofServer(spec.policyServer).length < MAX_REPLICAS_OF_SERVER;
  }

  async prevalidate(
    policyServer: string,
    request: PrevalidationRequest,
    signal: AbortSignal,
  ): Promise<PrevalidationResult | { readonly failure: string }> {
    const tried = new Set<Replica>();
    let failures = 0;
    let failure = 'no replica is connected';
    while (failures < MAX_PREVALIDATION_TRIES) {
      const next = this.#leastBusy(policyServer, tried);
      if (next === undefined) {
        break;
      }
      tried.add(next.replica);
      try {
        const result = await this.#prevalidateOn(next, request, signal);
        if (result !== 'busy') {
          return result;
        }
        failure = `replica ${next.replica.name} is busy`;
      } catch (error) {
        signal.throwIfAborted();
        failures += 1;
        failure = `replica ${next.replica.name} failed: ${errorText(error)}`;
        if (!this.#stop.signal.aborted) {
          this.#options.log.warn({ replica: next.replica.name, error: errorText(error) }, 'pre-validation failed');
        }
      }
    }
    return { failure };
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('the controller stops'));
    this.#cancelTick();
    clearImmediate(this.#notifying);
    for (const cancel of this.#ending.values()) {
      cancel();
    }
    for (const replica of [...this.#byName.values(), ...this.#ending.keys()]) {
      stopReplica(replica);
    }
    this.#client.close();
    await Promise.all(this.#running);
  }

  #ofServer(policyServer: string): readonly Replica[] {
    let replicas = this.#byServer.get(policyServer);
    if (replicas === undefined) {
      replicas = [...this.known()]
        .filter((replica) => replica.policyServer === policyServer)
        .toSorted((one, other) => (one.name < other.name ? -1 : 1));
      this.#byServer.set(policyServer, replicas);
    }
    return replicas;
  }

  #add(object: PolicyServerReplica, isInitial: boolean): void {
    const { timing, clock, random, log } = this.#options;
    const name = object.metadata.name ?? '';
    const replica: Replica = new Replica(
      object,
      isInitial,
      new ReplicaLink({
        name,
        address: object.spec.controlAddress,
        client: this.#client,
        timing,
        clock,
        random,
        log: log.child({ replica: name, policyServer: object.spec.policyServer }),
        changed: (change) => this.#linkChanged(replica, change),
        received: (reports) => this.#collectChange(replica.policyServer, this.monitored.receive(replica, reports)),
        used: (uses) => this.#options.exceptions.receive(name, uses),
      }),
    );
    this.#byName.set(name, replica);
    this.#byServer.clear();
    this.#collectChange(replica.policyServer, 'all');
    this.#keepRunning(replica.link.run(replica.stop.signal));
  }

  #remove(replica: Replica): void {
    this.#byName.delete(replica.name);
    this.#byServer.clear();
    replica.removal?.abort();
    replica.link.end();
    const cancel = this.#options.clock.after(this.#options.timing.returnMs, () => {
      stopReplica(replica);
      this.#ending.delete(replica);
      this.#options.exceptions.gone(replica.name);
    });
    this.#ending.set(replica, cancel);
    this.#collectChange(replica.policyServer, 'all');
  }

  #linkChanged(replica: Replica, change: LinkChange): void {
    if (replica.stop.signal.aborted || this.#byName.get(replica.name) !== replica) {
      return;
    }
    this.#collectChange(replica.policyServer, typeof change === 'string' ? 'all' : change);
    if (change !== 'state') {
      return;
    }
    replica.removal?.abort();
    replica.removal = undefined;
    replica.isUnready = false;
    if (replica.state === 'lost') {
      const removal = new AbortController();
      replica.removal = removal;
      const log = this.#options.log.child({ replica: keyText(keyOf(replica.object)) });
      const unready = (isUnready: boolean): void => {
        if (!removal.signal.aborted) {
          this.#setUnready(replica, isUnready);
        }
      };
      const options = { ...this.#options, log, unready };
      this.#keepRunning(removeDeparted(() => replica.object, options, removal.signal));
    }
  }

  #setUnready(replica: Replica, isUnready: boolean): void {
    if (replica.isUnready !== isUnready) {
      replica.isUnready = isUnready;
      this.#collectChange(replica.policyServer, 'all');
    }
  }

  #keepRunning(task: Promise<void>): void {
    this.#running.add(task);
    task.then(
      () => this.#running.delete(task),
      (error: unknown) => {
        this.#running.delete(task);
        this.#options.log.error({ error: errorText(error) }, 'a task of a replica failed');
      },
    );
  }

  /** Collects the changes of one turn of the event loop. */
  #collectChange(policyServer: string, policies: ReadonlySet<string> | 'all'): void {
    if (policies !== 'all' && policies.size === 0) {
      return;
    }
    const known = this.#changes.get(policyServer);
    if (policies === 'all') {
      this.#changes.set(policyServer, 'all');
    } else if (known === undefined) {
      this.#changes.set(policyServer, new Set(policies));
    } else if (known !== 'all') {
      for (const policy of policies) {
        known.add(policy);
      }
    }
    this.#notifying ??= setImmediate(() => this.#notify());
  }

  #notify(): void {
    this.#notifying = undefined;
    const changes = [...this.#changes];
    this.#changes.clear();
    for (const [policyServer, policies] of changes) {
      // A server whose replicas are not known yet is reported later, by the last replica to report.
      if (!this.#stop.signal.aborted && this.replicas(policyServer) !== undefined) {
        this.#options.notify({ policyServer, policies: policies === 'all' ? 'all' : [...policies] });
      }
    }
  }

  /** The connected replica with the fewest pre-validations; equal ones in turn. */
  #leastBusy(
    policyServer: string,
    except: ReadonlySet<Replica>,
  ): { readonly replica: Replica; readonly address: ControlAddress } | undefined {
    const connected = this.#ofServer(policyServer).flatMap((replica) => {
      const { address } = replica.link;
      return address === undefined || except.has(replica) ? [] : [{ replica, address }];
    });
    this.#turn += 1;
    const from = this.#turn % Math.max(1, connected.length);
    const inTurn = [...connected.slice(from), ...connected.slice(0, from)];
    return inTurn.toSorted((one, other) => one.replica.prevalidations - other.replica.prevalidations)[0];
  }

  async #prevalidateOn(
    { replica, address }: { readonly replica: Replica; readonly address: ControlAddress },
    request: PrevalidationRequest,
    signal: AbortSignal,
  ): Promise<PrevalidationResult | 'busy'> {
    const call = new AbortController();
    const reasons = [signal, replica.link.lost, this.#stop.signal];
    const stop = (event: Event): void => {
      const source = event.target;
      call.abort(source instanceof AbortSignal ? source.reason : undefined);
    };
    const cancel = this.#options.clock.after(PREVALIDATION_TIMEOUT_MS, () =>
      call.abort(new Error(`no response within ${PREVALIDATION_TIMEOUT_MS} ms`)),
    );
    for (const reason of reasons) {
      reason.addEventListener('abort', stop, { once: true });
    }
    replica.prevalidations += 1;
    try {
      signal.throwIfAborted();
      return await prevalidateOn(this.#client, address, request, call.signal);
    } catch (error) {
      throw call.signal.aborted ? call.signal.reason : error;
    } finally {
      replica.prevalidations -= 1;
      cancel();
      for (const reason of reasons) {
        reason.removeEventListener('abort', stop);
      }
    }
  }
}

function stopReplica(replica: Replica): void {
  replica.stop.abort(new Error('the replica is gone'));
  replica.removal?.abort();
}

/** Whether a changed object still describes the process of the link. */
function isSameReplica(one: PolicyServerReplica, other: PolicyServerReplica): boolean {
  return (
    one.metadata.uid === other.metadata.uid &&
    one.metadata.deletionTimestamp === other.metadata.deletionTimestamp &&
    one.spec.policyServer === other.spec.policyServer &&
    one.spec.controlAddress === other.spec.controlAddress
  );
}
