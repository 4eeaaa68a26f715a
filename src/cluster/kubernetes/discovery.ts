// Cached discovery. Aggregated documents (KEP-3352) take two requests; older servers need one per group and version.
import { apiVersionOf, isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';
import type { ApiResource, Discovery, DiscoveryOptions, RequestOptions } from '../cluster.ts';

/** Documents older than this are fetched again. New kinds are found at once; removed ones may be reported for this long. */
const MAX_AGE_MS = 10 * 60_000;
/** Refreshes for unknown kinds: the token bucket's burst… */
const MISS_BURST = 4;
// …and its refill interval, as a controller whose kind is not installed asks repeatedly.
const MISS_INTERVAL_MS = 5_000;
/** Documents that are fetched in parallel. */
const PARALLEL = 8;

const AGGREGATED = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .concat('application/json')
  .join(',');

/** Fetches a path as JSON. */
export type FetchJson = (path: string, accept: string, signal: AbortSignal | undefined) => Promise<unknown>;

/** What documents say. */
interface Discovered {
  readonly resources: readonly ApiResource[];
  /** See Discovery. */
  readonly unavailable: readonly string[];
}

interface Snapshot extends Discovered {
  readonly byKind: ReadonlyMap<string, ApiResource>;
  readonly at: number;
}

export class DiscoveryCache implements Discovery {
  readonly #fetch: FetchJson;
  readonly #now: () => number;
  #snapshot: Snapshot | undefined;
  #pending: Promise<Snapshot> | undefined;
  #misses = MISS_BURST;
  #missesAt = 0;

  /** @param now milliseconds, for ages */
  constructor(fetch: FetchJson, now: () => number = () => performance.now()) {
    this.#fetch = fetch;
    this.#now = now;
  }

  async resources(options: RequestOptions & DiscoveryOptions = {}): Promise<readonly ApiResource[]> {
    return (await this.#current(options.signal, options.maxAgeMs)).resources;
  }

  async unavailable(options: RequestOptions & DiscoveryOptions = {}): Promise<readonly string[]> {
    return (await this.#current(options.signal, options.maxAgeMs)).unavailable;
  }

  async find(apiVersion: string, kind: string, options: RequestOptions = {}): Promise<ApiResource | undefined> {
    const key = `${apiVersion} ${kind}`;
    const before = this.#snapshot;
    const found = (await this.#current(options.signal)).byKind.get(key);
    if (found !== undefined || this.#snapshot !== before || !this.#mayLookAgain()) {
      return found;
    }
    return (await this.#refresh(options.signal)).byKind.get(key);
  }

  /** Drops the cache, after a type was no longer served. */
  invalidate(): void {
    this.#snapshot = undefined;
  }

  #mayLookAgain(): boolean {
    const now = this.#now();
    this.#misses = Math.min(MISS_BURST, this.#misses + (now - this.#missesAt) / MISS_INTERVAL_MS);
    this.#missesAt = now;
    if (this.#misses < 1) {
      return false;
    }
    this.#misses -= 1;
    return true;
  }

  #current(signal: AbortSignal | undefined, maxAgeMs: number = MAX_AGE_MS): Promise<Snapshot> {
    const known = this.#snapshot;
    return known !== undefined && this.#now() - known.at < maxAgeMs ? Promise.resolve(known) : this.#refresh(signal);
  }

  /** Concurrent callers share one refresh. It continues when the caller that started it is aborted. */
  async #refresh(signal: AbortSignal | undefined): Promise<Snapshot> {
    signal?.throwIfAborted();
    this.#pending ??= this.#load().finally(() => {
      this.#pending = undefined;
    });
    return await abortable(this.#pending, signal);
  }

  async #load(): Promise<Snapshot> {
    const [core, groups] = await Promise.all([this.#root('/api'), this.#root('/apis')]);
    const resources = [...core.resources, ...groups.resources];
    const byKind = new Map<string, ApiResource>();
    for (const resource of resources) {
      const key = `${apiVersionOf(resource)} ${resource.kind}`;
      if (!byKind.has(key)) {
        byKind.set(key, resource);
      }
    }
    const unavailable = [...core.unavailable, ...groups.unavailable];
    this.#snapshot = { resources, unavailable, byKind, at: this.#now() };
    return this.#snapshot;
  }

  async #root(path: '/api' | '/apis'): Promise<Discovered> {
    const document = await this.#fetch(path, AGGREGATED, undefined);
    if (!isJsonObject(document)) {
      return { resources: [], unavailable: [] };
    }
    if (document['kind'] === 'APIGroupDiscoveryList') {
      return { resources: aggregatedResources(document), unavailable: staleVersions(document) };
    }
    const versions = path === '/api' ? texts(document['versions']) : groupVersions(document);
    const lists = await inParallel(versions, (version) => this.#legacy(`${path}/${version}`));
    return {
      resources: lists.flatMap((list) => (list === 'unavailable' ? [] : list)),
      unavailable: versions.filter((_, index) => lists[index] === 'unavailable'),
    };
  }

  /** The resources of a group and version, unless its aggregated server is unavailable. None if it was removed meanwhile. */
  async #legacy(path: string): Promise<ApiResource[] | 'unavailable'> {
    try {
      return legacyResources(await this.#fetch(path, 'application/json', undefined));
    } catch (error) {
      if (error instanceof ApiError && (error.code >= 500 || error.code === 404)) {
        return error.code === 404 ? [] : 'unavailable';
      }
      throw error;
    }
  }
}

function aggregatedResources(document: JsonObject): ApiResource[] {
  return children(document, 'items').flatMap((group) =>
    children(group, 'versions').flatMap((version) =>
      children(version, 'resources').flatMap((resource) => {
        const { resource: name, responseKind, scope } = resource;
        const kind = isJsonObject(responseKind) ? text(responseKind, 'kind') : '';
        if (typeof name !== 'string' || kind === '') {
          return [];
        }
        return {
          group: isJsonObject(group['metadata']) ? text(group['metadata'], 'name') : '',
          version: text(version, 'version'),
          resource: name,
          kind,
          namespaced: scope === 'Namespaced',
          singular: text(resource, 'singularResource'),
          shortNames: texts(resource['shortNames']),
          categories: texts(resource['categories']),
          verbs: texts(resource['verbs']),
          subresources: children(resource, 'subresources').map((subresource) => text(subresource, 'subresource')),
        };
      }),
    ),
  );
}

/** Of servers that did not answer, and whose resources were never known. */
function staleVersions(document: JsonObject): readonly string[] {
  return children(document, 'items').flatMap((group) =>
    children(group, 'versions')
      .filter((version) => text(version, 'freshness') === 'Stale' && children(version, 'resources').length === 0)
      .map(
        (version) =>
          `${isJsonObject(group['metadata']) ? text(group['metadata'], 'name') : ''}/${text(version, 'version')}`,
      ),
  );
}

/** `group/version`, preferred versions first. */
function groupVersions(document: JsonObject): string[] {
  return children(document, 'groups').flatMap((group) => {
    const preferred = isJsonObject(group['preferredVersion']) ? text(group['preferredVersion'], 'groupVersion') : '';
    const all = children(group, 'versions').map((version) => text(version, 'groupVersion'));
    return all.filter((one) => one === preferred).concat(all.filter((one) => one !== preferred && one !== ''));
  });
}

function legacyResources(document: unknown): ApiResource[] {
  if (!isJsonObject(document)) {
    return [];
  }
  const groupVersion = text(document, 'groupVersion');
  const slash = groupVersion.indexOf('/');
  const all = children(document, 'resources');
  return all
    .filter((entry) => !text(entry, 'name').includes('/') && text(entry, 'kind') !== '')
    .map((entry) => {
      const name = text(entry, 'name');
      return {
        group: slash === -1 ? '' : groupVersion.slice(0, slash),
        version: groupVersion.slice(slash + 1),
        resource: name,
        kind: text(entry, 'kind'),
        namespaced: entry['namespaced'] === true,
        singular: text(entry, 'singularName'),
        shortNames: texts(entry['shortNames']),
        categories: texts(entry['categories']),
        verbs: texts(entry['verbs']),
        subresources: all
          .map((other) => text(other, 'name'))
          .filter((other) => other.startsWith(`${name}/`))
          .map((other) => other.slice(name.length + 1)),
      };
    });
}

function children(object: JsonObject, key: string): JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function text(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

function texts(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

/** Runs tasks in parallel, a few at a time. Results are in order. */
async function inParallel<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += PARALLEL) {
    results.push(...(await Promise.all(items.slice(start, start + PARALLEL).map(run))));
  }
  return results;
}

/** The promise, rejected with the signal's reason when the signal is aborted first. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return await promise;
  }
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
