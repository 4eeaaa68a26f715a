// Reads of context-aware policies: from caches of the kinds that loaded policies declare, and from the cluster for the rest.
// Runs in the capability thread, which loads it on the first read.
import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import {
  ApiError,
  inClusterAccess,
  isNotFound,
  KubernetesCluster,
  listAll,
  loadKubeconfig,
  ObjectSelection,
  reviewAccess,
} from '../../cluster/index.ts';
import type { ApiResource, Cluster } from '../../cluster/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { GetRequest, KubernetesReader, ListRequest } from '../../engine/capabilities/index.ts';
import {
  groupVersionOf,
  kubernetesSchema,
  parseFieldSelector,
  parseLabelSelector,
  selectableFieldsOf,
  withoutManagedFields,
} from '../../resources/index.ts';
import type { ContextAwareResource, KubernetesObject, ObjectKey } from '../../resources/index.ts';
import { asJson, errorText, KeptEntries } from '../../values/index.ts';
import { CachedKind, NotServed, reasonOf, TooManyObjects } from './cached-kind.ts';
import type { ClusterSource } from './cluster-source.ts';
import type { KindRevisions } from './kind-revisions.ts';
import { accessReviewSpec } from './subject-access-review.ts';

/** Maximum number of cached kinds: policies of a cluster share a dozen, and each is a watch. Others are read from the API server. */
const MAX_CACHED_KINDS = 64;
/** Maximum number of cached objects: at 7 KiB for a pod 350 MiB. A kind that does not fit is read from the API server. */
const MAX_CACHED_OBJECTS = 50_000;
/** How long the answer to an access review is used again, unless the policy wants a new one. As in Kubewarden. Milliseconds. */
const ACCESS_REVIEW_MS = 5_000;
/** Maximum number of kept access reviews: a few KiB each. */
const MAX_ACCESS_REVIEWS = 1_000;

const EVENTS_GROUP = 'events.k8s.io';
const METADATA_FIELDS: ReadonlySet<string> = new Set(['metadata.name', 'metadata.namespace']);

export interface ClusterReaderOptions {
  readonly cluster: Cluster;
  /** Counters of changes, by kind. */
  readonly revisions: KindRevisions;
  readonly log: Logger;
  /** Default: {@link MAX_CACHED_KINDS}. */
  readonly maxKinds?: number;
  /** Default: {@link MAX_CACHED_OBJECTS}. */
  readonly maxObjects?: number;
}

/**
 * The cluster of a source.
 * @throws ClusterError when there is none, or its kubeconfig is wrong.
 */
export async function openCluster(source: ClusterSource): Promise<KubernetesCluster> {
  const { kind, env } = source;
  if (kind === 'in-cluster') {
    return new KubernetesCluster((await inClusterAccess({ env })).connection);
  }
  const { file, context } = source;
  const { connection } = await loadKubeconfig({
    env,
    ...(file === undefined ? {} : { paths: [file] }),
    ...(context === undefined ? {} : { context }),
  });
  return new KubernetesCluster(connection);
}

/** Reads of a cluster, for policies. */
export class ClusterReader implements KubernetesReader {
  readonly #cluster: Cluster;
  readonly #revisions: KindRevisions;
  readonly #log: Logger;
  readonly #maxKinds: number;
  readonly #maxObjects: number;
  readonly #kinds = new Map<string, CachedKind>();
  readonly #reviews = new KeptEntries<string, { readonly until: number; readonly status: Promise<JsonObject> }>({
    maxEntries: MAX_ACCESS_REVIEWS,
  });

  constructor(options: ClusterReaderOptions) {
    this.#cluster = options.cluster;
    this.#revisions = options.revisions;
    this.#log = options.log;
    this.#maxKinds = options.maxKinds ?? MAX_CACHED_KINDS;
    this.#maxObjects = options.maxObjects ?? MAX_CACHED_OBJECTS;
  }

  /** Sets the cached kinds. */
  declare(resources: readonly ContextAwareResource[]): void {
    const wanted = new Map(resources.slice(0, this.#maxKinds).map((resource) => [kindKey(resource), resource]));
    if (resources.length > this.#maxKinds) {
      const fields = { kinds: resources.length, limit: this.#maxKinds };
      this.#log.warn(fields, 'policies declare more kinds than are cached, the rest is read from the cluster');
    }
    for (const [key, cached] of this.#kinds) {
      if (!wanted.has(key)) {
        this.#kinds.delete(key);
        cached.stop();
      }
    }
    for (const [key, resource] of wanted) {
      if (!this.#kinds.has(key)) {
        this.#kinds.set(key, this.#follow(resource));
      }
    }
  }

  async get(request: GetRequest, signal?: AbortSignal): Promise<JsonObject | undefined> {
    const cached = request.disableCache ? undefined : this.#kinds.get(kindKey(request));
    if (cached !== undefined) {
      try {
        const cache = await cached.read(signal);
        const object = cache.get(objectKey(request, cache.type.namespaced));
        return object && asJson(object);
      } catch (error) {
        if (!(error instanceof TooManyObjects)) {
          throw error;
        }
      }
    }
    return this.#fromCluster(request, signal, async (type) => {
      try {
        const key = objectKey(request, type.namespaced);
        return asJson(withoutManagedFields(await this.#cluster.get(type, key, options(signal))));
      } catch (error) {
        if (isNotFound(error)) {
          return undefined;
        }
        throw error;
      }
    });
  }

  async list(request: ListRequest, signal?: AbortSignal): Promise<JsonObject> {
    const cached = this.#kinds.get(kindKey(request));
    const matches = selection(request);
    if (cached !== undefined && matches !== undefined) {
      try {
        const cache = await cached.read(signal);
        checkScope(request, cache.type.namespaced);
        const objects = cache.list(request.namespace);
        const { resourceVersion = '' } = cache.report;
        return listOf(request, resourceVersion, objects.filter(matches));
      } catch (error) {
        if (!(error instanceof TooManyObjects)) {
          throw error;
        }
      }
    }
    return this.#fromCluster(request, signal, async (type) => {
      checkScope(request, type.namespaced);
      const { apiVersion: _apiVersion, kind: _kind, ...where } = request;
      const { items, metadata } = await listAll(this.#sparing(), type, { ...where, ...options(signal) });
      return listOf(request, metadata.resourceVersion, items.map(withoutManagedFields));
    });
  }

  async canI(review: JsonObject, disableCache: boolean, signal?: AbortSignal): Promise<JsonObject> {
    const spec = accessReviewSpec(review);
    // The review may be of any length.
    const key = createHash('sha256').update(JSON.stringify(spec)).digest('base64');
    const now = performance.now();
    const known = this.#reviews.get(key);
    if (!disableCache && known !== undefined && known.until > now) {
      return known.status;
    }
    const status = this.#review(spec, signal);
    this.#reviews.set(key, { until: now + ACCESS_REVIEW_MS, status });
    // A failure is not kept.
    status.catch(() => this.#reviews.delete(key));
    return status;
  }

  async pluralName(apiVersion: string, kind: string, signal?: AbortSignal): Promise<string> {
    const current = this.#kinds.get(kindKey({ apiVersion, kind }))?.current;
    return current === undefined
      ? this.#fromCluster({ apiVersion, kind }, signal, ({ resource }) => Promise.resolve(resource))
      : current.type.resource;
  }

  /** The counter of {@link KindRevisions} for changes of the kind. Undefined: the kind is not cached now. */
  counterOf(resource: ContextAwareResource): number | undefined {
    const cached = this.#kinds.get(kindKey(resource));
    return cached?.current === undefined ? undefined : cached.counter;
  }

  /** Ends all watches. */
  close(): void {
    this.declare([]);
  }

  #follow(resource: ContextAwareResource): CachedKind {
    const cached: CachedKind = new CachedKind({
      cluster: this.#cluster,
      resource,
      revisions: this.#revisions,
      log: this.#log,
      room: () => {
        const others = [...this.#kinds.values()].filter((other) => other !== cached);
        return this.#maxObjects - others.reduce((sum, { size }) => sum + size, 0);
      },
    });
    return cached;
  }

  /** Reads from the cluster; an error names the kind and what to do. */
  async #fromCluster<R>(
    { apiVersion, kind }: ContextAwareResource,
    signal: AbortSignal | undefined,
    ask: (type: ApiResource) => Promise<R>,
  ): Promise<R> {
    let type: ApiResource | undefined;
    try {
      type = await this.#cluster.discovery.find(apiVersion, kind, options(signal));
      if (type === undefined) {
        throw new NotServed({ apiVersion, kind });
      }
      return await ask(type);
    } catch (error) {
      throw new Error(`cannot read ${apiVersion}/${kind}: ${reasonOf(error, type)}`, { cause: error });
    }
  }

  /** Fails for lists that are too large to be cached. */
  #sparing(): Pick<Cluster, 'list'> {
    return {
      list: async (type, query) => {
        const page = await this.#cluster.list(type, query);
        const count = page.items.length + (page.metadata.remainingItemCount ?? 0);
        if (count > this.#maxObjects) {
          throw new TooManyObjects(
            `there are ${count} objects, expected at most ${this.#maxObjects}; read fewer of them`,
          );
        }
        return page;
      },
    };
  }

  async #review(spec: JsonObject, signal: AbortSignal | undefined): Promise<JsonObject> {
    try {
      return await reviewAccess(this.#cluster, spec, options(signal));
    } catch (error) {
      const isForbidden = error instanceof ApiError && error.code === 403;
      const advice = isForbidden ? '; allow the policy server to create subjectaccessreviews.authorization.k8s.io' : '';
      throw new Error(`cannot review access: ${errorText(error)}${advice}`, {
        cause: error,
      });
    }
  }
}

function kindKey({ apiVersion, kind }: ContextAwareResource): string {
  return `${apiVersion} ${kind}`;
}

function options(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function objectKey({ apiVersion, kind, namespace, name }: GetRequest, isNamespaced: boolean): ObjectKey {
  if (isNamespaced && namespace === undefined) {
    throw new Error(`${apiVersion}/${kind} objects are in namespaces: expected a namespace, got none`);
  }
  return isNamespaced && namespace !== undefined ? { namespace, name } : { name };
}

function checkScope({ apiVersion, kind, namespace }: ListRequest, isNamespaced: boolean): void {
  if (!isNamespaced && namespace !== undefined) {
    throw new Error(`${apiVersion}/${kind} objects are in no namespace: list all of them`);
  }
}

/** Whether an object matches the selectors of a request. Undefined: only the API server can evaluate them. */
function selection(request: ListRequest): ((object: KubernetesObject) => boolean) | undefined {
  const { apiVersion, kind, labelSelector = '', fieldSelector = '' } = request;
  const fields = parseFieldSelector(fieldSelector);
  if (fields.requirements.every(({ field }) => METADATA_FIELDS.has(field))) {
    const labels = parseLabelSelector(labelSelector);
    return ({ metadata }) =>
      labels.matches(metadata.labels) &&
      fields.matches({ 'metadata.name': metadata.name ?? '', 'metadata.namespace': metadata.namespace ?? '' });
  }
  const schema = apiVersion.startsWith(EVENTS_GROUP) ? undefined : kubernetesSchema(apiVersion, kind);
  if (schema === undefined) {
    return undefined;
  }
  const selectableFields = selectableFieldsOf(groupVersionOf(apiVersion).group, kind);
  const selected = new ObjectSelection(
    { origin: 'builtin', schema: () => schema, selectableFields },
    { labelSelector, fieldSelector },
  );
  return (object) => selected.matches(object);
}

function listOf(
  { apiVersion, kind }: ListRequest,
  resourceVersion: string,
  items: readonly KubernetesObject[],
): JsonObject {
  return asJson({ apiVersion, kind: `${kind}List`, metadata: { resourceVersion }, items });
}
