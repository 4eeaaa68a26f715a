// The PolicyRevisions of one PolicyServer, as they are in the cluster now, policy by policy.
import type { Cluster } from '../../cluster/index.ts';
import { POLICY_REVISIONS, POLICY_SERVER_LABEL } from '../../resources/index.ts';
import type { PolicyRevision } from '../../resources/index.ts';
import { type Change, ObjectCache } from '../../runtime/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { WantedChanges, WantedPolicy } from '../policies/wanted-policy.ts';
import { keptOf, wantedOf } from './revision-wanted.ts';

export interface RevisionFeedOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  /** The namespace of PolicyRevisions, which is the product's. */
  readonly namespace: string;
  readonly policyServer: string;
  /** Told what changed within one turn of the event loop; at first of all policies that there are, which may be none. */
  readonly changed: (changes: WantedChanges, isFirst: boolean) => void;
  /** Told whenever the cluster cannot be followed; it is tried again. */
  readonly failed: (error: unknown) => void;
  readonly log: Logger;
}

/** Follows the revisions that a replica is to have. */
export class RevisionFeed {
  readonly #options: RevisionFeedOptions;
  readonly #cache: ObjectCache<PolicyRevision>;
  /** By the policy's id, then by name. */
  readonly #policies = new Map<string, Map<string, PolicyRevision>>();
  readonly #changed = new Set<string>();
  #isTold = false;
  #telling: NodeJS.Immediate | undefined;

  constructor(options: RevisionFeedOptions) {
    const { cluster, namespace, policyServer, log } = options;
    this.#options = options;
    this.#cache = new ObjectCache<PolicyRevision>({
      cluster,
      type: POLICY_REVISIONS,
      namespace,
      labelSelector: `${POLICY_SERVER_LABEL}=${policyServer}`,
      transform: keptOf,
      onError: (error) => options.failed(error),
      log,
    });
    this.#cache.subscribe((change) => this.#receive(change));
  }

  /** Whether the cluster has been read. */
  get isSynced(): boolean {
    return this.#isTold;
  }

  /** Why the cluster cannot be followed now, if so. */
  get error(): string | undefined {
    const { lastError } = this.#cache.report;
    return lastError === undefined ? undefined : errorText(lastError);
  }

  /** Follows the cluster until the signal is aborted, whatever happens. Once only. */
  async start(signal: AbortSignal): Promise<void> {
    this.#cache.synced.then(
      () => this.#tell(),
      () => undefined,
    );
    await this.#cache.start(signal);
    clearImmediate(this.#telling);
  }

  #receive({ before, after }: Change<PolicyRevision>): void {
    if (before !== undefined) {
      this.#forget(before);
    }
    if (after !== undefined && this.#isOurs(after)) {
      const { policyId } = after.spec;
      const ofPolicy = this.#policies.get(policyId) ?? new Map<string, PolicyRevision>();
      this.#policies.set(policyId, ofPolicy.set(after.metadata.name ?? '', after));
      this.#changed.add(policyId);
    }
    if (this.#isTold && this.#changed.size > 0) {
      this.#telling ??= setImmediate(() => this.#tell());
    }
  }

  #isOurs({ spec }: PolicyRevision): boolean {
    return (
      spec.policyServer === this.#options.policyServer &&
      typeof spec.policyId === 'string' &&
      Number.isSafeInteger(spec.revision)
    );
  }

  #forget({ metadata, spec }: PolicyRevision): void {
    const ofPolicy = this.#policies.get(spec.policyId);
    if (ofPolicy?.delete(metadata.name ?? '') === true) {
      this.#changed.add(spec.policyId);
      if (ofPolicy.size === 0) {
        this.#policies.delete(spec.policyId);
      }
    }
  }

  #tell(): void {
    clearImmediate(this.#telling);
    this.#telling = undefined;
    const changes = new Map<string, WantedPolicy | undefined>();
    for (const id of this.#changed) {
      const revisions = this.#policies.get(id);
      changes.set(id, revisions === undefined ? undefined : wantedOf(revisions.values(), this.#options.namespace));
    }
    this.#changed.clear();
    const isFirst = !this.#isTold;
    this.#isTold = true;
    this.#options.changed(changes, isFirst);
  }
}
