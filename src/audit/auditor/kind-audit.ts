// The audit of one kind: follows its objects, and judges those whose keys change.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ApiResource,
  ApiError,
  Backoff,
  type Cluster,
  listPages,
  type PagedHandler,
  Reflector,
  type WatchEvent,
} from '../../cluster/index.ts';
import type { JsonObject, ObjectVerdict } from '../../engine/index.ts';
import type { Logger } from '../../log/index.ts';
import { groupResourceOf, keyOf, keyText, type KubernetesObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { type Counts, type Coverage, failedList } from '../coverage.ts';
import { createdObject } from '../created-object.ts';
import type { AuditorExceptions } from './auditor-exceptions.ts';
import type { FindingStore } from './finding-store.ts';
import { KindVerdicts, type ObjectRecord } from './kind-verdicts.ts';
import type { LookedUpObjects } from './looked-up-objects.ts';
import type { ObjectJudge } from './object-judge.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Objects of a page: of 4 KB each, 0.4 MB. Many kinds may hold one at once. */
const PAGE_SIZE = 100;
/** Objects that are judged in one turn: changes wait for one turn of a scan at most. */
const TURN_SIZE = 16;
/** Changes of objects that come within this time are judged together. Milliseconds. */
const BURST_MS = 50;
/** Changed objects that wait. Then the watch waits, too. */
const MAX_CHANGED = 500;
/** Attempts to judge an object while what policies look up changes. After these, the change has caused a scan that comes later. */
const MAX_ATTEMPTS = 3;
const EXPIRED = 410;
/** A kind is listed, then followed. */
const READ_VERBS = ['list', 'watch'];
/** Bookmarks come every minute. Without any for this time after an error, changes of a kind are not known. Milliseconds. */
const UNHEARD_MS = 150_000;

export interface KindAuditOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly judge: ObjectJudge;
  readonly lookups: Pick<LookedUpObjects, 'inputs' | 'revisionOf'>;
  readonly exceptions?: Pick<AuditorExceptions, 'keyOf'> | undefined;
  readonly findings: FindingStore;
  readonly onListFailure: (type: ApiResource) => void;
  readonly log: Logger;
}

/** Objects that are judged again without a change of them. */
interface Scan {
  readonly policies: ReadonlyMap<string, PolicyVersion>;
  /** Absent: all. */
  readonly namespace?: string;
  /** `first`: by versions that judged none yet. `again`: where keys changed. `forced`: also where they did not. */
  readonly why: 'first' | 'again' | 'forced';
}

export class KindAudit implements PagedHandler<KubernetesObject> {
  readonly type: ApiResource;
  readonly #options: KindAuditOptions;
  readonly #verdicts: KindVerdicts;
  readonly #reflector: Reflector;
  readonly #stopping = new AbortController();
  /** Changed objects by id, the newest of each. */
  readonly #changed = new Map<string, KubernetesObject>();
  /** When all objects were judged by a version of a policy. */
  readonly #scanned = new Map<PolicyVersion, number>();
  readonly #scans: Scan[] = [];
  #policies: ReadonlyMap<string, PolicyVersion> = new Map();
  #byNamespace: ReadonlyMap<string | undefined, readonly PolicyVersion[]> = new Map();
  #list: { readonly since: number; readonly policies: ReadonlyMap<string, PolicyVersion> } | undefined;
  #isListed = false;
  #isScanning = false;
  #isJudgingChanges = false;
  #scanFailure: unknown;
  #roomForChanges: PromiseWithResolvers<void> | undefined;
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor(type: ApiResource, options: KindAuditOptions) {
    this.type = type;
    this.#options = options;
    this.#verdicts = new KindVerdicts(type, options.findings);
    this.#reflector = new Reflector({
      cluster: options.cluster,
      type,
      handler: this,
      pageSize: PAGE_SIZE,
      onError: (error, during) => this.#failed(error, during),
    });
  }

  start(): void {
    void this.#reflector.start(this.#stopping.signal);
  }

  /** Ends it, and removes its findings. */
  stop(): void {
    this.#stopping.abort(new Error('the kind is not audited any more'));
    this.#roomForChanges?.resolve();
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

  /** Judges objects again where keys changed. @param namespace default: all objects */
  lookAgain(policies: readonly PolicyVersion[], namespace?: string): void {
    const hasObjects = namespace === undefined || this.type.namespaced || this.#isOfNamespaces;
    const own = policies.filter((policy) => this.#policies.get(policy.id) === policy);
    if (own.length > 0 && hasObjects) {
      this.#scan({ policies: byId(own), why: 'again', ...(namespace === undefined ? {} : { namespace }) });
    }
  }

  /** Judges all objects by a policy again, also those whose keys did not change. */
  judgeAgain(policy: PolicyVersion): void {
    if (this.#policies.get(policy.id) === policy) {
      this.#scan({ policies: byId([policy]), why: 'forced' });
    }
  }

  isFor(id: string): boolean {
    return this.#policies.has(id);
  }

  counts(id: string): Counts {
    return this.#verdicts.counts(id);
  }

  /** Whether the policy as it is now judged all objects, and changes of them are known. */
  isSettled(id: string): boolean {
    const version = this.#policies.get(id);
    return version !== undefined && this.#scanned.has(version) && this.failure === undefined;
  }

  /** The last time at which all objects were known to be judged by a policy. Milliseconds since 1970. */
  completeAt(id: string): number | undefined {
    const version = this.#policies.get(id);
    const scannedAt = version === undefined ? undefined : this.#scanned.get(version);
    const { lagMs } = this.#reflector.report;
    return scannedAt === undefined || lagMs === undefined ? scannedAt : Math.max(scannedAt, Date.now() - lagMs);
  }

  /** Why the kind cannot be read now. */
  get failure(): ReturnType<typeof failedList> | undefined {
    const { lastError, lagMs = 0 } = this.#reflector.report;
    const error = isOutage(lastError, this.#isListed, lagMs) ? lastError : this.#scanFailure;
    return error === undefined ? undefined : failedList(error, this.type, READ_VERBS);
  }

  coverage({ id, name, namespace, assumes }: PolicyVersion): Coverage {
    const version = this.#policies.get(id);
    const scannedAt = version === undefined ? undefined : this.#scanned.get(version);
    const { group, version: apiVersion, resource, kind, namespaced } = this.type;
    const counts = this.counts(id);
    return {
      policy: name,
      kind: { group, version: apiVersion, resource, kind, namespaced },
      ...(namespace === undefined ? {} : { namespace }),
      ...this.#state(scannedAt !== undefined, counts),
      ...(assumes === undefined ? {} : { assumes }),
      counts,
      ...(scannedAt === undefined ? {} : { scannedAt: new Date(scannedAt).toISOString() }),
    };
  }

  #state(
    isScanned: boolean,
    { unjudged, matched }: Counts,
  ): Pick<Coverage, 'state' | 'reason' | 'message' | 'missingRule'> {
    const { failure } = this;
    if (failure !== undefined) {
      return failure;
    }
    if (!isScanned) {
      const message = `${this.#verdicts.size} objects were read so far`;
      return { state: 'Pending', reason: 'NotScanned', message };
    }
    const message = `the policy gave no verdict on ${unjudged} of ${matched} objects`;
    return unjudged === 0 ? { state: 'Scanned' } : { state: 'Partial', reason: 'NotJudged', message };
  }

  begin(): void {
    // Each of them is in the list, unless it was deleted.
    this.#changed.clear();
    this.#list = { since: this.#verdicts.now, policies: this.#policies };
  }

  async page(items: readonly KubernetesObject[]): Promise<void> {
    for (const some of inTurns(items)) {
      await this.#inTurn(() =>
        each(some, async (object) => {
          const record = this.#verdicts.see(object);
          await this.#judge(record, object, this.#policiesFor(record.namespace), { isForced: false, isUrgent: false });
        }),
      );
    }
  }

  end(): void {
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

  async apply({ type, object }: WatchEvent): Promise<void> {
    const id = keyText(keyOf(object));
    if (type === 'DELETED') {
      this.#changed.delete(id);
      this.#verdicts.remove(id);
      return;
    }
    this.#verdicts.see(object);
    this.#changed.set(id, object);
    this.#judgeChanges();
    if (this.#changed.size >= MAX_CHANGED) {
      this.#roomForChanges ??= Promise.withResolvers();
      await this.#roomForChanges.promise;
    }
  }

  #judgeChanges(): void {
    if (!this.#isJudgingChanges) {
      this.#isJudgingChanges = true;
      void this.#judgeWaiting().finally(() => {
        this.#isJudgingChanges = false;
        if (this.#changed.size > 0 && !this.#isStopped) {
          this.#judgeChanges();
        }
      });
    }
  }

  async #judgeWaiting(): Promise<void> {
    await sleep(BURST_MS, undefined, { ref: false });
    while (this.#changed.size > 0 && !this.#isStopped) {
      await this.#inTurn(async () => {
        const some = [...this.#changed.values().take(TURN_SIZE)];
        some.forEach((object) => this.#changed.delete(keyText(keyOf(object))));
        await each(some, (object) => this.#judgeChanged(object));
      });
      if (this.#changed.size < MAX_CHANGED) {
        this.#roomForChanges?.resolve();
        this.#roomForChanges = undefined;
      }
    }
  }

  async #judgeChanged(object: KubernetesObject): Promise<void> {
    const record = this.#verdicts.get(keyText(keyOf(object)));
    if (record !== undefined) {
      await this.#judge(record, object, this.#policiesFor(record.namespace), { isForced: false, isUrgent: true });
    }
  }

  #scanUnscanned(): void {
    const unscanned = [...this.#policies.values()].filter((version) => !this.#scanned.has(version));
    if (this.#isListed && unscanned.length > 0) {
      this.#scan({ policies: byId(unscanned), why: 'first' });
    }
  }

  #scan(scan: Scan): void {
    this.#scans.push(scan);
    if (!this.#isScanning) {
      this.#isScanning = true;
      void this.#runScans();
    }
  }

  async #runScans(): Promise<void> {
    const backoff = new Backoff();
    for (let scan = this.#nextScan(); scan !== undefined && !this.#isStopped; scan = this.#nextScan()) {
      try {
        await this.#runScan(scan);
        this.#scanFailure = undefined;
        backoff.reset();
      } catch (error) {
        this.#scans.push(scan);
        this.#failed(error, 'list');
        // What was judged before the list expired is not judged again.
        const isExpired = error instanceof ApiError && error.code === EXPIRED;
        this.#scanFailure = isExpired ? undefined : error;
        await sleep(backoff.failed(performance.now()), undefined, { signal: this.#stopping.signal, ref: false }).catch(
          () => undefined,
        );
      }
    }
    this.#isScanning = false;
  }

  /** Scans that were asked for meanwhile, as one where they are alike. */
  #nextScan(): Scan | undefined {
    const [first] = this.#scans;
    if (first === undefined) {
      return undefined;
    }
    const isAlike = ({ namespace, why }: Scan): boolean => namespace === first.namespace && why === first.why;
    const alike = this.#scans.filter(isAlike);
    this.#scans.splice(0, this.#scans.length, ...this.#scans.filter((scan) => !isAlike(scan)));
    const policies = new Map(alike.flatMap((scan) => [...scan.policies]));
    // Of policies that changed since, the newer scan is of the newer version.
    const isOpen = ([id, version]: [string, PolicyVersion]): boolean =>
      this.#policies.get(id) === version && (first.why !== 'first' || !this.#scanned.has(version));
    return { ...first, policies: new Map([...policies].filter(isOpen)) };
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
    if (namespace === undefined) {
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
    // Others are new or gone, which the watch tells.
    if (record !== undefined && record.uid === (object.metadata.uid ?? '') && record.seen <= since) {
      const asked = this.#policiesFor(record.namespace).filter((version) => policies.get(version.id) === version);
      await this.#judge(record, object, asked, { isForced, isUrgent: !isForced });
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

  /** Asks the policies whose keys differ from those of the verdicts that are known. */
  async #judge(
    record: ObjectRecord,
    object: KubernetesObject,
    policies: readonly PolicyVersion[],
    how: { readonly isForced: boolean; readonly isUrgent: boolean },
  ): Promise<void> {
    const created = createdObject(object, this.type);
    const namespace = this.#isOfNamespaces ? object.metadata.name : record.namespace;
    const { lookups } = this.#options;
    let open = policies;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && open.length > 0 && !this.#isStopped; attempt += 1) {
      const asked = this.#changedKeys(record, created, namespace, open, how.isForced);
      const revisions = new Map(open.map((policy) => [policy, lookups.revisionOf(policy, namespace)]));
      const verdicts = await this.#verdictsOf(created, asked, how.isUrgent);
      // Nobody knows whether others read what was there before a change, or after it.
      const isCertain = (policy: PolicyVersion): boolean =>
        lookups.inputs(policy, namespace) === null || revisions.get(policy) === lookups.revisionOf(policy, namespace);
      this.#store(
        record,
        object,
        [...asked].filter(([policy]) => isCertain(policy)),
        verdicts,
      );
      open = open.filter((policy) => !isCertain(policy));
    }
  }

  /** Without verdicts where the host failed, which counts as an error of each policy. */
  async #verdictsOf(
    object: JsonObject,
    asked: ReadonlyMap<PolicyVersion, string>,
    isUrgent: boolean,
  ): Promise<readonly ObjectVerdict[]> {
    if (asked.size === 0) {
      return [];
    }
    try {
      return await this.#options.judge.verdicts(object, this.type, asked, isUrgent);
    } catch (error) {
      this.#options.log.warn({ error: errorText(error) }, 'an object could not be judged');
      return [];
    }
  }

  get #isOfNamespaces(): boolean {
    return this.type.group === '' && this.type.resource === 'namespaces';
  }

  #changedKeys(
    record: ObjectRecord,
    object: JsonObject,
    namespace: string | undefined,
    policies: readonly PolicyVersion[],
    isForced: boolean,
  ): ReadonlyMap<PolicyVersion, string> {
    const asked = new Map<PolicyVersion, string>();
    for (const policy of policies) {
      const parameters = this.#options.lookups.inputs(policy, namespace);
      const exceptions = this.#options.exceptions?.keyOf(policy.id, namespace) ?? '';
      const key = policy.keys.of({ object, resource: this.type, parameters, exceptions });
      if (isForced || key !== this.#verdicts.keyOf(record, policy)) {
        asked.set(policy, key);
      } else {
        this.#verdicts.confirm(record, policy);
      }
    }
    return asked;
  }

  #store(
    record: ObjectRecord,
    object: KubernetesObject,
    asked: readonly (readonly [PolicyVersion, string])[],
    verdicts: readonly ObjectVerdict[],
  ): void {
    for (const [policy, key] of asked) {
      if (this.#policies.get(policy.id) === policy) {
        const verdict = verdicts.find((one) => one.policy === policy.id);
        if (verdict !== undefined && (verdict.outcome === 'verdict' || verdict.outcome === 'skipped')) {
          this.#options.judge.share(policy, this.type, key, verdict);
        }
        this.#verdicts.set(record, policy, key, verdict, object);
      }
    }
  }

  #policiesFor(namespace: string | undefined): readonly PolicyVersion[] {
    const everywhere = this.#byNamespace.get(undefined) ?? [];
    const own = namespace === undefined ? undefined : this.#byNamespace.get(namespace);
    return own === undefined ? everywhere : [...everywhere, ...own];
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

/** Whether a kind cannot be read: at all before the first list, later when the cluster refuses, or dropped connections do not come back. */
function isOutage(error: unknown, isListed: boolean, lagMs: number): boolean {
  const isRefused = error instanceof ApiError && error.code !== EXPIRED;
  return error !== undefined && (!isListed || isRefused || lagMs > UNHEARD_MS);
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
