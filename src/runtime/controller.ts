import type { Logger } from 'pino';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import { keyText } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import type { Clock } from './clock.ts';
import { SYSTEM_CLOCK } from './clock.ts';
import type { EventSink } from './event-recorder.ts';
import type { RuntimeMetrics } from './metrics.ts';
import { outcomeOfError, outcomeOfResult } from './reconcile-outcome.ts';
import type { ReconcileOutcome, ReconcileResult } from './reconcile-outcome.ts';
import type { ReconcileAttempt } from './reconcile-steps.ts';
import { aborted } from './runnable.ts';
import type { Runnable } from './runnable.ts';
import type { Watch } from './watch.ts';
import { WorkQueue } from './work-queue.ts';
import type { AddOptions, WorkQueueOptions } from './work-queue.ts';

/**
 * Makes the cluster match an object. Level-based: it gets a key and reads the current state. `signal` is aborted when
 * the attempt times out or the controller stops. `outcomeOfError` maps a thrown error to retry, status, event and log
 * line.
 */
type Reconciler = (
  key: ObjectKey,
  signal: AbortSignal,
  attempt: ReconcileAttempt,
) => Promise<ReconcileResult | void> | ReconcileResult | void;

/** Time limit of one reconciliation: longer than all retries of a request. Milliseconds. */
const DEFAULT_RECONCILE_TIMEOUT_MS = 120_000;

export interface ControllerOptions {
  readonly name: string;
  readonly reconcile: Reconciler;
  readonly watches: readonly Watch[];
  /** How many keys are reconciled in parallel. A key is never reconciled twice at once. Default: 1. */
  readonly concurrency?: number;
  /** The owner of a key: owners take turns. Default: its namespace. */
  readonly ownerOf?: (key: ObjectKey) => string | undefined;
  /** Default: {@link DEFAULT_RECONCILE_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /** The sink for events of failures, and the object that they are about. Default: failures are only logged. */
  readonly events?: { readonly sink: EventSink; readonly of: (key: ObjectKey) => KubernetesObject | undefined };
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  /** Default: the defaults of {@link WorkQueue}. */
  readonly retries?: Pick<WorkQueueOptions, 'baseMs' | 'capMs' | 'rate'>;
  readonly clock?: Clock;
}

/**
 * Reconciles keys from its watches, from {@link enqueue}, and from failed attempts. Owners, by default namespaces, take turns, so that a
 * change in one does not wait for thousands in another.
 */
export class Controller implements Runnable {
  readonly name: string;
  readonly ready: Promise<void>;
  readonly #options: ControllerOptions;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #started = Promise.withResolvers<void>();
  #queue: WorkQueue | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.name = options.name;
    this.#log = options.log.child({ controller: options.name });
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.ready = this.#started.promise;
  }

  /** Enqueues a key for a reason that no watch sees. Has no effect while the controller is stopped. */
  enqueue(key: ObjectKey, options?: AddOptions): void {
    this.#queue?.add(keyText(key), options);
  }

  /** Whether no key is being reconciled, or waits for it other than by a delay. */
  get isIdle(): boolean {
    return this.#queue === undefined || this.#queue.depth + this.#queue.active === 0;
  }

  /** Runs until `signal` is aborted. Can be started again. */
  async start(signal: AbortSignal): Promise<void> {
    const { concurrency = 1, metrics, watches, ownerOf = ({ namespace }) => namespace } = this.#options;
    const queueMetrics = metrics?.queue(this.name);
    const queue = new WorkQueue({
      ...this.#options.retries,
      clock: this.#clock,
      ownerOf: (item) => ownerOf(keyOfText(item)),
      ...(queueMetrics === undefined ? {} : { observer: queueMetrics.observer }),
    });
    this.#queue = queue;
    metrics?.controller(this.name, concurrency);
    const detach = queueMetrics?.attach(queue);
    const disconnects = watches.map((watch) =>
      watch.connect(
        (key, priority) => queue.add(keyText(key), { priority }),
        (error) =>
          this.#log.error({ watch: watch.name, error: errorText(error) }, 'a change could not be mapped to keys'),
      ),
    );
    try {
      // An object that is not yet in a cache would look deleted.
      await Promise.race([aborted(signal), Promise.all(watches.map(({ synced }) => synced))]);
      if (signal.aborted) {
        return;
      }
      const workers = Array.from({ length: concurrency }, () => this.#work(queue, signal));
      this.#started.resolve();
      await aborted(signal);
      void queue.shutDown();
      await Promise.all(workers);
    } finally {
      this.#queue = undefined;
      for (const disconnect of disconnects) {
        disconnect();
      }
      void queue.shutDown();
      detach?.();
    }
  }

  async #work(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const item = await queue.take();
      if (item === undefined || signal.aborted) {
        return;
      }
      await this.#process(queue, item, signal);
      queue.done(item);
    }
  }

  async #process(queue: WorkQueue, item: string, signal: AbortSignal): Promise<void> {
    const { metrics, timeoutMs = DEFAULT_RECONCILE_TIMEOUT_MS } = this.#options;
    const started = this.#clock.now();
    metrics?.reconcileStarted(this.name);
    const key = keyOfText(item);
    const attempt = { failures: queue.failures(item), stopped: signal };
    const outcome = await this.#reconcile(key, attempt, timeoutMs);
    switch (outcome.queue.action) {
      case 'forget':
        queue.forget(item);
        break;
      case 'after':
        queue.forget(item);
        queue.add(item, { afterMs: outcome.queue.afterMs });
        break;
      case 'backoff':
        queue.retry(item, outcome.queue);
        break;
      default:
        outcome.queue satisfies never;
    }
    this.#report(key, outcome, queue.failures(item));
    metrics?.reconcileEnded(this.name, outcome.kind, (this.#clock.now() - started) / 1000);
  }

  /** Never rejects: the reconciler may throw synchronously, or ignore its signal. */
  async #reconcile(key: ObjectKey, attempt: ReconcileAttempt, timeoutMs: number): Promise<ReconcileOutcome> {
    const signal = attempt.stopped;
    const limit = new AbortController();
    const stop = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const cancel = this.#clock.after(timeoutMs, () =>
      limit.abort(new Error(`the reconciliation took longer than ${timeoutMs} ms`)),
    );
    try {
      return outcomeOfResult(await this.#options.reconcile(key, limit.signal, attempt));
    } catch (error) {
      return outcomeOfError(error, signal, attempt.failures);
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  #report(key: ObjectKey, { log, event }: ReconcileOutcome, failures: number): void {
    try {
      if (log !== undefined) {
        this.#log[log.level]({ ...key, ...log.fields, ...(failures > 0 ? { failures } : {}) }, log.message);
      }
      const { events } = this.#options;
      const object = event === undefined ? undefined : events?.of(key);
      if (event !== undefined && object !== undefined) {
        events?.sink.event(object, event.type, event.reason, event.message);
      }
    } catch (error) {
      this.#log.error({ ...key, error: errorText(error) }, 'the outcome of a reconciliation could not be reported');
    }
  }
}

/** The inverse of keyText: names contain no slash. */
function keyOfText(text: string): ObjectKey {
  const slash = text.indexOf('/');
  return slash === -1 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
