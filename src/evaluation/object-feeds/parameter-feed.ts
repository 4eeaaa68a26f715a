// Objects with parameters of policies. Each kind is watched once, while policies need it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiResource, Cluster } from '../../cluster/index.ts';
import type { ObjectReference } from '../../engine/index.ts';
import type { FindResult, ObjectFailure, WatchedChange } from '../watched-objects.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { ChangedNeeds, ObjectNeeds, ParameterKindName } from './object-needs.ts';
import { failureOf, identityOf, textIn, withText } from './parameter-object.ts';
import { KindFeed } from './kind-feed.ts';

/** Delay before a kind that could not be watched is looked for again: discovery documents are cached. Milliseconds. */
const RETRY_MS = 5_000;
/** Time limit of discovery for one review, as of a read. Milliseconds. */
const DISCOVERY_TIMEOUT_MS = 3_000;

export interface ParameterFeedOptions {
  /** With the account that policies read with. */
  readonly cluster: Pick<Cluster, 'discovery' | 'get' | 'list' | 'watch'>;
  readonly publish: (change: WatchedChange) => void;
  /** Delay before a kind that is not served is looked for again. Default: {@link RETRY_MS}. */
  readonly retryMs?: number;
  readonly log: Logger;
}

/** Watches and publishes the objects that parameters of policies are in. */
export class ParameterFeed {
  readonly #options: ParameterFeedOptions;
  /** By policy; without policies that need none. */
  readonly #needs = new Map<string, ObjectNeeds>();
  /** By API version and kind. */
  readonly #kinds = new Map<string, ParameterKind>();
  #isStopped = false;

  constructor(options: ParameterFeedOptions) {
    this.#options = options;
  }

  /** Updates which kinds policies need; `isFirst`: these are all policies. */
  want(changes: ChangedNeeds, isFirst: boolean): void {
    if (isFirst) {
      this.#needs.clear();
    }
    let isChanged = isFirst;
    for (const [id, needs] of changes) {
      const hadNeeds = this.#needs.delete(id);
      const hasNeeds = needs !== undefined && needs.kinds.length > 0;
      if (hasNeeds) {
        this.#needs.set(id, needs);
      }
      isChanged ||= hadNeeds || hasNeeds;
    }
    if (isChanged && !this.#isStopped) {
      this.#watchNeeded();
    }
  }

  /** Reads one object and publishes it. Never rejects. */
  async find({ apiVersion, kind, namespace, name }: ObjectReference): Promise<FindResult> {
    const known = this.#kinds.get(textOf({ apiVersion, kind }));
    return known === undefined || namespace === undefined
      ? { state: 'unreadable', reason: `this server does not watch ${textOf({ apiVersion, kind })}` }
      : await known.find(namespace, name);
  }

  stop(): void {
    this.#isStopped = true;
    for (const kind of this.#kinds.values()) {
      kind.stop();
    }
  }

  #watchNeeded(): void {
    const needed = new Map<string, ParameterKindName[]>();
    for (const one of [...this.#needs.values()].flatMap(({ kinds }) => kinds)) {
      needed.set(textOf(one), [...(needed.get(textOf(one)) ?? []), one]);
    }
    for (const [text, kind] of this.#kinds) {
      if (!needed.has(text)) {
        this.#kinds.delete(text);
        kind.end();
      }
    }
    for (const [text, names] of needed) {
      const [first] = names;
      if (first !== undefined) {
        const kind = this.#kinds.get(text) ?? new ParameterKind(this.#options, first);
        this.#kinds.set(text, kind);
        kind.want(new Set(names.map(({ name }) => name)));
      }
    }
  }
}

/** One kind of parameters. */
class ParameterKind {
  readonly #options: ParameterFeedOptions;
  readonly #apiVersion: string;
  readonly #kind: string;
  readonly #stopping = new AbortController();
  #names: ReadonlySet<string> = new Set();
  #watched: KindFeed | undefined;
  #starting: Promise<KindFeed | FailedStart> | undefined;

  constructor(options: ParameterFeedOptions, { apiVersion, kind }: ParameterKindName) {
    this.#options = options;
    this.#apiVersion = apiVersion;
    this.#kind = kind;
  }

  /** Watches objects of these names. */
  want(names: ReadonlySet<string>): void {
    if (names.size === this.#names.size && [...names].every((name) => this.#names.has(name))) {
      return;
    }
    this.#names = names;
    this.#watched?.stop();
    this.#watched = undefined;
    this.#starting = undefined;
    void this.#keepStarting();
  }

  async find(namespace: string, name: string): Promise<FindResult> {
    const started = this.#watched ?? (await this.#start());
    if (!(started instanceof KindFeed)) {
      return { state: 'unreadable', reason: started.reason };
    }
    return await started.find({ namespace, name });
  }

  stop(): void {
    this.#stopping.abort();
    this.#watched?.stop();
  }

  /** Stops, and removes the objects from workers. */
  end(): void {
    const { publish } = this.#options;
    this.stop();
    publish({ apiVersion: this.#apiVersion, kind: this.#kind, isAll: true, objects: [] });
  }

  /** Starts the watch; tries again until it is started, or other names are wanted. */
  async #keepStarting(): Promise<void> {
    const names = this.#names;
    const { signal } = this.#stopping;
    while (!signal.aborted && names === this.#names && !((await this.#start()) instanceof KindFeed)) {
      await sleep(this.#options.retryMs ?? RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  #start(): Promise<KindFeed | FailedStart> {
    this.#starting ??= this.#tryStart(this.#names).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #tryStart(names: ReadonlySet<string>): Promise<KindFeed | FailedStart> {
    let type: ApiResource | undefined;
    try {
      type = await this.#discovered();
    } catch (error) {
      return { reason: errorText(error) };
    }
    if (type === undefined) {
      return { reason: this.#notServed };
    }
    if (!type.namespaced) {
      return { reason: `expected a namespaced kind, got ${this.#text}, which is cluster-scoped` };
    }
    if (names !== this.#names || this.#stopping.signal.aborted) {
      return { reason: `the watch of ${this.#text} is starting again` };
    }
    this.#watched ??= this.#watch(type);
    return this.#watched;
  }

  #watch(type: ApiResource): KindFeed {
    const { cluster, publish, log } = this.#options;
    const [name, ...others] = this.#names;
    const watched = new KindFeed({
      cluster,
      type,
      // Objects of one name are few, also of a kind such as ConfigMap.
      ...(name !== undefined && others.length === 0 ? { fieldSelector: `metadata.name=${name}` } : {}),
      transform: (object) => (this.#names.has(object.metadata.name ?? '') ? withText(object) : identityOf(object)),
      textOf: (object) => textIn(object),
      failure: (object) => failureOf(object),
      publish: (change) => publish({ ...change, objects: change.objects.filter(([key]) => this.#names.has(key.name)) }),
      changed: () => undefined,
      failed: () => undefined,
      notFound: () => this.#notFound(),
      log,
    });
    watched.watch();
    return watched;
  }

  /** Objects of a kind that was removed are not absent: nobody asked for requests without parameters then. */
  async #notFound(): Promise<ObjectFailure> {
    try {
      const isServed = (await this.#discovered()) !== undefined;
      return isServed ? { state: 'absent' } : { state: 'unreadable', reason: this.#notServed };
    } catch (error) {
      return { state: 'unreadable', reason: errorText(error) };
    }
  }

  #discovered(): Promise<ApiResource | undefined> {
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(DISCOVERY_TIMEOUT_MS)]);
    return this.#options.cluster.discovery.find(this.#apiVersion, this.#kind, { signal });
  }

  get #text(): string {
    return textOf({ apiVersion: this.#apiVersion, kind: this.#kind });
  }

  get #notServed(): string {
    return `the cluster does not serve ${this.#text}`;
  }
}

/** Why a kind is not watched. */
interface FailedStart {
  readonly reason: string;
}

function textOf({ apiVersion, kind }: Pick<ObjectReference, 'apiVersion' | 'kind'>): string {
  return `${apiVersion} ${kind}`;
}
