// Keeps copies of the modules of policy servers. Every controller does, whether it leads or not.
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { Backoff } from '../../cluster/index.ts';
import {
  type ControlAddress,
  ControlClient,
  type ControlTls,
  type CopiesReport,
  type CopySource,
  parseControlAddress,
  type SentCopy,
} from '../../control/index.ts';
import { type Digest, isDigest, type ModuleCopies, type ModuleCopy } from '../../modules/index.ts';
import type { PolicyRevision, PolicyServerReplica } from '../../resources/index.ts';
import { type CachedObjects, pause, type Runnable, SYSTEM_CLOCK } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { receiveModule, UnnamedCertificate } from './receive-module.ts';
import { hasRoom, MIN_COPY_BYTES } from './copy-room.ts';
import { CLUSTER, type CopyKey, copyKeyText, type WantedCopies, type WantedCopy } from './wanted-copies.ts';

/** Replicas that are asked for a module in one attempt: one that has it is among the first, after a rollout. */
const MAX_REPLICAS_ASKED = 8;

export interface ModuleKeeperOptions {
  readonly revisions: Pick<CachedObjects<PolicyRevision>, 'subscribe'> & { readonly synced: Promise<void> };
  readonly replicas: Pick<CachedObjects<PolicyServerReplica>, 'list' | 'subscribe'>;
  /** The namespace of both. */
  readonly namespace: string;
  readonly wanted: WantedCopies;
  readonly copies: ModuleCopies;
  /** Space for copies. Bytes. */
  readonly maxBytes: number;
  readonly tls: ControlTls;
  readonly log: Logger;
}

/** A module that is not there yet. */
interface Missing {
  readonly wanted: WantedCopy;
  readonly backoff: Backoff;
  /** Milliseconds of the clock. */
  dueAt: number;
  /** Its size, once a replica has said it. */
  size?: number;
  /** Whether there is no room for it. */
  isRefused?: boolean;
}

/**
 * Copies modules that revisions need from replicas of their PolicyServer, one at a time. A replica has to have the module: no other
 * PolicyServer gives it, and none gets it. What serves is never removed; modules of former revisions make room.
 */
export class ModuleKeeper implements Runnable, CopySource {
  readonly name = 'module copies';
  readonly #options: ModuleKeeperOptions;
  readonly #client: ControlClient;
  readonly #log: Logger;
  readonly #missing = new Map<string, Missing>();
  readonly #listeners = new Set<() => void>();
  readonly #process = randomUUID();
  /** Copies that may belong to no revision any more. Removed by the loop that writes, so that both never meet. */
  readonly #unwanted = new Map<string, CopyKey>();
  /** PolicyServers whose certificates do not name them, which is logged once. */
  readonly #unnamed = new Set<string>();
  #changes = 0;
  #wake: () => void = () => undefined;

  constructor(options: ModuleKeeperOptions) {
    this.#options = options;
    this.#client = new ControlClient(options.tls);
    this.#log = options.log.child({ component: 'module copies' });
  }

  find(policyServers: readonly string[], digest: string): SentCopy | undefined {
    const { copies } = this.#options;
    const copy = isDigest(digest)
      ? policyServers.map((policyServer) => copies.get(policyServer, digest)).find((one) => one !== undefined)
      : undefined;
    return copy && { size: copy.size, content: this.#read(copy) };
  }

  report(): CopiesReport {
    const refused = [...this.#missing.values()].filter(({ isRefused }) => isRefused).map(({ wanted }) => wanted);
    return {
      version: `${this.#process}.${this.#changes}`,
      copies: byPolicyServer(this.#options.copies.list()),
      refused: byPolicyServer(refused),
    };
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs until `signal` is aborted, once the folder is open. */
  async start(signal: AbortSignal): Promise<void> {
    const { copies, replicas, revisions, wanted } = this.#options;
    await Promise.race([revisions.synced, stopped(signal)]);
    if (signal.aborted) {
      return;
    }
    const ends = [
      revisions.subscribe((change) => wanted.apply(change).forEach((one) => this.#want(one))),
      // Replicas that have just started, or come back, may have what is missing.
      replicas.subscribe(() => this.#retryAll()),
    ];
    for (const copy of copies.list()) {
      this.#unwanted.set(copyKeyText(copy), copy);
    }
    this.#changed();
    while (!signal.aborted) {
      await this.#removeUnwanted();
      await this.#copyNext(signal);
    }
    ends.forEach((end) => end());
    this.#client.close();
  }

  /** Reads the folder. One that cannot be used is tried again until `signal` is aborted. */
  async open(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    for (let isOpen = false; !isOpen && !signal.aborted;) {
      try {
        await this.#options.copies.open();
        isOpen = true;
      } catch (error) {
        this.#log.error({ error: errorText(error) }, 'the folder for copies of modules cannot be used, trying again');
        await pause(SYSTEM_CLOCK, backoff.failed(SYSTEM_CLOCK.now()), signal);
      }
    }
  }

  /** A module has other users than before. */
  #want(wanted: WantedCopy): void {
    const { copies } = this.#options;
    const key = copyKeyText(wanted);
    if (wanted.users.size === 0) {
      this.#missing.delete(key);
      this.#unwanted.set(key, wanted);
    } else if (!wanted.isLive) {
      this.#missing.delete(key);
    } else if (copies.get(wanted.policyServer, wanted.digest) === undefined && !this.#missing.has(key)) {
      this.#missing.set(key, { wanted, backoff: new Backoff(), dueAt: 0 });
    }
    // Another state may have made room.
    this.#retryRefused();
    this.#wake();
  }

  async #removeUnwanted(): Promise<void> {
    const { copies, wanted } = this.#options;
    for (const [key, copy] of this.#unwanted) {
      this.#unwanted.delete(key);
      if (wanted.get(copy) === undefined && copies.get(copy.policyServer, copy.digest) !== undefined) {
        await copies.remove(copy.policyServer, copy.digest);
        this.#changed();
      }
    }
  }

  #retryAll(): void {
    for (const missing of this.#missing.values()) {
      missing.dueAt = 0;
    }
    this.#wake();
  }

  #retryRefused(): void {
    for (const missing of this.#missing.values()) {
      if (missing.isRefused === true) {
        missing.dueAt = 0;
      }
    }
  }

  /** Copies the most important module that is due, or waits. */
  async #copyNext(signal: AbortSignal): Promise<void> {
    const now = SYSTEM_CLOCK.now();
    const all = [...this.#missing.values()];
    const [next] = all.filter(({ dueAt }) => dueAt <= now).toSorted(clusterFirst);
    if (next === undefined) {
      const dueAt = Math.min(...all.map((missing) => missing.dueAt), now + MAX_WAIT_MS);
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await pause(SYSTEM_CLOCK, dueAt - now, AbortSignal.any([signal, woken.signal]));
      return;
    }
    const wasRefused = next.isRefused;
    if (await this.#copy(next, signal)) {
      this.#missing.delete(copyKeyText(next.wanted));
      this.#changed();
      return;
    }
    next.dueAt = SYSTEM_CLOCK.now() + next.backoff.failed(SYSTEM_CLOCK.now());
    if (next.isRefused !== wasRefused) {
      this.#changed();
    }
  }

  /** Whether the module is there now. */
  async #copy(missing: Missing, signal: AbortSignal): Promise<boolean> {
    const { wanted } = missing;
    if (missing.size !== undefined && !this.#fits(missing, missing.size)) {
      return false;
    }
    for (const address of this.#addresses(wanted.policyServer)) {
      try {
        const received = await receiveModule(this.#client, address, wanted, signal);
        if (received === undefined) {
          continue;
        }
        missing.size = received.size;
        if (!this.#fits(missing, received.size)) {
          received.cancel();
          return false;
        }
        await this.#makeRoom(received.size);
        await this.#options.copies.write(wanted.policyServer, wanted.digest, received.content, received.size);
        this.#log.info({ policyServer: wanted.policyServer, digest: wanted.digest }, 'module copied');
        return true;
      } catch (error) {
        this.#notReceived(wanted, error);
      }
    }
    return false;
  }

  #notReceived({ policyServer, digest }: WantedCopy, error: unknown): void {
    if (error instanceof UnnamedCertificate && !this.#unnamed.has(policyServer)) {
      this.#unnamed.add(policyServer);
      this.#log.warn(
        { policyServer, error: error.message },
        'modules of a policy server are not copied: see docs/certificates.md',
      );
    }
    this.#log.debug({ error: errorText(error), digest }, 'module not copied, trying others');
  }

  #addresses(policyServer: string): readonly ControlAddress[] {
    const { replicas, namespace } = this.#options;
    return replicas
      .list(namespace)
      .filter(({ spec }) => spec.policyServer === policyServer)
      .flatMap(({ spec }) => parseControlAddress(spec.controlAddress ?? '') ?? [])
      .toSorted(() => Math.random() - 0.5)
      .slice(0, MAX_REPLICAS_ASKED);
  }

  #fits(missing: Missing, size: number): boolean {
    const { copies, maxBytes, wanted: all } = this.#options;
    const used = new Map<string, number>();
    for (const copy of copies.list()) {
      const wanted = all.get(copy);
      if (wanted?.isLive === true) {
        used.set(wanted.owner, (used.get(wanted.owner) ?? 0) + Math.max(copy.size, MIN_COPY_BYTES));
      }
    }
    missing.isRefused = !hasRoom(size, missing.wanted.owner, used, maxBytes);
    return !missing.isRefused;
  }

  /** Removes modules of former revisions, the oldest copies first. */
  async #makeRoom(size: number): Promise<void> {
    const { copies, maxBytes, wanted } = this.#options;
    const all = [...copies.list()];
    let total = all.reduce((sum, copy) => sum + Math.max(copy.size, MIN_COPY_BYTES), Math.max(size, MIN_COPY_BYTES));
    for (const copy of all) {
      if (total > maxBytes && wanted.get(copy)?.isLive !== true) {
        await copies.remove(copy.policyServer, copy.digest);
        total -= Math.max(copy.size, MIN_COPY_BYTES);
      }
    }
  }

  /** The content of a copy; one that is damaged is fetched again. */
  async *#read(copy: ModuleCopy): AsyncGenerator<Uint8Array, void> {
    const { copies } = this.#options;
    try {
      yield* copies.read(copy);
    } catch (error) {
      // Still there where the receiver went away.
      if (copies.get(copy.policyServer, copy.digest) === undefined) {
        this.#removed(copy, error);
      }
      throw error;
    }
  }

  #removed(copy: ModuleCopy, error: unknown): void {
    this.#log.warn({ digest: copy.digest, error: errorText(error) }, 'the copy of a module was damaged and is removed');
    const wanted = this.#options.wanted.get(copy);
    if (wanted !== undefined) {
      this.#want(wanted);
    }
    this.#changed();
  }

  #changed(): void {
    this.#changes += 1;
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** Longest wait without a change. Milliseconds. */
const MAX_WAIT_MS = 60_000;

function clusterFirst(one: Missing, other: Missing): number {
  return Number(other.wanted.owner === CLUSTER) - Number(one.wanted.owner === CLUSTER);
}

function byPolicyServer(
  keys: Iterable<{ readonly policyServer: string; readonly digest: Digest }>,
): Readonly<Record<string, readonly string[]>> {
  const groups = Map.groupBy(keys, ({ policyServer }) => policyServer);
  return Object.fromEntries([...groups].map(([name, group]) => [name, group.map(({ digest }) => digest)]));
}

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
