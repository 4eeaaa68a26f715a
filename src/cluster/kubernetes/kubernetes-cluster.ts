import { apiVersionOf, isJsonObject } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject, ObjectKey, ResourceType } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';
import type {
  Cluster,
  DeleteOptions,
  ListOptions,
  ObjectList,
  Patch,
  RequestOptions,
  SubresourceOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../cluster.ts';
import { ClusterError } from '../errors.ts';
import { jsonOf, warningsOf } from './answer.ts';
import type { ApiAnswer } from './answer.ts';
import type { Connection } from './connection.ts';
import { DiscoveryCache } from './discovery.ts';
import { HttpClient } from './http-client.ts';
import { OpenApiCache } from './open-api.ts';
import { collectionPath, objectPath, queryText, resourcePath } from './resource-path.ts';
import { watchEvents } from './watch-stream.ts';

/** Content type of each kind of patch. */
const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is YAML; API servers before 1.34 have no content type for JSON.
  apply: 'application/apply-patch+yaml',
} as const satisfies Record<Patch['type'], string>;

/** API servers end a watch without a timeout after 30 to 60 minutes (`--min-request-timeout`). Seconds. */
const WATCH_LONGEST_SECONDS = 3600;
/** How late a server may end a watch before its connection counts as dead. Milliseconds. */
const SILENCE_MARGIN_MS = 30_000;

export interface KubernetesClusterOptions {
  /** Default field manager of requests. Default: portcullis. */
  readonly fieldManager?: string;
  /** Default: portcullis. */
  readonly userAgent?: string;
  /** Limit for connecting. Milliseconds. Default: 5,000. */
  readonly connectTimeoutMs?: number;
  /** Limit for a response. Milliseconds. Default: 70,000. */
  readonly requestTimeoutMs?: number;
  /** Silence after which a GET is sent again on a new connection. Milliseconds. Default: 10,000. */
  readonly staleConnectionMs?: number;
  /** Concurrent requests, watches excluded; more wait. Default: 32. */
  readonly maxConnections?: number;
}

/** Options of {@link KubernetesCluster.request}. */
export interface RawRequestOptions extends RequestOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON; a string is sent unchanged. */
  readonly body?: unknown;
  /** Content type of the body. Default: application/json. */
  readonly contentType?: string;
  /** Default: application/json. See {@link TABLE_ACCEPT}. */
  readonly accept?: string;
  /** For one attempt. Milliseconds. */
  readonly timeoutMs?: number;
  readonly onWarning?: (text: string) => void;
}

/** An unparsed response. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly contentType: string;
  readonly text: string;
  /** @throws ClusterError `answer-malformed` when it is not JSON. */
  json(): unknown;
}

/** Accepts a `meta.k8s.io/v1` Table, or objects from servers without tables. */
export const TABLE_ACCEPT = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

/** The response of `/version`. */
export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** `v1.34.4` */
  readonly gitVersion: string;
}

/** A Kubernetes API server as one user sees it, over HTTPS. */
export class KubernetesCluster implements Cluster, Disposable {
  readonly discovery: DiscoveryCache;
  readonly openApi: OpenApiCache;
  readonly #http: HttpClient;
  readonly #server: string;
  readonly #fieldManager: string;

  /** @throws ClusterError `request-invalid` when the server's address is malformed. */
  constructor(connection: Connection, options: KubernetesClusterOptions = {}) {
    const { fieldManager = 'portcullis', userAgent = 'portcullis', ...limits } = options;
    this.#http = new HttpClient(connection, { userAgent, ...limits });
    this.#server = connection.server.replace(/\/$/, '');
    this.#fieldManager = fieldManager;
    this.discovery = new DiscoveryCache(async (path, accept, signal) => {
      const answer = await this.#http.send({ method: 'GET', path, accept, signal });
      return jsonOf(answer, this.#name('GET', path));
    });
    this.openApi = new OpenApiCache(async (path, signal) => {
      const { body } = await this.#http.send({ method: 'GET', path, signal });
      return body.toString('utf8');
    });
  }

  get<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options: RequestOptions & SubresourceOptions & { readonly resourceVersion?: string } = {},
  ): Promise<T> {
    return this.#forType(async () => {
      const { subresource, resourceVersion, signal } = options;
      const path = objectPath(type, key, subresource) + queryText({ resourceVersion });
      return (await this.#json('GET', path, { signal })) as T;
    });
  }

  list<T extends KubernetesObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    return this.#forType(async () => {
      const { signal, namespace, ...query } = options;
      const path = resourcePath(type, { namespace }) + queryText(query);
      return listOf<T>(await this.#json('GET', path, { signal }), type, this.#name('GET', path));
    });
  }

  async *watch<T extends KubernetesObject>(
    type: ResourceType<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void> {
    const { signal, namespace, allowBookmarks, sendInitialEvents, ...query } = options;
    const path = resourcePath(type, { namespace });
    const parameters = {
      ...query,
      allowWatchBookmarks: allowBookmarks,
      sendInitialEvents,
      // Required with `sendInitialEvents`.
      resourceVersionMatch: sendInitialEvents === true ? 'NotOlderThan' : undefined,
    };
    yield* this.events<T>(path, { query: parameters, ...(signal === undefined ? {} : { signal }) });
  }

  /** A watch of any path, such as one of tables ({@link TABLE_ACCEPT}). Fails like {@link watch}. */
  async *events<T extends KubernetesObject>(
    path: string,
    options: Pick<RawRequestOptions, 'query' | 'accept' | 'signal'> = {},
  ): AsyncGenerator<WatchEvent<T>, void> {
    const { signal, accept, query } = options;
    const full = path + queryText({ ...query, watch: true });
    const seconds = Number(query?.['timeoutSeconds'] ?? WATCH_LONGEST_SECONDS);
    try {
      const stream = await this.#http.stream({
        method: 'GET',
        path: full,
        signal,
        ...(accept === undefined ? {} : { accept }),
      });
      yield* watchEvents<T>(stream, seconds * 1000 + SILENCE_MARGIN_MS, this.#name('GET', full));
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof ApiError || error instanceof ClusterError ? error : this.#http.streamError(error);
    }
  }

  create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    const { namespace, name } = object.metadata;
    return this.#forType(async () => {
      const path =
        options.subresource === undefined
          ? collectionPath(type, namespace)
          : objectPath(
              type,
              { ...(namespace === undefined ? {} : { namespace }), name: name ?? '' },
              options.subresource,
            );
      return (await this.#write('POST', path, object, options)) as T;
    });
  }

  update<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    const { namespace, name = '' } = object.metadata;
    return this.#forType(async () => {
      const key = namespace === undefined ? { name } : { namespace, name };
      return (await this.#write('PUT', objectPath(type, key, options.subresource), object, options)) as T;
    });
  }

  patch<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    return this.#forType(async () => {
      const path = objectPath(type, key, options.subresource);
      const force = patch.type === 'apply' && patch.force === true ? true : undefined;
      return (await this.#write('PATCH', path, patch.body, options, PATCH_TYPES[patch.type], force)) as T;
    });
  }

  delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    return this.#forType(async () => {
      const answer = await this.#json('DELETE', objectPath(type, key), { ...options, body: deletionBody(options) });
      return isTerminating(answer) ? (answer as T) : undefined;
    });
  }

  deleteCollection(
    type: ResourceType,
    options: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> = {},
  ): Promise<void> {
    return this.#forType(async () => {
      const { namespace, labelSelector, fieldSelector } = options;
      const path = collectionPath(type, namespace) + queryText({ labelSelector, fieldSelector });
      await this.#json('DELETE', path, { ...options, body: deletionBody(options) });
    });
  }

  /** Sends any request, such as for `/readyz`, `/openapi/v3` or a table. A status of 400 or more is an ApiError. */
  async request(method: string, path: string, options: RawRequestOptions = {}): Promise<RawAnswer> {
    const { query, body, contentType, accept, timeoutMs, signal, onWarning } = options;
    const full = path + queryText(query ?? {});
    const answer = await this.#http.send({
      method,
      path: full,
      signal,
      ...(accept === undefined ? {} : { accept }),
      ...(contentType === undefined ? {} : { contentType }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(body === undefined ? {} : { body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) }),
    });
    warn(answer, onWarning);
    return {
      status: answer.status,
      headers: answer.headers,
      contentType: answer.contentType,
      get text() {
        return answer.body.toString('utf8');
      },
      json: () => jsonOf(answer, this.#name(method, full)),
    };
  }

  /** The server's version. */
  async version(options: RequestOptions = {}): Promise<ServerVersion> {
    const version = (await this.request('GET', '/version', options)).json();
    const read = (key: string): string => {
      const value = isJsonObject(version) ? version[key] : undefined;
      return typeof value === 'string' ? value : '';
    };
    return { major: read('major'), minor: read('minor'), gitVersion: read('gitVersion') };
  }

  /** Ends all requests and watches, and closes the connections. */
  close(): void {
    this.#http.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #name(method: string, path: string): string {
    return `${method} ${this.#server}${path}`;
  }

  /** Drops cached discovery when the type is no longer served. */
  async #forType<R>(send: () => Promise<R>): Promise<R> {
    try {
      return await send();
    } catch (error) {
      if (error instanceof ApiError && error.code === 404 && error.details?.name === undefined) {
        this.discovery.invalidate();
      }
      throw error;
    }
  }

  #write(
    method: string,
    path: string,
    body: unknown,
    options: WriteOptions,
    contentType = 'application/json',
    force?: boolean,
  ): Promise<JsonObject> {
    const { dryRun, fieldManager = this.#fieldManager, fieldValidation, signal, onWarning } = options;
    const query = queryText({ dryRun: dryRun === true ? 'All' : undefined, fieldManager, fieldValidation, force });
    return this.#json(method, path + query, { body, contentType, signal, onWarning });
  }

  async #json(
    method: string,
    path: string,
    options: {
      readonly body?: unknown;
      readonly contentType?: string;
      readonly signal?: AbortSignal | undefined;
      readonly onWarning?: ((text: string) => void) | undefined;
    },
  ): Promise<JsonObject> {
    const { body, contentType, signal, onWarning } = options;
    const answer = await this.#http.send({
      method,
      path,
      signal,
      ...(contentType === undefined ? {} : { contentType }),
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    });
    warn(answer, onWarning);
    const value = jsonOf(answer, this.#name(method, path));
    if (!isJsonObject(value)) {
      throw new ClusterError('answer-malformed', `${this.#name(method, path)}: expected an object, got other JSON`);
    }
    return value;
  }
}

function warn(answer: ApiAnswer, onWarning: ((text: string) => void) | undefined): void {
  if (onWarning !== undefined) {
    warningsOf(answer.headers['warning']).forEach((text) => onWarning(text));
  }
}

/** Completes the items of builtin kinds, which come without `apiVersion` and `kind`. */
function listOf<T extends KubernetesObject>(list: JsonObject, type: ResourceType<T>, request: string): ObjectList<T> {
  const { metadata, items } = list;
  // Some servers send null for an empty list.
  const present = items ?? [];
  if (!isJsonObject(metadata) || !Array.isArray(present)) {
    throw new ClusterError('answer-malformed', `${request}: expected a list with metadata and items, got other JSON`);
  }
  const apiVersion = apiVersionOf(type);
  const { resourceVersion, continue: next, remainingItemCount } = metadata;
  return {
    metadata: {
      resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
      ...(typeof next === 'string' && next !== '' ? { continue: next } : {}),
      ...(typeof remainingItemCount === 'number' ? { remainingItemCount } : {}),
    },
    items: present.map((item) => ({ apiVersion, kind: type.kind, ...(item as JsonObject) }) as T),
  };
}

function deletionBody(options: DeleteOptions): JsonObject {
  const { gracePeriodSeconds, propagationPolicy = 'Background', preconditions, dryRun } = options;
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    propagationPolicy,
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(preconditions === undefined ? {} : { preconditions: { ...preconditions } }),
    ...(dryRun === true ? { dryRun: ['All'] } : {}),
  };
}

/**
 * Whether the deleted object still exists. Servers respond with a Status when it is gone, or for some kinds with the
 * object's last state, without finalizers.
 */
function isTerminating(answer: JsonObject): boolean {
  const { kind, metadata, spec } = answer;
  if (kind === 'Status' || !isJsonObject(metadata) || typeof metadata['deletionTimestamp'] !== 'string') {
    return false;
  }
  const grace = metadata['deletionGracePeriodSeconds'];
  return (
    hasEntries(metadata['finalizers']) ||
    (typeof grace === 'number' && grace > 0) ||
    // Namespaces have their own finalizers.
    (isJsonObject(spec) && hasEntries(spec['finalizers']))
  );
}

function hasEntries(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
