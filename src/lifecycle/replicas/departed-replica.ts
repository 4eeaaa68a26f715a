// Replicas that are gone for good: garbage collectors of clusters take their time, and some clusters have none.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { isJsonObject, keyOf, POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { KubernetesObject, OwnerReference, PolicyServerReplica, ResourceType } from '../../resources/index.ts';
import { LEASES, pause } from '../../runtime/index.ts';
import type { Clock, LeaseSpec } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { doubledWait } from './replica-timing.ts';
import type { ReplicaTiming } from './replica-timing.ts';

const PODS: ResourceType = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };

/** How often a Lease is looked at, whatever it says of its duration. Milliseconds. */
const MIN_LEASE_MS = 500;
const MAX_LEASE_MS = 60_000;

export interface DepartureOptions {
  readonly cluster: Cluster;
  readonly timing: ReplicaTiming;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * Deletes the object of a lost replica once what owns it is gone: a Pod that is no more or has ended, or a Lease that
 * nobody renews. Looks again and again until then, or until `signal` is aborted. One without an owner stays for people to
 * delete. `newest` gives the newest version of the object: a process that was started again under the same name changes it,
 * and it stays then. Never rejects.
 */
export async function removeDeparted(
  newest: () => PolicyServerReplica,
  options: DepartureOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, timing, random, log } = options;
  let owner: Owner | undefined;
  for (let looks = 0; !signal.aborted; looks += 1) {
    const replica = newest();
    const reference = ownerOf(replica);
    if (reference === undefined) {
      return;
    }
    if (owner?.reference.uid !== reference.uid) {
      owner = ownerAt(reference, replica.metadata.namespace ?? '', options);
    }
    let waitMs = doubledWait(timing.ownerMs, timing.ownerCapMs, looks, random);
    try {
      const found = await owner.look(signal);
      if (found === 'gone') {
        await remove(replica, options, signal);
        log.info({ owner: reference.kind }, 'replica removed, its owner is gone');
        return;
      }
      waitMs = found.againMs ?? waitMs;
    } catch (error) {
      if (!signal.aborted) {
        log.warn({ owner: reference.kind, error: errorText(error) }, 'cannot tell whether a lost replica is gone');
      }
    }
    await pause(clock, waitMs, signal);
  }
}

/** Refused when somebody has written the object since it was looked at. */
async function remove(replica: PolicyServerReplica, { cluster }: DepartureOptions, signal: AbortSignal): Promise<void> {
  const { uid = '', resourceVersion = '' } = replica.metadata;
  const preconditions = { uid, resourceVersion };
  await unlessGone(cluster.delete(POLICY_SERVER_REPLICAS, keyOf(replica), { preconditions, signal }));
}

/** What owns a replica, and how it is found out whether it is still there. */
interface Owner {
  readonly reference: OwnerReference;
  /** `againMs`: when there may be something else to see. Milliseconds. */
  look(signal: AbortSignal): Promise<'gone' | { readonly againMs?: number }>;
}

function ownerOf({ metadata }: PolicyServerReplica): OwnerReference | undefined {
  const owners = metadata.ownerReferences ?? [];
  return owners.find(isPod) ?? owners.find(isLease);
}

function isPod({ apiVersion, kind }: OwnerReference): boolean {
  return apiVersion === 'v1' && kind === 'Pod';
}

function isLease({ apiVersion, kind }: OwnerReference): boolean {
  return apiVersion.startsWith('coordination.k8s.io/') && kind === 'Lease';
}

function ownerAt(reference: OwnerReference, namespace: string, options: DepartureOptions): Owner {
  return isPod(reference)
    ? { reference, look: (signal) => lookAtPod(reference, namespace, options, signal) }
    : new LeaseOwner(reference, namespace, options);
}

async function lookAtPod(
  { name, uid }: OwnerReference,
  namespace: string,
  { cluster }: DepartureOptions,
  signal: AbortSignal,
): Promise<'gone' | { readonly againMs?: number }> {
  const pod = await unlessGone(cluster.get(PODS, { namespace, name }, { signal }));
  return pod === undefined || pod.metadata.uid !== uid || hasEnded(pod) ? 'gone' : {};
}

/** Whether none of its containers starts again: evicted, or shut down with its node. */
function hasEnded({ status }: KubernetesObject): boolean {
  return isJsonObject(status) && (status['phase'] === 'Failed' || status['phase'] === 'Succeeded');
}

/** A Lease, by when it was seen to be renewed: clocks of machines need not agree (as `LeaderElector`). */
class LeaseOwner implements Owner {
  readonly reference: OwnerReference;
  readonly #namespace: string;
  readonly #options: DepartureOptions;
  #seen: LeaseSpec | undefined;
  #seenAt = 0;

  constructor(reference: OwnerReference, namespace: string, options: DepartureOptions) {
    this.reference = reference;
    this.#namespace = namespace;
    this.#options = options;
  }

  async look(signal: AbortSignal): Promise<'gone' | { readonly againMs: number }> {
    const { cluster, clock } = this.#options;
    const key = { namespace: this.#namespace, name: this.reference.name };
    const lease = await unlessGone(cluster.get(LEASES, key, { signal }));
    if (lease === undefined || lease.metadata.uid !== this.reference.uid) {
      return 'gone';
    }
    const spec = lease.spec ?? {};
    const now = clock.now();
    if (this.#seen === undefined || !isDeepStrictEqual(this.#seen, spec)) {
      this.#seen = spec;
      this.#seenAt = now;
    }
    const durationMs = Math.min(MAX_LEASE_MS, Math.max(MIN_LEASE_MS, (spec.leaseDurationSeconds ?? 0) * 1000));
    const leftMs = this.#seenAt + durationMs - now;
    if (leftMs > 0 && spec.holderIdentity !== '') {
      return { againMs: leftMs };
    }
    // Refused when it was renewed meanwhile: then the process is back.
    const { uid = '', resourceVersion = '' } = lease.metadata;
    await unlessGone(cluster.delete(LEASES, key, { preconditions: { uid, resourceVersion }, signal }));
    return 'gone';
  }
}
