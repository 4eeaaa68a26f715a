// Has API servers ask policy servers about what policies are for: remembers what each policy's reconciler says, and keeps the
// few configurations that come of all of it.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { type AdmissionPolicySpec, keyText, type PolicyMatch, policyOfBucket } from '../../resources/index.ts';
import {
  aborted,
  Controller,
  type ObjectCache,
  type ReconcileResult,
  type Runnable,
  type RuntimeMetrics,
  Waiting,
  watch,
} from '../../runtime/index.ts';
import { type AskedPolicy, type AskedRecord, AskedRecords } from './asked-records.ts';
import { ConfigurationObjects, serverOf } from './configuration-objects.ts';
import { ConfigurationWriter } from './configuration-writer.ts';
import { KnownPolicies } from './known-policies.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { PassSignal } from './pass-signal.ts';
import { webhookConfigurations } from './webhook-configurations.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import { policyOf, type WebhookConfiguration, type WebhookTarget } from './webhook-object.ts';
import { WebhookTrials } from './webhook-trials.ts';
import { WritePace } from './write-pace.ts';

/** How an API server says that it will not have what was written, whoever asks again. */
const DEFINITE: ReadonlySet<number> = new Set([400, 403, 413, 422]);
/** When something is asked about, passes that are waited for: one may be under way that does not know of it. */
const MAX_PASSES = 2;

/**
 * `asked`: API servers ask already. `written`: they do, since something was written just now. `later`: it will be written, and
 * the policy told of then.
 */
export type AskResult = 'asked' | 'written' | 'later';

export interface PolicyWebhooksOptions extends ExemptionSettings {
  readonly cluster: Cluster;
  /** Of objects with the labels of `MANAGED_BY`. */
  readonly validating: ObjectCache<WebhookConfiguration>;
  readonly mutating: ObjectCache<WebhookConfiguration>;
  /** Where API servers reach the replicas of a PolicyServer. Undefined while that is not known: then nothing is written. */
  readonly target: (policyServer: string) => WebhookTarget | undefined;
  /**
   * Whether a PolicyServer is reached: until it is, nothing is begun to be asked of it. What is asked already is written as ever,
   * and so is what was enforced before, by another one or under another leader. When it may say something else, `targetsChanged`
   * is to be called. Default: all are.
   */
  readonly isReached?: ((policyServer: string) => boolean) | undefined;
  /** Whether the policies of a PolicyServer are ours to enforce: its configurations are left alone otherwise. Default: all. */
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
  /** How a stream of changes is written. Default: as {@link WritePace} says. */
  readonly pace?: () => WritePace;
  /** Told when it is worth looking at a policy again. */
  readonly done: (policy: AskedPolicy) => void;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
  readonly registry?: Registry | undefined;
}

export class PolicyWebhooks implements Runnable {
  readonly name = 'webhook-configurations';
  readonly ready: Promise<void>;
  readonly #options: PolicyWebhooksOptions;
  readonly #objects: ConfigurationObjects;
  readonly #trials: WebhookTrials;
  readonly #controller: Controller;
  readonly #metrics: WebhookMetrics | undefined;
  readonly #writer: ConfigurationWriter;
  readonly #records = new AskedRecords();
  /** Policies that are told when something was written, by id. */
  readonly #waiting = new Map<string, AskedPolicy>();
  readonly #passes = new PassSignal();
  readonly #paces = new Map<string, WritePace>();
  readonly #errors = new Map<string, ApiError>();
  readonly #warned = new Map<string, string>();
  readonly #known = new KnownPolicies();

  constructor(options: PolicyWebhooksOptions) {
    this.#options = options;
    const { log, metrics, registry, validating, mutating } = options;
    this.#objects = new ConfigurationObjects(options);
    this.#trials = new WebhookTrials({ ...options, objects: this.#objects });
    this.#metrics = registry === undefined ? undefined : new WebhookMetrics(registry, () => this.#figures());
    this.#writer = new ConfigurationWriter({ objects: this.#objects, metrics: this.#metrics });
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal) => this.#reconcile(keyText(key), signal),
      watches: [validating, mutating].map((cache) =>
        watch(cache, {
          keys: (object) => {
            const server = serverOf(object);
            return server === undefined ? [] : [{ name: server }];
          },
        }),
      ),
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    this.ready = this.#controller.ready;
  }

  /** Runs until `signal` is aborted; may then be started again, and knows nothing of policies then. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.start(signal);
    } finally {
      for (const memory of [this.#records, this.#waiting, this.#paces, this.#errors, this.#warned]) {
        memory.clear();
      }
      this.#known.clear();
      this.#passes.end();
    }
  }

  /** All policies that there are. Until something is known of each, nothing that is asked about is left out. */
  expect(ids: Iterable<string>): void {
    this.#known.expect(ids);
    if (this.#known.isComplete) {
      this.#completed();
    }
  }

  /** What is asked about a policy was said, or nothing is. */
  know(id: string): void {
    if (this.#known.know(id)) {
      this.#completed();
    }
  }

  /** A policy is another controller's to enforce: nothing of it is touched. */
  leaveAlone(id: string): void {
    this.#known.leaveAlone(id);
    this.know(id);
  }

  /** Targets of policy servers may be others now: certificates were renewed, a Service came. */
  targetsChanged(): void {
    for (const server of this.#servers()) {
      this.#look(server);
    }
  }

  /** Whether API servers ask about a policy: about `match`, or what was said to be asked, for whatever reason. */
  isAsked({ id, policyServer }: AskedPolicy, match: PolicyMatch | undefined): boolean {
    const asked = this.#records.get(id)?.asked ?? [];
    return [...(match === undefined ? [] : [match]), ...asked].some((one) => this.#isCovered(policyServer, one));
  }

  /**
   * Finds out whether API servers would ask about what may serve soon, and has them ask in time.
   * @throws WebhookRefusal, ApiError
   */
  async foresee(
    policy: AskedPolicy,
    match: PolicyMatch,
    spec: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#trials.attempt(policy.id, policy.policyServer, match, spec, signal);
    const record = this.#recordOf(policy);
    record.foreseen = match;
    if (!this.#isCovered(policy.policyServer, match)) {
      this.#changed(policy.policyServer);
    }
  }

  /** Nothing of a policy is on its way. */
  foreseeNothing({ id, policyServer }: AskedPolicy): void {
    const record = this.#records.get(id);
    const foreseen = record?.foreseen;
    if (record !== undefined && foreseen !== undefined) {
      record.foreseen = undefined;
      if (!record.asked.some((match) => isDeepStrictEqual(match, foreseen))) {
        this.#changed(policyServer);
      }
    }
  }

  /**
   * Has API servers ask about all requests that any of these is for. What was asked about the policy beyond them is left out
   * with the next write. Whether they would is found out before, of the last of them, which `spec` is of; where something is
   * in force already, only if it is not asked about.
   * @throws WebhookRefusal, ApiError
   */
  async ask(
    policy: AskedPolicy,
    matches: readonly PolicyMatch[],
    spec: AdmissionPolicySpec,
    isInForce: boolean,
    signal: AbortSignal,
  ): Promise<AskResult> {
    const { id, policyServer } = policy;
    const last = matches.at(-1);
    if (last !== undefined && !(isInForce && this.#isCovered(policyServer, last))) {
      await this.#trials.attempt(id, policyServer, last, spec, signal);
    }
    const record = this.#recordOf(policy);
    const isSame = isDeepStrictEqual(record.asked, matches);
    record.asked = matches;
    this.know(id);
    if (!matches.every((match) => this.#isCovered(policyServer, match))) {
      return await this.#awaitWrite(policy, signal, () =>
        matches.every((match) => this.#isCovered(policyServer, match)),
      );
    }
    if (!isSame) {
      this.#changed(policyServer);
    }
    return 'asked';
  }

  /**
   * Nothing is asked about a policy any more. Webhooks of its own go before that is `written`, since nobody answers them; what
   * it shares with others with the next write.
   * @throws ApiError
   */
  async dismiss(policy: AskedPolicy, signal: AbortSignal): Promise<AskResult> {
    const { id } = policy;
    const record = this.#records.delete(id);
    this.#waiting.delete(id);
    this.#known.dismiss(id);
    this.know(id);
    for (const earlier of this.#objects.earlier().filter(({ metadata }) => metadata.name === id)) {
      await this.#writer.remove(earlier, signal);
    }
    const asks = (): readonly string[] => [...this.#servers()].filter((server) => this.#hasOwn(server, id));
    const [first] = asks();
    if (first !== undefined) {
      return await this.#awaitWrite({ ...policy, policyServer: first }, signal, () => asks().length === 0);
    }
    if (record !== undefined) {
      // Who knows only that the policy is gone does not know where it was.
      this.#changed(record.policy.policyServer);
    }
    return 'asked';
  }

  #recordOf(policy: AskedPolicy): AskedRecord {
    this.#known.keep(policy.id);
    return this.#records.of(policy);
  }

  #isCovered(policyServer: string, match: PolicyMatch): boolean {
    return this.#objects
      .of(policyServer)
      .some((object) => this.#objects.askedBy(object).isAskedAbout(match, this.#options));
  }

  #hasOwn(policyServer: string, id: string): boolean {
    return this.#objects.of(policyServer).some((object) => this.#objects.askedBy(object).hasOwn(id));
  }

  /** All that have policies, or configurations. */
  #servers(): ReadonlySet<string> {
    return new Set([...this.#records.servers(), ...this.#objects.servers()]);
  }

  #completed(): void {
    this.#known.completed();
    for (const server of this.#servers()) {
      this.#look(server);
    }
    // What is left of an earlier version is looked after with any of them.
    this.#look('default');
  }

  #look(policyServer: string, afterMs = 0): void {
    this.#controller.enqueue({ name: policyServer }, { afterMs });
  }

  /** Something is to be written. After how long it will be. */
  #changed(policyServer: string): number {
    const wait = this.#paceOf(policyServer).changed(performance.now());
    this.#look(policyServer, wait);
    return wait;
  }

  #paceOf(policyServer: string): WritePace {
    const pace = this.#paces.get(policyServer) ?? this.#options.pace?.() ?? new WritePace();
    this.#paces.set(policyServer, pace);
    return pace;
  }

  /** @throws ApiError that the last write failed with, where another one would, too */
  async #awaitWrite(policy: AskedPolicy, signal: AbortSignal, isDone: () => boolean): Promise<AskResult> {
    const { id, policyServer } = policy;
    this.#waiting.set(id, policy);
    const isAtOnce = this.#changed(policyServer) === 0 && this.#targetOf(policyServer) !== undefined;
    for (let pass = 0; isAtOnce && pass < MAX_PASSES; pass += 1) {
      this.#look(policyServer);
      await Promise.race([this.#passes.next(policyServer), aborted(signal)]);
      signal.throwIfAborted();
      if (isDone()) {
        this.#waiting.delete(id);
        return 'written';
      }
      if (this.#errors.has(policyServer)) {
        break;
      }
    }
    const error = this.#errors.get(policyServer);
    if (error !== undefined) {
      throw error;
    }
    return 'later';
  }

  /** One pass over the configurations of a policy server. */
  async #reconcile(policyServer: string, signal: AbortSignal): Promise<ReconcileResult> {
    try {
      const result = await this.#write(policyServer, signal);
      if (result === undefined) {
        return {};
      }
      if (result.requeueAfterMs === undefined) {
        this.#errors.delete(policyServer);
        this.#tell(policyServer);
      }
      return result;
    } catch (error) {
      if (error instanceof Waiting) {
        // All others were written.
        this.#tell(policyServer);
      } else {
        this.#metrics?.wrote('failed');
      }
      if (error instanceof ApiError && DEFINITE.has(error.code)) {
        const isNews = this.#errors.get(policyServer)?.message !== error.message;
        this.#errors.set(policyServer, error);
        if (isNews) {
          this.#tellUncovered(policyServer);
        }
      }
      throw error;
    } finally {
      this.#passes.ended(policyServer);
    }
  }

  /** Undefined: nothing may be written now. */
  async #write(policyServer: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const target = this.#targetOf(policyServer);
    if (target === undefined) {
      return undefined;
    }
    const before = this.#objects.of(policyServer);
    const said = this.#records.matches(policyServer);
    if (!this.#known.isComplete && !this.#isLacking(policyServer, said, target)) {
      return {};
    }
    const asked = this.#known.isComplete ? said : [...said, ...before.flatMap((object) => this.#keptOf(object))];
    const { configurations, warnings } = webhookConfigurations(asked, { ...this.#options, policyServer, target });
    const changes = this.#writer.changes(policyServer, configurations);
    if (changes.different.length + changes.superfluous.length > 0) {
      const wait = this.#paceOf(policyServer).wait(performance.now());
      if (wait > 0) {
        return { requeueAfterMs: wait };
      }
      this.#warn(policyServer, warnings);
      this.#paceOf(policyServer).wrote(performance.now());
      await this.#writer.write(changes, signal);
    }
    await this.#removeEarlier(policyServer, signal);
    return {};
  }

  /** Undefined: nothing may be written. */
  #targetOf(policyServer: string): WebhookTarget | undefined {
    const { isOurs = () => true, isReached = () => true, target } = this.#options;
    const mayBegin = isReached(policyServer) || this.#isBegun(policyServer);
    return isOurs(policyServer) && mayBegin ? target(policyServer) : undefined;
  }

  /** Whether enforcement by a policy server is under way, or would end if it were not: no removal of it is a side effect. */
  #isBegun(policyServer: string): boolean {
    return (
      this.#objects.of(policyServer).length > 0 ||
      this.#records.ofServer(policyServer).some(({ wasEnforced }) => wasEnforced)
    );
  }

  #warn(policyServer: string, warnings: readonly string[]): void {
    const text = warnings.join('; ');
    if (text !== '' && this.#warned.get(policyServer) !== text) {
      this.#options.log.warn({ policyServer, warnings }, 'webhooks ask about more than policies are for');
    }
    this.#warned.set(policyServer, text);
  }

  /** Whether something is not asked about, asked at the wrong place, or asked of nobody any more. */
  #isLacking(policyServer: string, said: readonly PolicyMatch[], target: WebhookTarget): boolean {
    return (
      said.some((match) => !this.#isCovered(policyServer, match)) ||
      this.#objects.of(policyServer).some((object) => {
        return (
          !this.#objects.askedBy(object).isAt(target) ||
          [...this.#known.dismissed()].some((id) => this.#objects.askedBy(object).hasOwn(id))
        );
      })
    );
  }

  /** What is asked about already, and stays until more is known. */
  #keptOf(object: WebhookConfiguration): readonly PolicyMatch[] {
    return this.#objects
      .askedBy(object)
      .matches(this.#options)
      .filter(({ bucket }) => !this.#known.isDismissed(policyOfBucket(bucket) ?? ''));
  }

  /** Configurations of an earlier version, once what they asked about is asked about here. */
  async #removeEarlier(policyServer: string, signal: AbortSignal): Promise<void> {
    for (const object of this.#known.isComplete ? this.#objects.earlier() : []) {
      const record = this.#records.get(object.metadata.name ?? '');
      const isForeign = record === undefined ? !this.#isLeftOver(object) : record.policy.policyServer !== policyServer;
      if (!isForeign && (record?.asked ?? []).every((match) => this.#isCovered(policyServer, match))) {
        await this.#writer.remove(object, signal);
      }
    }
  }

  /** Whether a configuration of an earlier version is of no policy that something is to be asked about. */
  #isLeftOver(object: WebhookConfiguration): boolean {
    return policyOf(object) !== undefined && !this.#known.isForeign(object.metadata.name ?? '');
  }

  #tell(policyServer: string): void {
    for (const [id, policy] of this.#waiting) {
      const { asked = [] } = this.#records.get(id) ?? {};
      if (policy.policyServer === policyServer && asked.every((match) => this.#isCovered(policyServer, match))) {
        this.#waiting.delete(id);
        this.#options.done(policy);
      }
    }
  }

  /** Nothing is written any more: whoever is not asked as they said should know. */
  #tellUncovered(policyServer: string): void {
    for (const { policy, asked } of this.#records.ofServer(policyServer)) {
      if (!asked.every((match) => this.#isCovered(policyServer, match))) {
        this.#waiting.set(policy.id, policy);
        this.#options.done(policy);
      }
    }
  }

  #figures(): ReturnType<ConstructorParameters<typeof WebhookMetrics>[1]> {
    const configurations = [...this.#objects.servers()].flatMap((policyServer) =>
      this.#objects
        .of(policyServer)
        .map(({ kind, webhooks = [] }) => ({ policyServer, kind, webhooks: webhooks.length })),
    );
    return { configurations, failing: [...this.#errors.keys()] };
  }
}
