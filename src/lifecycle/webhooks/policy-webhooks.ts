// The interface between policy reconcilers and webhook configurations.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import type { AdmissionPolicySpec, PolicyMatch, Readiness } from '../../resources/index.ts';
import { aborted, type ObjectCache, type Runnable, type RuntimeMetrics } from '../../runtime/index.ts';
import { type PolicyReference, type EnforcementRecord, EnforcementRecords } from './enforcement-records.ts';
import { ConfigurationController } from './configuration-controller.ts';
import { ConfigurationObjects } from './configuration-objects.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { ReconciledPolicies } from './reconciled-policies.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import type { WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WebhookDryRuns } from './webhook-dry-runs.ts';
import type { WritePace } from './write-pace.ts';

/** Passes that a reconciliation waits for: a pass under way may have begun before the change. */
const MAX_PASSES = 2;

/**
 * - `enforced`: webhooks covered the policy already.
 * - `updated`: a webhook configuration was written, and covers it now.
 * - `deferred`: a later write will cover it; `requeue` is called then.
 */
export type EnforceResult = 'enforced' | 'updated' | 'deferred';

/**
 * - `removed`: no webhook is for the policy alone any more.
 * - `updated`: its own webhook was removed just now; API servers may call it for a moment longer.
 * - `deferred`: a later write will remove it; `requeue` is called then.
 */
export type RemoveResult = 'removed' | 'updated' | 'deferred';

export interface PolicyWebhooksOptions extends ExemptionSettings {
  readonly cluster: Cluster;
  /** Caches of objects with the labels of `MANAGED_BY`. */
  readonly validating: ObjectCache<WebhookConfiguration>;
  readonly mutating: ObjectCache<WebhookConfiguration>;
  /** Where API servers reach the replicas of a PolicyServer. While undefined, nothing is written. */
  readonly target: (policyServer: string) => WebhookTarget | undefined;
  /**
   * Whether API servers reach a PolicyServer. Until they do, it starts to enforce nothing new; policies that it enforces, and
   * policies that were enforced before, by another server or under another leader, are covered all the same. Call
   * `targetsChanged` when the result may differ. Default: always.
   */
  readonly isReachable?: ((policyServer: string) => boolean) | undefined;
  /** Whether this controller enforces the policies of a PolicyServer; if not, it writes none of its configurations. Default: always. */
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
  /** Rate limit of writes, one for each policy server. Default: a {@link WritePace}. */
  readonly pace?: () => WritePace;
  /** Called when a policy should be reconciled again. */
  readonly requeue: (policy: PolicyReference) => void;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
  readonly registry?: Registry | undefined;
}

/**
 * Keeps webhook configurations as policies need them. It remembers three things until leadership ends; the next leader gets
 * them from the first reconciliation of each policy:
 *
 * - the matches that each policy needs. They depend on what replicas report, which is stored nowhere else, and one
 *   configuration is computed from all policies of a server;
 * - which policies were reconciled. A new leader narrows no configuration until all were;
 * - which policies wait for a write, to reconcile them after it.
 *
 * The state of the cluster is read from caches. Everything else that this class and its parts keep saves requests or explains
 * failures, and never decides what configurations contain: accepted dry runs, own writes that caches do not show yet, the pace of writes,
 * the last failure.
 */
export class PolicyWebhooks implements Runnable {
  readonly name = 'webhook-configurations';
  readonly ready: Promise<void>;
  readonly #options: PolicyWebhooksOptions;
  readonly #objects: ConfigurationObjects;
  readonly #dryRuns: WebhookDryRuns;
  readonly #controller: ConfigurationController;
  readonly #records = new EnforcementRecords();
  readonly #policies = new ReconciledPolicies();
  /** Policies that wait for a write, by id. */
  readonly #waiting = new Map<string, PolicyReference>();

  constructor(options: PolicyWebhooksOptions) {
    this.#options = options;
    const { registry, metrics: runtimeMetrics } = options;
    this.#objects = new ConfigurationObjects(options);
    this.#dryRuns = new WebhookDryRuns({ ...options, objects: this.#objects });
    this.#controller = new ConfigurationController({
      ...options,
      objects: this.#objects,
      records: this.#records,
      policies: this.#policies,
      written: (policyServer) => this.#requeueCovered(policyServer),
      failed: (policyServer) => this.#requeueUncovered(policyServer),
      metrics: registry === undefined ? undefined : new WebhookMetrics(registry, () => this.#figures()),
      runtimeMetrics,
    });
    this.ready = this.#controller.ready;
  }

  /** Runs until `signal` is aborted, then forgets all policies; may be started again. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.start(signal);
    } finally {
      this.#records.clear();
      this.#policies.clear();
      this.#waiting.clear();
    }
  }

  /** Sets the policies that exist. No configuration gets narrower until each of them is marked as reconciled. */
  expect(ids: Iterable<string>): void {
    this.#policies.expect(ids);
    if (this.#policies.isComplete) {
      this.#allReconciled();
    }
  }

  /** Marks a policy whose matches are known, or that has none. */
  markReconciled(id: string): void {
    if (this.#policies.markReconciled(id)) {
      this.#allReconciled();
    }
  }

  /** Updates webhooks after a change of targets: a renewed certificate, a new Service. */
  targetsChanged(): void {
    for (const server of this.#servers()) {
      this.#controller.enqueue(server);
    }
  }

  /** Whether webhooks cover `match`, or any match that the policy was to be enforced on last. */
  isCovered({ id, policyServer }: PolicyReference, match: PolicyMatch | undefined): boolean {
    return this.#matchesOf(id, match).some((one) => this.#objects.covers(policyServer, one));
  }

  /** The failurePolicy of the webhooks for which {@link isCovered} is true: what API servers do when they reach no replica. */
  failurePolicy({ id, policyServer }: PolicyReference, match: PolicyMatch | undefined): 'Fail' | 'Ignore' | undefined {
    const found = this.#matchesOf(id, match).flatMap((one) => this.#objects.failurePolicy(policyServer, one) ?? []);
    return found.includes('Fail') ? 'Fail' : found[0];
  }

  #matchesOf(id: string, match: PolicyMatch | undefined): readonly PolicyMatch[] {
    return [...(match === undefined ? [] : [match]), ...(this.#records.get(id)?.matches ?? [])];
  }

  /** Why the last write of a policy server's configurations failed; undefined when it succeeded. */
  failure(policyServer: string): Readiness | undefined {
    return this.#controller.failure(policyServer);
  }

  /**
   * Dry-runs the webhook of a revision that may serve soon, and covers its match in advance.
   * @throws WebhookRefusal, ApiError
   */
  async dryRun(
    policy: PolicyReference,
    match: PolicyMatch,
    spec: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#dryRuns.run(policy.id, policy.policyServer, match, spec, signal);
    this.#recordOf(policy).upcoming = match;
    if (!this.#objects.covers(policy.policyServer, match)) {
      this.#controller.scheduleWrite(policy.policyServer);
    }
  }

  /** Covers no match of a policy in advance any more. */
  clearUpcoming({ id, policyServer }: PolicyReference): void {
    const record = this.#records.get(id);
    const upcoming = record?.upcoming;
    if (record !== undefined && upcoming !== undefined) {
      record.upcoming = undefined;
      if (!record.matches.some((match) => isDeepStrictEqual(match, upcoming))) {
        this.#controller.scheduleWrite(policyServer);
      }
    }
  }

  /**
   * Makes webhooks cover these matches of a policy, and from the next write on no others of it. The last match is dry-run
   * first, unless the policy is in force and the match is covered already.
   * @param spec the spec of the last match
   * @throws WebhookRefusal; ApiError of the dry run
   */
  async enforce(
    policy: PolicyReference,
    matches: readonly PolicyMatch[],
    spec: AdmissionPolicySpec,
    isInForce: boolean,
    signal: AbortSignal,
  ): Promise<EnforceResult> {
    const { id, policyServer } = policy;
    const last = matches.at(-1);
    if (last !== undefined && !(isInForce && this.#objects.covers(policyServer, last))) {
      await this.#dryRuns.run(id, policyServer, last, spec, signal);
    }
    const record = this.#recordOf(policy);
    const isSame = isDeepStrictEqual(record.matches, matches);
    record.matches = matches;
    this.markReconciled(id);
    const isCovered = (): boolean => matches.every((match) => this.#objects.covers(policyServer, match));
    if (!isCovered()) {
      return await this.#awaitWrite(policy, signal, isCovered);
    }
    if (!isSame) {
      this.#controller.scheduleWrite(policyServer);
    }
    return 'enforced';
  }

  /**
   * Ends the enforcement of a policy. A webhook of its own must be gone before the policy's revisions are deleted, because no
   * replica could answer it then; the result says so. Its part of shared webhooks goes with the next write.
   * @throws ApiError
   */
  async remove(policy: PolicyReference, signal: AbortSignal): Promise<RemoveResult> {
    const { id } = policy;
    const record = this.#records.delete(id);
    this.#waiting.delete(id);
    this.#policies.markRemoved(id);
    this.markReconciled(id);
    const owners = (): readonly string[] =>
      [...this.#servers()].filter((server) => this.#objects.hasOwnWebhook(server, id));
    const [first] = owners();
    if (first !== undefined) {
      return await this.#awaitWrite({ ...policy, policyServer: first }, signal, () => owners().length === 0);
    }
    if (record !== undefined) {
      // Not `policy.policyServer`: the server of a deleted policy is known from its record only.
      this.#controller.scheduleWrite(record.policy.policyServer);
    }
    return 'removed';
  }

  #recordOf(policy: PolicyReference): EnforcementRecord {
    this.#policies.markEnforced(policy.id);
    return this.#records.of(policy);
  }

  /** Policy servers with policies or configurations. */
  #servers(): ReadonlySet<string> {
    return new Set([...this.#records.servers(), ...this.#objects.servers()]);
  }

  #allReconciled(): void {
    this.#policies.dropProgress();
    for (const server of this.#servers()) {
      this.#controller.enqueue(server);
    }
  }

  async #awaitWrite(
    policy: PolicyReference,
    signal: AbortSignal,
    isDone: () => boolean,
  ): Promise<'updated' | 'deferred'> {
    const { id, policyServer } = policy;
    this.#waiting.set(id, policy);
    const isAtOnce =
      this.#controller.scheduleWrite(policyServer) === 0 && this.#controller.targetOf(policyServer) !== undefined;
    for (let pass = 0; isAtOnce && pass < MAX_PASSES; pass += 1) {
      this.#controller.enqueue(policyServer);
      await Promise.race([this.#controller.nextPass(policyServer), aborted(signal)]);
      signal.throwIfAborted();
      if (isDone()) {
        this.#waiting.delete(id);
        return 'updated';
      }
      if (this.failure(policyServer) !== undefined) {
        break;
      }
    }
    return 'deferred';
  }

  /** Reconciles waiting policies that are covered now. */
  #requeueCovered(policyServer: string): void {
    for (const [id, policy] of this.#waiting) {
      const { matches = [] } = this.#records.get(id) ?? {};
      if (policy.policyServer === policyServer && matches.every((match) => this.#objects.covers(policyServer, match))) {
        this.#waiting.delete(id);
        this.#options.requeue(policy);
      }
    }
  }

  /** Reconciles policies that are not covered, so that their statuses show the failure. */
  #requeueUncovered(policyServer: string): void {
    for (const { policy, matches } of this.#records.ofServer(policyServer)) {
      if (!matches.every((match) => this.#objects.covers(policyServer, match))) {
        this.#waiting.set(policy.id, policy);
        this.#options.requeue(policy);
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
