// The memory that WebAssembly policies may hold in one process: compiled code, which all threads share, and instances, of
// which every thread has its own.
import type { CompiledPolicyModule } from './compiled-module.ts';

/**
 * Of the memory limit of the process. The same again is for what policies use while they run, a guest's limit in each thread;
 * a quarter is for Node, tables and reviews, which take 150 to 220 MiB.
 */
const BUDGET_SHARE = 3 / 8;
/** Of the limit of the process, for guests that run: one in each thread. */
const RUNNING_SHARE = 3 / 8;
/** Of the budget, for the policies of one namespace. */
const NAMESPACE_SHARE = 1 / 4;
/**
 * Of the budget, what cluster-wide policies may hold beyond it while a version replaces another one: an eighth of the limit of the
 * process, of what guests that run seldom use.
 */
const LOAN_SHARE = 1 / 3;
/** Of the budget, for the policies of all namespaces, so that they never take what cluster-wide policies need. */
const NAMESPACES_SHARE = 1 / 2;
/** Enough for a few policies where a limit is too small or unknown. */
const MIN_BUDGET_BYTES = 64 * 1024 * 1024;
/** Enough for the published policies, whose initial memory is at most 20 MiB. */
const MIN_GUEST_BYTES = 32 * 1024 * 1024;
/**
 * Memory of a module for each byte after rewriting: its bytes, and V8's tables. For each byte of functions: what V8 compiles them to
 * when all of them have run, as a hostile module's do; policies in Go run a fourth of theirs. And for each function: V8's records.
 * Measured in memory-budget.test.ts.
 */
const BYTES_PER_BYTE = 1.5;
const BYTES_PER_CODE_BYTE = 4;
const BYTES_PER_FUNCTION = 512;

/** The owner of policies that belong to no namespace. */
export const CLUSTER_OWNER = '';

export interface MemoryBudget {
  /** Memory limit of the process. */
  readonly processBytes: number;
  /** Of it, for code and instances together. */
  readonly bytes: number;
  /** Threads with instances: the workers and the loader. */
  readonly threads: number;
  /** Most memory of one guest. */
  readonly guestBytes: number;
}

/**
 * The budget of a process with a memory limit.
 * @param bytes instead of a part of that limit
 */
export function memoryBudget(
  processBytes: number,
  workers: number,
  bytes = Math.max(MIN_BUDGET_BYTES, Math.floor(processBytes * BUDGET_SHARE)),
): MemoryBudget {
  const threads = workers + 1;
  const guestBytes = Math.max(MIN_GUEST_BYTES, Math.floor((processBytes * RUNNING_SHARE) / threads));
  return { processBytes, bytes, threads, guestBytes };
}

/** Of the budget, what the policies of an owner may hold. */
export function budgetOf({ bytes }: MemoryBudget, owner: string): number {
  return owner === CLUSTER_OWNER ? bytes : bytes * NAMESPACE_SHARE;
}

/** Of the budget, what the policies of all namespaces may hold together. */
export function namespacesBudget({ bytes }: MemoryBudget): number {
  return bytes * NAMESPACES_SHARE;
}

/** What the policies of an owner may hold beyond their part while a version replaces another one. */
export function loanOf({ bytes }: MemoryBudget, owner: string): number {
  return owner === CLUSTER_OWNER ? bytes * LOAN_SHARE : 0;
}

/** What is left for instances in one thread beside this code. */
export function instanceBytes({ bytes, threads }: MemoryBudget, codeBytes: number): number {
  return Math.max(0, bytes - codeBytes) / threads;
}

/** Most memory that the code of a module takes in the process. */
export function codeBytesOf(module: CompiledPolicyModule): number {
  if (!('compiled' in module)) {
    return 0;
  }
  const { rewrittenBytes, codeBytes, functions } = module.compiled.shape;
  // The factors are measured, and not whole.
  return Math.ceil(rewrittenBytes * BYTES_PER_BYTE + codeBytes * BYTES_PER_CODE_BYTE + functions * BYTES_PER_FUNCTION);
}
