// Which controllers have copies of which modules, as they say themselves. Only the leader asks.
import type { Logger } from 'pino';
import { Backoff, type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  ControlClient,
  type ControlTls,
  COPIES_WAIT_MS,
  type CopiesReport,
  MAX_COPIES_BYTES,
  parseControlAddress,
  parseCopiesReport,
} from '../../control/index.ts';
import { CONTROLLER_REPLICAS, type ControllerReplica, keyOf } from '../../resources/index.ts';
import { aborted, type CachedObjects, pause, type Runnable, SYSTEM_CLOCK } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { type CopyKey, copyKeyText } from './wanted-copies.ts';

/** Time for an answer, besides the time that the controller waits for a change. Milliseconds. */
const ANSWER_MS = 5_000;
/**
 * How long the copies of a controller that does not answer, or is gone, count: a rolling update of controllers, each of which copies
 * all modules again, changes no status. Milliseconds.
 */
const LOST_AFTER_MS = 30_000;
/** Most controllers: a few, twice during an update, and what ended processes left. */
const MAX_CONTROLLERS = 32;

/** What is known about copies of some modules. */
export interface CopyCount {
  /** Controllers that have all of them. */
  readonly controllers: number;
  /** Their nodes; undefined for one that does not say it. */
  readonly nodes: readonly (string | undefined)[];
  /** Whether a controller has no room for one of them. */
  readonly isRefused: boolean;
}

export interface CopyDirectoryOptions {
  readonly cluster: Pick<Cluster, 'delete'>;
  readonly controllers: Pick<CachedObjects<ControllerReplica>, 'subscribe'> & { readonly synced: Promise<void> };
  readonly tls: ControlTls;
  readonly log: Logger;
  /** Default: {@link LOST_AFTER_MS}. */
  readonly lostAfterMs?: number;
}

/** A controller, and what it said last. */
interface Holder {
  readonly object: ControllerReplica;
  readonly stop: AbortController;
  version: string;
  /** The same as sets of copy keys. */
  copies: ReadonlySet<string>;
  refused: ReadonlySet<string>;
  /** Whether it has answered, or failed to. */
  isKnown: boolean;
}

export class CopyDirectory implements Runnable {
  readonly name = 'directory of module copies';
  readonly #options: CopyDirectoryOptions;
  readonly #log: Logger;
  readonly #holders = new Map<string, Holder>();
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  readonly #running = new Set<Promise<void>>();
  #client: ControlClient | undefined;
  #isSynced = false;

  constructor(options: CopyDirectoryOptions) {
    this.#options = options;
    this.#log = options.log.child({ component: 'module copies' });
  }

  /** Undefined until every controller has answered, or failed to. */
  count(keys: readonly CopyKey[]): CopyCount | undefined {
    const holders = [...this.#holders.values()];
    if (!this.#isSynced || !holders.every(({ isKnown }) => isKnown)) {
      return undefined;
    }
    const texts = keys.map((key) => copyKeyText(key));
    const complete = holders.filter(({ copies }) => texts.every((text) => copies.has(text)));
    return {
      controllers: complete.length,
      nodes: complete.map(({ object }) => object.spec.nodeName),
      isRefused: holders.some(({ refused }) => texts.some((text) => refused.has(text))),
    };
  }

  /** Calls the listener with the keys, as text, of modules whose copies have changed. Returns a function that unsubscribes. */
  subscribe(listener: (changed: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs until `signal` is aborted. Can be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const { controllers, tls } = this.#options;
    this.#client = new ControlClient(tls);
    const end = controllers.subscribe(({ before, after }) => this.#controllerChanged(before, after, signal));
    await Promise.race([controllers.synced.catch(() => undefined), aborted(signal)]);
    this.#isSynced = true;
    await aborted(signal);
    end();
    for (const { stop } of this.#holders.values()) {
      stop.abort();
    }
    await Promise.all(this.#running);
    this.#holders.clear();
    this.#isSynced = false;
    this.#client.close();
  }

  #controllerChanged(
    before: ControllerReplica | undefined,
    after: ControllerReplica | undefined,
    signal: AbortSignal,
  ): void {
    const name = (after ?? before)?.metadata.name ?? '';
    const known = this.#holders.get(name);
    if (known !== undefined && after?.spec.controlAddress === known.object.spec.controlAddress) {
      return;
    }
    known?.stop.abort();
    if (after === undefined || (known === undefined && !this.#hasRoomFor(after))) {
      return;
    }
    const stop = new AbortController();
    const holder: Holder = { object: after, stop, version: '', copies: new Set(), refused: new Set(), isKnown: false };
    this.#holders.set(name, holder);
    const running = this.#follow(name, holder, signal).then(() => {
      this.#running.delete(running);
    });
    this.#running.add(running);
  }

  /** Whether there is room for one more: the oldest that has not answered makes it. A process that is alive writes its object again. */
  #hasRoomFor({ spec }: ControllerReplica): boolean {
    if (this.#holders.size < MAX_CONTROLLERS) {
      return true;
    }
    const [oldest] = [...this.#holders.values()].filter(({ version }) => version === '').toSorted(byStart);
    if (oldest === undefined || (spec.startedAt ?? '') < (oldest.object.spec.startedAt ?? '')) {
      return false;
    }
    oldest.stop.abort();
    this.#holders.delete(oldest.object.metadata.name ?? '');
    void this.#removeIfLeft(oldest, true);
    return true;
  }

  /** Asks a controller for its copies until it is gone. Then they count for a while. Never rejects. */
  async #follow(name: string, holder: Holder, leading: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([leading, holder.stop.signal]);
    const { lostAfterMs = LOST_AFTER_MS } = this.#options;
    const backoff = new Backoff();
    let answeredAt = SYSTEM_CLOCK.now();
    while (!signal.aborted) {
      try {
        await this.#ask(holder, signal);
        answeredAt = SYSTEM_CLOCK.now();
        backoff.reset();
      } catch (error) {
        if (signal.aborted) {
          break;
        }
        this.#log.debug({ controller: name, error: errorText(error) }, 'controller not asked for its copies');
        if (!holder.isKnown || SYSTEM_CLOCK.now() - answeredAt > lostAfterMs) {
          this.#set(holder, undefined);
          await this.#removeIfLeft(holder, SYSTEM_CLOCK.now() - answeredAt > lostAfterMs);
        }
        await pause(SYSTEM_CLOCK, backoff.failed(SYSTEM_CLOCK.now()), signal);
      }
    }
    await pause(SYSTEM_CLOCK, lostAfterMs, leading);
    if (this.#holders.get(name) === holder) {
      this.#holders.delete(name);
    }
    this.#set(holder, undefined);
  }

  async #ask(holder: Holder, signal: AbortSignal): Promise<void> {
    const address = parseControlAddress(holder.object.spec.controlAddress);
    if (address === undefined || this.#client === undefined) {
      throw new Error(`${holder.object.spec.controlAddress} is no address`);
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(COPIES_WAIT_MS + ANSWER_MS)]);
    const options = { signal: limit, maxBytes: MAX_COPIES_BYTES };
    const { status, body } = await this.#client.get(
      address,
      `/copies?after=${encodeURIComponent(holder.version)}`,
      options,
    );
    if (status === 200) {
      this.#set(holder, parseCopiesReport(String(body)));
    } else if (status !== 204) {
      throw new Error(`expected status 200 or 204, got ${status}`);
    }
  }

  #set(holder: Holder, report: CopiesReport | undefined): void {
    const wasKnown = holder.isKnown;
    const [copies, refused] = [keysOf(report?.copies), keysOf(report?.refused)];
    const changed = new Set([
      ...holder.copies.symmetricDifference(copies),
      ...holder.refused.symmetricDifference(refused),
    ]);
    Object.assign(holder, { version: report?.version ?? '', copies, refused, isKnown: true });
    if (changed.size > 0 || !wasKnown) {
      this.#listeners.forEach((listener) => listener(changed));
    }
  }

  /** Removes the object of a process outside of pods that ended without a chance to. Garbage collection removes the others. */
  async #removeIfLeft({ object }: Holder, isLost: boolean): Promise<void> {
    const { uid, ownerReferences = [] } = object.metadata;
    if (isLost && ownerReferences.length === 0 && uid !== undefined) {
      const options = { preconditions: { uid } };
      await unlessGone(this.#options.cluster.delete(CONTROLLER_REPLICAS, keyOf(object), options)).catch(
        (error: unknown) => this.#log.debug({ error: errorText(error) }, 'controller not removed'),
      );
    }
  }
}

function byStart({ object: one }: Holder, { object: other }: Holder): number {
  return (one.spec.startedAt ?? '') < (other.spec.startedAt ?? '') ? -1 : 1;
}

function keysOf(digests: CopiesReport['copies'] = {}): ReadonlySet<string> {
  return new Set(
    Object.entries(digests).flatMap(([policyServer, list]) =>
      list.map((digest) => copyKeyText({ policyServer, digest })),
    ),
  );
}
