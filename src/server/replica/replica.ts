// A policy server as a replica of a PolicyServer: its policies are the PolicyRevisions of a cluster, and it tells how far it
// got with them. Assembly only; each part is in a file of its own.
import { DEFAULT_MAX_MODULE_BYTES, isDigest, ModuleCache } from '../../modules/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { PoliciesView } from '../operations-endpoint.ts';
import { type PolicyHost, type PolicySource, settledWithin } from '../policy-source.ts';
import type { PolicyPhase, PolicyStatus } from '../policy-status.ts';
import { ReplicaControl } from './replica-control.ts';
import type { ReplicaOptions } from './replica-options.ts';
import type { PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import { RevisionFeed } from './revision-feed.ts';
import { RevisionPrevalidator } from './revision-prevalidator.ts';
import { RevisionReader } from './revision-reader.ts';
import { RevisionRegistry } from './revision-registry.ts';

/** A source of policies that is a cluster. */
export class Replica implements PolicySource {
  readonly #options: ReplicaOptions;
  readonly #host: PolicyHost;
  readonly #registry: RevisionRegistry;
  readonly #feed: RevisionFeed;
  readonly #prevalidator: RevisionPrevalidator;
  readonly #control: ReplicaControl;
  readonly #stopping = new AbortController();
  readonly #isDown = Promise.withResolvers<void>();
  #following: Promise<void> | undefined;
  /** Policies that served before; undefined before the start. */
  #restored: number | undefined;
  #loadedAt: string | null = null;
  #isLoaded = false;

  /** @param cacheDir folder of the module cache */
  constructor(options: ReplicaOptions, cacheDir: string, host: PolicyHost) {
    const { cluster, namespace, policyServer, modulesUrl } = options;
    const { loader, log } = host;
    this.#options = options;
    this.#host = host;
    const reader = new RevisionReader(
      (text, name) => loader.parse(text, name),
      modulesUrl === undefined ? {} : { modulesUrl },
    );
    this.#prevalidator = new RevisionPrevalidator({
      read: (policies) => reader.read(policies),
      load: (requests, done) => loader.load(requests, done),
      heldChanged: () => this.#keep(),
    });
    this.#registry = new RevisionRegistry(
      {
        read: (policies) => reader.read(policies),
        load: (requests, done) => loader.load(requests, done),
        publish: (change, staged) => host.publish(change, staged),
        phaseChanged: (id, change) => host.phaseChanged(id, change),
        changeEnded: (result) => host.changeEnded(result),
        servingChanged: () => {
          this.#keep();
          host.record.changed(() => this.#registry.lastGood());
        },
        flipTook: (ms) => host.reloadTook(ms),
      },
      host.record.read(),
    );
    this.#feed = new RevisionFeed({
      cluster,
      namespace,
      policyServer,
      changed: (changes, isFirst) => {
        this.#loadedAt = new Date().toISOString();
        this.#registry.want(changes, isFirst);
        if (isFirst) {
          log.info({ policies: changes.size, policyServer }, 'policy revisions read');
          void this.settledInTime().then(() => (this.#isLoaded = true));
        }
      },
      failed: () => this.#isDown.resolve(),
      log,
    });
    const cache = new ModuleCache(cacheDir, DEFAULT_MAX_MODULE_BYTES);
    this.#control = new ReplicaControl({
      replica: options,
      view: this.#registry.view,
      prevalidate: (request, signal) => this.prevalidate(request, signal),
      readModule: async (digest) => (isDigest(digest) ? await cache.read(digest) : undefined),
      peersChanged: (addresses) => loader.peers(addresses),
      log,
    });
  }

  async start(): Promise<void> {
    this.#restored = this.#registry.restore();
    // Before the revisions are read, so that peers are known when their modules are fetched.
    await this.#control.start();
    if (this.#stopping.signal.aborted) {
      await this.#control.stop();
      return;
    }
    this.#following = this.#feed.start(this.#stopping.signal);
    const restored = this.#restored;
    const known =
      restored === 0
        ? this.#registry.settled()
        : // With the cluster down, what served before is all that can be waited for.
          Promise.race([this.#registry.settled(), this.#isDown.promise.then(() => this.#registry.restored())]);
    await settledWithin(known, this.#host.readyWaitMs);
    this.#isLoaded ||= this.#feed.isSynced || restored > 0;
  }

  async check(): Promise<void> {
    // The cluster tells at once what changes.
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

  view(): PoliciesView {
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

  status(id: string): PolicyStatus | undefined {
    return this.#registry.status(id);
  }

  phases(): Iterable<readonly [id: string, phase: PolicyPhase]> {
    return this.#registry.phases();
  }

  modules(): CompiledPolicyModule[] {
    const modules = [...this.#registry.modules(), ...this.#prevalidator.held()];
    return [...new Map(modules.map((module) => [module.digest, module])).values()];
  }

  activationFailed(id: string, message: string): void {
    this.#registry.activationFailed(id, message);
  }

  async stop(): Promise<void> {
    await this.#control.stop();
    this.#stopping.abort(new Error('the policy server is stopping'));
    this.#registry.stop();
    this.#prevalidator.stop();
    await this.#following;
  }

  async close(): Promise<void> {
    // Before the start nothing is known of what served, and the record stays as it is.
    if (this.#restored !== undefined) {
      await this.#host.record.flush(this.#registry.lastGood());
    }
  }

  /** Tells the loader and the cache which modules are still needed. */
  #keep(): void {
    this.#host.loader.keep(this.modules().map(({ digest }) => digest));
  }
}
