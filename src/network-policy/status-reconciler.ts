// Keeps the NetworkPolicyStatus of each NetworkPolicy.
import { type Cluster, unlessGone } from '../cluster/index.ts';
import type { NetworkPolicyFinding } from '../engine/network-policy/index.ts';
import {
  apiVersionOf,
  findCondition,
  isJsonObject,
  type KubernetesObject,
  MANAGED_BY,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyStatus,
  type ObjectKey,
} from '../resources/index.ts';
import { type EventSink, type ObjectCache, WrittenObjects } from '../runtime/index.ts';
import { isApplied, statusDigest, withoutForgedEntries } from './applied-status.ts';
import {
  ACCEPTED,
  networkPolicyStatusFields,
  STATUS_FIELD_MANAGER,
  type StatusFields,
  statusSeverity,
} from './policy-status.ts';
import type { PolicyProjection } from './policy-projection.ts';
import type { ClusterProviders } from './cluster-providers.ts';
import { inertTexts } from '../values/index.ts';

/** The reason of the event about a status that others created for a NetworkPolicy that does not own it. */
const FOREIGN_STATUS = 'ForeignNetworkPolicyStatus';
/** The reason of the event about an entry of ours that others changed. */
const STATUS_OVERWRITTEN = 'NetworkPolicyStatusOverwritten';

export interface StatusReconcilerOptions {
  readonly cluster: Pick<Cluster, 'patch' | 'delete'>;
  readonly policies: Pick<ObjectCache, 'get'>;
  readonly statuses: Pick<ObjectCache<NetworkPolicyStatus>, 'get' | 'subscribe'>;
  readonly providers: () => ClusterProviders;
  /** That another policy of the namespace allows the same. */
  readonly redundancy: (key: ObjectKey) => NetworkPolicyFinding | undefined;
  readonly events: EventSink;
  /** Called for each ignored or overwritten status. */
  readonly onForged: (kind: 'ignored' | 'overwritten') => void;
  /** Default: nothing is repeated in NetworkPolicies. */
  readonly projection?: PolicyProjection;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Writes a status only when it differs, by server-side apply. */
export class StatusReconciler {
  readonly #options: StatusReconcilerOptions;
  readonly #statuses: WrittenObjects<NetworkPolicyStatus>;
  /** Digests of what this process applied last, by uid: a difference was made by others. */
  readonly #applied = new Map<string, string>();

  constructor(options: StatusReconcilerOptions) {
    this.#options = options;
    this.#statuses = new WrittenObjects(options.statuses);
    options.statuses.subscribe(({ before, after }) => {
      if (after === undefined) {
        this.#applied.delete(before?.metadata.uid ?? '');
      }
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const policy = this.#options.policies.get(key);
    const current = this.#statuses.get(key);
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) {
      await this.#removeOurs(key, current, signal);
      return;
    }
    if (current !== undefined && !isOwnedBy(current, policy)) {
      if (!(await this.#removeOurs(key, current, signal))) {
        this.#report(policy, FOREIGN_STATUS, 'ignored', 'its owner is not this NetworkPolicy. Delete it');
      }
      return;
    }
    const { providers, redundancy, now = Date.now, projection } = this.#options;
    const status = inertTexts(networkPolicyStatusFields(policy, providers(), current?.status, now(), redundancy(key)));
    if (this.#isForged(current, status)) {
      this.#report(policy, FOREIGN_STATUS, 'ignored', 'another client wrote an entry in our name. Remove it');
    } else if (!isApplied(current?.status, status)) {
      await this.#write(key, policy, current, status, signal);
    }
    await projection?.write(policy, status, signal);
  }

  /** What is left of a former NetworkPolicy of the same name, where garbage collection has not deleted it yet. */
  async #removeOurs(key: ObjectKey, current: NetworkPolicyStatus | undefined, signal: AbortSignal): Promise<boolean> {
    const { uid, labels } = current?.metadata ?? {};
    if (current === undefined || uid === undefined || !isManaged(labels)) {
      return false;
    }
    const preconditions = { uid };
    await unlessGone(this.#options.cluster.delete(NETWORK_POLICY_STATUSES, key, { preconditions, signal }));
    this.#statuses.recordWrite(key, undefined);
    return true;
  }

  /** Nothing is left to write: entries that still have our name belong to another field manager. */
  #isForged(current: NetworkPolicyStatus | undefined, status: StatusFields): boolean {
    const before = current?.status;
    return (
      before !== undefined &&
      !isApplied(before, status) &&
      this.#applied.get(current?.metadata.uid ?? '') === statusDigest(status) &&
      isApplied(withoutForgedEntries(before, status), status)
    );
  }

  async #write(
    key: ObjectKey,
    policy: KubernetesObject,
    current: NetworkPolicyStatus | undefined,
    status: StatusFields,
    signal: AbortSignal,
  ): Promise<void> {
    const before = current?.status;
    const digest = statusDigest(status);
    const isOverwritten = current !== undefined && this.#applied.get(current.metadata.uid ?? '') === digest;
    if (isOverwritten) {
      this.#report(policy, STATUS_OVERWRITTEN, 'overwritten', 'it was changed by another client, and is restored');
    }
    const object = current ?? (await this.#apply(key, ownedBy(policy), signal));
    const uid = object.metadata.uid ?? '';
    try {
      await this.#apply(key, { status }, signal, 'status');
      this.#applied.set(uid, digest);
    } catch (error) {
      this.#statuses.forget(key);
      throw error;
    }
    if (!isOverwritten) {
      this.#reportWorse(policy, before, status);
    }
  }

  async #apply(
    key: ObjectKey,
    fields: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    subresource?: string,
  ): Promise<NetworkPolicyStatus> {
    const { kind } = NETWORK_POLICY_STATUSES;
    const { metadata = {}, ...others } = fields;
    const body: unknown = {
      apiVersion: apiVersionOf(NETWORK_POLICY_STATUSES),
      kind,
      metadata: { ...key, ...(isJsonObject(metadata) ? metadata : {}) },
      ...others,
    };
    const patch = { type: 'apply', body: isJsonObject(body) ? body : {}, force: true } as const;
    const options = {
      fieldManager: STATUS_FIELD_MANAGER,
      signal,
      ...(subresource === undefined ? {} : { subresource }),
    };
    const written = await this.#options.cluster.patch(NETWORK_POLICY_STATUSES, key, patch, options);
    this.#statuses.recordWrite(key, written);
    return written;
  }

  #report(policy: KubernetesObject, reason: string, kind: 'ignored' | 'overwritten', text: string): void {
    const { namespace = '', name = '' } = policy.metadata;
    const message = `the NetworkPolicyStatus ${namespace}/${name} is ${kind}: ${text}`;
    this.#options.events.event(policy, 'Warning', reason, message);
    this.#options.onForged(kind);
  }

  #reportWorse(policy: KubernetesObject, before: StatusFields | undefined, status: StatusFields): void {
    const accepted = findCondition(status.conditions, ACCEPTED);
    const isReported = findCondition(before?.conditions, ACCEPTED) !== undefined;
    const isWorse = statusSeverity(status) > statusSeverity(before);
    if (accepted !== undefined && isWorse && (isReported || accepted.status === 'False')) {
      this.#options.events.event(policy, 'Warning', accepted.reason, accepted.message);
    }
  }
}

/** The object without its status: the owner deletes it, too. */
function ownedBy({ apiVersion, kind, metadata }: KubernetesObject): Readonly<Record<string, unknown>> {
  const { name, uid } = metadata;
  return {
    metadata: { labels: MANAGED_BY, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    spec: {},
  };
}

function isOwnedBy({ metadata }: NetworkPolicyStatus, policy: KubernetesObject): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === policy.metadata.uid);
}

/** Whether we created it. */
export function isManaged(labels: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(MANAGED_BY).every(([key, value]) => labels[key] === value);
}
