import type { ContextAwareResource } from '../../resources/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { GetRequest, KubernetesReader, ListRequest } from '../../engine/capabilities/index.ts';
import type { ClusterReader } from './cluster-reader.ts';
import type { ClusterSource } from './cluster-source.ts';
import type { KindRevisions } from './kind-revisions.ts';
import type { LogEntry } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';

/** Delay before the cluster is opened again after a failure: the kubeconfig is probably wrong. Milliseconds. */
const REOPEN_MS = 5_000;

/** Loads the client and opens the cluster on the first read or declared kind. */
export class LazyReader implements KubernetesReader {
  readonly #source: ClusterSource;
  readonly #revisions: KindRevisions;
  readonly #log: (entry: LogEntry) => void;
  #declared: readonly ContextAwareResource[] = [];
  #opening: Promise<ClusterReader> | undefined;
  #reader: ClusterReader | undefined;

  constructor(source: ClusterSource, revisions: KindRevisions, log: (entry: LogEntry) => void) {
    this.#source = source;
    this.#revisions = revisions;
    this.#log = log;
  }

  /** See {@link ClusterReader.declare}. */
  async declare(resources: readonly ContextAwareResource[]): Promise<void> {
    this.#declared = resources;
    try {
      const reader = await this.#opened();
      reader.declare(this.#declared);
    } catch {
      // Logged. A read tries again, and gets the error.
    }
  }

  async get(request: GetRequest, signal?: AbortSignal): Promise<JsonObject | undefined> {
    return (await this.#opened(signal)).get(request, signal);
  }

  async list(request: ListRequest, signal?: AbortSignal): Promise<JsonObject> {
    return (await this.#opened(signal)).list(request, signal);
  }

  async canI(review: JsonObject, disableCache: boolean, signal?: AbortSignal): Promise<JsonObject> {
    return (await this.#opened(signal)).canI(review, disableCache, signal);
  }

  async pluralName(apiVersion: string, kind: string, signal?: AbortSignal): Promise<string> {
    return (await this.#opened(signal)).pluralName(apiVersion, kind, signal);
  }

  /** See {@link ClusterReader.counterOf}. */
  counterOf(resource: ContextAwareResource): number | undefined {
    return this.#reader?.counterOf(resource);
  }

  async #opened(signal?: AbortSignal): Promise<ClusterReader> {
    this.#opening ??= this.#open();
    const late = Promise.withResolvers<never>();
    const onAbort = (): void => late.reject(new Error('the cluster is still being opened, try again'));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([this.#opening, late.promise]);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #open(): Promise<ClusterReader> {
    try {
      const { ClusterReader, openCluster } = await import('./cluster-reader.ts');
      const { forwardingLog } = await import('../../log/index.ts');
      const cluster = await openCluster(this.#source);
      const reader = new ClusterReader({ cluster, revisions: this.#revisions, log: forwardingLog(this.#log) });
      reader.declare(this.#declared);
      this.#reader = reader;
      return reader;
    } catch (error) {
      const text = errorText(error);
      this.#log({ level: 'error', message: 'the cluster cannot be read', fields: { error: text } });
      setTimeout(() => (this.#opening = undefined), REOPEN_MS).unref();
      throw error;
    }
  }
}
