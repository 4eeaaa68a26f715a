// The loader thread: parses policies files, fetches, rewrites and compiles modules, lets policies check their settings.
import { parentPort, workerData } from 'node:worker_threads';
import { modulesOf } from '../../engine/definition/index.ts';
import {
  checkSettings,
  createGuest,
  createPolicy,
  definitionHash,
  EngineError,
  parsePolicies,
  type PolicyDefinition,
  type PolicyFault,
  type PolicyGuest,
  type PolicyLogEntry,
  readPolicyDefinition,
  settingsHash,
} from '../../engine/index.ts';
import { DEFAULT_MEMORY_LIMIT_BYTES, loadPolicyModule } from '../../modules/compiling/index.ts';
import { WasmError } from '../../wasm/index.ts';
import {
  builtinVersion,
  digestOf,
  type FetchedModule,
  isBuiltin,
  isDigest,
  ModuleError,
  ModuleStore,
  parseBuiltin,
  parseReference,
  requireProtocol,
} from '../../modules/index.ts';
import { CapabilityClient } from '../capabilities/capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import { WorkerActivity } from '../evaluation-protocol.ts';
import { errorText, parseJson } from '../../values/index.ts';
import type { EntryText, FromLoader, LoaderStart, ToLoader } from './loader-lane.ts';
import { loadFailure, QuarantineError } from './load-failure.ts';
import {
  type DeclaredPolicy,
  type FailedStage,
  loadOwner,
  COMPILE_TIMEOUT_MS,
  type LoadOutcome,
  type LoadRequest,
  type ParameterTrial,
  type ProvidedModule,
  type ReadEntry,
  type RefusedNamespaces,
  type Stage,
  STAGES,
} from './load-request.ts';
import { CLUSTER_OWNER } from '../memory-budget.ts';
import { instanceMemory } from '../thread-memory.ts';
import { LoadingRecord, suspectKey } from './loading-record.ts';
import { moduleWarnings } from './module-warnings.ts';
import type { PolicyReason } from './policy-reason.ts';
import { nativeThreadId, OwnerQueue, runInBackground } from '../../threads/index.ts';
import { tenantRefusal } from './tenant-needs.ts';
import { tryParameters } from './try-parameters.ts';
import { coldMs, type CompiledCode, warmUp } from './warm-up.ts';

/** Outcomes within this time are one message, so that a file of thousands of policies takes few. Milliseconds. */
const FLUSH_DELAY_MS = 5;
/** How long settings are checked before outcomes are sent and messages are received. Milliseconds. */
const SLICE_MS = 50;
/**
 * Evaluation time whose fuel a check of settings gets in the quick thread: ordinary policies were measured to use less than a
 * tenth of it, and one that never ends delays the others by 10 to 30 ms.
 */
const QUICK_CHECK_SECONDS = 0.01;
/** The same as wall time, for guests that wait, with room for a busy machine. Milliseconds. */
const QUICK_TIMEOUT_MS = 1_000;
/** Limit of a compilation in the quick thread: compiling takes some 150 ms per MiB. Milliseconds. */
const QUICK_COMPILE_TIMEOUT_MS = 5_000;
/** Limit of a module's start, on a busy machine too. Its fuel ends sooner, see INIT_FUEL of the sandbox. Milliseconds. */
const START_TIMEOUT_MS = 5_000;
/**
 * Processor time of a module's start: a quarter of the default timeout of a policy, because workers start modules within
 * reviews. Three times what {@link INIT_FUEL} takes usually; published policies take at most 40 ms. Milliseconds.
 */
const MAX_START_MS = 500;
// Reviews come before loads.
runInBackground(nativeThreadId());
const start = workerData as LoaderStart;
const isQuick = start.patience === 'quick';
const activity = new WorkerActivity(start.activity);
activity.started(nativeThreadId());
const capabilities = new CapabilityClient(start.capabilities);
let { peerAddresses } = start;
const store = new ModuleStore({
  cacheDir: start.cacheDir,
  ...(start.sources === undefined ? {} : { sources: start.sources }),
  ...(start.verification === undefined ? {} : { verification: start.verification }),
  ...(start.maxModuleBytes === undefined ? {} : { maxModuleBytes: start.maxModuleBytes }),
  ...(start.fetchTimeoutMs === undefined ? {} : { fetchTimeoutMs: start.fetchTimeoutMs }),
  ...(start.tenantFolder === undefined ? {} : { tenantFolder: start.tenantFolder }),
  ...(start.peers === undefined ? {} : { peers: { ...start.peers, addresses: () => peerAddresses } }),
});
/** Compiled modules by digest: those that serve, and those of loads in progress. */
const compiled = new Map(start.modules.map((module) => [module.digest, Promise.resolve(module)]));
/** Modules whose code for reviews is compiled, first those that serve. */
const warm = new WeakSet(start.modules);
/** Digests compiled since the last `keep`, which the main thread may not have known when it sent that. */
const fresh = new Set<string>();
const record = new LoadingRecord(start.recordPath);
const quarantined = new Map((start.quarantined ?? []).map((one) => [one.key, one]));
const instances = instanceMemory(start.memory);
const guests = new Map<string, PolicyGuest>();
let outbox: [seq: number, outcome: LoadOutcome][] = [];
let unfinished: number[] = [];
let flushing: NodeJS.Timeout | undefined;

/** A policy whose modules are compiled and whose settings are to be checked. */
interface Candidate {
  readonly seq: number;
  readonly definition: PolicyDefinition;
  readonly modules: ReadonlyMap<string, CompiledPolicyModule>;
  /** By reference, see LoadOutcome. */
  readonly manifests: ReadonlyMap<string, string>;
  /** By reference, see LoadOutcome. */
  readonly verified: ReadonlyMap<string, string>;
  readonly sourceError: string | undefined;
  readonly isUncached: boolean;
  readonly isForTenant: boolean;
  readonly trial: ParameterTrial | undefined;
}

/** Compilations and checks. Namespaces take turns, so that those that take long delay others of their own namespace. */
const work = new OwnerQueue<() => void>();
/** Checks by modules that never returned for other settings: they come last. */
const suspects = new OwnerQueue<() => void>();
const suspected = new Set<string>();
let working: NodeJS.Immediate | undefined;

function say(message: FromLoader): void {
  parentPort?.postMessage(message);
}

/** A module that was fetched and compiled. Its bytes are not kept: those of all policies of a message may be many. */
interface CompiledFetch {
  readonly fetched: Omit<FetchedModule, 'bytes'>;
  readonly module: CompiledPolicyModule;
}

/** Fetches of one message, shared so that thousands of policies of one module read its source once. */
type Fetches = Map<string, Promise<CompiledFetch>>;

async function load(seq: number, request: LoadRequest, fetches: Fetches): Promise<void> {
  const { definition, provided, trial, isForTenant = false } = request;
  const modules = new Map<string, CompiledPolicyModule>();
  const manifests = new Map<string, string>();
  const verified = new Map<string, string>();
  let sourceError: string | undefined;
  let isUncached = false;
  let reference = '';
  try {
    for (reference of modulesOf(definition)) {
      const own = provided?.[reference];
      if (isBuiltin(reference)) {
        const name = parseBuiltin(reference);
        modules.set(reference, { mode: 'builtin', name, digest: builtinVersion(name) });
      } else if (own !== undefined) {
        modules.set(reference, await compileOnce(seq, request, { bytes: own.bytes, digest: providedDigest(own) }, own));
      } else {
        const { fetched, module } = await fetchOnce(seq, reference, request, fetches);
        sourceError ??= isForTenant ? fetched.sourceError?.tenantMessage : fetched.sourceError?.message;
        isUncached ||= fetched.cacheError !== undefined;
        modules.set(reference, module);
        if (fetched.manifest !== undefined) {
          manifests.set(reference, fetched.manifest);
        }
        if (fetched.verifiedBy !== undefined) {
          verified.set(reference, fetched.verifiedBy);
        }
      }
    }
  } catch (error) {
    if (isForTenant) {
      logDetail(request, 'module not loaded', error);
    }
    report(seq, { ...loadFailure(error, isForTenant), at: { stage: 'compile', unit: reference } });
    return;
  }
  const candidate = { seq, definition, modules, manifests, verified, sourceError, isUncached, isForTenant, trial };
  inTurn(loadOwner(request), () => {
    if (isSuspected(candidate)) {
      suspects.push(loadOwner(request), () => checkAndReport(candidate));
    } else {
      checkAndReport(candidate);
    }
  });
}

function inTurn(owner: string, run: () => void): void {
  work.push(owner, run);
  working ??= setImmediate(workSome);
}

/** Logs a failure for the administrator: a tenant gets only {@link tenantText}, and one of the cache stops no policy. */
function logDetail({ id }: LoadRequest, message: string, error: unknown): void {
  say({ type: 'log', entry: { level: 'warn', message, fields: { policy: id, error: errorText(error) } } });
}

/** A module without a mode in its metadata may be loaded in two modes. */
function providedDigest({ bytes, chosenMode }: ProvidedModule): string {
  return chosenMode === undefined ? digestOf(bytes) : `${digestOf(bytes)} ${chosenMode}`;
}

function report(seq: number, outcome: LoadOutcome): void {
  outbox.push([seq, outcome]);
  flushing ??= setTimeout(flush, FLUSH_DELAY_MS);
}

function flush(): void {
  clearTimeout(flushing);
  flushing = undefined;
  if (outbox.length > 0) {
    say({ type: 'loaded', outcomes: outbox });
    outbox = [];
  }
  if (unfinished.length > 0) {
    say({ type: 'unfinished', seqs: unfinished });
    unfinished = [];
  }
}

/** Compiles and checks for {@link SLICE_MS}. */
function workSome(): void {
  const end = performance.now() + SLICE_MS;
  do {
    const next = work.shift() ?? suspects.shift();
    if (next === undefined) {
      suspected.clear();
      break;
    }
    next();
  } while (performance.now() < end);
  record.end();
  flush();
  working = work.length + suspects.length > 0 ? setImmediate(workSome) : undefined;
}

/** The module with the memory that its instance holds here. */
function measured(module: CompiledPolicyModule): CompiledPolicyModule {
  const bytes = instances.lastBytes(module.digest) ?? module.instanceBytes;
  return bytes === undefined ? module : { ...module, instanceBytes: bytes };
}

function isSuspected({ modules }: Candidate): boolean {
  return suspected.size > 0 && [...modules.values()].some(({ digest }) => suspected.has(digest));
}

function checkAndReport(candidate: Candidate): void {
  const { seq, definition, modules, manifests, verified, sourceError, isUncached, isForTenant } = candidate;
  const digests = Object.fromEntries([...modules].map(([reference, { digest }]) => [reference, digest]));
  const verdict = check(candidate);
  if (verdict === 'unfinished') {
    for (const { digest } of modules.values()) {
      suspected.add(digest);
    }
    unfinished.push(seq);
  } else if (verdict.valid) {
    const warnings = moduleWarnings(definition, modules, isForTenant);
    const source = {
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(verdict.refused === undefined ? {} : { refused: verdict.refused }),
      ...(sourceError === undefined ? {} : { sourceError }),
      ...(isUncached ? { isUncached } : {}),
      ...(manifests.size === 0 ? {} : { manifests: Object.fromEntries(manifests) }),
      ...(verified.size === 0 ? {} : { verified: Object.fromEntries(verified) }),
    };
    outbox.push([seq, { ok: true, digests, modules: [...modules.values()].map(measured), ...source }]);
    warmUpModules(candidate);
  } else {
    const { valid: _, ...failure } = verdict;
    // An administrator may grant what is missing.
    const transient = failure.transient ?? failure.reason === 'CapabilityNotGranted';
    outbox.push([seq, { ok: false, ...failure, transient, digests }]);
  }
  if (!isQuick || isForTenant) {
    // The next one may be another namespace's that ends this thread, again and again.
    flush();
  }
}

/** The policy's verdict on its settings, or why there is none. */
type Checked =
  | { readonly valid: true; readonly refused?: RefusedNamespaces }
  | {
      readonly valid: false;
      readonly reason: PolicyReason;
      readonly message: string;
      readonly at: FailedStage;
      /** Default: only for {@link tenantRefusal}. */
      readonly transient?: boolean;
      readonly retryAfterMs?: number;
    };

/** Has the policy check its settings in this thread; the main thread watches the time. */
function check({ seq, definition, modules, isForTenant, trial }: Candidate): Checked | 'unfinished' {
  if (isQuick && trial !== undefined) {
    return 'unfinished';
  }
  const options = {
    defaultTimeoutSeconds: start.defaultTimeoutSeconds,
    port: capabilities,
    log: ({ policy: id, level, message, fields }: PolicyLogEntry) =>
      say({ type: 'log', entry: { level, message, fields: { policy: id, ...fields } } }),
  };
  let at: FailedStage = { stage: 'start', unit: definition.id };
  try {
    enter(seq, 'start', START_TIMEOUT_MS);
    const policy = createPolicy(
      isQuick ? withQuickLimit(definition) : definition,
      (name) => guestOf(modules.get(name), definition.id),
      options,
    );
    const verdict = checkSettings(policy, (unit, timeoutMs, member) => {
      at = { stage: 'check', unit };
      const use = definition.kind === 'policy' ? definition : definition.members[member];
      begin(definition.id, modules.get(use?.module ?? '')?.digest ?? '', use?.settingsJson ?? '');
      const module = modules.get(use?.module ?? '');
      enter(seq, 'check', isQuick ? QUICK_TIMEOUT_MS : timeoutMs + (isCold(module) ? coldMs(module) : 0));
    });
    if (!verdict.valid) {
      return { ...verdict, reason: 'InvalidSettings', at };
    }
    const refusal = isForTenant ? tenantRefusal(definition, modules) : undefined;
    if (refusal !== undefined) {
      return { valid: false, ...refusal, at: { stage: 'check', unit: refusal.unit } };
    }
    const refused = trial && tryParameters(policy, trial, (_, timeoutMs) => enter(seq, 'check', timeoutMs));
    return refused === undefined ? verdict : { valid: true, refused };
  } catch (error) {
    if (isQuick && error instanceof EngineError && error.code === 'guest-timeout') {
      return 'unfinished';
    }
    // Later messages are those of the running policy.
    const { ok: _, ...failure } = loadFailure(error, isForTenant && at.stage === 'start');
    return { valid: false, ...failure, at };
  } finally {
    activity.leave();
  }
}

/** Whether no review was tried with the module in this process. */
function isCold(module: CompiledPolicyModule | undefined): module is CompiledCode {
  return module !== undefined && 'compiled' in module && !warm.has(module);
}

/** Compiles what reviews call, once for each module. */
function warmUpModules({ seq, definition, modules }: Candidate): void {
  try {
    for (const { module: reference, settingsJson } of definition.kind === 'policy'
      ? [definition]
      : definition.members) {
      const module = modules.get(reference);
      const guest = module && guests.get(module.digest);
      if (isCold(module) && guest !== undefined) {
        begin(definition.id, module.digest, settingsJson);
        enter(seq, 'compile', isQuick ? QUICK_COMPILE_TIMEOUT_MS : COMPILE_TIMEOUT_MS);
        warmUp(guest, module, settingsJson);
        warm.add(module);
      }
    }
  } finally {
    activity.leave();
  }
}

/** The definition with the quick thread's limit for all guests. */
function withQuickLimit(definition: PolicyDefinition): PolicyDefinition {
  const timeoutEvalSeconds = QUICK_CHECK_SECONDS;
  return definition.kind === 'policy'
    ? { ...definition, timeoutEvalSeconds }
    : { ...definition, members: definition.members.map((member) => ({ ...member, timeoutEvalSeconds })) };
}

/**
 * Records what may end the process.
 * @param settingsJson of a check
 * @throws QuarantineError
 */
function begin(policy: string, digest: string, settingsJson?: string): void {
  if (start.recordPath === undefined) {
    return;
  }
  const key = suspectKey(digest, settingsJson);
  const suspect = quarantined.get(key);
  if (suspect !== undefined && suspect.until > Date.now()) {
    throw new QuarantineError(suspect);
  }
  try {
    record.begin({ key, policy });
  } catch (error) {
    const fields = { policy, error: errorText(error) };
    say({ type: 'log', entry: { level: 'error', message: 'cannot record what is being loaded', fields } });
  }
}

function enter(seq: number, stage: Stage, timeoutMs: number): void {
  activity.enter(seq, timeoutMs, STAGES.indexOf(stage), 0);
}

function fetchOnce(seq: number, reference: string, request: LoadRequest, fetches: Fetches): Promise<CompiledFetch> {
  const { digests, verified, from, isForTenant } = request;
  const digest = digests?.[reference];
  const key = JSON.stringify([reference, digest, verified?.[reference], from, isForTenant]);
  const known = fetches.get(key);
  if (known !== undefined) {
    return known;
  }
  const compiling = (async (): Promise<CompiledFetch> => {
    const { bytes, ...fetched } = await fetchModule(reference, digest, request);
    if (fetched.cacheError !== undefined) {
      logDetail(request, 'module not cached', fetched.cacheError);
    }
    return { fetched, module: await compileOnce(seq, request, { bytes, digest: fetched.digest }) };
  })();
  fetches.set(key, compiling);
  return compiling;
}

async function fetchModule(
  reference: string,
  digest: string | undefined,
  { from, verified, isForTenant = false }: LoadRequest,
): Promise<FetchedModule> {
  const parsed = parseReference(reference, start.baseDir === undefined ? {} : { baseDir: start.baseDir });
  const options = { offline: from === 'cache', isForTenant };
  if (digest === undefined) {
    const fetched = await store.fetch(parsed, options);
    if (from === 'source' && fetched.sourceError !== undefined) {
      throw fetched.sourceError;
    }
    return fetched;
  }
  if (!isDigest(digest)) {
    throw new ModuleError(
      'reference-invalid',
      `${parsed.shown} is pinned to what is no digest: expected sha256: and 64 lower-case hexadecimal digits`,
    );
  }
  if (parsed.digest !== undefined && parsed.digest !== digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${parsed.shown} is to be two different modules: expected ${parsed.digest} by the reference, got ${digest} pinned`,
    );
  }
  const verifiedBy = verified?.[reference];
  try {
    return await store.fetch(
      { ...parsed, digest },
      { ...options, isValidated: true, ...(verifiedBy === undefined ? {} : { verifiedBy }) },
    );
  } catch (error) {
    if (error instanceof ModuleError && error.code === 'digest-mismatch' && parsed.digest === undefined) {
      throw new ModuleError(
        'digest-mismatch',
        `${parsed.shown} has another module than when this revision was validated: expected ${digest}. ` +
          'Restore that module, or change the policy so that it is validated again',
        { cause: error },
      );
    }
    throw error;
  }
}

/** @param provided how the module is loaded, when it was not fetched */
function compileOnce(
  seq: number,
  request: LoadRequest,
  { bytes, digest }: { readonly bytes: Uint8Array; readonly digest: string },
  provided?: ProvidedModule,
): Promise<CompiledPolicyModule> {
  const known = compiled.get(digest);
  if (known !== undefined) {
    return known;
  }
  const { promise: module, resolve, reject } = Promise.withResolvers<CompiledPolicyModule>();
  inTurn(loadOwner(request), () => {
    try {
      begin(request.id, digest);
      enter(seq, 'compile', isQuick ? QUICK_COMPILE_TIMEOUT_MS : COMPILE_TIMEOUT_MS);
      resolve(compile(bytes, digest, provided));
    } catch (error) {
      reject(error);
    } finally {
      activity.leave();
      record.end();
    }
  });
  compiled.set(digest, module);
  fresh.add(digest);
  // A failure is not kept: the next load tries again.
  module.catch(() => compiled.delete(digest));
  return module;
}

function compile(bytes: Uint8Array, digest: string, provided: ProvidedModule | undefined): CompiledPolicyModule {
  const { memory, memoryLimitBytes = Math.min(DEFAULT_MEMORY_LIMIT_BYTES, memory?.guestBytes ?? Infinity) } = start;
  const module = loadPolicyModule(bytes, {
    memoryLimitBytes,
    chosenMode: provided?.chosenMode,
    isolation: start.isolation,
  });
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

/** One guest per module. It throws when the module cannot start, or takes too long for a start within a review. */
function guestOf(module: CompiledPolicyModule | undefined, policy: string): PolicyGuest {
  if (module === undefined) {
    throw new Error('a module that the definition does not name');
  }
  const known = guests.get(module.digest);
  if (known !== undefined) {
    return known;
  }
  const guest = createGuest(module, instances.share(module.digest, CLUSTER_OWNER));
  begin(policy, module.digest);
  const before = process.threadCpuUsage();
  startWithin(guest);
  const { user, system } = process.threadCpuUsage(before);
  const startMs = (user + system) / 1_000;
  if (startMs > MAX_START_MS) {
    throw new WasmError(
      'start-too-slow',
      `the module takes ${Math.round(startMs)} ms of processor time to start: expected at most ${MAX_START_MS} ms, because ` +
        'reviews start it again. Do that work when the module is built, or in the first call that needs it',
    );
  }
  guests.set(module.digest, guest);
  return guest;
}

/** @throws WasmError, with the budget when the instance holds too much */
function startWithin(guest: PolicyGuest): void {
  try {
    guest.start();
  } catch (error) {
    if (start.memory !== undefined && error instanceof WasmError && error.code === 'memory-exceeded') {
      const { bytes, threads } = start.memory;
      const budget = `of the ${Math.round(bytes / 2 ** 20)} MiB for policies, which ${threads} threads share`;
      throw new WasmError(
        error.code,
        `${error.message}; or give the policy server more memory: this is its part ${budget}`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

function parse(text: string, fileName: string): ReadEntry[] {
  const { policies, problems } = parsePolicies(text, fileName);
  const faulty = [...Map.groupBy(problems, ({ id }) => id)].map(([id, ofOne]) => ({
    id,
    problems: ofOne.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`),
  }));
  return [...policies.map(declared), ...faulty];
}

/** Reads one entry, with its own limits: objects share nothing with each other, unlike aliases in a file. */
function read({ id, json }: EntryText): ReadEntry {
  try {
    const { definition, faults } = readPolicyDefinition(id, parseJson(json));
    return definition === undefined ? { id, problems: faults.map(problemText) } : declared(definition);
  } catch (error) {
    return { id, problems: [errorText(error)] };
  }
}

function declared(definition: PolicyDefinition): DeclaredPolicy {
  return { definition, hash: definitionHash(definition), settingsHash: settingsHash(definition) };
}

function problemText({ message, path }: PolicyFault): string {
  return path.length === 0 ? message : `${path.join('.')}: ${message}`;
}

function receive(message: ToLoader): void {
  switch (message.type) {
    case 'parse':
      try {
        say({ type: 'read', seq: message.seq, entries: parse(message.text, message.fileName) });
      } catch (error) {
        say({ type: 'unparsable', seq: message.seq, message: errorText(error) });
      }
      break;
    case 'read':
      say({ type: 'read', seq: message.seq, entries: message.entries.map(read) });
      break;
    case 'load': {
      const fetches: Fetches = new Map();
      for (const [seq, request] of message.jobs) {
        void load(seq, request, fetches);
      }
      break;
    }
    case 'keep': {
      const kept = new Set(message.digests);
      for (const digest of compiled.keys()) {
        if (!kept.has(digest) && !fresh.has(digest)) {
          compiled.delete(digest);
        }
      }
      fresh.clear();
      // Guests here only check settings; policies that serve run in the workers.
      guests.clear();
      instances.clear();
      break;
    }
    case 'peers':
      peerAddresses = message.addresses;
      break;
    default:
      message satisfies never;
  }
}

parentPort?.on('message', receive);
