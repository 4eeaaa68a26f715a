// Loads policies in a loader thread: fetch, compile, check, one policy after the other.
import { modulesOf } from '../../engine/definition/index.ts';
import type { HostPort } from '../../engine/capabilities/index.ts';
import { builtinVersion, digestOf, type FetchedModule, isBuiltin, parseBuiltin } from '../../modules/index.ts';
import { errorText } from '../../values/index.ts';
import type { WorkerActivity } from '../evaluation-protocol.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import { loadFailure } from './load-failure.ts';
import { loadOwner, type LoadOutcome, type LoadRequest, type ProvidedModule } from './load-request.ts';
import type { FromLoader, LoaderStart, LoadJob } from './loader-lane.ts';
import { LoaderGuests } from './loader-guests.ts';
import { LoadingActivity } from './loading-activity.ts';
import { LoadingTurns } from './loading-turns.ts';
import { ModuleCompiler } from './module-compiler.ts';
import { ModuleFetch } from './module-fetch.ts';
import { moduleWarnings } from './module-warnings.ts';
import { OutcomeSender } from './outcome-sender.ts';
import { type Candidate, type Checked, SettingsCheck } from './settings-check.ts';

/** A compiled module. The bytes of a fetched one are not kept: those of all policies of a message may be many. */
interface LoadedModule {
  readonly module: CompiledPolicyModule;
  /** Absent for a module that is builtin, or provided. */
  readonly fetched?: Omit<FetchedModule, 'bytes'>;
}

/** Fetches of one message, shared so that thousands of policies of one module read its source once. */
type Fetches = Map<string, Promise<LoadedModule>>;

/** The loads of a loader thread. */
export class PolicyLoading {
  readonly fetch: ModuleFetch;
  readonly #isQuick: boolean;
  readonly #say: (message: FromLoader) => void;
  readonly #outcomes: OutcomeSender;
  readonly #turns: LoadingTurns;
  readonly #guests: LoaderGuests;
  readonly #compiler: ModuleCompiler;
  readonly #settings: SettingsCheck;
  /** Digests of modules that never returned for some settings: checks of others with them come last. */
  readonly #suspected = new Set<string>();

  /** @param port answers host capabilities */
  constructor(
    start: LoaderStart,
    {
      activity: shared,
      port,
      say,
    }: {
      readonly activity: WorkerActivity;
      readonly port: HostPort;
      readonly say: (message: FromLoader) => void;
    },
  ) {
    const log = (entry: Extract<FromLoader, { readonly type: 'log' }>['entry']): void => say({ type: 'log', entry });
    const activity = new LoadingActivity(start, shared, log);
    this.#isQuick = start.patience === 'quick';
    this.#say = say;
    this.#outcomes = new OutcomeSender(say);
    this.#turns = new LoadingTurns({
      done: () => this.#suspected.clear(),
      paused: () => {
        activity.end();
        this.#outcomes.flush();
      },
    });
    this.fetch = new ModuleFetch(start);
    this.#compiler = new ModuleCompiler(start, activity, this.#turns);
    this.#guests = new LoaderGuests(start.memory, activity);
    this.#settings = new SettingsCheck({ ...start, guests: this.#guests, activity, port, log });
  }

  /** Loads policies; their outcomes are sent. */
  load(jobs: readonly LoadJob[]): void {
    const fetches: Fetches = new Map();
    for (const [seq, request] of jobs) {
      void this.#load(seq, request, fetches);
    }
  }

  /** Drops the modules that do not serve, and all guests. */
  keep(digests: readonly string[]): void {
    this.#compiler.keep(digests);
    this.#guests.clear();
  }

  async #load(seq: number, request: LoadRequest, fetches: Fetches): Promise<void> {
    const { definition, isForTenant } = request;
    const loaded = new Map<string, LoadedModule>();
    let reference = '';
    try {
      for (reference of modulesOf(definition)) {
        loaded.set(reference, await this.#module(seq, request, reference, fetches));
      }
    } catch (error) {
      if (isForTenant === true) {
        this.#logDetail(request, 'module not loaded', error);
      }
      this.#outcomes.send(seq, { ...loadFailure(error, isForTenant), at: { stage: 'compile', unit: reference } });
      return;
    }
    this.#turns.push(loadOwner(request), () => this.#checkInTurn(seq, request, loaded));
  }

  async #module(seq: number, request: LoadRequest, reference: string, fetches: Fetches): Promise<LoadedModule> {
    const own = request.provided?.[reference];
    if (isBuiltin(reference)) {
      const name = parseBuiltin(reference);
      return { module: { mode: 'builtin', name, digest: builtinVersion(name) } };
    }
    if (own !== undefined) {
      const code = { bytes: own.bytes, digest: providedDigest(own) };
      return { module: await this.#compiler.compile(seq, request, code, own) };
    }
    return await this.#fetchOnce(seq, request, reference, fetches);
  }

  #fetchOnce(seq: number, request: LoadRequest, reference: string, fetches: Fetches): Promise<LoadedModule> {
    const { digests, verified, from, isForTenant } = request;
    const key = JSON.stringify([reference, digests?.[reference], verified?.[reference], from, isForTenant]);
    const known = fetches.get(key);
    if (known !== undefined) {
      return known;
    }
    const compiling = (async (): Promise<LoadedModule> => {
      const { bytes, ...fetched } = await this.fetch.fetch(reference, request);
      if (fetched.cacheError !== undefined) {
        this.#logDetail(request, 'module not cached', fetched.cacheError);
      }
      return { fetched, module: await this.#compiler.compile(seq, request, { bytes, digest: fetched.digest }) };
    })();
    fetches.set(key, compiling);
    return compiling;
  }

  #checkInTurn(seq: number, request: LoadRequest, loaded: ReadonlyMap<string, LoadedModule>): void {
    const modules = new Map([...loaded].map(([reference, { module }]) => [reference, module]));
    const run = (): void => this.#check({ seq, request, modules }, loaded);
    if (modules.values().some(({ digest }) => this.#suspected.has(digest))) {
      this.#turns.pushLast(loadOwner(request), run);
    } else {
      run();
    }
  }

  #check(candidate: Candidate, loaded: ReadonlyMap<string, LoadedModule>): void {
    const { seq, request, modules } = candidate;
    const checked = this.#settings.check(candidate);
    if (checked === 'unfinished') {
      for (const { digest } of modules.values()) {
        this.#suspected.add(digest);
      }
      this.#outcomes.sendUnfinished(seq);
    } else {
      this.#outcomes.send(seq, this.#outcome(candidate, checked, loaded));
    }
    if (checked !== 'unfinished' && checked.valid) {
      this.#settings.warmUp(candidate);
    }
    if (!this.#isQuick || request.isForTenant === true) {
      // The next one may be another namespace's that ends this thread, again and again.
      this.#outcomes.flush();
    }
  }

  #outcome(
    { request, modules }: Candidate,
    checked: Exclude<Checked, 'unfinished'>,
    loaded: ReadonlyMap<string, LoadedModule>,
  ): LoadOutcome {
    const { definition, isForTenant = false } = request;
    const digests = Object.fromEntries([...modules].map(([reference, { digest }]) => [reference, digest]));
    if (!checked.valid) {
      const { valid: _, ...failure } = checked;
      // An administrator may grant what is missing.
      return { ok: false, transient: failure.reason === 'CapabilityNotGranted', ...failure, digests };
    }
    const warnings = moduleWarnings(definition, modules, isForTenant);
    return {
      ok: true,
      digests,
      modules: [...modules.values()].map((module) => this.#guests.measured(module)),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(checked.refused === undefined ? {} : { refused: checked.refused }),
      ...sourceOf(loaded, isForTenant),
    };
  }

  /** Logs a failure for the administrator: a tenant gets only its tenant text, and one of the cache stops no policy. */
  #logDetail({ id }: LoadRequest, message: string, error: unknown): void {
    this.#say({ type: 'log', entry: { level: 'warn', message, fields: { policy: id, error: errorText(error) } } });
  }
}

/** A module without a mode in its metadata may be loaded in two modes. */
function providedDigest({ bytes, chosenMode }: ProvidedModule): string {
  return chosenMode === undefined ? digestOf(bytes) : `${digestOf(bytes)} ${chosenMode}`;
}

/** Where the modules of a policy come from. */
function sourceOf(
  loaded: ReadonlyMap<string, LoadedModule>,
  isForTenant: boolean,
): Pick<LoadOutcome & { readonly ok: true }, 'sourceError' | 'isUncached' | 'manifests' | 'verified'> {
  const fetches = [...loaded].flatMap(([reference, { fetched }]) =>
    fetched === undefined ? [] : { reference, fetched },
  );
  const failed = fetches.find(({ fetched }) => fetched.sourceError !== undefined)?.fetched.sourceError;
  const manifests = fetches.flatMap(({ reference, fetched: { manifest } }) =>
    manifest === undefined ? [] : [[reference, manifest] as const],
  );
  const verified = fetches.flatMap(({ reference, fetched: { verifiedBy } }) =>
    verifiedBy === undefined ? [] : [[reference, verifiedBy] as const],
  );
  return {
    ...(failed === undefined ? {} : { sourceError: isForTenant ? failed.tenantMessage : failed.message }),
    ...(fetches.some(({ fetched }) => fetched.cacheError !== undefined) ? { isUncached: true } : {}),
    ...(manifests.length === 0 ? {} : { manifests: Object.fromEntries(manifests) }),
    ...(verified.length === 0 ? {} : { verified: Object.fromEntries(verified) }),
  };
}
