// Pre-validates policies: tries whether they could be served.
import { isNamespacedPolicyId, policyId } from '../../resources/index.ts';
import type { ContextAwareResource } from '../../engine/index.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import { RequestRefused } from '../../https/index.ts';
import type { LoadOutcome, LoadRequest } from '../../evaluation/index.ts';
import type { PinnedModule, PrevalidationRequest, PrevalidationResult } from '../../control/index.ts';
import type { ReadPolicy, UnreadPolicy } from '../policies/registry-loads.ts';

/**
 * How long compiled modules are kept for the revision that is usually staged soon after: the progress deadline of a
 * rollout. Milliseconds.
 */
export const KEEP_MS = 60_000;

export interface PrevalidatorCollaborators {
  read(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]>;
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
  /** Whether the cluster serves a kind; true when that is unknown. */
  isServed(resource: ContextAwareResource): Promise<boolean>;
  /** Called when the kept modules change, or loaded modules are not kept. */
  modulesChanged(): void;
}

interface Pending {
  readonly request: PrevalidationRequest;
  readonly resolve: (result: PrevalidationResult | Promise<PrevalidationResult>) => void;
}

/** Fetches, compiles and checks policies without serving them. */
export class RevisionPrevalidator {
  readonly #collaborators: PrevalidatorCollaborators;
  readonly #modules = new Map<string, { readonly module: CompiledPolicyModule; readonly timer: NodeJS.Timeout }>();
  readonly #stopped = new AbortController();
  #waiting: Pending[] = [];
  #beginning: NodeJS.Immediate | undefined;

  constructor(collaborators: PrevalidatorCollaborators) {
    this.#collaborators = collaborators;
  }

  /**
   * Tries whether a policy could be served, with the current modules of its sources. Requests of one turn of the event
   * loop share their fetches. Rejects only with the signal's reason, or when the server stops.
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

  /** Modules of recently validated policies. */
  modules(): CompiledPolicyModule[] {
    return [...this.#modules.values()].map(({ module }) => module);
  }

  stop(): void {
    clearImmediate(this.#beginning);
    this.#stopped.abort(new RequestRefused(503, 'the policy server is stopping'));
    for (const { timer } of this.#modules.values()) {
      clearTimeout(timer);
    }
  }

  #begin(): void {
    const pending = this.#waiting;
    this.#waiting = [];
    this.#beginning = undefined;
    const specs = pending.map(({ request }) => ({ id: policyId(request), spec: request.spec }));
    void this.#collaborators.read(specs).then((read) => this.#load(pending, read));
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
    this.#collaborators.load([...requests.keys()], (outcomes) => {
      if ([...outcomes.values()].some(({ ok }) => !ok)) {
        // Modules of a rejected policy are not needed.
        this.#collaborators.modulesChanged();
      }
      for (const [request, outcome] of outcomes) {
        const result = this.#result(requests.get(request)?.request, request, outcome);
        requests.get(request)?.resolve(this.#withKinds(result, kindsOfEveryReview(request, outcome)));
      }
    });
  }

  #result(
    request: PrevalidationRequest | undefined,
    { definition }: LoadRequest,
    outcome: LoadOutcome,
  ): PrevalidationResult {
    if (!outcome.ok) {
      const { reason, message, transient } = outcome;
      return { ok: false, reason, message, isTransient: transient };
    }
    this.#keep(outcome.modules);
    const uses =
      definition.kind === 'policy'
        ? [{ name: request?.metadata.name ?? '', module: definition.module }]
        : definition.members;
    const modules = uses.map(({ name, module }): PinnedModule => {
      // The reference in the definition may have been made absolute.
      const manifest = outcome.manifests?.[module];
      const verifiedBy = outcome.verified?.[module];
      return {
        name,
        module: writtenModule(request, name) ?? module,
        digest: outcome.digests[module] ?? '',
        ...(manifest === undefined ? {} : { manifest }),
        ...(verifiedBy === undefined ? {} : { verifiedBy }),
      };
    });
    const { warnings } = outcome;
    return { ok: true, modules, ...(warnings === undefined ? {} : { warnings }) };
  }

  /** The result, or a failure when the cluster does not serve one of the kinds. */
  async #withKinds(result: PrevalidationResult, kinds: readonly ContextAwareResource[]): Promise<PrevalidationResult> {
    for (const resource of kinds) {
      if (!(await this.#collaborators.isServed(resource))) {
        const what = `${resource.apiVersion}/${resource.kind}`;
        const message = `the policy reads ${what} for every request, and the cluster does not serve it: correct contextAwareResources, or install the CustomResourceDefinition`;
        return { ok: false, reason: 'KindNotServed', message, isTransient: true };
      }
    }
    return result;
  }

  #keep(modules: readonly CompiledPolicyModule[]): void {
    const before = this.#modules.size;
    for (const module of modules) {
      clearTimeout(this.#modules.get(module.digest)?.timer);
      const timer = setTimeout(() => {
        this.#modules.delete(module.digest);
        this.#collaborators.modulesChanged();
      }, KEEP_MS);
      timer.unref();
      this.#modules.set(module.digest, { module, timer });
    }
    if (this.#modules.size !== before) {
      this.#collaborators.modulesChanged();
    }
  }
}

/**
 * Kinds that are read for every review: those of Rego and builtin policies. Other guests ask for what they need, and may
 * name a kind that a cluster does not have to have.
 */
function kindsOfEveryReview({ definition }: LoadRequest, outcome: LoadOutcome): readonly ContextAwareResource[] {
  if (!outcome.ok) {
    return [];
  }
  const modes = new Map(outcome.modules.map(({ digest, mode }) => [digest, mode]));
  const uses = definition.kind === 'policy' ? [definition] : definition.members;
  return uses.flatMap(({ module, contextAwareResources }) => {
    const mode = modes.get(outcome.digests[module] ?? '');
    return mode === 'opa' || mode === 'gatekeeper' || mode === 'builtin' ? contextAwareResources : [];
  });
}

/** The reference of a module in the policy's spec. */
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
