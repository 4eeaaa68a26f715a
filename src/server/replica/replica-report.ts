// A replica's report to its cluster: one PolicyServerReplica, whatever the number of policies.
import { isDeepStrictEqual } from 'node:util';
import { Backoff, unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { apiVersionOf, POLICY_SERVER_LABEL, POLICY_SERVER_REPLICAS, timeText } from '../../resources/index.ts';
import type { OwnerReference, PolicyServerReplica } from '../../resources/index.ts';
import { pause, SYSTEM_CLOCK } from '../../runtime/index.ts';
import type { Change, CachedObjects, Runnable } from '../../runtime/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText, inertTexts } from '../../values/index.ts';
import { isStale, LEASE_RENEW_MS, ReplicaLease, unlessStale } from './replica-lease.ts';
import { replicaStatus } from './replica-status.ts';
import type { ReplicaStatus } from './replica-status.ts';
import type { ReplicaState } from './replica-state.ts';

/** Minimum time between two reports; changes in between are combined. Milliseconds. */
const REPORT_INTERVAL_MS = 2_000;
/** Delay before the next comparison when nothing had changed. Milliseconds. */
const LOOK_INTERVAL_MS = 100;
/** Timeout of one request. Milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
/**
 * How long a stopping replica tries to remove its report; otherwise garbage collection by its owner removes it.
 * Milliseconds.
 */
const REMOVAL_TIMEOUT_MS = 2_000;

export interface ReplicaReporterOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly policyServer: string;
  /** `metadata.name` of the PolicyServerReplica, and of the Lease of a replica outside of a pod. */
  readonly name: string;
  readonly pod?: { readonly name: string; readonly uid: string; readonly nodeName?: string };
  /** `host:port` of the control port for others. */
  readonly controlAddress: string;
  /** Version of the product. */
  readonly version: string;
  readonly state: ReplicaState;
  /** PolicyServerReplicas, including its own, which other clients may change or delete. */
  readonly replicas: Pick<CachedObjects<PolicyServerReplica>, 'subscribe'>;
  /** Default: {@link REPORT_INTERVAL_MS}. */
  readonly reportIntervalMs?: number;
  /** Default: {@link LEASE_RENEW_MS}. */
  readonly leaseRenewMs?: number;
  readonly log: Logger;
}

/**
 * Keeps the PolicyServerReplica up to date. Writes only changes, at most every {@link REPORT_INTERVAL_MS}, and retries
 * until it succeeds. Recreates a deleted object, and removes it in the end.
 */
export class ReplicaReporter implements Runnable {
  readonly name = 'replica report';
  readonly #options: ReplicaReporterOptions;
  readonly #startedAt: string;
  readonly #lease: ReplicaLease | undefined;
  #owner: OwnerReference | undefined;
  /** The object as last written; undefined when it has to be read first. */
  #known: PolicyServerReplica | undefined;
  #uid: string | undefined;
  #isDue = true;
  #wake: (() => void) | undefined;

  constructor(options: ReplicaReporterOptions) {
    this.#options = options;
    this.#startedAt = timeText(Date.now());
    const { cluster, namespace, name, pod, leaseRenewMs = LEASE_RENEW_MS, log } = options;
    if (pod === undefined) {
      this.#lease = new ReplicaLease({
        cluster,
        namespace,
        name,
        renewMs: leaseRenewMs,
        log,
        onHeld: (uid) => {
          this.#owner = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name, uid };
          this.#due();
        },
      });
    } else {
      this.#owner = { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid };
    }
  }

  /** Runs until `signal` is aborted; then removes the object. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    const ends = [
      this.#options.state.subscribe(() => this.#due()),
      this.#options.replicas.subscribe((change) => this.#seen(change)),
    ];
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    const renewing = this.#lease?.start(signal);
    await this.#report(signal);
    for (const end of ends) {
      end();
    }
    await renewing;
    await this.#remove();
  }

  async #report(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    let logged: string | undefined;
    while (!signal.aborted) {
      await this.#untilDue(signal);
      this.#isDue = false;
      let waitMs = this.#options.reportIntervalMs ?? REPORT_INTERVAL_MS;
      try {
        const hasWritten =
          !signal.aborted && (await this.#write(AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])));
        backoff.reset();
        logged = undefined;
        waitMs = hasWritten ? waitMs : Math.min(waitMs, LOOK_INTERVAL_MS);
      } catch (error) {
        this.#isDue = true;
        if (isStale(error)) {
          this.#known = undefined;
        }
        waitMs = backoff.failed(SYSTEM_CLOCK.now());
        const text = errorText(error);
        if (!signal.aborted && text !== logged) {
          logged = text;
          this.#options.log.warn({ error: text }, "the replica's report could not be written, trying again");
        }
      }
      await pause(SYSTEM_CLOCK, waitMs, signal);
    }
  }

  #due(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  async #untilDue(signal: AbortSignal): Promise<void> {
    // Without an owner, the object would stay after a crash.
    while (!signal.aborted && (!this.#isDue || this.#owner === undefined)) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Called for changes of its own object. */
  #seen({ before, after }: Change<PolicyServerReplica>): void {
    const { namespace, name } = (after ?? before)?.metadata ?? {};
    if (namespace !== this.#options.namespace || name !== this.#options.name || this.#known === undefined) {
      return;
    }
    // The replica's own writes arrive here as well.
    if (after === undefined || !isDeepStrictEqual(ownPart(after), ownPart(this.#known))) {
      this.#known = undefined;
      this.#due();
    }
  }

  /** Returns whether anything was written. */
  async #write(signal: AbortSignal): Promise<boolean> {
    const { cluster, namespace, name } = this.#options;
    let hasWritten = false;
    let current = this.#known ?? (await this.#read(signal));
    if (current === undefined) {
      const metadata = { namespace, name, ...this.#metadata() };
      current = await cluster.create<PolicyServerReplica>(
        POLICY_SERVER_REPLICAS,
        { ...HEAD, metadata, spec: this.#spec() },
        { signal },
      );
      hasWritten = true;
    } else if (!this.#isAsWanted(current)) {
      const { labels, ownerReferences } = this.#metadata();
      const metadata = { ...current.metadata, labels: { ...current.metadata.labels, ...labels }, ownerReferences };
      const wanted = { ...current, ...HEAD, metadata, spec: this.#spec() };
      current = await cluster.update<PolicyServerReplica>(POLICY_SERVER_REPLICAS, wanted, { signal });
      hasWritten = true;
    }
    this.#known = current;
    this.#uid = current.metadata.uid;
    const status = inertTexts(this.#status(current));
    const { lastReported: _, ...before } = current.status ?? {};
    if (!isDeepStrictEqual(before, status)) {
      const reported = { ...current, ...HEAD, status: { ...status, lastReported: timeText(Date.now()) } };
      const options = { subresource: 'status', signal };
      this.#known = await cluster.update<PolicyServerReplica>(POLICY_SERVER_REPLICAS, reported, options);
      hasWritten = true;
    }
    return hasWritten;
  }

  async #read(signal: AbortSignal): Promise<PolicyServerReplica | undefined> {
    const { cluster, namespace, name } = this.#options;
    return await unlessGone(cluster.get(POLICY_SERVER_REPLICAS, { namespace, name }, { signal }));
  }

  #status({ metadata, status }: PolicyServerReplica): ReplicaStatus {
    return replicaStatus(this.#options.state, {
      generation: metadata.generation,
      startedAt: this.#startedAt,
      conditions: status?.conditions,
      now: Date.now(),
    });
  }

  #spec(): PolicyServerReplica['spec'] {
    const { policyServer, pod, controlAddress, version } = this.#options;
    return {
      policyServer,
      ...(pod === undefined ? {} : { podName: pod.name }),
      ...(pod?.nodeName === undefined ? {} : { nodeName: pod.nodeName }),
      controlAddress,
      version,
    };
  }

  #metadata(): { readonly labels: Record<string, string>; readonly ownerReferences: readonly OwnerReference[] } {
    const owner = this.#owner;
    return {
      labels: { [POLICY_SERVER_LABEL]: this.#options.policyServer },
      ownerReferences: owner === undefined ? [] : [owner],
    };
  }

  #isAsWanted({ metadata, spec }: PolicyServerReplica): boolean {
    const { labels, ownerReferences } = this.#metadata();
    return (
      metadata.labels?.[POLICY_SERVER_LABEL] === labels[POLICY_SERVER_LABEL] &&
      isDeepStrictEqual(metadata.ownerReferences ?? [], ownerReferences) &&
      isDeepStrictEqual(spec, this.#spec())
    );
  }

  /** Best effort: otherwise garbage collection removes the object with its owner. */
  async #remove(): Promise<void> {
    const { cluster, namespace, name, log } = this.#options;
    const signal = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
    try {
      if (this.#uid !== undefined) {
        const preconditions = { uid: this.#uid };
        await unlessStale(cluster.delete(POLICY_SERVER_REPLICAS, { namespace, name }, { preconditions, signal }));
      }
      await this.#lease?.release(signal);
    } catch (error) {
      log.warn({ error: errorText(error) }, 'the report of the stopping replica could not be removed, it will expire');
    }
  }
}

const HEAD = { apiVersion: apiVersionOf(POLICY_SERVER_REPLICAS), kind: POLICY_SERVER_REPLICAS.kind };

/** The fields that the replica itself writes. */
function ownPart({ metadata, spec, status }: PolicyServerReplica): unknown[] {
  const { lastReported: _, ...reported } = status ?? {};
  return [metadata.uid, metadata.labels?.[POLICY_SERVER_LABEL], metadata.ownerReferences, spec, reported];
}
