// The exceptions that an auditor judges by: a change of one, and its end, have the objects of its namespace judged again.
import type { Cluster } from '../../cluster/index.ts';
import { ExceptionTable, exceptionsKey } from '../../engine/index.ts';
import { applyExceptions, type EvaluationHost, type WatchedChange } from '../../evaluation/index.ts';
import { ExceptionFeed, type PolicyUids } from '../../evaluation/object-feeds/index.ts';
import type { Logger } from '../../log/index.ts';
import type { Runnable } from '../../runtime/index.ts';

/** Longest delay that a timer of Node takes is 24.8 days. Milliseconds. */
const MAX_DELAY_MS = 20 * 86_400_000;

export interface AuditorExceptionsOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly host: Pick<EvaluationHost, 'publishWatched'>;
  readonly log: Logger;
}

/** Gives the host the exceptions of the cluster, and knows which ones a verdict depends on. */
export class AuditorExceptions implements Runnable {
  readonly name = 'exceptions';
  readonly #host: AuditorExceptionsOptions['host'];
  readonly #feed: ExceptionFeed;
  readonly #table = new ExceptionTable();
  readonly #listeners = new Set<(namespace: string) => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ cluster, host, log }: AuditorExceptionsOptions) {
    this.#host = host;
    this.#feed = new ExceptionFeed({ cluster, publish: (change) => this.#changed(change), log });
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#feed.start(signal);
    clearTimeout(this.#timer);
  }

  /** See {@link ExceptionFeed.want}. */
  want(changes: PolicyUids, isFirst: boolean): void {
    this.#feed.want(changes, isFirst);
  }

  /** See {@link exceptionsKey}. */
  keyOf(policy: string, namespace: string | undefined): string {
    return exceptionsKey(this.#table.of(policy, namespace ?? '', Date.now()));
  }

  /** Called with namespaces whose exceptions changed. Returns how to end that. */
  onChange(listener: (namespace: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(change: WatchedChange): void {
    this.#host.publishWatched(change);
    applyExceptions(this.#table, change);
    this.#tell(change.objects.map(([{ namespace = '' }]) => namespace));
    this.#awaitEnd();
  }

  #tell(namespaces: Iterable<string>): void {
    for (const namespace of new Set(namespaces)) {
      this.#listeners.forEach((listener) => listener(namespace));
    }
  }

  /** Waits for the next end of an exception. */
  #awaitEnd(): void {
    clearTimeout(this.#timer);
    const now = Date.now();
    const next = this.#table.nextEnd(now);
    if (next === undefined) {
      return;
    }
    const ended = (): void => {
      this.#tell(this.#table.endingAt(next));
      this.#awaitEnd();
    };
    const delay = next - now;
    this.#timer = setTimeout(() => (delay > MAX_DELAY_MS ? this.#awaitEnd() : ended()), Math.min(delay, MAX_DELAY_MS));
    this.#timer.unref();
  }
}
