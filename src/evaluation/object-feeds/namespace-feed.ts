// Labels of namespaces, for policies that select by them, and annotations and labels that are parameters of policies.
// Watched only while such policies exist: most policies select namespaces by name, or all. After a start, recorded labels
// are used while the cluster is unavailable.
import { ApiError } from '../../cluster/index.ts';
import { kubernetesKind, namespaceText } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import type { FindResult } from '../watched-objects.ts';
import type { NamespaceEntry, NamespaceRecord } from './namespace-record.ts';
import type { ChangedNeeds } from './object-needs.ts';
import { KindFeed, type KindFeedOptions } from './kind-feed.ts';

/** HTTP statuses of an API server that does not say what a request is about: it does not know who asks, or is overloaded. */
const WITHOUT_ANSWER: readonly number[] = [401, 429];

type Labels = NamespaceEntry[1];

export interface NamespaceFeedOptions extends Pick<KindFeedOptions, 'cluster' | 'publish' | 'log'> {
  /** Records labels for the next start. Default: they are read anew. */
  readonly record?: NamespaceRecord;
}

/** Watches and publishes the labels of namespaces while policies need them. */
export class NamespaceFeed {
  readonly #options: NamespaceFeedOptions;
  readonly #kind: KindFeed;
  /** Policies that need labels or annotations, with the annotations. */
  readonly #needing = new Map<string, readonly string[]>();
  /** Annotations that the watch keeps. */
  #annotations: readonly string[] = [];
  /** Labels recorded before the start, until the watch reports. */
  #recorded: ReadonlyMap<string, Labels>;
  #isRestored = false;
  #stopped = false;

  constructor(options: NamespaceFeedOptions) {
    const { cluster, publish, record, log } = options;
    this.#options = options;
    this.#recorded = record?.read() ?? new Map<string, Labels>();
    const type = kubernetesKind('v1', 'Namespace');
    if (type === undefined) {
      throw new Error('expected Namespace among the known kinds');
    }
    this.#kind = new KindFeed({
      cluster,
      type,
      transform: (namespace) => trimmed(namespace, this.#annotations),
      textOf: ({ metadata }) => namespaceText(metadata, this.#annotations),
      publish,
      changed: () => {
        this.#recorded = new Map();
        record?.changed(() => this.#kind.list().map(entryOf));
      },
      failed: (error) => this.failed(error),
      log,
    });
  }

  /** Whether namespaces are watched now. */
  get isWatched(): boolean {
    return this.#kind.isWatched;
  }

  /** Updates which policies need labels; `isFirst`: these are all policies. */
  want(changes: ChangedNeeds, isFirst: boolean): void {
    if (isFirst) {
      this.#needing.clear();
    }
    for (const [id, needs] of changes) {
      if (needs?.readsNamespaces === true) {
        this.#needing.set(id, needs.annotations);
      } else {
        this.#needing.delete(id);
      }
    }
    if (this.#stopped) {
      return;
    }
    if (this.#keepsNewAnnotations()) {
      this.#kind.rewatch();
    } else if (this.#needing.size > 0) {
      this.#kind.watch();
    } else if (this.#kind.isWatched || this.#recorded.size > 0) {
      this.#kind.unwatch();
    }
  }

  /** Whether an annotation is needed that the watch does not have. Those no longer needed are kept until then. */
  #keepsNewAnnotations(): boolean {
    const needed = new Set([...this.#needing.values()].flat());
    if ([...needed].every((key) => this.#annotations.includes(key))) {
      return false;
    }
    this.#annotations = [...needed].toSorted();
    return true;
  }

  /** Called when the cluster could not be read. In an outage after a start, recorded labels are published. */
  failed(error: unknown): void {
    if (!isOutage(error) || this.#isRestored || this.#stopped) {
      return;
    }
    this.#isRestored = true;
    if (this.#recorded.size > 0) {
      this.#kind.restore([...this.#recorded].map(([name, labels]) => [{ name }, namespaceText({ labels })]));
      this.#options.log.warn(
        { namespaces: this.#recorded.size, error: errorText(error) },
        'the cluster cannot be reached: policies go by the labels that namespaces had before the start',
      );
    }
  }

  /** Reads one namespace and publishes its labels. Never rejects. */
  find(name: string): Promise<FindResult> {
    return this.#kind.find({ name });
  }

  /** Resolves when the last labels are on disk. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const flushed = this.#options.record?.flush();
    this.#kind.stop();
    await flushed;
  }
}

/** Whether a request failed without an answer of an available API server; a refusal is an answer. */
export function isOutage(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code >= 500 || WITHOUT_ANSWER.includes(error.code);
}

function entryOf({ metadata: { name = '', labels = {} } }: KubernetesObject): NamespaceEntry {
  return [name, labels];
}

/** The fields of a namespace that are kept. */
function trimmed({ apiVersion, kind, metadata }: KubernetesObject, keys: readonly string[]): KubernetesObject {
  const { name, uid, resourceVersion, labels, annotations = {}, deletionTimestamp } = metadata;
  const kept = Object.entries(annotations).filter(([key]) => keys.includes(key));
  return {
    apiVersion,
    kind,
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }),
    },
  };
}
