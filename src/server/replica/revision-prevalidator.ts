// Pre-validates policies: tries whether they could be served.
import { isDigest } from '../../modules/index.ts';
import {
  CONTEXT_AWARE_LABEL,
  type ContextAwareResource,
  MAX_WARNINGS,
  namespaceOfPolicyId,
  policyId,
} from '../../resources/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import type {
  CompiledPolicyModule,
  LoadOutcome,
  LoadRequest,
  PolicyMemory,
  ReadPolicy,
  UnreadPolicy,
} from '../../evaluation/index.ts';
import { RequestRefusal } from '../../https/index.ts';
import type { PinnedModule, PrevalidationRequest, PrevalidationResult } from '../../control/index.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';
import type { ExistingParameters } from './existing-parameters.ts';
import { ParameterTrials } from './parameter-trials.ts';
import type { ReadableKinds } from './readable-kinds.ts';

/**
 * How long compiled modules are kept for the revision that is usually staged soon after: the progress deadline of a
 * rollout. Milliseconds.
 */
export const KEEP_MS = 60_000;
/**
 * Time limit of the checks of a policy's kinds, which take milliseconds, or some seconds where rights are granted meanwhile. An API
 * server that does not answer fails no policy. Milliseconds.
 */
const KINDS_TIMEOUT_MS = 15_000;

export interface PrevalidatorCollaborators {
  read(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]>;
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
  /** The memory that policies hold. Default: without a limit. */
  readonly memory?: Pick<PolicyMemory, 'refusal' | 'warning'>;
  readonly kinds: Pick<ReadableKinds, 'isServed' | 'forbiddenRead'>;
  readonly parameters: Pick<ExistingParameters, 'read'>;
  /** What serves of a policy on this replica. */
  readonly serving: (id: string) => LoadedRevision | undefined;
  /** Called when the kept modules change, or loaded modules are not kept. */
  modulesChanged(): void;
}

/** Why a policy could not read a kind. */
interface KindFailure {
  readonly reason: 'KindNotServed' | 'KindNotReadable';
  readonly message: string;
}

interface Pending {
  readonly request: PrevalidationRequest;
  readonly resolve: (result: PrevalidationResult | Promise<PrevalidationResult>) => void;
}

/** Fetches, compiles and checks policies without serving them. */
export class RevisionPrevalidator {
  readonly #collaborators: PrevalidatorCollaborators;
  readonly #trials: ParameterTrials;
  readonly #modules = new Map<string, { readonly module: CompiledPolicyModule; readonly timer: NodeJS.Timeout }>();
  readonly #stopped = new AbortController();
  #waiting: Pending[] = [];
  #beginning: NodeJS.Immediate | undefined;

  constructor(collaborators: PrevalidatorCollaborators) {
    const { parameters, serving } = collaborators;
    this.#collaborators = collaborators;
    this.#trials = new ParameterTrials({ load: (request) => this.#try(request), parameters, serving });
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
    this.#stopped.abort(new RequestRefusal(503, 'the policy server is stopping'));
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
      if (policy === undefined || 'problems' in policy) {
        const { problems = ['the policy cannot be read'], isTransient = false } = policy ?? {};
        one.resolve({ ok: false, reason: 'InvalidDefinition', message: problems.join('; '), isTransient });
      } else {
        const { definition } = policy;
        const { id } = definition;
        const namespace = namespaceOfPolicyId(id);
        requests.set({ id, definition, from: 'source', isForTenant: namespace !== undefined, namespace }, one);
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
        const held = this.#withinMemory(request, outcome);
        const one = requests.get(request);
        const result = this.#result(one?.request, request, held);
        one?.resolve(this.#withKinds(result, request, held, one.request));
      }
    });
  }

  /** The outcome, or a failure when the modules cannot be served beside those that serve; with a warning when updates could not. */
  #withinMemory({ id }: LoadRequest, outcome: LoadOutcome): LoadOutcome {
    const { memory } = this.#collaborators;
    if (!outcome.ok || memory === undefined) {
      return outcome;
    }
    const message = memory.refusal(id, outcome.modules);
    if (message !== undefined) {
      return { ok: false, reason: 'MemoryExceeded', message, transient: true };
    }
    const warning = memory.warning(id, outcome.modules);
    return warning === undefined ? outcome : { ...outcome, warnings: [...(outcome.warnings ?? []), warning] };
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

  /** The result, or a failure when the policy could not read a kind that it declares. */
  async #withKinds(
    result: PrevalidationResult,
    request: LoadRequest,
    outcome: LoadOutcome,
    asked: PrevalidationRequest,
  ): Promise<PrevalidationResult> {
    if (!outcome.ok) {
      return result;
    }
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(KINDS_TIMEOUT_MS)]);
    const failure =
      (await this.#notServed(kindsOfEveryReview(request, outcome), 'contextAwareResources', signal)) ??
      (await this.#notServed(parameterKinds(request), 'parameters', signal)) ??
      (await this.#notReadable(declaredKinds(request), signal));
    if (failure !== undefined) {
      return { ok: false, ...failure, isTransient: true };
    }
    return await this.#withParameters(result, request, outcome, asked);
  }

  /** The result, or a failure or warning when the policy would newly refuse parameters that exist. */
  async #withParameters(
    result: PrevalidationResult,
    request: LoadRequest,
    outcome: LoadOutcome & { readonly ok: true },
    asked: PrevalidationRequest,
  ): Promise<PrevalidationResult> {
    if (!result.ok) {
      return result;
    }
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(KINDS_TIMEOUT_MS)]);
    const pinned = { ...request, digests: pinnedDigests(outcome) };
    const tried = await this.#trials.try(pinned, asked.spec, asked.serving, signal);
    if (!tried.ok) {
      return tried;
    }
    return tried.warning === undefined
      ? result
      : { ...result, warnings: [...(result.warnings ?? []).slice(0, MAX_WARNINGS - 1), tried.warning] };
  }

  #try(request: LoadRequest): Promise<LoadOutcome> {
    return new Promise((resolve, reject) => {
      this.#stopped.signal.addEventListener('abort', () => reject(this.#stopped.signal.reason), { once: true });
      this.#collaborators.load([request], (outcomes) => {
        const outcome = outcomes.get(request);
        if (outcome !== undefined) {
          resolve(outcome);
        }
      });
    });
  }

  async #notServed(
    kinds: readonly ContextAwareResource[],
    field: string,
    signal: AbortSignal,
  ): Promise<KindFailure | undefined> {
    for (const resource of kinds) {
      if (!(await this.#collaborators.kinds.isServed(resource, signal))) {
        const what = `the policy reads ${textOf(resource)} for every request, and the cluster does not serve it`;
        const action = `correct ${field}, or install the CustomResourceDefinition`;
        return { reason: 'KindNotServed', message: `${what}: ${action}` };
      }
    }
    return undefined;
  }

  async #notReadable(kinds: readonly ContextAwareResource[], signal: AbortSignal): Promise<KindFailure | undefined> {
    for (const resource of kinds) {
      const forbidden = await this.#collaborators.kinds.forbiddenRead(resource, signal);
      if (forbidden !== undefined) {
        const { message, rights } = forbidden;
        const what = `the policy may read ${textOf(resource)}, and the policy server may not`;
        const action = `let the controller grant ${rights}, by a ClusterRole with the label ${CONTEXT_AWARE_LABEL}: "true"`;
        return { reason: 'KindNotReadable', message: `${what}: ${action} (${message})` };
      }
    }
    return undefined;
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
function kindsOfEveryReview(
  { definition }: LoadRequest,
  { modules, digests }: LoadOutcome & { readonly ok: true },
): readonly ContextAwareResource[] {
  const modes = new Map(modules.map(({ digest, mode }) => [digest, mode]));
  return moduleUses(definition).flatMap(({ module, contextAwareResources }) => {
    const mode = modes.get(digests[module] ?? '');
    return mode === 'opa' || mode === 'gatekeeper' || mode === 'builtin' ? contextAwareResources : [];
  });
}

/** Digests of the modules that were loaded; builtin modules have none. */
function pinnedDigests({ digests }: LoadOutcome & { readonly ok: true }): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(digests).filter(([, digest]) => isDigest(digest)));
}

/** The kinds of parameters, which are read for every review. */
function parameterKinds({ definition }: Pick<LoadRequest, 'definition'>): readonly ContextAwareResource[] {
  return moduleUses(definition).flatMap(({ parameters }) =>
    parameters !== undefined && 'resource' in parameters.from ? [parameters.from.resource] : [],
  );
}

/** All kinds that the policy or its members read, without duplicates. */
function declaredKinds({ definition }: Pick<LoadRequest, 'definition'>): readonly ContextAwareResource[] {
  const kinds = [
    ...moduleUses(definition).flatMap(({ contextAwareResources }) => contextAwareResources),
    ...parameterKinds({ definition }),
  ];
  return [...new Map(kinds.map((resource) => [textOf(resource), resource])).values()];
}

function textOf({ apiVersion, kind }: ContextAwareResource): string {
  return `${apiVersion}/${kind}`;
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
