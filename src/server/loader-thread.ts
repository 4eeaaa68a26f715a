// The loader thread: parses policies files, fetches, rewrites and compiles modules, lets policies check their settings.
import { parentPort, workerData } from 'node:worker_threads';
import {
  checkSettings,
  createGuest,
  createPolicy,
  definitionHash,
  EngineError,
  modulesOf,
  parsePolicies,
  type PolicyDefinition,
  type PolicyGuest,
  settingsHash,
} from '../engine/index.ts';
import {
  type FetchedModule,
  isDigest,
  loadPolicyModule,
  ModuleError,
  ModuleStore,
  parseReference,
  requireProtocol,
} from '../modules/index.ts';
import { WasmError } from '../wasm/index.ts';
import { CapabilityClient } from './capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import { WorkerActivity } from './evaluation-protocol.ts';
import type { FromLoader, LoaderStart, ToLoader } from './loader.ts';
import type { Declared, LoadOutcome, LoadRequest } from './policy-registry.ts';
import type { PolicyReason } from './policy-status.ts';

/** Outcomes within this time are told together, so that a file of thousands of policies is few messages. Milliseconds. */
const TELL_DELAY_MS = 5;
/** Changes of what serves between two looks at the size of the module cache. */
const CHANGES_PER_PRUNE = 50;
/** A module that takes longer than this to compile is taken for an attack on the compiler. Milliseconds. */
const COMPILE_TIMEOUT_MS = 20_000;
const start = workerData as LoaderStart;
const activity = new WorkerActivity(start.activity);
const capabilities = new CapabilityClient(start.capabilities);
const store = new ModuleStore({
  cacheDir: start.cacheDir,
  ...(start.sources === undefined ? {} : { sources: start.sources }),
  ...(start.fetchTimeoutMs === undefined ? {} : { fetchTimeoutMs: start.fetchTimeoutMs }),
});
/** Compiled modules by digest: those that serve, and those of loads under way. */
const compiled = new Map(start.modules.map((module) => [module.digest, Promise.resolve(module)]));
const guests = new Map<string, PolicyGuest>();
let changesSincePrune = 0;
let outbox: [seq: number, outcome: LoadOutcome][] = [];

function say(message: FromLoader): void {
  parentPort?.postMessage(message);
}

/** What the loads of one message share, so that thousands of policies of one module ask its source once. */
type Fetches = Map<string, Promise<FetchedModule>>;

async function load(seq: number, request: LoadRequest, fetches: Fetches): Promise<void> {
  const outcome = await tryLoad(seq, request, fetches).catch(failure);
  if (outbox.length === 0) {
    setTimeout(() => {
      say({ type: 'loaded', outcomes: outbox });
      outbox = [];
    }, TELL_DELAY_MS);
  }
  outbox.push([seq, outcome]);
}

/** What a policy said of its settings, or why it said nothing. */
type Checked =
  | { readonly valid: true }
  | { readonly valid: false; readonly reason: PolicyReason; readonly message: string };

async function tryLoad(seq: number, { definition, digests }: LoadRequest, fetches: Fetches): Promise<LoadOutcome> {
  const modules = new Map<string, CompiledPolicyModule>();
  let sourceError: string | undefined;
  for (const reference of modulesOf(definition)) {
    const fetched = await fetchOnce(reference, digests?.[reference], fetches);
    sourceError ??= fetched.sourceError?.message;
    modules.set(reference, await compileOnce(seq, fetched));
  }
  const found = Object.fromEntries([...modules].map(([reference, { digest }]) => [reference, digest]));
  const verdict = check(seq, definition, modules);
  return verdict.valid
    ? {
        ok: true,
        digests: found,
        modules: [...modules.values()],
        ...(sourceError === undefined ? {} : { sourceError }),
      }
    : { ok: false, reason: verdict.reason, message: verdict.message, transient: false, digests: found };
}

/** Lets a policy check its settings, in this thread, under the eyes of the main thread. */
function check(seq: number, definition: PolicyDefinition, modules: ReadonlyMap<string, CompiledPolicyModule>): Checked {
  const policy = createPolicy(definition, (reference) => guestOf(modules.get(reference)), {
    defaultTimeoutSeconds: start.defaultTimeoutSeconds,
    port: capabilities,
    log: ({ policy: id, level, message, fields }) =>
      say({ type: 'log', entry: { level, message, fields: { policy: id, ...fields } } }),
  });
  try {
    const verdict = checkSettings(policy, (_member, timeoutMs) => activity.enter(seq, timeoutMs, -1));
    return verdict.valid ? verdict : { ...verdict, reason: 'InvalidSettings' };
  } catch (error) {
    return { valid: false, reason: reasonOf(error), message: error instanceof Error ? error.message : String(error) };
  } finally {
    activity.leave();
  }
}

function fetchOnce(reference: string, digest: string | undefined, fetches: Fetches): Promise<FetchedModule> {
  const key = `${reference} ${digest ?? ''}`;
  const known = fetches.get(key);
  if (known !== undefined) {
    return known;
  }
  const parsed = parseReference(reference, { baseDir: start.baseDir });
  const pinned = digest === undefined || !isDigest(digest) ? parsed : { ...parsed, digest };
  const fetched = store.fetch(pinned, { offline: digest !== undefined });
  fetches.set(key, fetched);
  return fetched;
}

function compileOnce(seq: number, { bytes, digest }: FetchedModule): Promise<CompiledPolicyModule> {
  const known = compiled.get(digest);
  if (known !== undefined) {
    return known;
  }
  const module = (async () => {
    activity.enter(seq, COMPILE_TIMEOUT_MS, -1);
    try {
      return compile(bytes, digest);
    } finally {
      activity.leave();
    }
  })();
  compiled.set(digest, module);
  // A failure is not kept: it is told to whoever waits, and the next load looks anew.
  module.catch(() => compiled.delete(digest));
  return module;
}

function compile(bytes: Uint8Array, digest: string): CompiledPolicyModule {
  const module = loadPolicyModule(bytes, { memoryLimitBytes: start.memoryLimitBytes });
  if (module.mode === 'kubewarden-wapc') {
    requireProtocol(module.metadata);
  }
  return { digest, mode: module.mode, compiled: module.compiled };
}

/** A guest is made once per module: making one finds out whether the module can be instantiated at all. */
function guestOf(module: CompiledPolicyModule | undefined): PolicyGuest {
  if (module === undefined) {
    throw new Error('a module that the definition does not name');
  }
  const known = guests.get(module.digest);
  if (known !== undefined) {
    return known;
  }
  const guest = createGuest(module.compiled, module.mode);
  guests.set(module.digest, guest);
  return guest;
}

function failure(error: unknown): LoadOutcome & { ok: false } {
  activity.leave();
  const message = error instanceof Error ? error.message : String(error);
  return { ok: false, reason: reasonOf(error), message, transient: error instanceof ModuleError && error.isRetryable };
}

function reasonOf(error: unknown): PolicyReason {
  if (error instanceof ModuleError) {
    if (error.isOfFetching) {
      return 'FetchFailed';
    }
    switch (error.code) {
      case 'digest-mismatch':
        return 'DigestMismatch';
      case 'reference-invalid':
      case 'registry-unsupported':
        return 'InvalidDefinition';
      default:
        return 'InvalidModule';
    }
  }
  if (error instanceof WasmError) {
    return 'InvalidModule';
  }
  return error instanceof EngineError && error.code === 'protocol-unsupported'
    ? 'InvalidModule'
    : 'SettingsCheckFailed';
}

/** Looking through the whole cache takes longer than most changes, and nothing is lost by a late look. */
function pruneSometimes(kept: ReadonlySet<string>): void {
  changesSincePrune += 1;
  if (changesSincePrune >= CHANGES_PER_PRUNE) {
    changesSincePrune = 0;
    void store.prune(kept);
  }
}

function parse(text: string, fileName: string): Declared {
  const { policies, problems } = parsePolicies(text, fileName);
  const declared = policies.map((definition) => ({
    definition,
    hash: definitionHash(definition),
    settingsHash: settingsHash(definition),
  }));
  return { policies: declared, problems };
}

function receive(message: ToLoader): void {
  switch (message.type) {
    case 'parse':
      try {
        say({ type: 'parsed', seq: message.seq, declared: parse(message.text, message.fileName) });
      } catch (error) {
        say({ type: 'unparsable', seq: message.seq, message: error instanceof Error ? error.message : String(error) });
      }
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
        if (!kept.has(digest)) {
          compiled.delete(digest);
        }
      }
      pruneSometimes(kept);
      // Guests are for checking settings; what serves runs in the workers.
      guests.clear();
      break;
    }
    default:
      message satisfies never;
  }
}

parentPort?.on('message', receive);
