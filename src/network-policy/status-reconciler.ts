// Keeps the NetworkPolicyStatus of each NetworkPolicy.
import { type Cluster, unlessGone } from '../cluster/index.ts';
import {
  analysePolicy,
  type AnalysedPolicy,
  type NetworkPolicyFinding,
  readNetworkPolicy,
} from '../engine/network-policy/index.ts';
import {
  apiVersionOf,
  findCondition,
  isJsonObject,
  type KubernetesObject,
  MANAGED_BY,
  NETWORK_POLICY_STATUS_MANAGER,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyStatus,
  type ObjectKey,
  type ProviderEntry,
} from '../resources/index.ts';
import { type EventSink, type ObjectCache, type ReconcileResult, WrittenObjects } from '../runtime/index.ts';
import { TimeSlice } from '../threads/index.ts';
import { foreignEntries } from './reported-entries.ts';
import { entriesWithOurFields } from './leftover-fields.ts';
import { isApplied, statusDigest, withoutForgedEntries } from './applied-status.ts';
import { networkPolicyStatusFields, statusSeverity } from './policy-status.ts';
import { ACCEPTED, type StatusFields } from './status-terms.ts';
import type { PolicyProjection } from './policy-projection.ts';
import type { ClusterProviders } from './cluster-providers.ts';
import { inertTexts } from '../values/index.ts';

/** The reason of the event about a status that others created for a NetworkPolicy that does not own it. */
const FOREIGN_STATUS = 'ForeignNetworkPolicyStatus';
/** The reason of the event about an entry of others for which no NetworkPolicyProvider names a reporter that runs. */
const REPORT_REMOVED = 'NetworkPolicyReportRemoved';
/** The reason of the event about an entry of ours that others changed. */
const STATUS_OVERWRITTEN = 'NetworkPolicyStatusOverwritten';

/** Time for the heartbeat of a reporter to arrive, since watches are not in order. Milliseconds. */
const UNKNOWN_REPORTER_MS = 10_000;

interface Abandoned {
  readonly abandoned: readonly ProviderEntry[];
  /** When to look again, in milliseconds. */
  readonly waitMs?: number;
}

/** What was done about a status of others. */
export type ForgedKind = 'ignored' | 'overwritten' | 'removed';

export interface StatusReconcilerOptions {
  readonly cluster: Pick<Cluster, 'patch' | 'delete'>;
  readonly policies: Pick<ObjectCache, 'get'>;
  readonly statuses: Pick<ObjectCache<NetworkPolicyStatus>, 'get' | 'subscribe'>;
  readonly providers: () => ClusterProviders;
  /** That another policy of the namespace allows the same. */
  readonly redundancy: (key: ObjectKey) => Promise<NetworkPolicyFinding | undefined>;
  readonly events: EventSink;
  /** Called for each ignored or overwritten status. */
  readonly onForged: (kind: ForgedKind) => void;
  readonly projection: PolicyProjection;
  /** Default: {@link UNKNOWN_REPORTER_MS}. */
  readonly unknownReporterMs?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Writes a status only when it differs, by server-side apply. */
export class StatusReconciler {
  readonly #options: StatusReconcilerOptions;
  readonly #statuses: WrittenObjects<NetworkPolicyStatus>;
  /** Digests of what this process applied last, by uid: a difference was made by others. */
  readonly #applied = new Map<string, string>();
  /** What the last reconciliation of a status saw, by uid: while it is the same, nothing is to be done. Each write is seen again. */
  readonly #settled = new Map<string, string>();
  /** The providers of the last reconciliation, and how often they have changed. */
  #known: ClusterProviders | undefined;
  #changes = 0;
  /** Since when statuses have entries of reporters that are not known, by uid. Milliseconds since 1970. */
  readonly #unknownSince = new Map<string, number>();

  constructor(options: StatusReconcilerOptions) {
    this.#options = options;
    this.#statuses = new WrittenObjects(options.statuses);
    options.statuses.subscribe(({ before, after }) => {
      if (after === undefined) {
        this.#applied.delete(before?.metadata.uid ?? '');
        this.#settled.delete(before?.metadata.uid ?? '');
        this.#unknownSince.delete(before?.metadata.uid ?? '');
      }
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const policy = this.#options.policies.get(key);
    const current = this.#statuses.get(key);
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) {
      await this.#removeOurs(key, current, signal);
      return {};
    }
    if (current !== undefined && hasOtherOwner(current, policy)) {
      if (!(await this.#removeOurs(key, current, signal))) {
        this.#report(policy, FOREIGN_STATUS, 'ignored', 'its owner is not this NetworkPolicy. Delete it');
      }
      return {};
    }
    const isOurs = current !== undefined && isOwnedBy(current, policy) && isManaged(current.metadata.labels);
    const object = isOurs ? current : await this.#apply(key, ownedBy(policy), signal);
    const { abandoned, waitMs } = this.#abandoned(object);
    await this.#update(key, policy, await this.#without(abandoned, key, policy, object, signal), signal);
    return waitMs === undefined ? {} : { requeueAfterMs: waitMs };
  }

  async #update(
    key: ObjectKey,
    policy: KubernetesObject,
    current: NetworkPolicyStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const { providers, redundancy, now = Date.now, projection } = this.#options;
    const redundant = await redundancy(key);
    const known = providers();
    const { uid = '' } = current.metadata;
    if (this.#settled.get(uid) === this.#stateOf(policy, current, known, redundant)) {
      return;
    }
    const analysed = await analyse(policy);
    const status = inertTexts(networkPolicyStatusFields(policy, known, current.status, now(), redundant, analysed));
    const isMixed = hasLeftovers(current, known);
    const isWritten = (isMixed || !isApplied(current.status, status)) && !this.#isForged(current, status);
    const newest = isWritten ? await this.#write(key, policy, current, status, signal) : current;
    if (this.#isForged(newest, status)) {
      this.#report(policy, FOREIGN_STATUS, 'ignored', 'another client wrote an entry in our name. Remove it');
    }
    await projection.write(policy, status, signal);
    // Without our fields, the entry of a reporter may count differently.
    if (!isMixed) {
      this.#settled.set(uid, this.#stateOf(policy, newest, known, redundant));
    }
  }

  /** What a status depends on. */
  #stateOf(
    policy: KubernetesObject,
    status: NetworkPolicyStatus,
    known: ClusterProviders,
    redundant: NetworkPolicyFinding | undefined,
  ): string {
    this.#changes += known === this.#known ? 0 : 1;
    this.#known = known;
    const versions = [policy, status].map(({ metadata }) => metadata.resourceVersion ?? '');
    return [...versions, this.#changes, redundant?.message ?? ''].join(' ');
  }

  /** Entries of others that have not counted for some time. */
  #abandoned({ metadata, status }: NetworkPolicyStatus): Abandoned {
    const { providers, unknownReporterMs = UNKNOWN_REPORTER_MS, now = Date.now } = this.#options;
    const { reporting } = providers();
    const { uid = '' } = metadata;
    const unknown = foreignEntries(status).filter(({ controllerName }) => !reporting.has(controllerName));
    if (unknown.length === 0) {
      this.#unknownSince.delete(uid);
      return { abandoned: [] };
    }
    const since = this.#unknownSince.get(uid) ?? now();
    this.#unknownSince.set(uid, since);
    const waitMs = since + unknownReporterMs - now();
    return waitMs > 0 ? { abandoned: [], waitMs } : { abandoned: unknown };
  }

  /** Removes entries of others, so that no field of them is left in ours. */
  async #without(
    abandoned: readonly ProviderEntry[],
    key: ObjectKey,
    policy: KubernetesObject,
    current: NetworkPolicyStatus,
    signal: AbortSignal,
  ): Promise<NetworkPolicyStatus> {
    if (abandoned.length === 0) {
      return current;
    }
    const entries = current.status?.providers ?? [];
    const indexes = abandoned.map((entry) => entries.indexOf(entry)).toSorted((one, other) => other - one);
    const body = [
      { op: 'test', path: '/metadata/resourceVersion', value: current.metadata.resourceVersion ?? '' },
      ...indexes.map((index) => ({ op: 'remove', path: `/status/providers/${index}` })),
    ];
    const options = { fieldManager: NETWORK_POLICY_STATUS_MANAGER, subresource: 'status', signal };
    const written = await this.#options.cluster.patch(NETWORK_POLICY_STATUSES, key, { type: 'json', body }, options);
    this.#statuses.recordWrite(key, written);
    const { reporters } = this.#options.providers();
    const unknown = abandoned.map(({ controllerName }) => controllerName).filter((name) => !reporters.has(name));
    if (unknown.length > 0) {
      const text = `no NetworkPolicyProvider names a reporter of ${unknown.join(', ')}`;
      this.#report(policy, REPORT_REMOVED, 'removed', text);
    }
    return written;
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
  #isForged(current: NetworkPolicyStatus, status: StatusFields): boolean {
    const before = current.status;
    return (
      before !== undefined &&
      !isApplied(before, status) &&
      isApplied(withoutForgedEntries(before, status), status) &&
      this.#applied.get(current.metadata.uid ?? '') === statusDigest(status)
    );
  }

  async #write(
    key: ObjectKey,
    policy: KubernetesObject,
    current: NetworkPolicyStatus,
    status: StatusFields,
    signal: AbortSignal,
  ): Promise<NetworkPolicyStatus> {
    const { uid = '', resourceVersion = '' } = current.metadata;
    const digest = statusDigest(status);
    const isOverwritten = this.#applied.get(uid) === digest;
    if (isOverwritten) {
      this.#report(policy, STATUS_OVERWRITTEN, 'overwritten', 'it was changed by another client, and is restored');
    }
    // Of this version only: a report that has come meanwhile must not be overwritten.
    const fields = { metadata: { resourceVersion }, status };
    const written = await this.#apply(key, fields, signal, 'status').catch((error: unknown) => {
      this.#statuses.forget(key);
      throw error;
    });
    this.#applied.set(uid, digest);
    if (!isOverwritten) {
      this.#reportWorse(policy, current.status, status);
    }
    return written;
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
      fieldManager: NETWORK_POLICY_STATUS_MANAGER,
      signal,
      ...(subresource === undefined ? {} : { subresource }),
    };
    const written = await this.#options.cluster.patch(NETWORK_POLICY_STATUSES, key, patch, options);
    this.#statuses.recordWrite(key, written);
    return written;
  }

  #report(policy: KubernetesObject, reason: string, kind: ForgedKind, text: string): void {
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

/** A large policy takes several turns of the event loop. */
async function analyse(policy: KubernetesObject): Promise<AnalysedPolicy> {
  const slice = new TimeSlice();
  const read = readNetworkPolicy(isJsonObject(policy) ? policy : {});
  await slice.yield();
  const analysed = analysePolicy(read);
  await slice.yield();
  return analysed;
}

/** The object without its status: the owner deletes it, too. */
function ownedBy({ apiVersion, kind, metadata }: KubernetesObject): Readonly<Record<string, unknown>> {
  const { name, uid } = metadata;
  return {
    metadata: { labels: MANAGED_BY, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    spec: {},
  };
}

/** Not one that a reporter created for the policy before we did, which we adopt. */
function hasOtherOwner(object: NetworkPolicyStatus, policy: KubernetesObject): boolean {
  return (object.metadata.ownerReferences ?? []).length > 0 && !isOwnedBy(object, policy);
}

/** Whether an entry that a reporter has taken over still has fields of ours. */
function hasLeftovers(current: NetworkPolicyStatus, { reporting }: ClusterProviders): boolean {
  const ours = entriesWithOurFields(current);
  return foreignEntries(current.status).some(
    ({ controllerName }) => reporting.has(controllerName) && ours.includes(controllerName),
  );
}

function isOwnedBy({ metadata }: NetworkPolicyStatus, policy: KubernetesObject): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === policy.metadata.uid);
}

/** Whether we created it. */
export function isManaged(labels: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(MANAGED_BY).every(([key, value]) => labels[key] === value);
}
