import {
  createFailedPolicy,
  createGuest,
  createPolicy,
  type Buckets,
  type LoadedPolicy,
  loadBuckets,
  loadReviewMatcher,
  type Observation,
  type PolicyGuest,
  type PolicyOptions,
  type PolicyTable,
  type ReviewMatcher,
} from '../../engine/index.ts';
import { policyOwner } from '../../engine/definition/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import type { TableChange, TableEntry } from '../evaluation-protocol.ts';
import { CLUSTER_OWNER, codeBytesOf, instanceBytes, type MemoryBudget } from '../memory-budget.ts';
import { instanceMemory } from '../thread-memory.ts';
import type { InstanceMemory } from '../../wasm/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';

/** An entry that the loader could load and this worker cannot. */
export interface ApplyFailure {
  readonly id: string;
  readonly message: string;
}

/** The policies of a worker, by id and by bucket, with the guests that run them. */
export class WorkerPolicies {
  /** Undefined: there are no reviews of buckets. */
  readonly buckets: { readonly admit: Buckets['admit']; readonly table: PolicyTable } | undefined;
  readonly #options: PolicyOptions;
  readonly #budget: MemoryBudget | undefined;
  readonly #instances: InstanceMemory;
  readonly #modules = new Map<string, CompiledPolicyModule>();
  /** One guest per module, shared by all policies that use it. */
  readonly #guests = new Map<string, PolicyGuest>();
  readonly #policies = new Map<string, LoadedPolicy>();
  readonly #matches = new Map<string, PolicyMatch>();
  /** Made when a policy judges its first object. */
  readonly #matchers = new Map<string, ReviewMatcher>();
  /** Policies whose present version was evaluated in this worker. */
  readonly #tried = new Set<string>();
  /** The numbers that name policies in the worker's activity, by id. */
  readonly #numbers = new Map<string, number>();

  constructor(options: PolicyOptions, hasBuckets: boolean, budget?: MemoryBudget) {
    this.#options = options;
    this.#budget = budget;
    this.#instances = instanceMemory(budget);
    if (hasBuckets) {
      const { admit, PolicyTable } = loadBuckets();
      this.buckets = { admit, table: new PolicyTable(options) };
    }
  }

  get(id: string): LoadedPolicy | undefined {
    return this.#policies.get(id);
  }

  /** What matches objects with a policy; undefined for one without rules. */
  matcherOf(id: string): ReviewMatcher | undefined {
    const match = this.#matches.get(id);
    if (match !== undefined && !this.#matchers.has(id)) {
      const Matcher = loadReviewMatcher();
      this.#matchers.set(id, new Matcher(match));
    }
    return this.#matchers.get(id);
  }

  /** See policyOwner. */
  ownerOf(id: string): string {
    return policyOwner(id, this.#matches.get(id)?.namespace);
  }

  /** Whether the policy was evaluated in this worker. The first evaluation starts its module. */
  isTried(id: string): boolean {
    return this.#tried.has(id);
  }

  noteTried(observations: readonly Observation[]): void {
    for (const { policy } of observations) {
      this.#tried.add(policy);
    }
  }

  /** See {@link WorkerActivity}; 0: there is no such policy. */
  numberOf(id: string): number {
    return this.#numbers.get(id) ?? 0;
  }

  /**
   * Applies a change of the table.
   * @param numbers of its upserts, in their order
   */
  apply(change: TableChange, numbers: readonly number[]): readonly ApplyFailure[] {
    const failures: ApplyFailure[] = [];
    for (const module of change.modules) {
      this.#modules.set(module.digest, module);
    }
    for (const id of change.removals) {
      this.#policies.delete(id);
      this.#forgetMatch(id);
      this.buckets?.table.delete(id);
      this.#numbers.delete(id);
      this.#tried.delete(id);
    }
    for (const [index, entry] of change.upserts.entries()) {
      const policy = this.#loaded(entry, failures);
      this.#policies.set(entry.id, policy);
      this.#forgetMatch(entry.id);
      if (entry.match !== undefined) {
        this.#matches.set(entry.id, entry.match);
      }
      this.buckets?.table.set(policy, entry.match, entry.alsoIn);
      this.#numbers.set(entry.id, numbers[index] ?? 0);
      this.#tried.delete(entry.id);
    }
    for (const digest of change.retired) {
      this.#modules.delete(digest);
      this.#guests.delete(digest);
      this.#instances.forget(digest);
    }
    if (change.modules.length > 0 || change.retired.length > 0) {
      this.#limitInstances();
    }
    return failures;
  }

  /** Collects the garbage of dropped instances, if it is much. */
  collectGarbage(): void {
    this.#instances.collect();
  }

  #forgetMatch(id: string): void {
    this.#matches.delete(id);
    this.#matchers.delete(id);
  }

  /** The guest of a module. It starts with the first review that needs it: the loader has proved that it can. */
  #guestOf(digest: string | undefined, owner: string): PolicyGuest {
    const known = this.#guests.get(digest ?? '');
    if (known !== undefined) {
      return known;
    }
    const module = this.#modules.get(digest ?? '');
    if (module === undefined) {
      throw new Error(`the module ${digest ?? ''} was not sent to this worker`);
    }
    const guest = createGuest(module, this.#instances.share(module.digest, owner));
    this.#guests.set(module.digest, guest);
    return guest;
  }

  /** A policy that cannot be loaded here answers as failed. */
  #loaded(entry: TableEntry, failures: ApplyFailure[]): LoadedPolicy {
    if ('failed' in entry) {
      return createFailedPolicy({ id: entry.id, ...entry.failed }, this.#options);
    }
    try {
      // The first policy that uses a module is the owner of its instance.
      const owner = entry.match?.namespace ?? CLUSTER_OWNER;
      return createPolicy(
        entry.definition,
        (reference) => this.#guestOf(entry.digests[reference], owner),
        this.#options,
      );
    } catch (error) {
      const message = errorText(error);
      const { id, mode, failurePolicy } = entry.definition;
      failures.push({ id, message });
      return createFailedPolicy({ id, message, mode, failurePolicy }, this.#options);
    }
  }

  /** Instances have what the code leaves of the budget. */
  #limitInstances(): void {
    if (this.#budget !== undefined) {
      const code = this.#modules.values().reduce((sum, module) => sum + codeBytesOf(module), 0);
      this.#instances.limit(instanceBytes(this.#budget, code));
    }
  }
}
