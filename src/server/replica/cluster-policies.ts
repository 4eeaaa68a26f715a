// A policy server as a replica of a PolicyServer: serves the PolicyRevisions of a cluster, and reports its progress.
// Assembly only.
import { isNamespacedPolicyId, namespaceOfPolicyId } from '../../resources/index.ts';
import { isDigest, ModuleCache, type PeerAddresses } from '../../modules/index.ts';
import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import type { MonitoredVerdict, ObjectReference } from '../../engine/index.ts';
import { CLUSTER_OWNER } from '../../evaluation/index.ts';
import type { CompiledPolicyModule, FindResult, PeerAccess, WatchedChange } from '../../evaluation/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import { ExceptionFeed, isOutage, NamespaceRecord, ObjectFeeds } from '../../evaluation/object-feeds/index.ts';
import type { PoliciesAnswer } from '../status/operations-routes.ts';
import { type LoadedRevision, type RegistryEntry, servingOf } from '../policies/registry-entry.ts';
import { PolicyRegistry } from '../policies/policy-registry.ts';
import { type BucketKnowledge, type PolicyHost, type PolicySource, settledWithin } from '../policies/policy-source.ts';
import type { ServedPolicyPhase, ServedPolicyStatus } from '../status/served-policy-status.ts';
import { withoutRevision, type PinnedPolicy } from '../policies/serving-record.ts';
import { LastValidRecord } from './last-valid-record.ts';
import { ExistingParameters } from './existing-parameters.ts';
import { ParameterChecks } from './parameter-checks.ts';
import { ParameterWaits } from './parameter-waits.ts';
import { ReadableKinds } from './readable-kinds.ts';
import { ReplicaControl } from './replica-control.ts';
import type { ClusterPoliciesOptions } from './cluster-policies-options.ts';
import { changedNeeds, changedUids } from './changed-needs.ts';
import { CONTROL_NAME, type PrevalidationRequest, type PrevalidationResult } from '../../control/index.ts';
import { RevisionFeed } from './revision-feed.ts';
import { RevisionPrevalidator } from './revision-prevalidator.ts';
import { RevisionReader } from './revision-reader.ts';
import { ExceptionUses } from '../monitoring/exception-uses.ts';
import { RevisionReports } from './revision-reports.ts';

/**
 * A cluster that has not been read counts as unavailable this long after the first failed request; a single failure may
 * be a busy API server. Milliseconds.
 */
const DOWN_AFTER_MS = 2_000;

/** A cluster as the source of policies. */
export class ClusterPolicies implements PolicySource {
  readonly #options: ClusterPoliciesOptions;
  readonly #host: PolicyHost;
  readonly #registry: PolicyRegistry;
  readonly #reports: RevisionReports;
  readonly #uses: ExceptionUses;
  readonly #feed: RevisionFeed;
  readonly #objects: ObjectFeeds;
  readonly #exceptions: ExceptionFeed;
  readonly #checks: ParameterChecks;
  readonly #waits: ParameterWaits;
  readonly #lastValid: LastValidRecord;
  readonly #prevalidator: RevisionPrevalidator;
  readonly #control: ReplicaControl;
  readonly #stopping = new AbortController();
  readonly #isDown = Promise.withResolvers<void>();
  #downTimer: NodeJS.Timeout | undefined;
  #following: Promise<unknown> | undefined;
  /** Number of recorded policies; undefined before the start. */
  #restored: number | undefined;
  #loadedAt: string | null = null;
  #isLoaded = false;

  /** @param cacheDir folder of the module cache */
  constructor(options: ClusterPoliciesOptions, cacheDir: string, host: PolicyHost) {
    const { cluster, namespace, policyServer, modulesUrl, namespacedPoliciesCapabilities } = options;
    const { policyCluster = cluster } = options;
    const { loader, log } = host;
    const memory = host.accountMemory((id) => namespaceOfPolicyId(id) ?? CLUSTER_OWNER);
    this.#options = options;
    this.#host = host;
    const reader = new RevisionReader((entries) => loader.read(entries), {
      ...(modulesUrl === undefined ? {} : { modulesUrl }),
      ...(namespacedPoliciesCapabilities === undefined ? {} : { namespacedPoliciesCapabilities }),
    });
    this.#prevalidator = new RevisionPrevalidator({
      read: (policies) => reader.read(policies),
      load: (requests, done) => loader.load(requests, done),
      memory,
      kinds: new ReadableKinds(policyCluster),
      parameters: new ExistingParameters(policyCluster, cluster),
      serving: (id) => this.#registry.serving(id),
      modulesChanged: () => this.#keep(),
    });
    const reports = new RevisionReports(
      () => this.#registry.entries(),
      options.monitoredReportMs,
      () => this.#isLoaded,
    );
    this.#reports = reports;
    this.#uses = new ExceptionUses(
      options.monitoredReportMs === undefined ? {} : { reportMs: options.monitoredReportMs },
    );
    this.#registry = new PolicyRegistry(
      {
        read: (policies) => reader.read(policies),
        load: (requests, done) => loader.load(requests, done),
        memory,
        publish: (change, staged) => host.publish(change, staged),
        phaseChanged: (id, change) => host.phaseChanged(id, change),
        changeEnded: (result) => host.changeEnded(result),
        servingChanged: () => {
          this.#keep();
          this.#checks.schedule();
          host.record.changed(() => this.#registry.lastGood());
        },
        swapTook: (ms) => host.reloadTook(ms),
        isForTenant: isNamespacedPolicyId,
        namespaceOf: namespaceOfPolicyId,
        changed: (entries, removed, isSynced) => reports.update(entries, removed, isSynced),
      },
      recorded(host, namespacedPoliciesCapabilities ?? []),
    );
    this.#lastValid = new LastValidRecord(host.dataDir, ({ level, fields, message }) => log[level](fields, message));
    this.#checks = new ParameterChecks({
      serving: () => servingRevisions(this.#registry.entries()),
      load: (requests, done) => loader.load(requests, done),
      checked: (revision, refused) => reports.parametersTried(revision, refused),
      record: this.#lastValid,
    });
    this.#waits = new ParameterWaits({
      objects: () => this.#checks.objects(),
      changed: (waiting) => reports.revisionsWaiting(waiting),
    });
    const publish = (change: WatchedChange): void => {
      host.publishWatched(this.#checks.apply(change));
      this.#waits.apply(change);
    };
    this.#objects = new ObjectFeeds({
      cluster,
      policyCluster,
      publish,
      record: new NamespaceRecord(host.dataDir, ({ level, fields, message }) => log[level](fields, message)),
      log,
    });
    this.#exceptions = new ExceptionFeed({ cluster, publish: (change) => host.publishWatched(change), log });
    this.#feed = new RevisionFeed({
      cluster,
      namespace,
      policyServer,
      changed: (changes, isFirst) => {
        this.#loadedAt = new Date().toISOString();
        this.#objects.want(changedNeeds(changes), isFirst);
        this.#exceptions.want(changedUids(changes), isFirst);
        this.#waits.want(changes, isFirst);
        this.#registry.apply(changes, isFirst);
        if (isFirst) {
          clearTimeout(this.#downTimer);
          log.info({ policies: changes.size, policyServer }, 'policy revisions read');
          void this.settledInTime().then(() => this.#setLoaded());
        }
      },
      refused: (refused) => reports.revisionsMismatched(refused),
      failed: (error) => {
        this.#objects.failed(error);
        if (isOutage(error)) {
          this.#downTimer ??= setTimeout(() => this.#isDown.resolve(), DOWN_AFTER_MS).unref();
        }
      },
      log,
    });
    const cache = new ModuleCache(cacheDir, { maxModuleBytes: LARGEST_MODULE_BYTES });
    this.#control = new ReplicaControl({
      replica: options,
      state: reports,
      uses: this.#uses,
      prevalidate: (request, signal) => this.prevalidate(request, signal),
      readModule: async (digest) => (isDigest(digest) ? await cache.read(digest) : undefined),
      peersChanged: (addresses, hasNewModules) => this.#peersChanged(addresses, hasNewModules),
      log,
    });
  }

  /** Access to the control ports of other replicas, with the certificate of this one. */
  get peerAccess(): PeerAccess {
    const { certFile, keyFile, caFile } = this.#options.control.tls;
    return { certFile, keyFile, caFile, serverName: CONTROL_NAME };
  }

  async start(): Promise<void> {
    this.#restored = this.#registry.restore();
    // Before revisions are read, so that their modules can be fetched from peers.
    await this.#control.start();
    if (this.#stopping.signal.aborted) {
      await this.#control.stop();
      return;
    }
    const { signal } = this.#stopping;
    this.#following = Promise.all([this.#exceptions.start(signal), this.#feed.start(signal)]);
    const { readyWaitMs } = this.#host;
    const known = this.#registry.settled();
    if (this.#restored === 0) {
      await settledWithin(known, readyWaitMs);
    } else {
      // With the cluster unavailable, only recorded policies can be waited for. Not at once while it is merely slow: there
      // may be new policies that are not in the record, and whose webhooks API servers already call.
      const restored = this.#isDown.promise.then(async () => {
        await settledWithin(this.#registry.restored(), readyWaitMs);
        this.#setLoaded();
      });
      await settledWithin(Promise.race([known, restored]), readyWaitMs);
    }
    // A cluster that neither answers nor fails is of no more use than one that is down.
    if (this.#feed.isSynced || this.#restored > 0) {
      this.#setLoaded();
    }
  }

  #setLoaded(): void {
    if (!this.#isLoaded) {
      this.#isLoaded = true;
      this.#reports.readyChanged();
    }
  }

  async check(): Promise<void> {
    // The watch reports changes immediately.
  }

  /** See PolicyServer.prevalidate. */
  prevalidate(request: PrevalidationRequest, signal?: AbortSignal): Promise<PrevalidationResult> {
    return this.#prevalidator.prevalidate(request, signal);
  }

  retryNow(): void {
    this.#registry.retryNow();
  }

  settledInTime(): Promise<void> {
    return settledWithin(this.#registry.settled(), this.#host.readyWaitMs);
  }

  notReady(): string | undefined {
    if (this.#isLoaded) {
      return undefined;
    }
    return this.#feed.isSynced ? 'policies are being loaded' : 'the policy revisions of the cluster are not known yet';
  }

  isLoading(id: string): boolean {
    return !this.#feed.isSynced || this.#registry.has(id);
  }

  /** With the cluster unavailable, buckets contain the recorded policies: policies created meanwhile are unknown. */
  buckets(): BucketKnowledge {
    return this.#feed.isSynced || this.#isLoaded ? 'known' : 'unknown';
  }

  /** Evaluation looks up namespaces and parameters. */
  find(object: ObjectReference): Promise<FindResult> {
    return this.#objects.find(object);
  }

  policiesAnswer(): PoliciesAnswer {
    const { namespace, policyServer } = this.#options;
    return {
      source: {
        path: `policyrevisions of PolicyServer ${policyServer} in namespace ${namespace}`,
        loadedAt: this.#loadedAt,
        error: this.#feed.error ?? null,
      },
      policies: this.#registry.statuses(),
    };
  }

  status(id: string): ServedPolicyStatus | undefined {
    return this.#registry.status(id);
  }

  phases(): Iterable<readonly [id: string, phase: ServedPolicyPhase]> {
    return this.#registry.phases();
  }

  modules(): CompiledPolicyModule[] {
    const modules = [...this.#registry.modules(), ...this.#prevalidator.modules()];
    return [...new Map(modules.map((module) => [module.digest, module])).values()];
  }

  activationFailed(id: string, message: string): void {
    this.#registry.activationFailed(id, message);
  }

  monitored(verdict: MonitoredVerdict): void {
    this.#reports.record(verdict);
  }

  excepted(uids: readonly string[]): void {
    this.#uses.record(uids);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#downTimer);
    // Before the streams end.
    this.#reports.flush();
    this.#uses.flush();
    await this.#control.stop();
    this.#stopping.abort(new Error('the policy server is stopping'));
    const kept = this.#objects.stop();
    this.#checks.stop();
    this.#waits.stop();
    this.#registry.stop();
    this.#prevalidator.stop();
    await Promise.all([this.#following, kept, this.#lastValid.flush()]);
  }

  async close(): Promise<void> {
    // Before the start, the record stays unchanged.
    if (this.#restored !== undefined) {
      await this.#host.record.flush(this.#registry.lastGood());
    }
  }

  /** A peer may have now what could not be fetched. */
  #peersChanged(addresses: PeerAddresses, hasNewModules: boolean): void {
    this.#host.loader.peers(addresses);
    if (hasNewModules) {
      this.#registry.retryNow();
    }
  }

  /** Reports which modules are still in use to the loader and the cache. */
  #keep(): void {
    this.#host.loader.keep(this.modules().map(({ digest }) => digest));
  }
}

function* servingRevisions(
  entries: Iterable<RegistryEntry>,
): Generator<readonly [id: string, revision: LoadedRevision]> {
  for (const entry of entries) {
    const serves = servingOf(entry);
    if (serves !== undefined) {
      yield [entry.id, serves];
    }
  }
}

/** Recorded policies, without those whose host capabilities are no longer allowed. */
function recorded(
  { record }: PolicyHost,
  namespacedPoliciesCapabilities: readonly string[],
): Map<string, PinnedPolicy> {
  const allowed = JSON.stringify(namespacedPoliciesCapabilities);
  const isAllowed = (id: string, { definition }: PinnedPolicy): boolean =>
    !isNamespacedPolicyId(id) ||
    moduleUses(definition).every(({ hostCapabilities }) => JSON.stringify(hostCapabilities) === allowed);
  return new Map(
    [...record.read('cluster')].map(([id, pinned]) => [id, isAllowed(id, pinned) ? pinned : withoutRevision(pinned)]),
  );
}
