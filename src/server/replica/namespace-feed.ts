// The labels of a cluster's namespaces, for policies whose selectors ask for them. Followed only while there are such policies:
// most select namespaces by name, or not at all. While the cluster cannot be reached after a start, those of before count.
import { isDeepStrictEqual } from 'node:util';
import { ApiError, type Cluster, isNotFound } from '../../cluster/index.ts';
import { kubernetesKind, NAMESPACE_NAME_LABEL } from '../../resources/index.ts';
import type { KubernetesObject, PolicyMatch, ResourceType } from '../../resources/index.ts';
import { type Change, ObjectCache } from '../../runtime/index.ts';
import type { NamespacesChange } from '../../evaluation/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { NamespaceEntry, NamespaceRecord } from './namespace-record.ts';
import type { WantedChanges, WantedPolicy } from '../policies/wanted-policy.ts';

/**
 * How long a namespace is believed that was asked for by itself and that the watch does not know: long against the delay of
 * a watch. Milliseconds.
 */
export const FOUND_MS = 5_000;
/** How long the API server may take to tell one namespace: less than the shortest time of most webhooks. Milliseconds. */
const FIND_TIMEOUT_MS = 3_000;

/** What an API server answers that has too much to do. */
const TOO_MANY_REQUESTS = 429;

type Labels = NamespaceEntry[1];

const NO_LABELS: Labels = Object.freeze({});

export interface NamespaceFeedOptions {
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'watch'>;
  readonly tell: (change: NamespacesChange) => void;
  /** Where labels are kept for the next start. */
  readonly record: NamespaceRecord;
  readonly log: Logger;
}

/** Follows the labels of namespaces while policies need them. */
export class NamespaceFeed {
  readonly #options: NamespaceFeedOptions;
  readonly #type: ResourceType;
  /** Policies that need labels. */
  readonly #needing = new Set<string>();
  readonly #finding = new Map<string, Promise<string | undefined>>();
  /** Namespaces that were asked for by themselves, and are believed for a while. */
  readonly #forgetting = new Map<string, NodeJS.Timeout>();
  /** What was known before the start, until the cluster says what is right. */
  #recorded: ReadonlyMap<string, Labels>;
  /** Whether that has been told. */
  #isRecordTold = false;
  #following: Following | undefined;
  #stopped = false;

  constructor(options: NamespaceFeedOptions) {
    this.#options = options;
    this.#recorded = options.record.read();
    const type = kubernetesKind('v1', 'Namespace');
    if (type === undefined) {
      throw new Error('expected Namespace among the known kinds');
    }
    this.#type = type;
  }

  /** Whether namespaces are followed now. */
  get isFollowing(): boolean {
    return this.#following !== undefined;
  }

  /** Takes note of what is wanted of some policies; of all that there are, when it is the first that is heard. */
  want(changes: WantedChanges, isFirst: boolean): void {
    if (isFirst) {
      this.#needing.clear();
    }
    for (const [id, wanted] of changes) {
      if (wanted !== undefined && needsLabels(wanted)) {
        this.#needing.add(id);
      } else {
        this.#needing.delete(id);
      }
    }
    if (this.#stopped) {
      return;
    }
    if (this.#needing.size > 0) {
      this.#following ??= this.#follow();
    } else if (this.#following !== undefined || this.#recorded.size > 0) {
      this.#following?.stop();
      this.#following = undefined;
      this.#followed({ isAll: true, namespaces: [] });
    }
  }

  /** The cluster could not be followed. If it cannot be asked either, what was known before the start is told. */
  failed(error: unknown): void {
    if (!isOutage(error) || this.#isRecordTold || this.#stopped) {
      return;
    }
    this.#isRecordTold = true;
    const namespaces = [...this.#recorded].filter(([name]) => !this.#forgetting.has(name));
    if (namespaces.length > 0) {
      this.#options.tell({ isAll: false, namespaces });
      this.#options.log.warn(
        { namespaces: namespaces.length, error: errorText(error) },
        'the cluster cannot be reached: policies go by the labels that namespaces had before the start',
      );
    }
  }

  /** Asks the cluster for one namespace, and tells its labels. Why there are none, if so; never rejects. */
  find(name: string): Promise<string | undefined> {
    const finding = this.#finding.get(name) ?? this.#find(name).finally(() => this.#finding.delete(name));
    this.#finding.set(name, finding);
    return finding;
  }

  /** Resolves when what was known last is on disk. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#following?.stop();
    for (const timer of this.#forgetting.values()) {
      clearTimeout(timer);
    }
    const kept = this.#options.record.flush();
    this.#following = undefined;
    await kept;
  }

  #follow(): Following {
    const { cluster, log } = this.#options;
    return new Following({ cluster, log, tell: (change) => this.#followed(change) }, this.#type);
  }

  /** What the cluster says, or that nobody needs to know it. */
  #followed(change: NamespacesChange): void {
    this.#recorded = new Map();
    this.#options.tell(change);
    this.#options.record.changed(() => this.#following?.list() ?? []);
  }

  async #find(name: string): Promise<string | undefined> {
    const { cluster, tell } = this.#options;
    try {
      const found = await cluster.get(this.#type, { name }, { signal: AbortSignal.timeout(FIND_TIMEOUT_MS) });
      tell({ isAll: false, namespaces: [[name, labelsOf(found)]] });
      this.#believeForAWhile(name);
      return undefined;
    } catch (error) {
      if (isNotFound(error)) {
        return `Cannot find v1/Namespace named "${name}"`;
      }
      this.failed(error);
      return this.#isRecordTold && this.#recorded.has(name) ? undefined : errorText(error);
    }
  }

  /** Later what the watch says is right: it may have told already that the namespace is gone, or it does not work. */
  #believeForAWhile(name: string): void {
    clearTimeout(this.#forgetting.get(name));
    const timer = setTimeout(() => {
      this.#forgetting.delete(name);
      const recorded = this.#isRecordTold ? this.#recorded.get(name) : undefined;
      this.#options.tell({ isAll: false, namespaces: [[name, this.#following?.labels(name) ?? recorded]] });
    }, FOUND_MS);
    timer.unref();
    this.#forgetting.set(name, timer);
  }
}

/** One watch of the namespaces. */
class Following {
  readonly #tell: NamespaceFeedOptions['tell'];
  readonly #cache: ObjectCache;
  readonly #stopping = new AbortController();
  readonly #changed = new Set<string>();
  #telling: NodeJS.Immediate | undefined;
  #isTold = false;

  constructor({ cluster, tell, log }: Omit<NamespaceFeedOptions, 'record'>, type: ResourceType) {
    this.#tell = tell;
    this.#cache = new ObjectCache({ cluster, type, transform: labelsOnly, log });
    this.#cache.subscribe((change) => this.#receive(change));
    this.#cache.synced.then(
      () => this.#tellAll(),
      () => undefined,
    );
    void this.#cache.start(this.#stopping.signal);
  }

  labels(name: string): Labels | undefined {
    const namespace = this.#isTold ? this.#cache.get({ name }) : undefined;
    return namespace === undefined ? undefined : labelsOf(namespace);
  }

  list(): NamespaceEntry[] {
    return this.#cache.list().map((one) => [one.metadata.name ?? '', labelsOf(one)]);
  }

  stop(): void {
    clearImmediate(this.#telling);
    this.#stopping.abort(new Error('no policy needs the labels of namespaces'));
  }

  #receive({ before, after }: Change): void {
    const name = (after ?? before)?.metadata.name;
    const isSame = before !== undefined && after !== undefined && isDeepStrictEqual(labelsOf(before), labelsOf(after));
    if (name !== undefined && this.#isTold && !isSame) {
      this.#changed.add(name);
      this.#telling ??= setImmediate(() => this.#tellChanged());
    }
  }

  #tellAll(): void {
    if (!this.#stopping.signal.aborted) {
      this.#isTold = true;
      this.#tell({ isAll: true, namespaces: this.list() });
    }
  }

  #tellChanged(): void {
    this.#telling = undefined;
    const namespaces = [...this.#changed].map((name) => [name, this.labels(name)] as const);
    this.#changed.clear();
    this.#tell({ isAll: false, namespaces });
  }
}

/** Whether a request failed because there was no API server that could answer it; not one that refuses. */
export function isOutage(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code >= 500 || error.code === TOO_MANY_REQUESTS;
}

function labelsOf({ metadata }: KubernetesObject): Labels {
  return metadata.labels ?? NO_LABELS;
}

/** All that is kept of a namespace. */
function labelsOnly({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, uid, resourceVersion, labels } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
    },
  };
}

function needsLabels({ serving, staged, failed }: WantedPolicy): boolean {
  return [serving, ...staged, failed].some((one) => one?.match !== undefined && selectsByLabels(one.match));
}

/** Whether a policy selects namespaces by more than their names. */
function selectsByLabels({ namespaceSelector: { matchLabels = {}, matchExpressions = [] } }: PolicyMatch): boolean {
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  return keys.some((key) => key !== NAMESPACE_NAME_LABEL);
}
