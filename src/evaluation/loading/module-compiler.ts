import { DEFAULT_MEMORY_LIMIT_BYTES, loadPolicyModule } from '../../modules/compiling/index.ts';
import { requireProtocol } from '../../modules/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import { COMPILE_TIMEOUT_MS, loadOwner, type LoadRequest, type ProvidedModule } from './load-request.ts';
import type { LoaderStart, Patience } from './loader-lane.ts';
import type { LoadingActivity } from './loading-activity.ts';
import type { LoadingTurns } from './loading-turns.ts';

/** Limit of a compilation. Compiling takes some 150 ms per MiB. Milliseconds. */
export const COMPILE_LIMIT_MS: Readonly<Record<Patience, number>> = { quick: 5_000, patient: COMPILE_TIMEOUT_MS };

/** Compiles modules, each once. */
export class ModuleCompiler {
  readonly #start: LoaderStart;
  readonly #activity: LoadingActivity;
  readonly #turns: LoadingTurns;
  /** By digest: those that serve, and those of loads in progress. */
  readonly #compiled: Map<string, Promise<CompiledPolicyModule>>;
  /** Digests compiled since the last {@link keep}, which the main thread may not have known when it sent that. */
  readonly #fresh = new Set<string>();

  constructor(start: LoaderStart, activity: LoadingActivity, turns: LoadingTurns) {
    this.#start = start;
    this.#activity = activity;
    this.#turns = turns;
    this.#compiled = new Map(start.modules.map((module) => [module.digest, Promise.resolve(module)]));
  }

  /** @param provided how the module is loaded, when it was not fetched */
  compile(
    seq: number,
    request: LoadRequest,
    { bytes, digest }: { readonly bytes: Uint8Array; readonly digest: string },
    provided?: ProvidedModule,
  ): Promise<CompiledPolicyModule> {
    const known = this.#compiled.get(digest);
    if (known !== undefined) {
      return known;
    }
    const { promise: module, resolve, reject } = Promise.withResolvers<CompiledPolicyModule>();
    this.#turns.push(loadOwner(request), () => {
      try {
        this.#activity.begin(request.id, digest);
        this.#activity.enter(seq, 'compile', COMPILE_LIMIT_MS[this.#start.patience]);
        resolve(this.#compile(bytes, digest, provided));
      } catch (error) {
        reject(error);
      } finally {
        this.#activity.leave();
        this.#activity.end();
      }
    });
    this.#compiled.set(digest, module);
    this.#fresh.add(digest);
    // A failure is not kept: the next load tries again.
    module.catch(() => this.#compiled.delete(digest));
    return module;
  }

  /** Drops the modules that do not serve. */
  keep(digests: readonly string[]): void {
    const kept = new Set(digests);
    for (const digest of this.#compiled.keys()) {
      if (!kept.has(digest) && !this.#fresh.has(digest)) {
        this.#compiled.delete(digest);
      }
    }
    this.#fresh.clear();
  }

  #compile(bytes: Uint8Array, digest: string, provided: ProvidedModule | undefined): CompiledPolicyModule {
    const { memory, isolation } = this.#start;
    const { memoryLimitBytes = Math.min(DEFAULT_MEMORY_LIMIT_BYTES, memory?.guestBytes ?? Infinity) } = this.#start;
    const module = loadPolicyModule(bytes, { memoryLimitBytes, chosenMode: provided?.chosenMode, isolation });
    const isUnfinished = provided !== undefined && module.metadata?.protocolVersion === undefined;
    if (module.mode === 'kubewarden-wapc' && !isUnfinished) {
      requireProtocol(module.metadata);
    }
    const { hostCapabilities = [], contextAwareResources = [], mutating = false } = module.metadata ?? {};
    return {
      digest,
      mode: module.mode,
      compiled: module.compiled,
      ...(hostCapabilities.length === 0 ? {} : { hostCapabilities }),
      ...(contextAwareResources.length === 0 ? {} : { contextAwareResources }),
      ...(mutating ? { isMutating: true } : {}),
    };
  }
}
