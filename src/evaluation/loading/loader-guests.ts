import { createGuest, type PolicyGuest } from '../../engine/index.ts';
import { WasmError } from '../../wasm/index.ts';
import { CLUSTER_OWNER, type MemoryBudget } from '../memory-budget.ts';
import { instanceMemory } from '../thread-memory.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { LoadingActivity } from './loading-activity.ts';

/**
 * Processor time of a module's start: a quarter of the default timeout of a policy, because workers start modules within
 * reviews. Three times what INIT_FUEL of the sandbox takes usually; published policies take at most 40 ms. Milliseconds.
 */
const MAX_START_MS = 500;

/** Guests that check settings in a loader thread, one for each module. Policies that serve run in the workers. */
export class LoaderGuests {
  readonly #budget: MemoryBudget | undefined;
  readonly #activity: LoadingActivity;
  readonly #instances: ReturnType<typeof instanceMemory>;
  readonly #guests = new Map<string, PolicyGuest>();

  constructor(budget: MemoryBudget | undefined, activity: LoadingActivity) {
    this.#budget = budget;
    this.#activity = activity;
    this.#instances = instanceMemory(budget);
  }

  get(digest: string): PolicyGuest | undefined {
    return this.#guests.get(digest);
  }

  /**
   * Starts a module, if it has not started yet.
   * @throws WasmError when it cannot start, or takes too long for a start within a review; QuarantineError
   */
  start(module: CompiledPolicyModule, policy: string): PolicyGuest {
    const known = this.#guests.get(module.digest);
    if (known !== undefined) {
      return known;
    }
    const guest = createGuest(module, this.#instances.share(module.digest, CLUSTER_OWNER));
    this.#activity.begin(policy, module.digest);
    const before = process.threadCpuUsage();
    this.#startWithin(guest);
    const { user, system } = process.threadCpuUsage(before);
    const startMs = (user + system) / 1_000;
    if (startMs > MAX_START_MS) {
      throw new WasmError(
        'start-too-slow',
        `the module takes ${Math.round(startMs)} ms of processor time to start: expected at most ${MAX_START_MS} ms, because ` +
          'reviews start it again. Do that work when the module is built, or in the first call that needs it',
      );
    }
    this.#guests.set(module.digest, guest);
    return guest;
  }

  /** The module with the memory that its instance holds here. */
  measured(module: CompiledPolicyModule): CompiledPolicyModule {
    const bytes = this.#instances.lastBytes(module.digest) ?? module.instanceBytes;
    return bytes === undefined ? module : { ...module, instanceBytes: bytes };
  }

  clear(): void {
    this.#guests.clear();
    this.#instances.clear();
  }

  /** @throws WasmError, with the budget when the instance holds too much */
  #startWithin(guest: PolicyGuest): void {
    try {
      guest.start();
    } catch (error) {
      if (this.#budget !== undefined && error instanceof WasmError && error.code === 'memory-exceeded') {
        const { bytes, threads } = this.#budget;
        const budget = `of the ${Math.round(bytes / 2 ** 20)} MiB for policies, which ${threads} threads share`;
        throw new WasmError(
          error.code,
          `${error.message}; or give the policy server more memory: this is its part ${budget}`,
          { cause: error },
        );
      }
      throw error;
    }
  }
}
