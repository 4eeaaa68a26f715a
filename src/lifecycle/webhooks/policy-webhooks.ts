// How the reconciler of a policy has API servers call its policy server, and learns whether they do.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import type { AdmissionPolicySpec, PolicyMatch, Readiness } from '../../resources/index.ts';
import { aborted, type ObjectCache, type Runnable, type RuntimeMetrics } from '../../runtime/index.ts';
import { type AskedPolicy, type AskedRecord, AskedRecords } from './asked-records.ts';
import { ConfigurationController } from './configuration-controller.ts';
import { ConfigurationObjects } from './configuration-objects.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { KnownPolicies } from './known-policies.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import type { WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WebhookTrials } from './webhook-trials.ts';
import type { WritePace } from './write-pace.ts';

/** Passes that a policy waits for: one may be under way that does not know of it. */
const MAX_PASSES = 2;

/**
 * `asked`: API servers call already. `written`: they do, since something was written just now. `later`: the policy is called when
 * it was written.
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
   * Whether a PolicyServer is reached. Until it is, enforcement by it does not begin; what it enforces already is written as ever,
   * and so is what was enforced before, by another one or under another leader. Call `targetsChanged` when the answer may differ.
   * Default: all are.
   */
  readonly isReached?: ((policyServer: string) => boolean) | undefined;
  /** Whether the policies of a PolicyServer are ours to enforce: its configurations are left alone otherwise. Default: all. */
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
  /** How a stream of changes is written. Default: as {@link WritePace} says. */
  readonly pace?: () => WritePace;
  /** Called when a policy should be reconciled again. */
  readonly done: (policy: AskedPolicy) => void;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
  readonly registry?: Registry | undefined;
}

/**
 * Remembers three things, all of them lost with leadership and said again by the first reconciliation of each policy:
 *
 * - what each policy is to be enforced on. It follows from what replicas report, which nothing else keeps, and a configuration is
 *   made from all policies of a server at once;
 * - which policies have said so. A new leader narrows no configuration before it has heard every policy;
 * - which policies wait for a write, so that they are reconciled when it is done.
 *
 * What is in the cluster is read from caches, and never remembered.
 */
export class PolicyWebhooks implements Runnable {
  readonly name = 'webhook-configurations';
  readonly ready: Promise<void>;
  readonly #options: PolicyWebhooksOptions;
  readonly #objects: ConfigurationObjects;
  readonly #trials: WebhookTrials;
  readonly #controller: ConfigurationController;
  readonly #records = new AskedRecords();
  readonly #known = new KnownPolicies();
  /** By id. */
  readonly #waiting = new Map<string, AskedPolicy>();

  constructor(options: PolicyWebhooksOptions) {
    this.#options = options;
    const { registry, metrics: runtimeMetrics } = options;
    this.#objects = new ConfigurationObjects(options);
    this.#trials = new WebhookTrials({ ...options, objects: this.#objects });
    this.#controller = new ConfigurationController({
      ...options,
      objects: this.#objects,
      records: this.#records,
      known: this.#known,
      written: (policyServer) => this.#callCovered(policyServer),
      failed: (policyServer) => this.#callUncovered(policyServer),
      metrics: registry === undefined ? undefined : new WebhookMetrics(registry, () => this.#figures()),
      runtimeMetrics,
    });
    this.ready = this.#controller.ready;
  }

  /** Runs until `signal` is aborted; may then be started again, and knows nothing of policies then. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.start(signal);
    } finally {
      this.#records.clear();
      this.#known.clear();
      this.#waiting.clear();
    }
  }

  /** All policies that exist. Until something is known of each, no configuration gets narrower. */
  expect(ids: Iterable<string>): void {
    this.#known.expect(ids);
    if (this.#known.isComplete) {
      this.#completed();
    }
  }

  /** It is known what a policy is to be enforced on, or that it is not. */
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
      this.#controller.look(server);
    }
  }

  /** Whether a policy is enforced: on `match`, or on what was said before, for whatever reason. */
  isAsked({ id, policyServer }: AskedPolicy, match: PolicyMatch | undefined): boolean {
    const asked = this.#records.get(id)?.asked ?? [];
    return [...(match === undefined ? [] : [match]), ...asked].some((one) => this.#objects.covers(policyServer, one));
  }

  /** Why the configurations of a policy server could not be written, while that is so. */
  failure(policyServer: string): Readiness | undefined {
    return this.#controller.failure(policyServer);
  }

  /**
   * Finds out by a dry run whether API servers would take the webhook of what may serve soon, and has them call in time.
   * @throws WebhookRefusal, ApiError
   */
  async foresee(
    policy: AskedPolicy,
    match: PolicyMatch,
    spec: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#trials.attempt(policy.id, policy.policyServer, match, spec, signal);
    this.#recordOf(policy).foreseen = match;
    if (!this.#objects.covers(policy.policyServer, match)) {
      this.#controller.changed(policy.policyServer);
    }
  }

  /** Nothing of a policy is on its way. */
  foreseeNothing({ id, policyServer }: AskedPolicy): void {
    const record = this.#records.get(id);
    const foreseen = record?.foreseen;
    if (record !== undefined && foreseen !== undefined) {
      record.foreseen = undefined;
      if (!record.asked.some((match) => isDeepStrictEqual(match, foreseen))) {
        this.#controller.changed(policyServer);
      }
    }
  }

  /**
   * Has API servers call for all requests of these matches, and with the next write for no others of this policy. The last match,
   * which `spec` is of, is tried by a dry run first; where something is in force already, only if it is not covered.
   * @throws WebhookRefusal; ApiError of the dry run
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
    if (last !== undefined && !(isInForce && this.#objects.covers(policyServer, last))) {
      await this.#trials.attempt(id, policyServer, last, spec, signal);
    }
    const record = this.#recordOf(policy);
    const isSame = isDeepStrictEqual(record.asked, matches);
    record.asked = matches;
    this.know(id);
    const isCovered = (): boolean => matches.every((match) => this.#objects.covers(policyServer, match));
    if (!isCovered()) {
      return await this.#awaitWrite(policy, signal, isCovered);
    }
    if (!isSame) {
      this.#controller.changed(policyServer);
    }
    return 'asked';
  }

  /**
   * A policy is not enforced any more. Webhooks of its own are gone before that is `written`, since no replica answers them; what it
   * shares with others goes with the next write.
   * @throws ApiError
   */
  async dismiss(policy: AskedPolicy, signal: AbortSignal): Promise<AskResult> {
    const { id } = policy;
    const record = this.#records.delete(id);
    this.#waiting.delete(id);
    this.#known.dismiss(id);
    this.know(id);
    for (const earlier of this.#objects.earlier().filter(({ metadata }) => metadata.name === id)) {
      await this.#controller.remove(earlier, signal);
    }
    const owners = (): readonly string[] => [...this.#servers()].filter((server) => this.#objects.hasOwn(server, id));
    const [first] = owners();
    if (first !== undefined) {
      return await this.#awaitWrite({ ...policy, policyServer: first }, signal, () => owners().length === 0);
    }
    if (record !== undefined) {
      // The policy is gone, and with it the name of its policy server.
      this.#controller.changed(record.policy.policyServer);
    }
    return 'asked';
  }

  #recordOf(policy: AskedPolicy): AskedRecord {
    this.#known.keep(policy.id);
    return this.#records.of(policy);
  }

  /** All that have policies, or configurations. */
  #servers(): ReadonlySet<string> {
    return new Set([...this.#records.servers(), ...this.#objects.servers()]);
  }

  #completed(): void {
    this.#known.completed();
    for (const server of this.#servers()) {
      this.#controller.look(server);
    }
    // Configurations of an earlier version are removed with any server.
    this.#controller.look('default');
  }

  async #awaitWrite(policy: AskedPolicy, signal: AbortSignal, isDone: () => boolean): Promise<AskResult> {
    const { id, policyServer } = policy;
    this.#waiting.set(id, policy);
    const isAtOnce =
      this.#controller.changed(policyServer) === 0 && this.#controller.targetOf(policyServer) !== undefined;
    for (let pass = 0; isAtOnce && pass < MAX_PASSES; pass += 1) {
      this.#controller.look(policyServer);
      await Promise.race([this.#controller.nextPass(policyServer), aborted(signal)]);
      signal.throwIfAborted();
      if (isDone()) {
        this.#waiting.delete(id);
        return 'written';
      }
      if (this.failure(policyServer) !== undefined) {
        break;
      }
    }
    return 'later';
  }

  /** Calls the policies that waited for what was written. */
  #callCovered(policyServer: string): void {
    for (const [id, policy] of this.#waiting) {
      const { asked = [] } = this.#records.get(id) ?? {};
      if (policy.policyServer === policyServer && asked.every((match) => this.#objects.covers(policyServer, match))) {
        this.#waiting.delete(id);
        this.#options.done(policy);
      }
    }
  }

  /** Calls the policies that are not enforced as they should be: their statuses say why. */
  #callUncovered(policyServer: string): void {
    for (const { policy, asked } of this.#records.ofServer(policyServer)) {
      if (!asked.every((match) => this.#objects.covers(policyServer, match))) {
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
    return { configurations, failing: this.#controller.failing() };
  }
}
