// Removes the objects of replicas that have ended: garbage collection takes time, and some clusters have none.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { isJsonObject, keyOf, knownKind, POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { KubernetesObject, OwnerReference, PolicyServerReplica } from '../../resources/index.ts';
import { LEASES, pause } from '../../runtime/index.ts';
import type { Clock, LeaseSpec } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { backoffMs } from './replica-timing.ts';
import type { ReplicaTiming } from './replica-timing.ts';

const PODS = knownKind('v1', 'Pod');

/** Bounds of the interval at which a Lease is checked, whatever its duration. Milliseconds. */
const MIN_LEASE_MS = 500;
const MAX_LEASE_MS = 60_000;

export interface RemovalOptions {
  readonly cluster: Cluster;
  readonly timing: ReplicaTiming;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly log: Logger;
  /** Called with whether its pod is known not to be ready, so that API servers send it no requests. */
  readonly unready: (isUnready: boolean) => void;
}

/**
 * Deletes the object of a lost replica once its owner is gone: a Pod that was deleted or has ended, or a Lease that is
 * no longer renewed. Checks repeatedly until then, or until `signal` is aborted. An object without an owner must be
 * deleted by a user. `newest` returns the newest version of the object: a restarted process changes it, and it is kept.
 * Never rejects.
 */
export async function removeDeparted(
  newest: () => PolicyServerReplica,
  options: RemovalOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, timing, random, log } = options;
  let owner: Owner | undefined;
  for (let checks = 0; !signal.aborted; checks += 1) {
    const replica = newest();
    const reference = ownerOf(replica);
    if (reference === undefined) {
      return;
    }
    if (owner?.reference.uid !== reference.uid) {
      owner = ownerAt(reference, replica.metadata.namespace ?? '', options);
    }
    let waitMs = backoffMs(timing.ownerMs, timing.ownerCapMs, checks, random);
    try {
      const owned = await owner.check(signal);
      if (owned === 'gone') {
        await deleteReplica(replica, options, signal);
        log.info({ owner: reference.kind }, 'replica removed, its owner is gone');
        return;
      }
      options.unready(owned.isUnready === true);
      waitMs = owned.isUnready === true ? timing.unreadyMs : (owned.recheckMs ?? waitMs);
    } catch (error) {
      if (!signal.aborted) {
        log.warn({ owner: reference.kind, error: errorText(error) }, 'the owner of a lost replica could not be read');
      }
    }
    await pause(clock, waitMs, signal);
  }
}

/** Fails if the object was written since it was read. */
async function deleteReplica(
  replica: PolicyServerReplica,
  { cluster }: RemovalOptions,
  signal: AbortSignal,
): Promise<void> {
  const { uid = '', resourceVersion = '' } = replica.metadata;
  const preconditions = { uid, resourceVersion };
  await unlessGone(cluster.delete(POLICY_SERVER_REPLICAS, keyOf(replica), { preconditions, signal }));
}

/** What an owner that exists says about its replica. */
interface Owned {
  /** When the owner can be gone at the earliest. Milliseconds. */
  readonly recheckMs?: number;
  /** Whether it is a pod that gets no requests. */
  readonly isUnready?: boolean;
}

/** The owner of a replica. */
interface Owner {
  readonly reference: OwnerReference;
  check(signal: AbortSignal): Promise<'gone' | Owned>;
}

function ownerOf({ metadata }: PolicyServerReplica): OwnerReference | undefined {
  const owners = metadata.ownerReferences ?? [];
  // A replica's own Lease has its name. No object of a replica may end another Lease.
  return owners.find(isPod) ?? owners.find((one) => isLease(one) && one.name === metadata.name);
}

function isPod({ apiVersion, kind }: OwnerReference): boolean {
  return apiVersion === 'v1' && kind === 'Pod';
}

function isLease({ apiVersion, kind }: OwnerReference): boolean {
  return apiVersion.startsWith('coordination.k8s.io/') && kind === 'Lease';
}

function ownerAt(reference: OwnerReference, namespace: string, options: RemovalOptions): Owner {
  return isPod(reference)
    ? { reference, check: (signal) => checkPod(reference, namespace, options, signal) }
    : new LeaseOwner(reference, namespace, options);
}

async function checkPod(
  { name, uid }: OwnerReference,
  namespace: string,
  { cluster }: RemovalOptions,
  signal: AbortSignal,
): Promise<'gone' | Owned> {
  const pod = await unlessGone(cluster.get(PODS, { namespace, name }, { signal }));
  const isGone = pod === undefined || pod.metadata.uid !== uid || hasEnded(pod);
  return isGone ? 'gone' : { isUnready: !isReady(pod) };
}

/** Whether Services have the pod among their endpoints. */
function isReady({ metadata, status }: KubernetesObject): boolean {
  const conditions = isJsonObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  const isTrue = conditions.some((one) => isJsonObject(one) && one['type'] === 'Ready' && one['status'] === 'True');
  return metadata.deletionTimestamp === undefined && isTrue;
}

/** Whether the pod has ended and will not restart: evicted, or shut down with its node. */
function hasEnded({ status }: KubernetesObject): boolean {
  return isJsonObject(status) && (status['phase'] === 'Failed' || status['phase'] === 'Succeeded');
}

/** A Lease, judged by when it was seen to be renewed: clocks of machines need not agree (as in `LeaderElector`). */
class LeaseOwner implements Owner {
  readonly reference: OwnerReference;
  readonly #namespace: string;
  readonly #options: RemovalOptions;
  #observed: LeaseSpec | undefined;
  #observedAt = 0;

  constructor(reference: OwnerReference, namespace: string, options: RemovalOptions) {
    this.reference = reference;
    this.#namespace = namespace;
    this.#options = options;
  }

  async check(signal: AbortSignal): Promise<'gone' | Owned> {
    const { cluster, clock } = this.#options;
    const key = { namespace: this.#namespace, name: this.reference.name };
    const lease = await unlessGone(cluster.get(LEASES, key, { signal }));
    if (lease === undefined || lease.metadata.uid !== this.reference.uid) {
      return 'gone';
    }
    const spec = lease.spec ?? {};
    const now = clock.now();
    if (this.#observed === undefined || !isDeepStrictEqual(this.#observed, spec)) {
      this.#observed = spec;
      this.#observedAt = now;
    }
    const durationMs = Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, (spec.leaseDurationSeconds ?? 0) * 1000));
    const leftMs = this.#observedAt + durationMs - now;
    if (leftMs > 0 && spec.holderIdentity !== '') {
      return { recheckMs: leftMs };
    }
    // Fails if it was renewed meanwhile: then the process is back.
    const { uid = '', resourceVersion = '' } = lease.metadata;
    await unlessGone(cluster.delete(LEASES, key, { preconditions: { uid, resourceVersion }, signal }));
    return 'gone';
  }
}
