// Writes the webhook configurations of policy servers: one pass over all of a server's, whatever the number of its policies.
import type { Logger } from 'pino';
import { ApiError } from '../../cluster/index.ts';
import { keyText, type PolicyMatch, policyOfBucket, type Readiness } from '../../resources/index.ts';
import {
  Controller,
  type ObjectCache,
  outcomeOfError,
  type ReconcileAttempt,
  ReconcileError,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  FIRST_REPORTED_FAILURE,
  Waiting,
  watch,
} from '../../runtime/index.ts';
import { REASONS } from '../rollout/reasons.ts';
import type { AskedRecords } from './asked-records.ts';
import { type ConfigurationObjects, serverOf } from './configuration-objects.ts';
import { ConfigurationWriter } from './configuration-writer.ts';
import type { ExemptionSettings } from './exemptions.ts';
import type { KnownPolicies } from './known-policies.ts';
import { PassSignal } from './pass-signal.ts';
import { webhookConfigurations } from './webhook-configurations.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import { policyOf, type WebhookConfiguration, type WebhookTarget } from './webhook-object.ts';
import { WritePace } from './write-pace.ts';

/** Status codes of a refusal: of what was written, or of who writes it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);

export interface ConfigurationControllerOptions extends ExemptionSettings {
  readonly validating: ObjectCache<WebhookConfiguration>;
  readonly mutating: ObjectCache<WebhookConfiguration>;
  readonly objects: ConfigurationObjects;
  /** What policies are to be enforced on. */
  readonly records: AskedRecords;
  readonly known: KnownPolicies;
  readonly target: (policyServer: string) => WebhookTarget | undefined;
  readonly isReached?: ((policyServer: string) => boolean) | undefined;
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
  readonly pace?: () => WritePace;
  /** Called when everything that could be written of a policy server was. */
  readonly written: (policyServer: string) => void;
  /** Called when a pass over a policy server failed in another way than the one before. */
  readonly failed: (policyServer: string) => void;
  readonly metrics: WebhookMetrics | undefined;
  readonly log: Logger;
  readonly runtimeMetrics?: RuntimeMetrics | undefined;
}

/**
 * What is remembered of a policy server besides what its policies want. Nothing of it decides what is written: forgotten, it costs a
 * write too early, a log line twice, or a status that does not say why.
 */
interface ServerState {
  /** Limits writes while many policies change. */
  readonly pace: WritePace;
  /** Why the last pass failed: for the statuses of its policies. */
  failure: Readiness | undefined;
  /** Whether the last write failed. */
  hasFailed: boolean;
  /** The warning that was logged last. */
  warning: string;
}

export class ConfigurationController implements Runnable {
  readonly name = 'webhook-configurations';
  readonly ready: Promise<void>;
  readonly #options: ConfigurationControllerOptions;
  readonly #objects: ConfigurationObjects;
  readonly #writer: ConfigurationWriter;
  readonly #controller: Controller;
  readonly #passes = new PassSignal();
  readonly #servers = new Map<string, ServerState>();

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
      this.#passes.end();
    }
  }

  /** Something is to be written. After how long it will be, in milliseconds. */
  changed(policyServer: string): number {
    const wait = this.#stateOf(policyServer).pace.changed(performance.now());
    this.look(policyServer, wait);
    return wait;
  }

  /** Has a pass look at a policy server, where it may find nothing to write. */
  look(policyServer: string, afterMs = 0): void {
    this.#controller.enqueue({ name: policyServer }, { afterMs });
  }

  /** The end of the next pass over a policy server. */
  nextPass(policyServer: string): Promise<void> {
    return this.#passes.next(policyServer);
  }

  /** Why the last pass over a policy server failed, if it did. */
  failure(policyServer: string): Readiness | undefined {
    return this.#servers.get(policyServer)?.failure;
  }

  /** The policy servers whose last pass failed. */
  failing(): readonly string[] {
    return [...this.#servers].filter(([, { failure }]) => failure !== undefined).map(([name]) => name);
  }

  /** Removes one configuration of an earlier version. @throws ApiError */
  async remove(object: WebhookConfiguration, signal: AbortSignal): Promise<void> {
    await this.#writer.remove(object, signal);
  }

  /** Where the webhooks of a policy server are to point. Undefined: nothing may be written. */
  targetOf(policyServer: string): WebhookTarget | undefined {
    const { isOurs = () => true, isReached = () => true, target } = this.#options;
    const mayBegin = isReached(policyServer) || this.#isBegun(policyServer);
    return isOurs(policyServer) && mayBegin ? target(policyServer) : undefined;
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
    const { metrics, written } = this.#options;
    try {
      const result = await this.#write(policyServer, signal);
      if (result === undefined) {
        return {};
      }
      if (result.requeueAfterMs === undefined) {
        Object.assign(this.#stateOf(policyServer), { failure: undefined, hasFailed: false });
        written(policyServer);
      }
      return result;
    } catch (error) {
      const isRefusal = error instanceof ApiError && REFUSALS.has(error.code);
      const failure = isRefusal ? new ReconcileError(REASONS.webhookRefused, error.message, { cause: error }) : error;
      if (!(error instanceof Waiting)) {
        metrics?.wrote('failed');
      }
      this.#failed(policyServer, failure, attempt);
      if (error instanceof Waiting) {
        // All others were written.
        written(policyServer);
      }
      throw failure;
    } finally {
      this.#passes.ended(policyServer);
    }
  }

  #failed(policyServer: string, error: unknown, { stopped, failures }: ReconcileAttempt): void {
    const state = this.#stateOf(policyServer);
    // Writes are paced by seconds: the second conflict in a row is no cache that is behind.
    const { failure } = outcomeOfError(error, stopped, state.hasFailed ? FIRST_REPORTED_FAILURE : failures);
    state.hasFailed = true;
    if (failure !== undefined && state.failure?.message !== failure.message) {
      state.failure = failure;
      this.#options.failed(policyServer);
    }
  }

  /** Undefined: nothing may be written now. */
  async #write(policyServer: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { known, records } = this.#options;
    const target = this.targetOf(policyServer);
    if (target === undefined) {
      return undefined;
    }
    const before = this.#objects.of(policyServer);
    const wanted = records.matches(policyServer);
    if (!known.isComplete && !this.#isLacking(policyServer, wanted, target)) {
      return {};
    }
    const all = known.isComplete ? wanted : [...wanted, ...before.flatMap((object) => this.#keptOf(object))];
    const { configurations, warnings } = webhookConfigurations(all, { ...this.#options, policyServer, target });
    const changes = this.#writer.changes(policyServer, configurations);
    if (changes.different.length + changes.superfluous.length > 0) {
      const { pace } = this.#stateOf(policyServer);
      const wait = pace.wait(performance.now());
      if (wait > 0) {
        return { requeueAfterMs: wait };
      }
      this.#warn(policyServer, warnings);
      pace.wrote(performance.now());
      await this.#writer.write(changes, signal);
    }
    await this.#removeEarlier(policyServer, signal);
    return {};
  }

  /** Whether enforcement by a policy server is under way, or would end if it were not: that is never a side effect. */
  #isBegun(policyServer: string): boolean {
    return (
      this.#objects.of(policyServer).length > 0 ||
      this.#options.records.ofServer(policyServer).some(({ wasEnforced }) => wasEnforced)
    );
  }

  #warn(policyServer: string, warnings: readonly string[]): void {
    const warning = warnings.join('; ');
    const state = this.#stateOf(policyServer);
    if (warning !== '' && state.warning !== warning) {
      this.#options.log.warn({ policyServer, warnings }, 'webhooks ask about more than policies are for');
    }
    state.warning = warning;
  }

  /** Whether a match is not covered, a webhook points elsewhere, or a policy's own webhook has no policy any more. */
  #isLacking(policyServer: string, wanted: readonly PolicyMatch[], target: WebhookTarget): boolean {
    const { known } = this.#options;
    return (
      wanted.some((match) => !this.#objects.covers(policyServer, match)) ||
      this.#objects
        .of(policyServer)
        .some(
          (object) =>
            !this.#objects.askedBy(object).isAt(target) ||
            [...known.dismissed()].some((id) => this.#objects.askedBy(object).hasOwn(id)),
        )
    );
  }

  /** What a configuration covers already, and keeps covering until every policy is known. */
  #keptOf(object: WebhookConfiguration): readonly PolicyMatch[] {
    return this.#objects
      .askedBy(object)
      .matches(this.#options)
      .filter(({ bucket }) => !this.#options.known.isDismissed(policyOfBucket(bucket) ?? ''));
  }

  /** Removes configurations of an earlier version, once what they covered is covered here. */
  async #removeEarlier(policyServer: string, signal: AbortSignal): Promise<void> {
    const { known, records } = this.#options;
    for (const object of known.isComplete ? this.#objects.earlier() : []) {
      const record = records.get(object.metadata.name ?? '');
      const isForeign = record === undefined ? !this.#isLeftOver(object) : record.policy.policyServer !== policyServer;
      if (!isForeign && (record?.asked ?? []).every((match) => this.#objects.covers(policyServer, match))) {
        await this.#writer.remove(object, signal);
      }
    }
  }

  /** Whether a configuration of an earlier version is of a policy that is not enforced any more. */
  #isLeftOver(object: WebhookConfiguration): boolean {
    return policyOf(object) !== undefined && !this.#options.known.isForeign(object.metadata.name ?? '');
  }
}
