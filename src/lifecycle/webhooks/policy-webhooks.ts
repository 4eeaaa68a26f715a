// The interface between policy reconcilers and webhook configurations.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Cluster } from '../../cluster/index.ts';
import { type AdmissionPolicySpec, isOwnBucket, type PolicyMatch } from '../../resources/index.ts';
import type { ObjectCache, Runnable, RuntimeMetrics } from '../../runtime/index.ts';
import { ABSENT, COVERED, PENDING, type WebhookState } from '../rollout/webhook-state.ts';
import {
  type EnforcementRecord,
  EnforcementRecords,
  type PolicyReference,
  type ToldPolicy,
} from './enforcement-records.ts';
import { ConfigurationController } from './configuration-controller.ts';
import { ConfigurationObjects } from './configuration-objects.ts';
import type { ExemptionSettings } from './exemptions.ts';
import { ReconciledPolicies } from './reconciled-policies.ts';
import { WebhookMetrics } from './webhook-metrics.ts';
import type { WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WebhookDryRuns } from './webhook-dry-runs.ts';
import type { WritePace } from './write-pace.ts';

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
  /** Called when the webhook of a policy is not what its last reconciliation was told: it should be reconciled again. */
  readonly requeue: (policy: PolicyReference) => void;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
  readonly registry?: Registry | undefined;
}

/**
 * Keeps webhook configurations as policies need them. A reconciliation says what its policy needs, is told what the webhook is
 * by the configurations as they were read back, and ends: nobody waits for a write. After each pass of the writer, policies are
 * reconciled again whose webhook is not what they were told.
 *
 * It remembers three things until leadership ends; the next leader gets them from the first reconciliation of each policy:
 *
 * - the matches that each policy needs. They depend on what replicas report, which is stored nowhere else, and one
 *   configuration is computed from all policies of a server;
 * - which policies were reconciled. A new leader narrows no configuration until all were;
 * - what each policy was told.
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
      ended: (policyServer) => this.#wake(policyServer),
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

  /** The webhook of a policy for `match`, or any match that the policy was to be enforced on last. */
  stateOf({ id, policyServer }: PolicyReference, match: PolicyMatch | undefined): WebhookState {
    const { matches = [] } = this.#records.get(id) ?? {};
    const known = match === undefined ? matches : [match, ...matches];
    const found = known.flatMap((one) => this.#objects.failurePolicy(policyServer, one) ?? []);
    if (found.length > 0) {
      return coveredBy(found);
    }
    return matches.length === 0 ? ABSENT : this.#uncovered(policyServer);
  }

  /**
   * Dry-runs the webhook of a revision that may serve soon, and covers its match in advance.
   * @throws ApiError
   */
  async dryRun(
    policy: PolicyReference,
    match: PolicyMatch,
    spec: AdmissionPolicySpec,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#dryRuns.run(policy.id, policy.policyServer, match, spec, signal);
    this.#records.of(policy).upcoming = match;
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
   * @returns Absent without matches; Covered once webhooks cover all of them
   * @throws ApiError of the dry run
   */
  async enforce(
    policy: PolicyReference,
    matches: readonly PolicyMatch[],
    spec: AdmissionPolicySpec,
    isInForce: boolean,
    signal: AbortSignal,
  ): Promise<WebhookState> {
    const { id, policyServer } = policy;
    const last = matches.at(-1);
    if (last !== undefined && !(isInForce && this.#objects.covers(policyServer, last))) {
      await this.#dryRuns.run(id, policyServer, last, spec, signal);
    }
    const record = this.#records.of(policy);
    const isSame = isDeepStrictEqual(record.matches, matches);
    record.matches = matches;
    record.told = this.#wanted(record);
    this.markReconciled(id);
    if (!isSame || (matches.length > 0 && record.told.state !== 'Covered')) {
      this.#controller.scheduleWrite(policyServer);
    }
    return record.told;
  }

  /**
   * Ends the enforcement of a policy. A webhook of its own must be gone before the policy's revisions are deleted, because no
   * replica could answer it then: until it is, the result is not Absent. Its part of shared webhooks goes with the next write.
   */
  remove(policy: PolicyReference): WebhookState {
    const { id } = policy;
    const record = this.#records.delete(id);
    if (record?.matches.some(({ bucket }) => isOwnBucket(bucket)) === true || this.#owners(id).length > 0) {
      this.#records.removed.set(id, { policy, told: undefined });
    }
    this.markReconciled(id);
    // Not `policy.policyServer`: the server of a deleted policy is known from its record or its webhook only.
    const servers = [...this.#owners(id), ...(record === undefined ? [] : [record.policy.policyServer])];
    for (const server of new Set(servers)) {
      this.#controller.scheduleWrite(server);
    }
    const told = this.#left(id);
    if (told.state === 'Absent') {
      this.#records.removed.delete(id);
    } else {
      this.#records.removed.set(id, { policy, told });
    }
    return told;
  }

  /** The webhook that a policy wants. */
  #wanted({ policy: { policyServer }, matches }: EnforcementRecord): WebhookState {
    if (matches.length === 0) {
      return ABSENT;
    }
    const found = matches.map((match) => this.#objects.failurePolicy(policyServer, match));
    return found.includes(undefined) ? this.#uncovered(policyServer) : coveredBy(found);
  }

  /** What is left of the webhook of a policy that is removed. */
  #left(id: string): WebhookState {
    const [owner] = this.#owners(id);
    return owner === undefined ? ABSENT : this.#uncovered(owner);
  }

  #uncovered(policyServer: string): WebhookState {
    return this.#controller.failure(policyServer) ?? PENDING;
  }

  /** The policy servers with a webhook for this policy alone; of a policy that is removed, also those that may be about to get one. */
  #owners(id: string): readonly string[] {
    const isRemoved = this.#records.removed.has(id);
    return [...this.#servers()].filter(
      (server) => this.#objects.hasOwnWebhook(server, id) || (isRemoved && this.#controller.isWriting(server)),
    );
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

  /** Reconciles the policies of a server whose webhook is not what they were told. */
  #wake(policyServer: string): void {
    for (const record of this.#records.ofServer(policyServer)) {
      if (record.told !== undefined) {
        this.#tell(record, this.#wanted(record));
      }
    }
    for (const [id, removed] of this.#records.removed) {
      this.#tell(removed, this.#left(id));
    }
  }

  #tell(policy: ToldPolicy, state: WebhookState): void {
    if (!isDeepStrictEqual(policy.told, state)) {
      policy.told = state;
      this.#options.requeue(policy.policy);
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

function coveredBy(failurePolicies: readonly ('Fail' | 'Ignore' | undefined)[]): WebhookState {
  return COVERED[failurePolicies.includes('Fail') ? 'Fail' : 'Ignore'];
}
