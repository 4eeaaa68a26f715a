// The audit of one kind: follows its objects, and judges those whose keys change.
import {
  type ApiResource,
  ApiError,
  type Cluster,
  listPages,
  Reflector,
  type WatchEvent,
} from '../../cluster/index.ts';
import { groupResourceOf, keyOf, keyText, type KubernetesObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { type Counts, type Coverage, failedList } from '../coverage.ts';
import type { AuditShare } from '../members/audit-share.ts';
import { ChangedObjects } from './changed-objects.ts';
import type { FindingStore } from './finding-store.ts';
import { isOutage, kindCoverage } from './kind-coverage.ts';
import { KindScans, type Scan } from './kind-scans.ts';
import { KindVerdicts } from './kind-verdicts.ts';
import { isOfNamespaces, PairJudge, type PairJudgeOptions } from './pair-judge.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Objects of a page: of 4 KB each, 0.4 MB. Many kinds may hold one at once. */
const PAGE_SIZE = 100;
/** Objects that are judged in one turn: changes wait for one turn of a scan at most. */
const TURN_SIZE = 16;
const EXPIRED = 410;
/** A kind is listed, then followed. */
const READ_VERBS = ['list', 'watch'];

export interface KindAuditOptions extends PairJudgeOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly share: AuditShare;
  readonly findings: FindingStore;
  readonly onListFailure: (type: ApiResource) => void;
}

export class KindAudit {
  readonly type: ApiResource;
  readonly #options: KindAuditOptions;
  readonly #verdicts: KindVerdicts;
  readonly #pairs: PairJudge;
  readonly #changed: ChangedObjects;
  readonly #scans: KindScans;
  readonly #stopping = new AbortController();
  /** When all objects were judged by a version of a policy. */
  readonly #scanned = new Map<PolicyVersion, number>();
  #policies: ReadonlyMap<string, PolicyVersion> = new Map();
  #byNamespace: ReadonlyMap<string | undefined, readonly PolicyVersion[]> = new Map();
  #reading = new AbortController();
  #reflector: Reflector;
  #list: { readonly since: number; readonly policies: ReadonlyMap<string, PolicyVersion> } | undefined;
  #isListed = false;
  #scanFailure: unknown;
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor(type: ApiResource, options: KindAuditOptions) {
    this.type = type;
    this.#options = options;
    this.#verdicts = new KindVerdicts(type, options.findings);
    this.#pairs = new PairJudge(
      type,
      this.#verdicts,
      options,
      (policy) => !this.#isStopped && this.#policies.get(policy.id) === policy,
    );
    this.#changed = new ChangedObjects((take) => this.#judgeChanges(take), TURN_SIZE);
    this.#scans = new KindScans({
      run: async (scan) => {
        await this.#runScan(scan);
        this.#scanFailure = undefined;
      },
      isOpen: ({ why }, version) =>
        this.#policies.get(version.id) === version && (why !== 'first' || !this.#scanned.has(version)),
      onFailure: (error) => this.#scanFailed(error),
      signal: this.#stopping.signal,
    });
    this.#reflector = this.#newReflector();
  }

  start(): void {
    void this.#reflector.start(AbortSignal.any([this.#stopping.signal, this.#reading.signal]));
  }

  /** Ends it, and removes its findings. */
  stop(): void {
    this.#stopping.abort(new Error('the kind is not audited any more'));
    this.#changed.stop();
    this.#verdicts.removeUnseen(this.#verdicts.now);
  }

  /** Changed objects that wait to be judged. */
  get pending(): number {
    return this.#changed.size;
  }

  /** Judges by these policies from now on: all objects by those that are new, and by no others. */
  judgeBy(policies: ReadonlyMap<string, PolicyVersion>): void {
    const before = this.#policies;
    this.#policies = policies;
    this.#byNamespace = Map.groupBy(policies.values(), ({ namespace }) => namespace);
    for (const [id, version] of before) {
      if (!policies.has(id)) {
        this.#verdicts.removePolicy(id);
      }
      if (policies.get(id) !== version) {
        this.#scanned.delete(version);
      }
    }
    this.#scanUnscanned();
  }

  /** Forgets objects that belong to other auditors now. @param hasGained whether others may belong to this one, which are listed then */
  reshare(hasGained: boolean): void {
    this.#verdicts.removeWhere(({ namespace }) => !this.#isOwn(namespace));
    if (hasGained && !this.#isStopped) {
      this.#scanned.clear();
      this.#scans.clear();
      this.#isListed = false;
      this.#reading.abort(new Error('the share of this auditor has changed'));
      this.#reading = new AbortController();
      this.#reflector = this.#newReflector();
      this.start();
    }
  }

  /** Judges objects again where keys changed. @param namespace default: all objects */
  lookAgain(policies: readonly PolicyVersion[], namespace?: string): void {
    const own = policies.filter((policy) => this.#policies.get(policy.id) === policy);
    if (own.length > 0 && this.#hasObjectsOf(namespace)) {
      this.#scans.add({ policies: byId(own), why: 'again', ...(namespace === undefined ? {} : { namespace }) });
    }
  }

  #hasObjectsOf(namespace: string | undefined): boolean {
    return (
      namespace === undefined ||
      (this.type.namespaced ? this.#isOwn(namespace) : isOfNamespaces(this.type) && this.#isOwn(undefined))
    );
  }

  /** Judges all objects by a policy again, also those whose keys did not change. */
  judgeAgain(policy: PolicyVersion): void {
    if (this.#policies.get(policy.id) === policy) {
      this.#scans.add({ policies: byId([policy]), why: 'forced' });
    }
  }

  isFor(id: string): boolean {
    return this.#policies.has(id);
  }

  counts(id: string): Counts {
    return this.#verdicts.counts(id);
  }

  /** Findings of a policy that are only counted. */
  unlisted(id: string): number {
    return this.#verdicts.unlisted(id);
  }

  /** Whether the policy as it is now judged all objects, and changes of them are known. */
  isSettled(id: string): boolean {
    const version = this.#policies.get(id);
    return version !== undefined && this.#scanned.has(version) && this.failure === undefined;
  }

  /** The last time at which all objects were known to be judged by a policy. Milliseconds since 1970. */
  completeAt(id: string): number | undefined {
    const scannedAt = this.#scannedAt(id);
    const { lagMs } = this.#reflector.report;
    return scannedAt === undefined || lagMs === undefined ? scannedAt : Math.max(scannedAt, Date.now() - lagMs);
  }

  /** Why the kind cannot be read now. */
  get failure(): ReturnType<typeof failedList> | undefined {
    const { lastError, lagMs = 0 } = this.#reflector.report;
    const error = isOutage(lastError, this.#isListed, lagMs) ? lastError : this.#scanFailure;
    return error === undefined ? undefined : failedList(error, this.type, READ_VERBS);
  }

  coverage(version: PolicyVersion): Coverage {
    const { id } = version;
    return kindCoverage(this.type, version, {
      counts: this.counts(id),
      unlisted: this.unlisted(id),
      objects: this.#verdicts.size,
      scannedAt: this.#scannedAt(id),
      failure: this.failure,
    });
  }

  #scannedAt(id: string): number | undefined {
    const version = this.#policies.get(id);
    return version === undefined ? undefined : this.#scanned.get(version);
  }

  #newReflector(): Reflector {
    const { signal } = this.#reading;
    return new Reflector({
      cluster: this.#options.cluster,
      type: this.type,
      handler: {
        begin: () => this.#begin(),
        page: (items) => this.#page(items, signal),
        end: () => this.#end(),
        apply: (event) => (signal.aborted ? undefined : this.#apply(event)),
      },
      pageSize: PAGE_SIZE,
      onError: (error, during) => this.#failed(error, during),
    });
  }

  #begin(): void {
    // Each of them is in the list, unless it was deleted.
    this.#changed.clear();
    this.#list = { since: this.#verdicts.now, policies: this.#policies };
  }

  /** @param signal aborted when a newer list replaces this one, whose objects may be gone */
  async #page(items: readonly KubernetesObject[], signal: AbortSignal): Promise<void> {
    for (const some of inTurns(items.filter(({ metadata }) => this.#isOwn(metadata.namespace)))) {
      await this.#inTurn(async () => {
        if (!signal.aborted) {
          await each(some, (object) => this.#judgeListed(object));
        }
      });
    }
  }

  async #judgeListed(object: KubernetesObject): Promise<void> {
    const { namespace } = object.metadata;
    if (this.#isOwn(namespace)) {
      const record = this.#verdicts.see(object);
      await this.#pairs.judge(record, object, this.#policiesFor(namespace), { isForced: false, isUrgent: false });
    }
  }

  #end(): void {
    if (this.#list === undefined) {
      return;
    }
    const { since, policies } = this.#list;
    this.#verdicts.removeUnseen(since);
    this.#isListed = true;
    this.#scanFailure = undefined;
    this.#completed(policies);
    this.#scanUnscanned();
  }

  async #apply({ type, object }: WatchEvent): Promise<void> {
    const id = keyText(keyOf(object));
    if (type === 'DELETED') {
      this.#changed.delete(id);
      this.#verdicts.remove(id);
    } else if (this.#isOwn(object.metadata.namespace)) {
      this.#verdicts.see(object);
      await this.#changed.add(id, object);
    }
  }

  #judgeChanges(take: () => readonly KubernetesObject[]): Promise<void> {
    return this.#inTurn(() =>
      each(take(), async (object) => {
        const record = this.#verdicts.get(keyText(keyOf(object)));
        if (record !== undefined) {
          const policies = this.#policiesFor(record.namespace);
          await this.#pairs.judge(record, object, policies, { isForced: false, isUrgent: true });
        }
      }),
    );
  }

  #scanUnscanned(): void {
    const unscanned = [...this.#policies.values()].filter((version) => !this.#scanned.has(version));
    if (this.#isListed && unscanned.length > 0) {
      this.#scans.add({ policies: byId(unscanned), why: 'first' });
    }
  }

  async #runScan({ policies, namespace, why }: Scan): Promise<void> {
    if (policies.size === 0) {
      return;
    }
    const { signal } = this.#stopping;
    // Objects that change from now on are judged by their events.
    const since = this.#verdicts.now;
    const options = { limit: PAGE_SIZE, signal, ...this.#selection(namespace) };
    for await (const { items } of listPages(this.#options.cluster, this.type, options)) {
      for (const some of inTurns(items)) {
        await this.#inTurn(() => each(some, (object) => this.#scanObject(object, since, policies, why === 'forced')));
        signal.throwIfAborted();
      }
    }
    // Before the list is complete, objects are missing that belong to this auditor now.
    if (namespace === undefined && this.#isListed) {
      this.#completed(policies);
    }
  }

  async #scanObject(
    object: KubernetesObject,
    since: number,
    policies: ReadonlyMap<string, PolicyVersion>,
    isForced: boolean,
  ): Promise<void> {
    const record = this.#verdicts.get(keyText(keyOf(object)));
    // Others are new, gone, or of another auditor.
    if (record !== undefined && record.uid === (object.metadata.uid ?? '') && record.seen <= since) {
      const asked = this.#policiesFor(record.namespace).filter((version) => policies.get(version.id) === version);
      await this.#pairs.judge(record, object, asked, { isForced, isUrgent: !isForced });
    }
  }

  /** The objects that what is looked up for a namespace counts for: also the namespace itself. */
  #selection(namespace: string | undefined): { readonly namespace?: string; readonly fieldSelector?: string } {
    if (namespace === undefined) {
      return {};
    }
    return this.type.namespaced ? { namespace } : { fieldSelector: `metadata.name=${namespace}` };
  }

  #completed(policies: ReadonlyMap<string, PolicyVersion>): void {
    for (const [id, version] of policies) {
      if (this.#policies.get(id) === version) {
        this.#scanned.set(version, Date.now());
      }
    }
  }

  #policiesFor(namespace: string | undefined): readonly PolicyVersion[] {
    const everywhere = this.#byNamespace.get(undefined) ?? [];
    const own = namespace === undefined ? undefined : this.#byNamespace.get(namespace);
    return own === undefined ? everywhere : [...everywhere, ...own];
  }

  #isOwn(namespace: string | undefined): boolean {
    return this.#options.share.isOwn(namespace ?? '');
  }

  /** Runs tasks one after the other, so that an object is never judged twice at once. */
  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(task);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #scanFailed(error: unknown): void {
    this.#failed(error, 'list');
    // What was judged before the list expired is not judged again.
    const isExpired = error instanceof ApiError && error.code === EXPIRED;
    this.#scanFailure = isExpired ? undefined : error;
  }

  #failed(error: unknown, during: 'list' | 'watch' | 'handler'): void {
    if (this.#isStopped) {
      return;
    }
    if (during !== 'handler') {
      this.#options.onListFailure(this.type);
    }
    const kind = groupResourceOf(this.type);
    this.#options.log.warn({ kind, during, error: errorText(error) }, 'a kind cannot be audited now, trying again');
  }
}

function byId(policies: readonly PolicyVersion[]): ReadonlyMap<string, PolicyVersion> {
  return new Map(policies.map((policy) => [policy.id, policy]));
}

function inTurns(objects: readonly KubernetesObject[]): readonly (readonly KubernetesObject[])[] {
  return Array.from({ length: Math.ceil(objects.length / TURN_SIZE) }, (_, turn) =>
    objects.slice(turn * TURN_SIZE, (turn + 1) * TURN_SIZE),
  );
}

async function each(
  objects: readonly KubernetesObject[],
  task: (object: KubernetesObject) => Promise<void>,
): Promise<void> {
  await Promise.all(objects.map(task));
}
