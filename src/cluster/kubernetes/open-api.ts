// OpenAPI documents of an API server, one for each group and version (KEP-2896). Their URLs contain a hash, so a document is
// fetched again only after it has changed.
import { createHash } from 'node:crypto';
import { groupVersionOf, isJsonObject, own, textOf, valueAt } from '../../resources/index.ts';
import { KeptEntries, parseJson } from '../../values/index.ts';
import type { OpenApiSource, OpenApiText, RequestOptions } from '../cluster.ts';

const INDEX = '/openapi/v3';
/** How long an index is used. A burst of requests, as for policies that are applied together, needs one. Milliseconds. */
const INDEX_AGE_MS = 2_000;
/** Characters of kept documents. That of `v1` has 1.3 million; policies need a few. */
const MAX_KEPT = 8 * 1024 ** 2;

/** Fetches a path as text. */
type FetchText = (path: string, signal: AbortSignal | undefined) => Promise<string>;

interface Index {
  readonly revision: string;
  /** URLs by path of group and version, such as `apis/apps/v1`. */
  readonly urls: ReadonlyMap<string, string>;
  readonly at: number;
}

export class OpenApiCache implements OpenApiSource {
  readonly #fetch: FetchText;
  readonly #now: () => number;
  #index: Index | undefined;
  /** Texts by URL, the least recently used first. */
  readonly #texts = new KeptEntries<string, string>({ maxSize: MAX_KEPT, sizeOf: ({ length }) => length });

  /** @param now milliseconds, for ages */
  constructor(fetch: FetchText, now: () => number = () => performance.now()) {
    this.#fetch = fetch;
    this.#now = now;
  }

  async revision({ signal }: RequestOptions = {}): Promise<string> {
    return (await this.#current(signal)).revision;
  }

  async document(apiVersion: string, { signal }: RequestOptions = {}): Promise<OpenApiText | undefined> {
    const { group, version } = groupVersionOf(apiVersion);
    const { urls } = await this.#current(signal);
    const url = urls.get(group === '' ? `api/${version}` : `apis/${group}/${version}`);
    if (url === undefined) {
      return undefined;
    }
    const text = this.#texts.get(url) ?? (await this.#fetch(url, signal));
    this.#texts.set(url, text);
    return { text, hash: url };
  }

  async #current(signal: AbortSignal | undefined): Promise<Index> {
    if (this.#index !== undefined && this.#now() - this.#index.at < INDEX_AGE_MS) {
      return this.#index;
    }
    const text = await this.#fetch(INDEX, signal);
    this.#index = {
      revision: createHash('sha256').update(text).digest('hex'),
      urls: urlsOf(parseJson(text)),
      at: this.#now(),
    };
    return this.#index;
  }
}

function urlsOf(index: unknown): ReadonlyMap<string, string> {
  const paths = valueAt(index, 'paths');
  const urls = Object.entries(isJsonObject(paths) ? paths : {}).map(
    ([path, entry]) => [path, isJsonObject(entry) ? textOf(own(entry, 'serverRelativeURL')) : ''] as const,
  );
  // Documents are on the server itself.
  return new Map(urls.filter(([, url]) => url.startsWith(`${INDEX}/`)));
}
