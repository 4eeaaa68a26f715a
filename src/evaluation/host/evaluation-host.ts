// What evaluates policies in a process: loader, workers, host capabilities, and the memory that policies hold. A policy server, a
// command or an audit decides which policies serve, and needs no port for that.
import { availableParallelism, totalmem } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { DEFAULT_TIMEOUT_SECONDS } from '../../engine/definition/index.ts';
import type { ObjectReference, ObjectVerdict, PolicyDefinition } from '../../engine/index.ts';
import type { LogEntry } from '../../log/index.ts';
import type { TrustRoot } from '../../modules/index.ts';
import type { ExceptionTerms, PolicyMatch } from '../../resources/index.ts';
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import { CapabilityService } from '../capabilities/capability-service.ts';
import type { ClusterSource } from '../cluster-objects/cluster-source.ts';
import { DeclaredKinds } from '../cluster-objects/declared-kinds.ts';
import type { ExistingObject, TableChange, TableEntry, WorkerStart } from '../evaluation-protocol.ts';
import type { ObjectFeeds, ObjectFeedsOptions } from '../object-feeds/object-feeds.ts';
import { Loader } from '../loading/loader.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { LoaderOptions } from '../loading/loader-lane.ts';
import type { LoadOutcome, LoadRequest } from '../loading/load-request.ts';
import { CLUSTER_OWNER, memoryBudget } from '../memory-budget.ts';
import type { PoolAnswer } from '../pool/review-job.ts';
import { WorkerPool, type WorkerPoolOptions } from '../pool/worker-pool.ts';
import { allExceptions } from '../published-exceptions.ts';
import type { FindResult, WatchedChange } from '../watched-objects.ts';
import { PolicyMemory } from './policy-memory.ts';

/** At least two, so that a policy that does not return never occupies all workers. */
const MIN_DEFAULT_WORKERS = 2;

/** Options of an {@link EvaluationHost}. Those without a comment are explained where they are declared. */
export interface EvaluationHostOptions
  extends
    Pick<LoaderOptions, 'cacheDir'>,
    Partial<
      Pick<
        LoaderOptions,
        | 'baseDir'
        | 'sources'
        | 'verification'
        | 'maxModuleBytes'
        | 'fetchTimeoutMs'
        | 'memoryLimitBytes'
        | 'isolation'
        | 'tenantFolder'
        | 'recordFolder'
        | 'peers'
        | 'modules'
      >
    >,
    Pick<WorkerStart, 'alwaysAcceptNamespace' | 'hasBuckets' | 'isRecorded'>,
    Pick<WorkerPoolOptions, 'onTimeout' | 'onRestart' | 'onApplyFailure' | 'find'> {
  /** Evaluation threads. Default: the number of processors, at least {@link MIN_DEFAULT_WORKERS}. */
  readonly workers?: number | undefined;
  /** Default: {@link DEFAULT_TIMEOUT_SECONDS}. */
  readonly defaultTimeoutSeconds?: number | undefined;
  /** Memory that policies may hold, in bytes; `unlimited`: nothing is counted. Default: a part of the limit of the process. */
  readonly policyMemoryBytes?: number | 'unlimited' | undefined;
  /** The cluster that context-aware policies read. Default: none, so that every read fails. */
  readonly cluster?: ClusterSource | undefined;
  /**
   * Where namespaces and parameters are looked up for the policies of {@link EvaluationHost.serve}; their changes are watched.
   * Default: `find` gives them.
   */
  readonly lookups?: LookupOptions | undefined;
  /** For keyless signatures of images that policies verify. Default: none, so that those cannot be verified. */
  readonly trustRoot?: TrustRoot | undefined;
  /** Answers host capabilities in another way, such as from a recorded session. Default: a thread asks networks and cluster. */
  readonly connectCapabilities?: () => CapabilityConnection;
  readonly log: (entry: LogEntry) => void;
}

export interface LookupOptions extends Pick<ObjectFeedsOptions, 'cluster' | 'policyCluster' | 'log'> {
  /** Called with each change of namespaces and parameters, before evaluations that start later read it. Default: nobody is. */
  readonly onChange?: (change: WatchedChange) => void;
}

/** A policy to serve, and the objects that it is for. */
export interface HostedPolicy extends LoadRequest {
  /** Default: every object. */
  readonly match?: PolicyMatch;
}

interface Hosted {
  readonly policy: HostedPolicy;
  readonly outcome: LoadOutcome;
}

/** Loads and evaluates policies. */
export class EvaluationHost implements AsyncDisposable {
  /** For those who decide themselves when a loaded version serves; all others use {@link serve}. */
  readonly loader: Loader;
  /** Evaluates reviews of admission requests. */
  readonly pool: WorkerPool;
  #memory: PolicyMemory;
  readonly #capabilities: CapabilityService;
  readonly #declaredKinds = new DeclaredKinds();
  readonly #lookups: EvaluationHostOptions['lookups'];
  /** Set when the host starts. */
  #feeds: ObjectFeeds | undefined;
  #hosted: ReadonlyMap<string, Hosted> = new Map();

  constructor(options: EvaluationHostOptions) {
    const { log, sources, trustRoot, cluster, cacheDir, hasBuckets, isRecorded, alwaysAcceptNamespace } = options;
    const { workers = Math.max(MIN_DEFAULT_WORKERS, availableParallelism()), policyMemoryBytes } = options;
    const { defaultTimeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = options;
    const isUnlimited = policyMemoryBytes === 'unlimited';
    const budget = memoryBudget(processMemoryLimit(), workers, isUnlimited ? Infinity : policyMemoryBytes);
    const limited = isUnlimited ? {} : { memory: budget };
    this.#memory = new PolicyMemory(budget, () => CLUSTER_OWNER);
    this.#lookups = options.lookups;
    this.#capabilities = new CapabilityService(log, () => this.#renew(), {
      sources,
      trustRoot,
      ...(cluster === undefined ? {} : { cluster }),
    });
    const connectCapabilities = options.connectCapabilities ?? (() => this.#capabilities.connect());
    this.pool = new WorkerPool({
      ...options,
      size: workers,
      start: {
        ...limited,
        defaultTimeoutSeconds,
        ...(hasBuckets === undefined ? {} : { hasBuckets }),
        ...(isRecorded === undefined ? {} : { isRecorded }),
        ...(alwaysAcceptNamespace === undefined ? {} : { alwaysAcceptNamespace }),
      },
      connectCapabilities,
      ...(options.lookups === undefined ? {} : { find: (object) => this.#find(object) }),
    });
    const { baseDir, fetchTimeoutMs, memoryLimitBytes, verification, maxModuleBytes, isolation, tenantFolder } =
      options;
    this.loader = new Loader(
      {
        ...limited,
        cacheDir,
        baseDir,
        sources,
        verification,
        maxModuleBytes,
        fetchTimeoutMs,
        memoryLimitBytes,
        isolation,
        tenantFolder,
        defaultTimeoutSeconds,
        connectCapabilities,
        modules: options.modules ?? (() => this.#modules()),
        ...(options.recordFolder === undefined ? {} : { recordFolder: options.recordFolder }),
        ...(options.peers === undefined ? {} : { peers: options.peers }),
      },
      log,
    );
  }

  /** The memory that policies hold. */
  get memory(): PolicyMemory {
    return this.#memory;
  }

  /** Starts the workers; resolves when each is ready. */
  async start(): Promise<void> {
    await Promise.all([this.pool.start(), this.#startLookups()]);
  }

  /** Imported on demand: most processes that evaluate load nothing of clusters. */
  async #startLookups(): Promise<void> {
    if (this.#lookups !== undefined) {
      const { onChange, ...lookups } = this.#lookups;
      const { ObjectFeeds } = await import('../object-feeds/object-feeds.ts');
      this.#feeds = new ObjectFeeds({
        ...lookups,
        publish: (change) => {
          this.publishWatched(change);
          onChange?.(change);
        },
      });
    }
  }

  /**
   * Accounts memory by owner from now on.
   * @param ownerOf the namespace of a policy, or CLUSTER_OWNER
   */
  accountMemory(ownerOf: (id: string) => string): PolicyMemory {
    this.#memory = new PolicyMemory(this.#memory.budget, ownerOf);
    return this.#memory;
  }

  /** Loads policies without serving them. */
  async load<Request extends LoadRequest>(requests: readonly Request[]): Promise<ReadonlyMap<Request, LoadOutcome>> {
    const all = new Map<Request, LoadOutcome>();
    if (requests.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.loader.load(requests, (outcomes) => {
        for (const request of requests) {
          const outcome = outcomes.get(request);
          if (outcome !== undefined) {
            all.set(request, outcome);
          }
        }
        if (all.size === requests.length) {
          resolve();
        }
      });
      await promise;
    }
    return all;
  }

  /**
   * Changes the table of every worker; resolves when all have applied it.
   * @param staged definitions that are loaded beside the table, by policy, where these may have changed
   */
  publish(change: TableChange, staged?: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void> {
    if (this.#declaredKinds.apply(change, staged)) {
      this.#capabilities.declare(this.#declaredKinds.list());
    }
    return this.pool.publish(change);
  }

  /** Sends changes of watched objects to every worker. */
  publishWatched(change: WatchedChange): void {
    this.pool.publishWatched(change);
  }

  /** Evaluates with exactly these exceptions from now on. */
  except(exceptions: readonly ExceptionTerms[]): void {
    this.publishWatched(allExceptions(exceptions));
  }

  /**
   * Serves exactly these policies, and loads those that changed or failed before. A policy that cannot be loaded has its failure as
   * verdict on every object. Returns all outcomes by policy. One call after the other.
   */
  async serve(policies: readonly HostedPolicy[]): Promise<ReadonlyMap<string, LoadOutcome>> {
    const before = this.#hosted;
    const isKept = (policy: HostedPolicy): boolean => {
      const known = before.get(policy.id);
      return known?.outcome.ok === true && isDeepStrictEqual(known.policy, policy);
    };
    const changed = policies.filter((policy) => !isKept(policy));
    const outcomes = await this.load(changed);
    const removals = [...before.keys()].filter((id) => !policies.some((policy) => policy.id === id));
    for (const id of removals) {
      this.#memory.set(id, []);
    }
    const admitted = [...outcomes].map(([policy, outcome]) => [policy.id, this.#admitted(policy, outcome)] as const);
    const known = new Map([...before, ...admitted]);
    this.#hosted = new Map(
      policies.flatMap(({ id }) => {
        const hosted = known.get(id);
        return hosted === undefined ? [] : [[id, hosted]];
      }),
    );
    this.#feeds?.wantOnly(policies);
    await this.#publishHosted(before, changed, removals);
    return new Map([...this.#hosted].map(([id, { outcome }]) => [id, outcome]));
  }

  async #publishHosted(
    before: ReadonlyMap<string, Hosted>,
    changed: readonly HostedPolicy[],
    removals: readonly string[],
  ): Promise<void> {
    const modules = this.#modules();
    const known = modulesOf(before);
    const retired = known.filter(({ digest }) => !modules.some((module) => module.digest === digest));
    await this.publish({
      upserts: changed.flatMap(({ id }) => this.#entryOf(id)),
      removals,
      modules: modules.filter(({ digest }) => !known.some((module) => module.digest === digest)),
      retired: retired.map(({ digest }) => digest),
    });
    this.loader.keep(modules.map(({ digest }) => digest));
  }

  /**
   * Has policies judge an object: each gives its verdict with message, reason and time, and one that does not end is cut off. A
   * pool holds few objects at once, so its user bounds how many calls are under way.
   * @param policies ids. Default: all that {@link serve} was given last
   * @throws EvaluationError 'overloaded', 'stopping'
   */
  async evaluate(
    object: ExistingObject,
    { policies = this.#hosted.keys() }: { readonly policies?: Iterable<string> } = {},
  ): Promise<readonly ObjectVerdict[]> {
    const asked = [...policies].flatMap((id) => this.#hosted.get(id)?.policy ?? []);
    const verdicts = new Map<string, ObjectVerdict>();
    const ask = async (ids: readonly string[]): Promise<void> => {
      for (const verdict of await this.#judge(ids, object)) {
        verdicts.set(verdict.policy, verdict);
      }
    };
    if (asked.length > 1) {
      await ask(asked.map(({ id }) => id));
    }
    for (const { id } of asked) {
      if (!verdicts.has(id)) {
        await ask([id]);
      }
    }
    return asked.map(({ id, definition }) => verdicts.get(id) ?? withoutVerdict(id, definition.mode));
  }

  /** Ends all threads. Reviews that wait are not answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.pool.stop(), this.loader.stop(), this.#capabilities.stop(), this.#feeds?.stop()]);
  }

  async #find(object: ObjectReference): Promise<FindResult> {
    return (await this.#feeds?.find(object)) ?? { state: 'unreadable', reason: 'the host has not started' };
  }

  /** Without a verdict, a policy was removed meanwhile, or its thread ended again and again: the log says why. */
  async #judge(policies: readonly string[], object: ExistingObject): Promise<readonly ObjectVerdict[]> {
    const { promise, resolve } = Promise.withResolvers<PoolAnswer>();
    this.pool.judge(policies, object, resolve);
    const { result } = await promise;
    return result.kind === 'judged' ? result.verdicts : [];
  }

  #admitted(policy: HostedPolicy, outcome: LoadOutcome): Hosted {
    const admitted = this.#memory.admitted(policy.id, outcome);
    this.#memory.set(policy.id, admitted.ok ? Object.values(admitted.digests) : []);
    return { policy, outcome: admitted };
  }

  #entryOf(id: string): TableEntry[] {
    const hosted = this.#hosted.get(id);
    if (hosted === undefined) {
      return [];
    }
    const { policy, outcome } = hosted;
    const { definition, match } = policy;
    const { failurePolicy } = definition;
    const matched = match === undefined ? { id } : { id, match };
    return outcome.ok
      ? [{ ...matched, definition, digests: outcome.digests }]
      : [{ ...matched, failed: { message: outcome.message, failurePolicy } }];
  }

  #modules(): readonly CompiledPolicyModule[] {
    return modulesOf(this.#hosted);
  }

  #renew(): void {
    this.pool.renew();
    this.loader.renew();
  }
}

function withoutVerdict(policy: string, mode: ObjectVerdict['mode']): ObjectVerdict {
  const message = 'the policy gave no verdict: its thread ended, or it was removed';
  return {
    policy,
    mode,
    outcome: 'failed',
    allowed: false,
    message,
    code: 500,
    reason: 'InternalError',
    warnings: [],
    mutates: false,
  };
}

/** The modules of policies that were loaded, each once. */
function modulesOf(hosted: ReadonlyMap<string, Hosted>): readonly CompiledPolicyModule[] {
  const all = hosted.values().flatMap(({ outcome }) => (outcome.ok ? outcome.modules : []));
  return [...new Map(all.map((module) => [module.digest, module])).values()];
}

/** The memory limit of the process: that of its control group, or else the machine's memory. Bytes. */
function processMemoryLimit(): number {
  const constrained = process.constrainedMemory();
  // 0: unknown. Without a limit, a control group has one of nearly 2^64.
  return Math.min(constrained > 0 ? constrained : Infinity, totalmem());
}
