import {
  checkSettings,
  createPolicy,
  EngineError,
  type LoadedPolicy,
  type ModuleUse,
  type PolicyDefinition,
} from '../../engine/index.ts';
import type { HostPort, PolicyLogEntry } from '../../engine/capabilities/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import type { LogEntry } from '../../log/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import { loadFailure } from './load-failure.ts';
import type { FailedStage, LoadRequest, RefusedNamespaces } from './load-request.ts';
import type { LoaderStart } from './loader-lane.ts';
import type { LoaderGuests } from './loader-guests.ts';
import type { LoadingActivity } from './loading-activity.ts';
import { COMPILE_LIMIT_MS } from './module-compiler.ts';
import type { PolicyReason } from './policy-reason.ts';
import { tenantRefusal } from './tenant-needs.ts';
import { tryParameters } from './try-parameters.ts';
import { coldMs, type CompiledCode, warmUp } from './warm-up.ts';

/**
 * Evaluation time whose fuel a check of settings gets in the quick thread: ordinary policies were measured to use less than a
 * tenth of it, and one that never ends delays the others by 10 to 30 ms.
 */
const QUICK_CHECK_SECONDS = 0.01;
/** The same as wall time, for guests that wait, with room for a busy machine. Milliseconds. */
const QUICK_TIMEOUT_MS = 1_000;
/** Limit of a module's start, on a busy machine too. Its fuel ends sooner, see INIT_FUEL of the sandbox. Milliseconds. */
const START_TIMEOUT_MS = 5_000;

/** A policy whose modules are compiled and whose settings are to be checked. */
export interface Candidate {
  readonly seq: number;
  readonly request: LoadRequest;
  /** By reference. */
  readonly modules: ReadonlyMap<string, CompiledPolicyModule>;
}

/** The policy's verdict on its settings, or why there is none. `unfinished`: it needs more time than a quick thread gives. */
export type Checked =
  | 'unfinished'
  | { readonly valid: true; readonly refused?: RefusedNamespaces }
  | {
      readonly valid: false;
      readonly reason: PolicyReason;
      readonly message: string;
      readonly at: FailedStage;
      /** Default: only when an administrator may grant what is missing. */
      readonly transient?: boolean;
      readonly retryAfterMs?: number;
    };

/** What a check needs of its thread. */
export interface SettingsCheckOptions extends Pick<LoaderStart, 'patience' | 'defaultTimeoutSeconds' | 'modules'> {
  readonly guests: LoaderGuests;
  readonly activity: LoadingActivity;
  /** Answers host capabilities. */
  readonly port: HostPort;
  readonly log: (entry: LogEntry) => void;
}

/** Has policies check their settings in this thread; the main thread watches the time. */
export class SettingsCheck {
  readonly #options: SettingsCheckOptions;
  readonly #isQuick: boolean;
  /** Modules whose code for reviews is compiled, first those that serve. */
  readonly #warm: WeakSet<CompiledPolicyModule>;

  constructor(options: SettingsCheckOptions) {
    this.#options = options;
    this.#isQuick = options.patience === 'quick';
    this.#warm = new WeakSet(options.modules);
  }

  check({ seq, request, modules }: Candidate): Checked {
    const { definition, trial, isForTenant = false } = request;
    if (this.#isQuick && trial !== undefined) {
      return 'unfinished';
    }
    const { activity } = this.#options;
    let at: FailedStage = { stage: 'start', unit: definition.id };
    try {
      activity.enter(seq, 'start', START_TIMEOUT_MS);
      const policy = this.#create(definition, modules);
      const verdict = checkSettings(policy, (unit, timeoutMs, member) => {
        at = { stage: 'check', unit };
        const use = definition.kind === 'policy' ? definition : definition.members[member];
        this.#enterCheck(seq, definition.id, use, modules, timeoutMs);
      });
      if (!verdict.valid) {
        return { ...verdict, reason: 'InvalidSettings', at };
      }
      const refusal = isForTenant ? tenantRefusal(definition, modules) : undefined;
      if (refusal !== undefined) {
        return { valid: false, ...refusal, at: { stage: 'check', unit: refusal.unit } };
      }
      const refused = trial && tryParameters(policy, trial, (_, timeoutMs) => activity.enter(seq, 'check', timeoutMs));
      return refused === undefined ? verdict : { valid: true, refused };
    } catch (error) {
      if (this.#isQuick && error instanceof EngineError && error.code === 'guest-timeout') {
        return 'unfinished';
      }
      // Later messages are those of the running policy.
      const { ok: _, ...failure } = loadFailure(error, isForTenant && at.stage === 'start');
      return { valid: false, ...failure, at };
    } finally {
      activity.leave();
    }
  }

  /** Compiles what reviews call, once for each module. */
  warmUp({ seq, request: { definition }, modules }: Candidate): void {
    const { activity, guests, patience } = this.#options;
    try {
      for (const { module: reference, settingsJson } of moduleUses(definition)) {
        const module = modules.get(reference);
        const guest = module && guests.get(module.digest);
        if (this.#isCold(module) && guest !== undefined) {
          activity.begin(definition.id, module.digest, settingsJson);
          activity.enter(seq, 'compile', COMPILE_LIMIT_MS[patience]);
          warmUp(guest, module, settingsJson);
          this.#warm.add(module);
        }
      }
    } finally {
      activity.leave();
    }
  }

  #create(definition: PolicyDefinition, modules: ReadonlyMap<string, CompiledPolicyModule>): LoadedPolicy {
    const { defaultTimeoutSeconds, port, guests, log } = this.#options;
    return createPolicy(
      this.#isQuick ? withQuickLimit(definition) : definition,
      (name) => {
        const module = modules.get(name);
        if (module === undefined) {
          throw new Error('a module that the definition does not name');
        }
        return guests.start(module, definition.id);
      },
      {
        defaultTimeoutSeconds,
        port,
        log: ({ policy, level, message, fields }: PolicyLogEntry) =>
          log({ level, message, fields: { policy, ...fields } }),
      },
    );
  }

  #enterCheck(
    seq: number,
    policy: string,
    use: ModuleUse | undefined,
    modules: ReadonlyMap<string, CompiledPolicyModule>,
    timeoutMs: number,
  ): void {
    const { activity } = this.#options;
    const module = modules.get(use?.module ?? '');
    activity.begin(policy, module?.digest ?? '', use?.settingsJson ?? '');
    const patientMs = timeoutMs + (this.#isCold(module) ? coldMs(module) : 0);
    activity.enter(seq, 'check', this.#isQuick ? QUICK_TIMEOUT_MS : patientMs);
  }

  /** Whether no review was tried with the module in this process. */
  #isCold(module: CompiledPolicyModule | undefined): module is CompiledCode {
    return module !== undefined && 'compiled' in module && !this.#warm.has(module);
  }
}

/** The definition with the quick thread's limit for all guests. */
function withQuickLimit(definition: PolicyDefinition): PolicyDefinition {
  const timeoutEvalSeconds = QUICK_CHECK_SECONDS;
  return definition.kind === 'policy'
    ? { ...definition, timeoutEvalSeconds }
    : { ...definition, members: definition.members.map((member) => ({ ...member, timeoutEvalSeconds })) };
}
