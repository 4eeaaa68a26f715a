// The memory that policies hold, by owner. A module that would exceed a part of the budget is not served.
import {
  budgetOf,
  CLUSTER_OWNER,
  codeBytesOf,
  type CompiledPolicyModule,
  type LoadOutcome,
  type MemoryBudget,
  namespacesBudget,
} from '../../evaluation/index.ts';

/** Owners with their own value in metrics and status: the largest. */
export const MAX_LISTED_OWNERS = 100;
/** Name of the owner of policies of no namespace, in metrics and status. */
const CLUSTER_NAME = 'cluster';
/** Name of all owners that are not listed; no namespace has it. */
const OTHER_OWNERS = '_other_';

/** Memory of one owner. */
export interface OwnedMemory {
  /** A namespace, `cluster`, or `_other_`. */
  readonly owner: string;
  readonly bytes: number;
}

/** Memory of one module. */
interface Figures {
  readonly codeBytes: number;
  /** Of one instance. */
  readonly instanceBytes: number;
}

/** Policies that share a part of the budget. */
interface Group {
  readonly name: string;
  readonly limit: number;
  readonly holding: Holding;
}

/** What the policies of one process hold. */
export class PolicyMemory {
  readonly budget: MemoryBudget;
  readonly #ownerOf: (id: string) => string;
  readonly #all = new Holding();
  readonly #namespaces = new Holding();
  readonly #owners = new Map<string, Holding>();
  readonly #digests = new Map<string, readonly string[]>();

  /** @param ownerOf the namespace of a policy, or {@link CLUSTER_OWNER} */
  constructor(budget: MemoryBudget, ownerOf: (id: string) => string) {
    this.budget = budget;
    this.#ownerOf = ownerOf;
  }

  /** Why the modules of a policy cannot be held beside all others; undefined when they can. */
  refusal(id: string, modules: readonly CompiledPolicyModule[]): string | undefined {
    for (const { name, limit, holding } of this.#groupsOf(id)) {
      const added = modules.filter(({ digest }) => !holding.has(digest));
      const bytes = holding.bytes(this.budget.threads, added);
      const held = holding.bytes(this.budget.threads);
      if (bytes > held && bytes > limit) {
        const instance = Math.max(...added.map((module) => figuresOf(module).instanceBytes));
        const code = added.reduce((sum, module) => sum + codeBytesOf(module), 0);
        return (
          `${name} would hold ${mebibytes(bytes)} of memory instead of ${mebibytes(held)}: expected at most ` +
          `${mebibytes(limit)} of the ${mebibytes(this.budget.bytes)} for policies. The module needs ${mebibytes(code)} for its ` +
          `code, and ${mebibytes(instance)} for an instance in each of ${this.budget.threads} threads. Remove other policies, ` +
          'use a smaller module, or give the policy server more memory'
        );
      }
    }
    return undefined;
  }

  /** The outcome of a load, or a failure when the modules cannot be held. The modules of a good outcome are held. */
  admitted(id: string, outcome: LoadOutcome): LoadOutcome {
    if (!outcome.ok) {
      return outcome;
    }
    const { digests, modules } = outcome;
    const message = this.refusal(id, modules);
    if (message !== undefined) {
      return { ok: false, reason: 'MemoryExceeded', message, transient: true, digests };
    }
    this.#hold(id, modules);
    return outcome;
  }

  /** Sets the modules that a policy holds, by digest: of its serving and staged versions. */
  set(id: string, digests: readonly string[]): void {
    const before = this.#digests.get(id) ?? [];
    const after = [...new Set(digests)];
    for (const { holding } of this.#groupsOf(id)) {
      for (const digest of after) {
        holding.use(digest);
      }
      for (const digest of before) {
        holding.release(digest);
      }
    }
    if (after.length > 0) {
      this.#digests.set(id, after);
      return;
    }
    this.#digests.delete(id);
    const owner = this.#ownerOf(id);
    if (this.#owners.get(owner)?.isEmpty === true) {
      this.#owners.delete(owner);
    }
  }

  /** Memory by owner, the largest first. */
  owners(): readonly OwnedMemory[] {
    const all = [...this.#owners]
      .map(([owner, holding]): OwnedMemory => ({
        owner: owner === CLUSTER_OWNER ? CLUSTER_NAME : owner,
        bytes: holding.bytes(this.budget.threads),
      }))
      .toSorted((a, b) => b.bytes - a.bytes);
    const others = all.slice(MAX_LISTED_OWNERS).reduce((sum, { bytes }) => sum + bytes, 0);
    return [...all.slice(0, MAX_LISTED_OWNERS), ...(others === 0 ? [] : [{ owner: OTHER_OWNERS, bytes: others }])];
  }

  /** Memory of all policies; modules that several owners use count once. */
  get bytes(): number {
    return this.#all.bytes(this.budget.threads);
  }

  /** Holds modules in addition to those of {@link set}. */
  #hold(id: string, modules: readonly CompiledPolicyModule[]): void {
    for (const { holding } of this.#groupsOf(id)) {
      for (const module of modules) {
        holding.know(module);
      }
    }
    this.set(id, [...(this.#digests.get(id) ?? []), ...modules.map(({ digest }) => digest)]);
  }

  #groupsOf(id: string): Group[] {
    const owner = this.#ownerOf(id);
    const own = this.#owners.get(owner) ?? new Holding();
    this.#owners.set(owner, own);
    const all = { name: 'all policies together', limit: this.budget.bytes, holding: this.#all };
    if (owner === CLUSTER_OWNER) {
      return [all, { name: 'cluster-wide policies', limit: budgetOf(this.budget, owner), holding: own }];
    }
    const namespaces = {
      name: 'the policies of all namespaces',
      limit: namespacesBudget(this.budget),
      holding: this.#namespaces,
    };
    const one = { name: `the policies of namespace ${owner}`, limit: budgetOf(this.budget, owner), holding: own };
    return [one, namespaces, all];
  }
}

/** The modules of a group of policies. */
class Holding {
  readonly #figures = new Map<string, Figures>();
  /** Number of policies by digest. */
  readonly #users = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#users.size === 0;
  }

  has(digest: string): boolean {
    return this.#users.has(digest);
  }

  know(module: CompiledPolicyModule): void {
    this.#figures.set(module.digest, figuresOf(module));
  }

  use(digest: string): void {
    this.#users.set(digest, (this.#users.get(digest) ?? 0) + 1);
  }

  release(digest: string): void {
    const users = (this.#users.get(digest) ?? 0) - 1;
    if (users > 0) {
      this.#users.set(digest, users);
    } else {
      this.#users.delete(digest);
      this.#figures.delete(digest);
    }
  }

  /**
   * Memory with additional modules: the code of all, and for instances, which are dropped when others need their memory, that
   * of the largest in each thread.
   */
  bytes(threads: number, added: readonly CompiledPolicyModule[] = []): number {
    let code = 0;
    let instance = 0;
    for (const { codeBytes, instanceBytes } of [...this.#figures.values(), ...added.map(figuresOf)]) {
      code += codeBytes;
      instance = Math.max(instance, instanceBytes);
    }
    return code + threads * instance;
  }
}

function figuresOf(module: CompiledPolicyModule): Figures {
  return { codeBytes: codeBytesOf(module), instanceBytes: module.instanceBytes ?? 0 };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
