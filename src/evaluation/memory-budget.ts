// The memory that WebAssembly policies may hold in one process: compiled code, which all threads share, and instances, of
// which every thread has its own.
import type { CompiledPolicyModule } from './loading/compiled-module.ts';

/**
 * Of the memory limit of the process. The same again is for what policies use while they run, a guest's limit in each thread;
 * a quarter is for Node, tables and reviews, which take 150 to 220 MiB.
 */
const BUDGET_SHARE = 3 / 8;
/** Of the limit of the process, for guests that run: one in each thread. */
const RUNNING_SHARE = 3 / 8;
/** Of the budget, for the policies of one namespace. */
const NAMESPACE_SHARE = 1 / 4;
/** Of the budget, for the policies of all namespaces, so that they never take what cluster-wide policies need. */
const NAMESPACES_SHARE = 1 / 2;
/** Enough for a few policies where a limit is too small or unknown. */
const MIN_BUDGET_BYTES = 64 * 1024 * 1024;
/** Enough for the published policies, whose initial memory is at most 20 MiB. */
const MIN_GUEST_BYTES = 32 * 1024 * 1024;
/**
 * Memory of a module's code by its size after rewriting: its bytes and V8's tables take 3 times that size, with the compiled
 * functions 6 times. Measured with a Go policy of 3.6 MB.
 */
const CODE_FACTOR = 6;

/** The owner of policies that belong to no namespace. */
export const CLUSTER_OWNER = '';

export interface MemoryBudget {
  /** For code and instances together. */
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
  return { bytes, threads, guestBytes };
}

/** Of the budget, what the policies of an owner may hold. */
export function budgetOf({ bytes }: MemoryBudget, owner: string): number {
  return owner === CLUSTER_OWNER ? bytes : bytes * NAMESPACE_SHARE;
}

/** Of the budget, what the policies of all namespaces may hold together. */
export function namespacesBudget({ bytes }: MemoryBudget): number {
  return bytes * NAMESPACES_SHARE;
}

/** What is left for instances in one thread beside this code. */
export function instanceBytes({ bytes, threads }: MemoryBudget, codeBytes: number): number {
  return Math.max(0, bytes - codeBytes) / threads;
}

/** Memory that the code of a module takes in the process. */
export function codeBytesOf(module: CompiledPolicyModule): number {
  return 'compiled' in module ? module.compiled.shape.rewrittenBytes * CODE_FACTOR : 0;
}
