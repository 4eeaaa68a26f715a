// Writes the webhook configurations of policy servers: one pass per server, whatever the number of its policies.
import type { Logger } from 'pino';
import { keyText, type PolicyMatch, policyOfBucket } from '../../resources/index.ts';
import {
  Controller,
  type ObjectCache,
  outcomeOfError,
  type ReconcileAttempt,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  FIRST_REPORTED_FAILURE,
  Waiting,
  watch,
} from '../../runtime/index.ts';
import { afterError } from '../rollout/error-rules.ts';
import { REASONS } from '../../rollout/index.ts';
import type { WebhookFailure } from '../rollout/webhook-state.ts';
import type { EnforcementRecords } from './enforcement-records.ts';
import { type ConfigurationObjects, serverOf } from './configuration-objects.ts';
import { ConfigurationWriter } from './configuration-writer.ts';
import type { ExemptionSettings } from './exemptions.ts';
import type { ReconciledPolicies } from './reconciled-policies.ts';
import { webhookConfigurations } from './webhook-configurations.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import type { WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WritePace } from './write-pace.ts';

export interface ConfigurationControllerOptions extends ExemptionSettings {
  readonly validating: ObjectCache<WebhookConfiguration>;
  readonly mutating: ObjectCache<WebhookConfiguration>;
  readonly objects: ConfigurationObjects;
  readonly records: EnforcementRecords;
  readonly policies: ReconciledPolicies;
  readonly target: (policyServer: string) => WebhookTarget | undefined;
  readonly isReachable?: ((policyServer: string) => boolean) | undefined;
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
  readonly pace?: () => WritePace;
  /** Called after each pass over a policy server, however it ended. */
  readonly ended: (policyServer: string) => void;
  readonly metrics: WebhookMetrics | undefined;
  readonly log: Logger;
  readonly runtimeMetrics?: RuntimeMetrics | undefined;
}

/**
 * Memory of earlier passes over a policy server. It never decides what is written: losing it costs an early write, a repeated
 * log line, or a status without the reason of a failure.
 */
interface ServerState {
  /** Limits writes while many policies change. */
  readonly pace: WritePace;
  /** Why the last pass failed, for the statuses of its policies. */
  failure: WebhookFailure | undefined;
  /** Whether a pass failed since the last success. */
  hasFailed: boolean;
  /** The last logged warning. */
  warning: string;
}

export class ConfigurationController implements Runnable {
  readonly name = 'webhook-configurations';
  readonly ready: Promise<void>;
  readonly #options: ConfigurationControllerOptions;
  readonly #objects: ConfigurationObjects;
  readonly #writer: ConfigurationWriter;
  readonly #controller: Controller;
  readonly #servers = new Map<string, ServerState>();
  /** Policy servers whose configurations are being written. */
  readonly #writing = new Set<string>();

  constructor(options: ConfigurationControllerOptions) {
    this.#options = options;
    const { objects, metrics, runtimeMetrics, validating, mutating, log } = options;
    this.#objects = objects;
    this.#writer = new ConfigurationWriter({ objects, metrics });
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal, attempt) => this.#reconcile(keyText(key), signal, attempt),
      watches: [validating, mutating].map((cache) =>
        watch(cache, {
          keys: (object) => {
            const server = serverOf(object);
            return server === undefined ? [] : [{ name: server }];
          },
        }),
      ),
      log,
      ...(runtimeMetrics === undefined ? {} : { metrics: runtimeMetrics }),
    });
    this.ready = this.#controller.ready;
  }

  /** Runs until `signal` is aborted; may then be started again. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.start(signal);
    } finally {
      this.#servers.clear();
    }
  }

  /** Schedules a write. */
  scheduleWrite(policyServer: string): void {
    this.enqueue(policyServer, this.#stateOf(policyServer).pace.recordChange(performance.now()));
  }

  /** Schedules a pass over a policy server; it writes only what differs. */
  enqueue(policyServer: string, afterMs = 0): void {
    this.#controller.enqueue({ name: policyServer }, { afterMs });
  }

  /** Why the last pass over a policy server failed; undefined if it succeeded. */
  failure(policyServer: string): WebhookFailure | undefined {
    return this.#servers.get(policyServer)?.failure;
  }

  /** Whether configurations of a policy server are being written: what is read back may be outdated in a moment. */
  isWriting(policyServer: string): boolean {
    return this.#writing.has(policyServer);
  }

  /** The policy servers whose last pass failed. */
  failing(): readonly string[] {
    return [...this.#servers].filter(([, { failure }]) => failure !== undefined).map(([name]) => name);
  }

  /** The target of a policy server's webhooks. Undefined: nothing may be written. */
  #targetOf(policyServer: string): WebhookTarget | undefined {
    const { isOurs = () => true, isReachable = () => true, target } = this.#options;
    const mayEnforce = isReachable(policyServer) || this.#hasEnforced(policyServer);
    return isOurs(policyServer) && mayEnforce ? target(policyServer) : undefined;
  }

  #stateOf(policyServer: string): ServerState {
    const known = this.#servers.get(policyServer);
    const state = known ?? {
      pace: this.#options.pace?.() ?? new WritePace(),
      failure: undefined,
      hasFailed: false,
      warning: '',
    };
    this.#servers.set(policyServer, state);
    return state;
  }

  /** One pass over the configurations of a policy server. */
  async #reconcile(policyServer: string, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    try {
      const result = await this.#write(policyServer, signal);
      if (result !== undefined && result.requeueAfterMs === undefined) {
        Object.assign(this.#stateOf(policyServer), { failure: undefined, hasFailed: false });
      }
      return result ?? {};
    } catch (error) {
      const { failure } = afterError('writeConfigurations', error);
      if (!(error instanceof Waiting)) {
        this.#options.metrics?.countWrite('failed');
      }
      this.#failed(policyServer, failure, attempt);
      throw failure;
    } finally {
      this.#writing.delete(policyServer);
      this.#options.ended(policyServer);
    }
  }

  #failed(policyServer: string, error: unknown, { stopped, failures }: ReconcileAttempt): void {
    const state = this.#stateOf(policyServer);
    // Writes are seconds apart, so a second conflict in a row does not come from a stale cache.
    const { failure } = outcomeOfError(error, stopped, state.hasFailed ? FIRST_REPORTED_FAILURE : failures);
    state.hasFailed = true;
    if (failure !== undefined) {
      const { reason, message } = failure;
      const what = reason === REASONS.webhookRefused ? '' : `webhooks of PolicyServer ${policyServer} not written: `;
      state.failure = { state: 'Failing', reason, message: `${what}${message}` };
    }
  }

  /** @returns undefined when nothing may be written now */
  async #write(policyServer: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { policies, records } = this.#options;
    const target = this.#targetOf(policyServer);
    if (target === undefined) {
      return undefined;
    }
    const before = this.#objects.of(policyServer);
    const wanted = records.matches(policyServer);
    if (!policies.isComplete && !this.#needsWrite(policyServer, wanted, target)) {
      return {};
    }
    const all = policies.isComplete ? wanted : [...wanted, ...before.flatMap((object) => this.#currentMatches(object))];
    const { configurations, warnings } = webhookConfigurations(all, { ...this.#options, policyServer, target });
    const changes = this.#writer.changes(policyServer, configurations);
    if (changes.different.length + changes.obsolete.length > 0) {
      const { pace } = this.#stateOf(policyServer);
      const wait = pace.wait(performance.now());
      if (wait > 0) {
        return { requeueAfterMs: wait };
      }
      this.#warn(policyServer, warnings);
      pace.recordWrite(performance.now());
      this.#writing.add(policyServer);
      await this.#writer.write(changes, signal);
    }
    return {};
  }

  /** Whether a policy server enforces policies already, or has policies that were enforced before. */
  #hasEnforced(policyServer: string): boolean {
    return (
      this.#objects.of(policyServer).length > 0 ||
      this.#options.records.ofServer(policyServer).some(({ wasEnforced }) => wasEnforced)
    );
  }

  #warn(policyServer: string, warnings: readonly string[]): void {
    const warning = warnings.join('; ');
    const state = this.#stateOf(policyServer);
    if (warning !== '' && state.warning !== warning) {
      this.#options.log.warn({ policyServer, warnings }, 'webhooks cover more requests than their policies match');
    }
    state.warning = warning;
  }

  /** Whether a match is not covered, a target is outdated, or a removed policy still has its own webhook. */
  #needsWrite(policyServer: string, wanted: readonly PolicyMatch[], target: WebhookTarget): boolean {
    const { records } = this.#options;
    return (
      wanted.some((match) => !this.#objects.covers(policyServer, match)) ||
      this.#objects
        .of(policyServer)
        .some(
          (object) =>
            !this.#objects.coverageOf(object).pointsTo(target) ||
            records.removed.keys().some((id) => this.#objects.coverageOf(object).hasOwnWebhook(id)),
        )
    );
  }

  /** The matches that a configuration covers, to be kept until all policies were reconciled. */
  #currentMatches(object: WebhookConfiguration): readonly PolicyMatch[] {
    return this.#objects
      .coverageOf(object)
      .matches(this.#options)
      .filter(({ bucket }) => !this.#options.records.removed.has(policyOfBucket(bucket) ?? ''));
  }
}
