// The life of every policy of one server: what is declared, what serves, and what happens when they differ.
// Holds no sockets, files or threads: what it needs done it asks for through its collaborators.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { PolicyMatch } from '../../resources/index.ts';
import { jitteredBackoff } from './backoff.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange, TableEntry } from '../../evaluation/index.ts';
import type { DeclaredPolicy, LoadOutcome, LoadRequest, ReadEntry } from '../../evaluation/index.ts';
import type { PolicyReason } from '../../evaluation/index.ts';
import type { PolicyPhase, PolicyStatus, PolicyVersion } from '../status/policy-status.ts';

/**
 * How long a first version may take before what served before a restart stands in for it: long against loading from
 * a source that answers, short against the start of a pod. Milliseconds.
 */
export const STAND_IN_MS = 2_000;
const STAND_IN_TEXT = 'what served before the restart serves';

/** A definition with the digests of its modules: what serves, and what is kept to serve again after a restart. */
export interface PinnedPolicy extends DeclaredPolicy {
  /** Digest by module reference, as the definition writes it. */
  readonly digests: Readonly<Record<string, string>>;
  /** When it began to serve, ISO 8601. */
  readonly since: string;
  /** The PolicyRevision that it is of, where policies come from a cluster. */
  readonly revision?: ServedRevisionName;
  /** Which requests it is for, where API servers ask about many policies at once. */
  readonly match?: PolicyMatch;
}

/** Which PolicyRevision something is of. */
export interface ServedRevisionName {
  /** `metadata.name` of the PolicyRevision. */
  readonly name: string;
  readonly uid: string;
  readonly number: number;
}

/** Whom the registry asks and tells. */
export interface RegistryCollaborators {
  /** Fetches, compiles and checks. Outcomes come in any order; those that come together are published together. */
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
  /** Changes the table of every worker; resolves when all have changed over. */
  publish(change: TableChange): Promise<void>;
  /** A policy is in another phase, or in it for another reason; undefined when the policy is gone. */
  phaseChanged(id: string, change: PhaseChange | undefined): void;
  /** A change of one policy came to its end; called once for each, and for each try again. */
  changeEnded(result: ChangeResult): void;
  /** What serves differs: the set to keep for the next start, with the digests of its modules. */
  servingChanged(digests: readonly string[]): void;
}

/** How a change of one policy ended. */
export type ChangeResult = 'served' | 'failed' | 'removed';

/** Where a policy is now. */
export interface PhaseChange {
  readonly phase: PolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  readonly nextRetry: Date | undefined;
}

/** The declared side of an entry: what to serve, or why it cannot be understood, with the places in the file. */
type Declaration = DeclaredPolicy | { readonly hash: string; readonly problem: string };

interface Entry {
  readonly id: string;
  declared: Declaration;
  serving: PinnedPolicy | undefined;
  /** Digests of the declared version, once it was fetched. */
  desiredDigests: Readonly<Record<string, string>>;
  phase: PolicyPhase;
  reason: PolicyReason;
  message: string;
  since: Date;
  attempts: number;
  nextRetry: Date | undefined;
  retry: NodeJS.Timeout | undefined;
  /** Whether what serves now has been tried to be brought back after a failed first load. */
  triedLastGood: boolean;
}

/** The policies of one server. */
export class PolicyRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #modules = new Map<string, CompiledPolicyModule>();
  readonly #with: RegistryCollaborators;
  readonly #lastGood: Map<string, PinnedPolicy>;
  readonly #settling = new Set<string>();
  readonly #settled: { readonly resolve: () => void }[] = [];
  readonly #standInTimers = new Set<NodeJS.Timeout>();
  #stopped = false;

  /** @param lastGood what served before a restart, by id: used for policies whose declared version fails. */
  constructor(collaborators: RegistryCollaborators, lastGood: ReadonlyMap<string, PinnedPolicy> = new Map()) {
    this.#with = collaborators;
    this.#lastGood = new Map(lastGood);
  }

  /** Takes over what the policies file declares. Only what differs from before is loaded. */
  declare(entries: readonly ReadEntry[]): void {
    const declarations = new Map<string, Declaration>();
    for (const entry of entries) {
      if ('definition' in entry) {
        declarations.set(entry.definition.id, entry);
      } else {
        const problem = entry.problems.join('; ');
        declarations.set(entry.id, { hash: `problem:${problem}`, problem });
      }
    }
    this.#remove([...this.#entries.keys()].filter((id) => !declarations.has(id)));
    const loads: LoadRequest[] = [];
    const rejected: Entry[] = [];
    for (const [id, declared] of declarations) {
      const entry = this.#entries.get(id);
      if (entry?.declared.hash === declared.hash) {
        continue;
      }
      const changed = this.#redeclare(id, entry, declared);
      if ('definition' in declared) {
        loads.push({ id, definition: declared.definition });
      } else {
        const message = declared.problem;
        loads.push(...this.#failed(changed, { ok: false, reason: 'InvalidDefinition', message, transient: false }));
        rejected.push(changed);
      }
    }
    this.#publishEntries(rejected, []);
    const loading = new Set(loads.map(({ id }) => id));
    this.#settle(rejected.map(({ id }) => id).filter((id) => !loading.has(id)));
    this.#load(loads);
    this.#standInLater(loads);
  }

  /** Serves what served before a restart, because nothing is declared: the policies file cannot be used. */
  restoreLastGood(reason: string): void {
    const requests = [...this.#lastGood.values()].map(({ definition, settingsHash, digests }) => {
      // The hash matches no declaration, so that the next usable file is taken over whole.
      const entry = this.#redeclare(definition.id, undefined, { hash: 'restored', settingsHash, definition });
      entry.triedLastGood = true;
      this.#set(entry, 'Pending', 'PoliciesFileUnusable', `what served before the restart is brought back: ${reason}`);
      return { id: definition.id, definition, digests, from: 'cache' as const };
    });
    this.#load(requests);
  }

  /** Resolves when every declared policy has served or failed once. */
  settled(): Promise<void> {
    if (this.#settling.size === 0 || this.#stopped) {
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settled.push({ resolve });
    return promise;
  }

  /** Loads every policy anew whose last try failed, without waiting for its next retry; they are to settle again. */
  retryNow(): void {
    const failed = [...this.#entries.values()].filter((entry) => entry.nextRetry !== undefined);
    const requests = failed.flatMap((entry) => this.#retryRequest(entry));
    for (const { id } of requests) {
      this.#settling.add(id);
    }
    this.#load(requests);
  }

  /** A worker could not take up a version that the loader found good: the failure is shown, the next start tries again. */
  activationFailed(id: string, message: string): void {
    const entry = this.#entries.get(id);
    // Every worker tells it, and every one that is replaced.
    if (entry !== undefined && entry.reason !== 'ActivationFailed') {
      this.#set(entry, 'Error', 'ActivationFailed', message);
      this.#with.changeEnded('failed');
    }
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** What is to be kept for the next start: what serves, and what served before where nothing does yet or any more. */
  lastGood(): PinnedPolicy[] {
    return [...this.#entries.values()].flatMap(({ id, serving }) => serving ?? this.#lastGood.get(id) ?? []);
  }

  statuses(): PolicyStatus[] {
    return [...this.#entries.values()].map((entry) => statusOf(entry)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** What is known of one policy; undefined when none of that id is declared. */
  status(id: string): PolicyStatus | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined ? undefined : statusOf(entry);
  }

  /** The modules of all policies that serve. */
  modules(): CompiledPolicyModule[] {
    return [...this.#modules.values()];
  }

  /** The phase of every policy, for metrics. */
  *phases(): Iterable<readonly [id: string, phase: PolicyPhase]> {
    for (const { id, phase } of this.#entries.values()) {
      yield [id, phase];
    }
  }

  /** Begins no more loads. */
  stop(): void {
    this.#stopped = true;
    for (const entry of this.#entries.values()) {
      clearTimeout(entry.retry);
    }
    for (const timer of this.#standInTimers) {
      clearTimeout(timer);
    }
    for (const { resolve } of this.#settled.splice(0)) {
      resolve();
    }
  }

  #redeclare(id: string, known: Entry | undefined, declared: Declaration): Entry {
    const entry: Entry = known ?? {
      id,
      declared,
      serving: undefined,
      desiredDigests: {},
      phase: 'Pending',
      reason: 'Loading',
      message: '',
      since: new Date(),
      attempts: 0,
      nextRetry: undefined,
      retry: undefined,
      triedLastGood: false,
    };
    clearTimeout(entry.retry);
    entry.declared = declared;
    entry.desiredDigests = {};
    entry.triedLastGood = false;
    entry.attempts = 0;
    entry.nextRetry = undefined;
    this.#entries.set(id, entry);
    this.#settling.add(id);
    this.#set(
      entry,
      entry.serving === undefined ? 'Pending' : 'Updating',
      'Loading',
      entry.serving === undefined ? 'the first version is being loaded' : 'a newer version is being loaded',
    );
    return entry;
  }

  #load(requests: readonly LoadRequest[]): void {
    if (requests.length === 0 || this.#stopped) {
      return;
    }
    // The declaration that an outcome is for: a newer one may have come before the outcome.
    const declared = new Map(requests.map((request) => [request, this.#entries.get(request.id)?.declared]));
    this.#with.load(requests, (outcomes) => {
      const again: LoadRequest[] = [];
      const touched: Entry[] = [];
      const modules: CompiledPolicyModule[] = [];
      for (const [request, outcome] of outcomes) {
        const entry = this.#entries.get(request.id);
        const isStandIn = request.digests !== undefined;
        if (
          entry === undefined ||
          entry.declared !== declared.get(request) ||
          // The declared version was tried again meanwhile, and serves.
          (isStandIn && entry.serving !== undefined)
        ) {
          continue;
        }
        if (outcome.ok) {
          modules.push(...outcome.modules);
          this.#loaded(entry, request, outcome);
        } else if (!isStandIn) {
          again.push(...this.#failed(entry, outcome));
        } else if (entry.phase === 'Pending' && entry.reason === 'Loading') {
          // The declared version may still come.
          continue;
        } else {
          const message = `${entry.message}; and what served before cannot stand in: ${outcome.message}`;
          this.#set(entry, 'Error', entry.reason, message);
        }
        touched.push(entry);
      }
      this.#publishEntries(touched, modules);
      const repeated = new Set(again.map(({ id }) => id));
      this.#settle(touched.map(({ id }) => id).filter((id) => !repeated.has(id)));
      this.#load(again);
    });
  }

  /** Lets what served before a restart stand in for first versions that keep everybody waiting. */
  #standInLater(loads: readonly LoadRequest[]): void {
    const declared = loads.flatMap(({ id }) => {
      const entry = this.#entries.get(id);
      return entry !== undefined && this.#canStandIn(entry) ? [[entry, entry.declared] as const] : [];
    });
    if (declared.length === 0) {
      return;
    }
    const timer = setTimeout(() => {
      this.#standInTimers.delete(timer);
      const late = declared.filter(
        ([entry, then]) => entry.declared === then && this.#entries.get(entry.id) === entry && this.#canStandIn(entry),
      );
      this.#load(late.flatMap(([entry]) => this.#standIn(entry)));
    }, STAND_IN_MS);
    timer.unref();
    this.#standInTimers.add(timer);
  }

  #canStandIn({ id, serving, triedLastGood }: Entry): boolean {
    return serving === undefined && !triedLastGood && this.#lastGood.has(id);
  }

  /** What served before a restart, to be loaded instead of the declared version; once. */
  #standIn(entry: Entry): LoadRequest[] {
    const lastGood = this.#lastGood.get(entry.id);
    if (lastGood === undefined || !this.#canStandIn(entry)) {
      return [];
    }
    entry.triedLastGood = true;
    return [{ id: entry.id, definition: lastGood.definition, digests: lastGood.digests, from: 'cache' }];
  }

  #settle(ids: readonly string[]): void {
    for (const id of ids) {
      this.#settling.delete(id);
    }
    if (this.#settling.size === 0) {
      for (const { resolve } of this.#settled.splice(0)) {
        resolve();
      }
    }
  }

  #loaded(entry: Entry, request: LoadRequest, outcome: LoadOutcome & { ok: true }): void {
    const { declared } = entry;
    if (request.digests !== undefined || 'problem' in declared) {
      const lastGood = this.#lastGood.get(entry.id);
      // A builtin module is this product's, whatever version of it served before.
      entry.serving = lastGood && { ...lastGood, digests: outcome.digests };
      if (entry.phase === 'Pending' && entry.reason === 'Loading') {
        this.#set(entry, 'Updating', 'Loading', `${STAND_IN_TEXT} while the declared version is being loaded`);
      } else {
        // Why it was needed stays what is told.
        this.#set(entry, 'Degraded', entry.reason, entry.message);
      }
      return;
    }
    const { digests } = outcome;
    const isSame = entry.serving?.hash === declared.hash && isDeepStrictEqual(entry.serving.digests, digests);
    const since = (isSame ? entry.serving?.since : undefined) ?? new Date().toISOString();
    entry.serving = { ...declared, digests, since };
    entry.desiredDigests = digests;
    entry.attempts += 1;
    this.#with.changeEnded('served');
    if (outcome.sourceError === undefined) {
      this.#set(entry, 'Active', 'Serving', 'the declared version serves');
    } else {
      // The source may have a newer module of that name.
      this.#retryLater(entry);
      this.#set(entry, 'Active', 'ServingFromCache', `the module comes from the cache: ${outcome.sourceError}`);
    }
  }

  /** The declared version cannot serve. Returns what is to be loaded instead, if anything can stand in. */
  #failed(entry: Entry, outcome: LoadOutcome & { ok: false }): LoadRequest[] {
    entry.attempts += 1;
    entry.desiredDigests = outcome.digests ?? {};
    if (outcome.transient) {
      this.#retryLater(entry);
    }
    this.#set(entry, entry.serving === undefined ? 'Error' : 'Degraded', outcome.reason, outcome.message);
    this.#with.changeEnded('failed');
    return this.#standIn(entry);
  }

  #retryLater(entry: Entry): void {
    const delayMs = jitteredBackoff(entry.attempts);
    entry.nextRetry = new Date(Date.now() + delayMs);
    entry.retry = setTimeout(() => this.#load(this.#retryRequest(entry)), delayMs);
    entry.retry.unref();
  }

  #retryRequest(entry: Entry): LoadRequest[] {
    clearTimeout(entry.retry);
    entry.nextRetry = undefined;
    return 'definition' in entry.declared ? [{ id: entry.id, definition: entry.declared.definition }] : [];
  }

  #remove(ids: readonly string[]): void {
    for (const id of ids) {
      clearTimeout(this.#entries.get(id)?.retry);
      this.#entries.delete(id);
      this.#lastGood.delete(id);
      this.#settling.delete(id);
      this.#with.phaseChanged(id, undefined);
      this.#with.changeEnded('removed');
    }
    if (ids.length > 0) {
      this.#publish([], ids, []);
    }
  }

  #publishEntries(entries: readonly Entry[], modules: readonly CompiledPolicyModule[]): void {
    if (entries.length > 0) {
      this.#publish(
        entries.map((entry) => tableEntry(entry)),
        [],
        modules,
      );
    }
  }

  #publish(
    upserts: readonly TableEntry[],
    removals: readonly string[],
    modules: readonly CompiledPolicyModule[],
  ): void {
    const used = new Set([...this.#entries.values()].flatMap(({ serving }) => Object.values(serving?.digests ?? {})));
    const added = new Map(
      modules
        .filter(({ digest }) => used.has(digest) && !this.#modules.has(digest))
        .map((module) => [module.digest, module]),
    );
    const retired = [...this.#modules.keys()].filter((digest) => !used.has(digest));
    for (const digest of retired) {
      this.#modules.delete(digest);
    }
    for (const [digest, module] of added) {
      this.#modules.set(digest, module);
    }
    void this.#with.publish({ upserts, removals, modules: [...added.values()], retired });
    this.#with.servingChanged([...used]);
  }

  #set(entry: Entry, phase: PolicyPhase, reason: PolicyReason, message: string): void {
    if (entry.phase !== phase || entry.reason !== reason) {
      entry.since = new Date();
    }
    entry.phase = phase;
    entry.reason = reason;
    entry.message = message;
    this.#with.phaseChanged(entry.id, entry);
  }
}

function tableEntry(entry: Entry): TableEntry {
  if (entry.serving !== undefined) {
    return { id: entry.id, definition: entry.serving.definition, digests: entry.serving.digests };
  }
  const failurePolicy = 'definition' in entry.declared ? entry.declared.definition.failurePolicy : 'Fail';
  return { id: entry.id, failed: { message: entry.message, failurePolicy } };
}

function versionOf({ hash, settingsHash }: DeclaredPolicy, digests: Readonly<Record<string, string>>): PolicyVersion {
  const pins = Object.values(digests);
  const version =
    pins.length === 0
      ? null
      : createHash('sha256')
          .update([hash, ...pins].join())
          .digest('hex')
          .slice(0, 12);
  return { version, settingsHash, modules: digests };
}

function statusOf(entry: Entry): PolicyStatus {
  const declared = 'definition' in entry.declared ? entry.declared : undefined;
  const shown = (declared ?? entry.serving)?.definition;
  return {
    id: entry.id,
    kind: shown?.kind ?? 'unknown',
    mode: shown?.mode ?? 'unknown',
    phase: entry.phase,
    reason: entry.reason,
    message: entry.message,
    since: entry.since.toISOString(),
    desired: declared === undefined ? null : versionOf(declared, entry.desiredDigests),
    serving:
      entry.serving === undefined
        ? null
        : { ...versionOf(entry.serving, entry.serving.digests), since: entry.serving.since },
    attempts: entry.attempts,
    nextRetry: entry.nextRetry?.toISOString() ?? null,
  };
}
