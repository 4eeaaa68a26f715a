import { InstanceMemory } from '../wasm/index.ts';
import { budgetOf, type MemoryBudget } from './memory-budget.ts';

/** The memory for instances in one thread. Without a budget there is no limit. */
export function instanceMemory(budget: MemoryBudget | undefined): InstanceMemory {
  return budget === undefined
    ? new InstanceMemory({ bytes: Infinity, bytesOf: () => Infinity })
    : new InstanceMemory({
        bytes: budget.bytes / budget.threads,
        bytesOf: (owner) => budgetOf(budget, owner) / budget.threads,
      });
}
