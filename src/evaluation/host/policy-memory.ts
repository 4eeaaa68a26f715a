// The memory that policies hold, by owner. A module that would exceed a part of the budget is not served.
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { LoadOutcome } from '../loading/load-request.ts';
import { budgetOf, CLUSTER_OWNER, codeBytesOf, loanOf, type MemoryBudget, namespacesBudget } from '../memory-budget.ts';

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
  /** What they may hold beyond it while a version replaces another one. */
  readonly loan: number;
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

  /**
   * Why the modules of a new version of a policy cannot be held, beside all others when it has replaced the older versions, or
   * beside these until then; undefined when they can.
   */
  refusal(id: string, modules: readonly CompiledPolicyModule[]): string | undefined {
    for (const group of this.#groupsOf(id)) {
      const { name, limit, loan, holding } = group;
      const added = modules.filter(({ digest }) => !holding.has(digest));
      const without = this.#replacedIn(holding, id, modules);
      const before = this.#bytesOf(holding, { without });
      const after = this.#bytesOf(holding, { added, without });
      const meanwhile = this.#bytesOf(holding, { added });
      if (after > before && after > limit) {
        const what = `${name} would hold ${mebibytes(after)} of memory instead of ${mebibytes(before)}`;
        return `${what}: ${this.#expected(group, 0)}. ${this.#advice(after / limit, added)}`;
      }
      if (meanwhile > this.#bytesOf(holding) && meanwhile > limit + loan) {
        const what = `${name} would hold ${mebibytes(meanwhile)} of memory until the new version has replaced the old one`;
        return `${what}: ${this.#expected(group, loan)}. ${this.#advice(meanwhile / (limit + loan), added)}`;
      }
    }
    return undefined;
  }

  /** That a version can be held, and that another one with as much code could not replace it; undefined when it could. */
  warning(id: string, modules: readonly CompiledPolicyModule[]): string | undefined {
    const code = modules.reduce((sum, module) => sum + codeBytesOf(module), 0);
    for (const { name, limit, loan, holding } of this.#groupsOf(id)) {
      const without = this.#replacedIn(holding, id, modules);
      const added = modules.filter(({ digest }) => !holding.has(digest));
      const bytes = this.#bytesOf(holding, { added, without }) + code;
      if (code > 0 && bytes > limit + loan) {
        return (
          `the module needs ${mebibytes(code)} of memory for its code. A new version of that size could not replace it, ` +
          `because both together need more than ${name} may hold: give the policy server ` +
          this.#enough(bytes / (limit + loan))
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

  #expected({ limit }: Group, loan: number): string {
    const part = `of the ${mebibytes(this.budget.bytes)} for policies`;
    return loan === 0
      ? `expected at most ${mebibytes(limit)} ${part}`
      : `expected at most ${mebibytes(limit + loan)}, which is ${mebibytes(limit)} ${part}, and ${mebibytes(loan)} for that time`;
  }

  /** @param excess how many times as much as the limit is needed */
  #advice(excess: number, added: readonly CompiledPolicyModule[]): string {
    const instance = Math.max(...added.map((module) => figuresOf(module).instanceBytes));
    const code = added.reduce((sum, module) => sum + codeBytesOf(module), 0);
    return (
      `The module needs ${mebibytes(code)} for its code, and ${mebibytes(instance)} for an instance in each of ` +
      `${this.budget.threads} threads. Remove other policies, use a smaller module, or give the policy server ${this.#enough(excess)}`
    );
  }

  #enough(excess: number): string {
    const [wanted, given] = [this.budget.processBytes * excess, this.budget.processBytes];
    return `${Math.ceil(wanted / 2 ** 20)} MiB of memory instead of ${Math.floor(given / 2 ** 20)} MiB`;
  }

  /** The modules that only older versions of a policy use. */
  #replacedIn(holding: Holding, id: string, modules: readonly CompiledPolicyModule[]): ReadonlySet<string> {
    const older = (this.#digests.get(id) ?? []).filter((digest) => holding.hasOneUser(digest));
    return new Set(older).difference(new Set(modules.map(({ digest }) => digest)));
  }

  #bytesOf(holding: Holding, change?: HoldingChange): number {
    return holding.bytes(this.budget.threads, change);
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
    const loan = loanOf(this.budget, owner);
    const all = { name: 'all policies together', limit: this.budget.bytes, loan, holding: this.#all };
    const part = { limit: budgetOf(this.budget, owner), loan, holding: own };
    if (owner === CLUSTER_OWNER) {
      return [all, { name: 'cluster-wide policies', ...part }];
    }
    const namespaces = {
      name: 'the policies of all namespaces',
      limit: namespacesBudget(this.budget),
      loan,
      holding: this.#namespaces,
    };
    const one = { name: `the policies of namespace ${owner}`, ...part };
    return [one, namespaces, all];
  }
}

interface HoldingChange {
  readonly added?: readonly CompiledPolicyModule[];
  /** Digests of modules that do not count. */
  readonly without?: ReadonlySet<string>;
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

  hasOneUser(digest: string): boolean {
    return this.#users.get(digest) === 1;
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
   * Memory, after a change: the code of all, and for instances, which are dropped when others need their memory, that of the
   * largest in each thread.
   */
  bytes(threads: number, { added = [], without = new Set() }: HoldingChange = {}): number {
    let code = 0;
    let instance = 0;
    const kept = [...this.#figures].filter(([digest]) => !without.has(digest)).map(([, figures]) => figures);
    for (const { codeBytes, instanceBytes } of [...kept, ...added.map(figuresOf)]) {
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
