// The current PolicyRevisions of one PolicyServer, by policy.
import type { Cluster } from '../../cluster/index.ts';
import { POLICY_REVISIONS, POLICY_SERVER_LABEL } from '../../resources/index.ts';
import type { PolicyRevision } from '../../resources/index.ts';
import { type Change, ObjectCache } from '../../runtime/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
import type { WantedChanges, WantedPolicy } from '../policies/wanted-policy.ts';
import type { Deviation } from './replica-state.ts';
import { type KeptRevision, trimRevision, wantedOf } from './revision-wanted.ts';

export interface RevisionFeedOptions {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  /** The namespace of PolicyRevisions, which is the product's. */
  readonly namespace: string;
  readonly policyServer: string;
  /** Called with the changes of one turn of the event loop; first with all policies, possibly none. */
  readonly changed: (changes: WantedChanges, isFirst: boolean) => void;
  /** Called when other revisions than before are not served, because they are not what their names say. */
  readonly refused: (refused: readonly Deviation[]) => void;
  /** Called whenever the cluster cannot be watched; the watch is retried. */
  readonly failed: (error: unknown) => void;
  readonly log: Logger;
}

/** Watches the revisions of a replica. */
export class RevisionFeed {
  readonly #options: RevisionFeedOptions;
  readonly #cache: ObjectCache<KeptRevision>;
  /** By policy id, then by name. */
  readonly #policies = new Map<string, Map<string, PolicyRevision>>();
  readonly #changed = new Set<string>();
  /** By name. */
  readonly #refused = new Map<string, Deviation>();
  #hasOtherRefused = false;
  #isSynced = false;
  #publishing: NodeJS.Immediate | undefined;

  constructor(options: RevisionFeedOptions) {
    const { cluster, namespace, policyServer, log } = options;
    this.#options = options;
    this.#cache = new ObjectCache<KeptRevision>({
      cluster,
      type: POLICY_REVISIONS,
      namespace,
      labelSelector: `${POLICY_SERVER_LABEL}=${policyServer}`,
      transform: trimRevision,
      onError: (error) => options.failed(error),
      log,
    });
    this.#cache.subscribe((change) => this.#receive(change));
  }

  /** Whether the cluster has been read. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The error of the watch, if any. */
  get error(): string | undefined {
    const { lastError } = this.#cache.report;
    return lastError === undefined ? undefined : errorText(lastError);
  }

  /** Watches the cluster until the signal is aborted. Call it once. */
  async start(signal: AbortSignal): Promise<void> {
    this.#cache.synced.then(
      () => this.#publish(),
      () => undefined,
    );
    await this.#cache.start(signal);
    clearImmediate(this.#publishing);
  }

  #receive({ before, after }: Change<KeptRevision>): void {
    if (before !== undefined) {
      this.#remove(before);
    }
    if (after?.mismatch !== undefined) {
      this.#refuse(after, after.mismatch);
    } else if (after !== undefined) {
      const { policyId } = after.spec;
      const ofPolicy = this.#policies.get(policyId) ?? new Map<string, PolicyRevision>();
      this.#policies.set(policyId, ofPolicy.set(after.metadata.name ?? '', after));
      this.#changed.add(policyId);
    }
    if (this.#isSynced && (this.#changed.size > 0 || this.#hasOtherRefused)) {
      this.#publishing ??= setImmediate(() => this.#publish());
    }
  }

  #refuse({ metadata, spec }: KeptRevision, mismatch: string): void {
    const { name = '' } = metadata;
    const message = `PolicyRevision ${name} is not served: ${mismatch}. Only the controller writes revisions`;
    const of = { policy: spec.policyId, revision: Math.max(1, spec.revision) };
    this.#refused.set(name, { ...of, state: 'Failed', reason: 'RevisionMismatch', message });
    this.#hasOtherRefused = true;
    this.#options.log.warn({ revision: name, policy: spec.policyId, error: mismatch }, 'revision refused');
  }

  #remove({ metadata, spec }: KeptRevision): void {
    this.#hasOtherRefused = this.#refused.delete(metadata.name ?? '') || this.#hasOtherRefused;
    const ofPolicy = this.#policies.get(spec.policyId);
    if (ofPolicy?.delete(metadata.name ?? '') === true) {
      this.#changed.add(spec.policyId);
      if (ofPolicy.size === 0) {
        this.#policies.delete(spec.policyId);
      }
    }
  }

  #publish(): void {
    clearImmediate(this.#publishing);
    this.#publishing = undefined;
    const changes = new Map<string, WantedPolicy | undefined>();
    for (const id of this.#changed) {
      const revisions = this.#policies.get(id);
      changes.set(id, revisions === undefined ? undefined : wantedOf(revisions.values(), this.#options.namespace));
    }
    this.#changed.clear();
    const isFirst = !this.#isSynced;
    this.#isSynced = true;
    if (this.#hasOtherRefused) {
      this.#hasOtherRefused = false;
      this.#options.refused([...this.#refused.values()]);
    }
    if (isFirst || changes.size > 0) {
      this.#options.changed(changes, isFirst);
    }
  }
}
