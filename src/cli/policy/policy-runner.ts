// Loads and evaluates policies for commands as a policy server does, with a loader and one worker.
import { DEFAULT_TIMEOUT_SECONDS, monitoredLogEntry } from '../../engine/definition/index.ts';
import {
  createManifestsGuest,
  type JsonObject,
  type Observation,
  type PolicyDefinition,
  type Route,
} from '../../engine/index.ts';
import type { PolicyLogEntry } from '../../engine/capabilities/index.ts';
import {
  type AdmissionResponse,
  type PoolAnswer,
  connectCapabilities,
  EvaluationHost,
  type LoadOutcome,
  type ProvidedModule,
  type Stage,
} from '../../evaluation/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { readMetadata, requireProtocol } from '../../modules/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { moduleCacheFolder } from '../module/module-cache.ts';
import { CliError } from '../errors.ts';
import { exceptionsAmong } from './exceptions-among.ts';
import { ParameterObjects } from './parameter-objects.ts';
import { SessionCapabilities } from './session-capabilities.ts';

/** The code of a module: WebAssembly, or Kubernetes' own policies for a minor version of an API server. */
export type ModuleInput =
  | ProvidedModule
  | { readonly manifests: readonly JsonObject[]; readonly kubernetesVersion?: number };

/** A policy with all its code. */
export interface RunnablePolicy {
  readonly definition: PolicyDefinition;
  /** By the reference that the definition uses; builtin policies need none. */
  readonly modules: Readonly<Record<string, ModuleInput>>;
  /** All objects of the cluster that parameters may be. Default: they are not known. */
  readonly objects?: readonly JsonObject[];
}

/** A request for a policy. */
export interface PolicyRequest {
  /** An admission review, or a raw request. */
  readonly body: Uint8Array;
  readonly route: Route;
}

/** The response to a request, or why the bytes are no request. */
export type RunResult =
  | {
      readonly response: AdmissionResponse;
      readonly observation: Observation;
      readonly evaluationMs: number;
      readonly refused?: never;
    }
  | { readonly refused: string };

interface RunnerOptions {
  readonly onLog?: (entry: PolicyLogEntry) => void;
  /** Whether `capabilities` sees every call of a host capability: to record or replay a session. Default: yes. */
  readonly isRecorded?: boolean;
  /** Whether every call of a module gets a new instance, where servers restore one. Default: no. */
  readonly isFresh?: boolean;
}

/** HTTP status of a response without a verdict. */
const INTERNAL_ERROR = 500;

/** Whether a response is a verdict, of the policy or on the parameters of the namespace, and not of a broken policy. */
export function isVerdict({ outcome, errorCode }: Observation): boolean {
  return outcome === 'verdict' || outcome === 'excepted' || (outcome === 'failed' && errorCode !== INTERNAL_ERROR);
}

/** The policy refuses its settings; worded as kwctl does. */
export class SettingsRefusal extends CliError {
  readonly reason: string;

  constructor(reason: string, hasSettings: boolean) {
    const hint =
      'There are none: a module gets them by -s FILE or --settings-json JSON, a policy by its field settings.';
    super(`Provided settings are not valid: ${reason}`, hasSettings ? {} : { hint });
    this.reason = reason;
  }
}

/** The thread ended during an evaluation: its memory ran out, or worse. */
class ThreadFailed extends CliError {
  constructor(error: string) {
    super(`the thread that runs the module failed: ${error}`);
  }
}

type LoadedCode = Pick<LoadOutcome & { readonly ok: true }, 'digests' | 'modules'>;
type LoadFailure = LoadOutcome & { readonly ok: false };

const DURING: Readonly<Record<Stage, string>> = {
  compile: 'being compiled',
  start: 'loading',
  check: 'checking its settings',
};

/** Holds one policy at a time. Its worker starts at once, so that it is there when the policy is. */
export class PolicyRunner implements AsyncDisposable {
  readonly capabilities: SessionCapabilities = new SessionCapabilities();
  readonly #onLog: RunnerOptions['onLog'];
  readonly #host: EvaluationHost;
  readonly #ready = Promise.withResolvers<void>();
  #policy: { readonly id: string; readonly digests: readonly string[] } | undefined;
  #isRestored = false;
  #manifests = 0;
  #objects = new ParameterObjects(undefined);
  /** Why the worker ended in the middle of an evaluation. */
  #crash: string | undefined;

  constructor({ onLog, isRecorded = true, isFresh = false }: RunnerOptions = {}) {
    this.#onLog = onLog;
    this.#host = new EvaluationHost({
      cacheDir: moduleCacheFolder(),
      workers: 1,
      policyMemoryBytes: 'unlimited',
      isolation: isFresh ? 'fresh' : 'restore',
      isRecorded,
      connectCapabilities: () => connectCapabilities((...call) => this.capabilities.answer(...call)),
      find: async (object) => this.#objects.publish(object, (change) => this.#host.publishWatched(change)),
      log: (entry) => this.#log(entry),
    });
    // `load` rejects with the same error.
    this.#ready.promise.catch(() => undefined);
    this.#host.start().then(this.#ready.resolve, this.#ready.reject);
  }

  /**
   * Loads a policy in place of the one before. Returns notes for the user.
   * @throws SettingsRefusal; CliError when it cannot be loaded
   */
  async load(policy: RunnablePolicy): Promise<readonly string[]> {
    const { definition, modules: inputs } = policy;
    const { digests, modules, notes } = await this.#codeOf(policy);
    await this.#ready.promise;
    const before = this.#policy;
    const { id } = definition;
    for (const [apiVersion, kind] of this.#objects.published) {
      this.#host.publishWatched({ apiVersion, kind, isAll: true, objects: [] });
    }
    this.#objects = new ParameterObjects(policy.objects);
    this.#host.except(exceptionsAmong(policy.objects ?? []));
    this.#policy = { id, digests: Object.values(digests) };
    this.#isRestored = modules.some((module) => 'compiled' in module && module.compiled.shape.isolation === 'restore');
    await this.#host.publish({
      upserts: [{ id, definition, digests }],
      removals: before === undefined || before.id === id ? [] : [before.id],
      modules,
      retired: before?.digests.filter((digest) => !modules.some((module) => module.digest === digest)) ?? [],
    });
    const isWapc = (reference: string): boolean =>
      modules.some(({ digest, mode }) => digest === digests[reference] && mode === 'kubewarden-wapc');
    const drafts = Object.entries(inputs).filter(([reference]) => isWapc(reference));
    return [...notes, ...drafts.flatMap(([, input]) => draftNote(input))];
  }

  /** Whether instances of the policy's modules are restored after each call; if not, there are none, or each call gets a new one. */
  get isRestored(): boolean {
    return this.#isRestored;
  }

  /** Evaluates a request by the policy that was loaded last. @throws CliError when its thread ended */
  async evaluate({ body, route }: PolicyRequest): Promise<RunResult> {
    const { promise, resolve } = Promise.withResolvers<PoolAnswer>();
    this.#crash = undefined;
    this.#host.pool.submit(route, this.#policy?.id ?? '', body, Infinity, resolve);
    const { result, observed, monitored = [], evaluationMs } = await promise;
    for (const verdict of monitored) {
      this.#onLog?.(monitoredLogEntry(verdict));
    }
    if (this.#crash !== undefined) {
      throw new ThreadFailed(this.#crash);
    }
    const unknown = this.#objects.takeUnknown();
    if (unknown.length > 0) {
      const what = `the policy has parameters, and there is no cluster to read ${unknown.join(', ')}`;
      throw new CliError(`${what}: give the policy and these objects as manifests`);
    }
    const [{ observation } = {}] = observed;
    if (result.kind === 'refused') {
      return { refused: result.message };
    }
    if (result.kind !== 'response' || observation === undefined) {
      throw new CliError('the engine failed; this is a mistake in Portcullis');
    }
    return { response: parseJson(result.response) as AdmissionResponse, observation, evaluationMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host[Symbol.asyncDispose]();
  }

  async #codeOf(policy: RunnablePolicy): Promise<LoadedCode & { readonly notes: readonly string[] }> {
    const { definition, modules } = policy;
    const provided: Record<string, ProvidedModule> = {};
    for (const [reference, input] of Object.entries(modules)) {
      if ('manifests' in input) {
        this.#manifests += 1;
        const digest = `manifests ${this.#manifests}`;
        // Only to find problems and notes: the worker makes its own.
        const { notes } = createManifestsGuest(input.manifests, input);
        return { digests: { [reference]: digest }, modules: [{ mode: 'manifests', digest, ...input }], notes };
      }
      provided[reference] = input;
    }
    const [outcome] = (await this.#host.load([{ id: definition.id, definition, provided }])).values();
    if (outcome?.ok !== true) {
      throw outcome === undefined ? new CliError('the loader gave no outcome') : loadError(definition, outcome);
    }
    return { ...outcome, notes: [] };
  }

  #log({ level, message, fields }: LogEntry): void {
    const { policy, ...rest } = fields;
    if (typeof policy === 'string') {
      this.#onLog?.({ policy, level, message, fields: rest });
    } else if (level === 'error') {
      this.#crash = String(fields['error']);
      this.#ready.reject(new ThreadFailed(this.#crash));
    }
  }
}

function loadError(definition: PolicyDefinition, { reason, message, at }: LoadFailure): CliError {
  if (reason === 'InvalidSettings') {
    return new SettingsRefusal(message, definition.kind === 'group' || definition.settingsJson !== '{}');
  }
  const { stage = 'start', unit = definition.id, isOverdue = false } = at ?? {};
  if (isOverdue) {
    const seconds =
      stage === 'check' && definition.kind === 'policy'
        ? (definition.timeoutEvalSeconds ?? DEFAULT_TIMEOUT_SECONDS)
        : undefined;
    const limit = seconds === undefined ? '' : `: expected at most ${seconds} s`;
    return new CliError(`${unit} did not end while it was ${DURING[stage]}${limit}`, {
      hint: 'Does it loop for ever? If it is only slow, give it longer with --timeout SECONDS.',
    });
  }
  return new CliError(
    stage === 'compile' ? `${unit}: ${message}` : `${unit} failed while it was ${DURING[stage]}: ${message}`,
  );
}

/** Why a policy server refuses a waPC module that is not annotated yet. */
function draftNote(input: ModuleInput): string[] {
  try {
    requireProtocol('bytes' in input ? readMetadata(input.bytes) : undefined);
    return [];
  } catch (error) {
    return [`a policy server refuses this module: ${errorText(error)}`];
  }
}
