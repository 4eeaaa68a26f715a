// Trying whether policies could be served, before anybody is asked to serve them.
import { isNamespacedPolicyId, policyId } from '../../resources/index.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import { RequestRefused } from '../../https/index.ts';
import type { LoadOutcome, LoadRequest } from '../../evaluation/index.ts';
import type { PinnedModule, PrevalidationRequest, PrevalidationResult } from '../../control/index.ts';
import type { ReadPolicy, UnreadPolicy } from '../policies/registry-loads.ts';

/**
 * How long compiled modules are kept for the revision that is usually staged a moment later: until the progress deadline of
 * a rollout that waits for others. Milliseconds.
 */
export const HOLD_MS = 60_000;

export interface PrevalidatorCollaborators {
  read(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]>;
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
  /** Other modules are held than before, or some were loaded that nobody holds. */
  heldChanged(): void;
}

interface Pending {
  readonly request: PrevalidationRequest;
  readonly resolve: (result: PrevalidationResult) => void;
}

/** Fetches, compiles and checks policies as those that serve are, and forgets them again. */
export class RevisionPrevalidator {
  readonly #with: PrevalidatorCollaborators;
  readonly #held = new Map<string, { readonly module: CompiledPolicyModule; readonly timer: NodeJS.Timeout }>();
  readonly #stopped = new AbortController();
  #waiting: Pending[] = [];
  #beginning: NodeJS.Immediate | undefined;

  constructor(collaborators: PrevalidatorCollaborators) {
    this.#with = collaborators;
  }

  /**
   * Whether a policy could be served, with the modules that its sources have now. Requests of one turn of the event loop
   * share what they fetch. Rejects only with the signal's reason, or because the server stops.
   */
  async prevalidate(request: PrevalidationRequest, signal?: AbortSignal): Promise<PrevalidationResult> {
    const { promise, resolve, reject } = Promise.withResolvers<PrevalidationResult>();
    const signals = [this.#stopped.signal, ...(signal === undefined ? [] : [signal])];
    const aborted = signals.find((one) => one.aborted);
    if (aborted !== undefined) {
      throw aborted.reason;
    }
    const listeners = signals.map((one) => ({ one, listener: (): void => reject(one.reason) }));
    for (const { one, listener } of listeners) {
      one.addEventListener('abort', listener, { once: true });
    }
    this.#waiting.push({ request, resolve });
    this.#beginning ??= setImmediate(() => this.#begin());
    try {
      return await promise;
    } finally {
      for (const { one, listener } of listeners) {
        one.removeEventListener('abort', listener);
      }
    }
  }

  /** Modules that were found good a short time ago. */
  held(): CompiledPolicyModule[] {
    return [...this.#held.values()].map(({ module }) => module);
  }

  stop(): void {
    clearImmediate(this.#beginning);
    this.#stopped.abort(new RequestRefused(503, 'the policy server is stopping'));
    for (const { timer } of this.#held.values()) {
      clearTimeout(timer);
    }
  }

  #begin(): void {
    const pending = this.#waiting;
    this.#waiting = [];
    this.#beginning = undefined;
    const specs = pending.map(({ request }) => ({ id: policyId(request), spec: request.spec }));
    void this.#with.read(specs).then((read) => this.#load(pending, read));
  }

  #load(pending: readonly Pending[], read: readonly ReadPolicy[]): void {
    const requests = new Map<LoadRequest, Pending>();
    for (const [index, one] of pending.entries()) {
      const policy = read[index];
      if (policy === undefined || 'problem' in policy) {
        const { problem = 'the policy cannot be read', isTransient = false } = policy ?? {};
        one.resolve({ ok: false, reason: 'InvalidDefinition', message: problem, isTransient });
      } else {
        const { definition } = policy;
        const { id } = definition;
        requests.set({ id, definition, from: 'source', isForTenant: isNamespacedPolicyId(id) }, one);
      }
    }
    if (requests.size === 0 || this.#stopped.signal.aborted) {
      return;
    }
    this.#with.load([...requests.keys()], (outcomes) => {
      if ([...outcomes.values()].some(({ ok }) => !ok)) {
        // A module of a policy that was refused is of no further use.
        this.#with.heldChanged();
      }
      for (const [request, outcome] of outcomes) {
        requests.get(request)?.resolve(this.#result(requests.get(request)?.request, request, outcome));
      }
    });
  }

  #result(
    asked: PrevalidationRequest | undefined,
    { definition }: LoadRequest,
    outcome: LoadOutcome,
  ): PrevalidationResult {
    if (!outcome.ok) {
      const { reason, message, transient } = outcome;
      return { ok: false, reason, message, isTransient: transient };
    }
    this.#hold(outcome.modules);
    const uses =
      definition.kind === 'policy'
        ? [{ name: asked?.metadata.name ?? '', module: definition.module }]
        : definition.members;
    const modules = uses.map(({ name, module }): PinnedModule => {
      // The definition may have a reference that was made absolute.
      return { name, module: writtenModule(asked, name) ?? module, digest: outcome.digests[module] ?? '' };
    });
    return { ok: true, modules };
  }

  #hold(modules: readonly CompiledPolicyModule[]): void {
    const before = this.#held.size;
    for (const module of modules) {
      clearTimeout(this.#held.get(module.digest)?.timer);
      const timer = setTimeout(() => {
        this.#held.delete(module.digest);
        this.#with.heldChanged();
      }, HOLD_MS);
      timer.unref();
      this.#held.set(module.digest, { module, timer });
    }
    if (this.#held.size !== before) {
      this.#with.heldChanged();
    }
  }
}

/** The reference of a module as the policy has it. */
function writtenModule(request: PrevalidationRequest | undefined, name: string): string | undefined {
  const spec = request?.spec;
  if (spec === undefined) {
    return undefined;
  }
  if (!('policies' in spec)) {
    return spec.module;
  }
  return Object.hasOwn(spec.policies, name) ? spec.policies[name]?.module : undefined;
}
