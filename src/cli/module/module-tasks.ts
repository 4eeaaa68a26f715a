// The work of the module thread: loading modules, evaluating, measuring.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import {
  checkSettings,
  createGuest,
  createManifestsGuest,
  createPolicy,
  DEFAULT_TIMEOUT_SECONDS,
  evaluate,
  FUEL_PER_SECOND,
  type EvaluateOptions,
  type HostPort,
  LocalCapabilities,
  type LoadedPolicy,
  MAX_ANSWER_BYTES,
  type PolicyGuest,
  readReview,
  ReviewError,
  type Route,
  RecordingPort,
  ReplayPort,
} from '../../engine/index.ts';
import {
  compilePolicyModule,
  type ExecutionMode,
  executionModeOf,
  loadPolicyModule,
  ModuleError,
  readMetadata,
  requireProtocol,
} from '../../modules/index.ts';
import { createOpaGuest, WasmError } from '../../wasm/index.ts';
import { errorText } from '../../values/index.ts';
import {
  type BenchResult,
  type CapabilityReply,
  type Evaluated,
  type FromModuleThread,
  type Inspection,
  type JobResults,
  type ModuleInput,
  type ModuleJob,
  type ModuleThreadStart,
  type PolicyJob,
  type RunResult,
  type SuiteAnswer,
  type SuiteJob,
  type SuiteQuestion,
} from './module-job.ts';

/** A module that does not come up within this time never does: what its start may use up ends sooner. Milliseconds. */
const LOAD_TIMEOUT_MS = 20_000;
/** The deadline of a bench is renewed this often, not at every evaluation. Milliseconds. */
const RENEWAL_MS = 50;
/** Evaluations after which V8 has optimised what it will, or the time that slow policies get instead. */
const WARM_UP_EVALUATIONS = 2_000;
const WARM_UP_MS = 500;
/** Times that a bench keeps, at 8 bytes each; a policy that needs 1 µs is measured for 5 s at most. */
const MAX_EVALUATIONS = 5_000_000;

type Say = (message: FromModuleThread) => void;

/** Settings that a policy refuses, as kwctl says it. */
class SettingsRefused extends Error {
  override readonly name = 'SettingsRefused';
  readonly code = 'settings-refused';
}

/** Asks the main thread for host capabilities and sleeps until the answer is there; the main thread ends what waits too long. */
export class ThreadPort implements HostPort {
  readonly #answers: MessagePort;
  readonly #answered: Int32Array;
  readonly #say: Say;

  constructor({ answers, answered }: ModuleThreadStart, say: Say) {
    this.#answers = answers;
    this.#answered = new Int32Array(answered);
    this.#say = say;
  }

  request(capability: string, payload: string): string {
    Atomics.store(this.#answered, 0, 0);
    this.#say({ type: 'ask', capability, payload });
    Atomics.wait(this.#answered, 0, 0);
    const { message: reply } = receiveMessageOnPort(this.#answers) as { message: CapabilityReply };
    if ('error' in reply) {
      throw new Error(reply.error);
    }
    return reply.payload;
  }
}

/** Does a job. */
export function perform(job: ModuleJob, port: HostPort, say: Say): JobResults[keyof JobResults] {
  switch (job.task) {
    case 'inspect':
      return inspect(job.bytes, say);
    case 'protocol':
      return askProtocol(job.bytes, say);
    case 'run':
      return run(job.policy, new Set(job.timedOut), job.record, port, say);
    case 'bench':
      return bench(job.policy, job.iterations ?? MAX_EVALUATIONS, job.durationMs, port, say);
    case 'test':
      return test(job.suite, port, say);
    default:
      return job satisfies never;
  }
}

interface LoadedModule {
  /** Makes a guest; only now does code of the module run. */
  readonly createGuest: () => PolicyGuest;
  /** Why a server would not load it although it can be run here; what of it has no effect. */
  readonly notes: readonly string[];
}

/** A policy may have many modules: errors say which. */
function loadNamed(reference: string, input: ModuleInput): LoadedModule {
  try {
    return loadModule(input);
  } catch (error) {
    throw error instanceof Error && !('manifests' in input)
      ? new Error(`${reference}: ${error.message}`, { cause: error })
      : error;
  }
}

function loadModule(input: ModuleInput): LoadedModule {
  if ('manifests' in input) {
    const { manifests, kubernetesVersion } = input;
    const guest = createManifestsGuest(manifests, kubernetesVersion === undefined ? {} : { kubernetesVersion });
    return { createGuest: () => guest, notes: guest.notes };
  }
  if ('builtin' in input) {
    return { createGuest: () => createGuest({ mode: 'builtin', name: input.builtin }), notes: [] };
  }
  const { compiled, mode, metadata } = loadPolicyModule(input.bytes, { chosenMode: input.chosenMode });
  const note = mode === 'kubewarden-wapc' ? missingProtocol(metadata) : undefined;
  return { createGuest: () => createGuest({ compiled, mode }), notes: note === undefined ? [] : [note] };
}

/** While a policy is written, it is run before it is annotated; the module itself is asked for its protocol then. */
function missingProtocol(metadata: ReturnType<typeof readMetadata>): string | undefined {
  try {
    requireProtocol(metadata);
    return undefined;
  } catch (error) {
    if (error instanceof ModuleError && metadata?.protocolVersion === undefined) {
      return `a policy server refuses this module: ${error.message}`;
    }
    throw error;
  }
}

/** Makes a guest as well: only that shows whether everything that the module imports is there. */
function inspect(bytes: Uint8Array, say: Say): Inspection {
  const stated = readMetadata(bytes)?.executionMode;
  const compiled = compilePolicyModule(bytes);
  const { shape } = compiled;
  let mode: ExecutionMode | undefined;
  try {
    mode = executionModeOf(shape, { metadata: stated });
    say({ type: 'guest', stage: 'loading', unit: 'the module', timeoutMs: LOAD_TIMEOUT_MS });
    if (mode === 'opa' || mode === 'gatekeeper') {
      return { shape, mode, builtins: createOpaGuest(compiled).usedBuiltins, problem: undefined };
    }
    createGuest({ compiled, mode });
    return { shape, mode, builtins: undefined, problem: undefined };
  } catch (error) {
    return { shape, mode, builtins: undefined, problem: errorText(error) };
  }
}

function askProtocol(bytes: Uint8Array, say: Say): JobResults['protocol'] {
  say({ type: 'guest', stage: 'loading', unit: 'the module', timeoutMs: LOAD_TIMEOUT_MS });
  const guest = createGuest({ compiled: compilePolicyModule(bytes), mode: 'kubewarden-wapc' });
  const limits = { fuel: DEFAULT_TIMEOUT_SECONDS * FUEL_PER_SECOND['kubewarden-wapc'], answerBytes: MAX_ANSWER_BYTES };
  const hostCall = (): never => {
    throw new Error('no host capability is available while a module is annotated');
  };
  guest.checkProtocol({ limits, hostCall, log: () => undefined });
  return { version: 'v1' };
}

/** What answers the policy's questions to the host: a recorded session, if there is one. */
function capabilitiesOf({ session }: PolicyJob, port: HostPort): LocalCapabilities | ReplayPort {
  return session === undefined ? new LocalCapabilities(port) : new ReplayPort(session);
}

function run(job: PolicyJob, timedOut: ReadonlySet<string>, record: boolean, port: HostPort, say: Say): RunResult {
  const capabilities = capabilitiesOf(job, port);
  const recording = record ? new RecordingPort(capabilities) : undefined;
  const { policy, notes } = loadPolicy(job, recording ?? capabilities, say);
  const evaluated = evaluateBody(policy, job, {
    timedOut,
    onUnitStart: (unit, timeoutMs) => say({ type: 'guest', stage: 'evaluating', unit, timeoutMs }),
  });
  return { evaluated, notes, ...(recording === undefined ? {} : { session: recording.text() }) };
}

function bench(job: PolicyJob, iterations: number, durationMs: number, port: HostPort, say: Say): BenchResult {
  const capabilities = capabilitiesOf(job, port);
  const { policy, notes } = loadPolicy(job, capabilities, say);
  let renewedAt = -Infinity;
  const onUnitStart = (unit: string, timeoutMs: number): void => {
    const now = performance.now();
    if (now - renewedAt > RENEWAL_MS) {
      renewedAt = now;
      say({ type: 'guest', stage: 'evaluating', unit, timeoutMs: timeoutMs + RENEWAL_MS });
    }
  };
  const once = (): Evaluated => evaluateBody(policy, job, { onUnitStart });
  const evaluated = once();
  if (evaluated.refused !== undefined || evaluated.observation.outcome !== 'verdict') {
    return { evaluated, ...statistics(new Float64Array(0), 0), notes, warmUpEvaluations: 1 };
  }
  const warmUp = measure(once, Math.min(WARM_UP_EVALUATIONS, iterations), WARM_UP_MS);
  const measured = measure(once, iterations, durationMs);
  return {
    evaluated,
    ...statistics(measured.times, measured.totalMs),
    notes,
    warmUpEvaluations: warmUp.times.length + 1,
  };
}

function measure(once: () => void, iterations: number, durationMs: number): { times: Float64Array; totalMs: number } {
  const times = new Float64Array(Math.min(iterations, MAX_EVALUATIONS));
  const start = performance.now();
  let done = 0;
  let now = start;
  while (done < times.length && now - start < durationMs) {
    once();
    const end = performance.now();
    times[done] = end - now;
    now = end;
    done += 1;
  }
  return { times: times.subarray(0, done), totalMs: now - start };
}

function statistics(times: Float64Array, totalMs: number): Omit<BenchResult, keyof RunResult | 'warmUpEvaluations'> {
  const sorted = times.toSorted();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { evaluations: times.length, totalMs, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: at(1) };
}

/** Asks all questions of a suite. Errors of one policy are answers to its questions. */
function test({ modules, variants }: SuiteJob, cluster: HostPort, say: Say): JobResults['test'] {
  const [first] = variants;
  const { guests, notes } = loadGuests(modules, first?.definition.id ?? 'the policy', say);
  for (const { definition, questions } of variants) {
    const port = new SuitePort(cluster);
    const policy = createPolicy(definition, (reference) => guestOf(guests, reference), {
      port,
      log: (entry) => say({ type: 'log', entry }),
    });
    const problem = settingsProblem(policy, say);
    for (const { index, request, session } of questions) {
      const start = performance.now();
      let answer = problem;
      if (answer === undefined) {
        port.replay(session);
        answer = request === undefined ? { kind: 'settings-accepted' } : ask(policy, request, port, say);
      }
      say({ type: 'answer', index, answer, durationMs: performance.now() - start });
    }
  }
  return { notes };
}

function settingsProblem(policy: LoadedPolicy, say: Say): SuiteAnswer | undefined {
  let unit = policy.id;
  try {
    const verdict = checkSettings(policy, (id, timeoutMs) => {
      unit = id;
      say({ type: 'guest', stage: 'checking its settings', unit, timeoutMs });
    });
    return verdict.valid ? undefined : { kind: 'settings-rejected', message: verdict.message };
  } catch (error) {
    // Policies of Kubewarden's Rust SDK answer with an error where the settings have another shape.
    if (error instanceof Error && error.cause instanceof WasmError && error.cause.code === 'guest-error') {
      return { kind: 'settings-rejected', message: error.message };
    }
    return { kind: 'failed', message: `${unit} failed while it was checking its settings: ${errorText(error)}` };
  }
}

function ask(
  policy: LoadedPolicy,
  request: NonNullable<SuiteQuestion['request']>,
  port: SuitePort,
  say: Say,
): SuiteAnswer {
  const onUnitStart = (unit: string, timeoutMs: number): void =>
    say({ type: 'guest', stage: 'evaluating', unit, timeoutMs });
  const evaluated = evaluateBody(policy, request, { onUnitStart });
  if (evaluated.refused !== undefined) {
    return { kind: 'failed', message: evaluated.refused };
  }
  if (port.unanswered.length > 0) {
    const asked = port.unanswered.join(', ');
    return { kind: 'failed', message: `the policy asked for what no recorded session answers: ${asked}` };
  }
  const { verdict, observation } = evaluated;
  if (observation.outcome === 'timeout') {
    return { kind: 'failed', message: 'the policy gave no verdict in time' };
  }
  if (observation.outcome !== 'verdict') {
    return { kind: 'failed', message: `the policy gave no verdict: ${verdict.message ?? ''}` };
  }
  return { kind: 'verdict', verdict };
}

function evaluateBody(
  policy: LoadedPolicy,
  { body, route }: { readonly body: Uint8Array; readonly route: Route },
  options: Omit<EvaluateOptions, 'route'>,
): Evaluated {
  try {
    const review = readReview(route, body);
    return { uid: review.uid, ...evaluate(policy, review, { route, ...options }) };
  } catch (error) {
    if (error instanceof ReviewError) {
      return { refused: error.message };
    }
    throw error;
  }
}

/** Answers from the session of the case that is asked, and remembers what could not be answered. */
class SuitePort implements HostPort {
  readonly #cluster: HostPort;
  #port: HostPort;
  #session: ReplayPort | undefined;
  #unanswered: string[] = [];

  constructor(cluster: HostPort) {
    this.#cluster = cluster;
    this.#port = new LocalCapabilities(cluster);
  }

  /** Starts the next case. */
  replay(session: string | undefined): void {
    this.#unanswered = [];
    this.#session = session === undefined ? undefined : new ReplayPort(session);
    this.#port = this.#session ?? new LocalCapabilities(this.#cluster);
  }

  get unanswered(): readonly string[] {
    return [...new Set([...this.#unanswered, ...(this.#session?.unanswered ?? [])])];
  }

  request(capability: string, payload: string): string {
    if (this.#session === undefined && capability.startsWith('kubernetes/')) {
      this.#unanswered.push(capability);
    }
    return this.#port.request(capability, payload);
  }
}

interface LoadedGuests {
  readonly guests: ReadonlyMap<string, PolicyGuest>;
  readonly notes: readonly string[];
}

/** Loads modules; `unit` is what messages call whom they are for. */
function loadGuests(inputs: Readonly<Record<string, ModuleInput>>, unit: string, say: Say): LoadedGuests {
  const modules = Object.entries(inputs).map(([reference, input]) => [reference, loadNamed(reference, input)] as const);
  const guests = new Map<string, PolicyGuest>();
  say({ type: 'guest', stage: 'loading', unit, timeoutMs: LOAD_TIMEOUT_MS });
  for (const [reference, module] of modules) {
    guests.set(reference, module.createGuest());
  }
  return { guests, notes: modules.flatMap(([, { notes }]) => notes) };
}

/** Loads the policy's modules and lets it check its settings. @throws SettingsRefused */
function loadPolicy(job: PolicyJob, port: HostPort, say: Say): { policy: LoadedPolicy; notes: readonly string[] } {
  const { guests, notes } = loadGuests(job.modules, job.definition.id, say);
  const policy = createPolicy(job.definition, (reference) => guestOf(guests, reference), {
    port,
    log: (entry) => say({ type: 'log', entry }),
  });
  const verdict = checkSettings(policy, (unit, timeoutMs) =>
    say({ type: 'guest', stage: 'checking its settings', unit, timeoutMs }),
  );
  if (!verdict.valid) {
    throw new SettingsRefused(`Provided settings are not valid: ${verdict.message}`);
  }
  return { policy, notes };
}

function guestOf(guests: ReadonlyMap<string, PolicyGuest>, reference: string): PolicyGuest {
  const guest = guests.get(reference);
  if (guest === undefined) {
    throw new Error(`the module ${reference} was not handed over`);
  }
  return guest;
}
