// Keeps the NetworkPolicyProviders: one for each detected provider, with what was detected and what counts.
import { type Cluster, unlessGone } from '../cluster/index.ts';
import { isJsonObject } from '../engine/index.ts';
import {
  apiVersionOf,
  MANAGED_BY,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUS_MANAGER,
  type NetworkPolicyProvider,
  type ObjectKey,
  setReadiness,
} from '../resources/index.ts';
import { type ObjectCache, WrittenObjects } from '../runtime/index.ts';
import { isSame } from './applied-status.ts';

import type { ClusterProviders } from './cluster-providers.ts';
import { isManaged } from './status-reconciler.ts';

type ProviderStatus = NonNullable<NetworkPolicyProvider['status']>;

export interface ProviderReconcilerOptions {
  readonly cluster: Pick<Cluster, 'patch' | 'delete'>;
  readonly declared: Pick<ObjectCache<NetworkPolicyProvider>, 'get' | 'subscribe'>;
  readonly providers: () => ClusterProviders;
}

export class ProviderReconciler {
  readonly #options: ProviderReconcilerOptions;
  readonly #declared: WrittenObjects<NetworkPolicyProvider>;

  constructor(options: ProviderReconcilerOptions) {
    this.#options = options;
    this.#declared = new WrittenObjects(options.declared);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const known = this.#options.providers();
    const current = this.#declared.get(key);
    const isDetected = known.detected.some(({ name }) => name === key.name);
    if (current?.metadata.deletionTimestamp !== undefined || (current === undefined && !isDetected)) {
      return;
    }
    if (current !== undefined && !isDetected && isUntouched(current)) {
      const { uid = '' } = current.metadata;
      await unlessGone(this.#options.cluster.delete(NETWORK_POLICY_PROVIDERS, key, { preconditions: { uid }, signal }));
      this.#declared.recordWrite(key, undefined);
      return;
    }
    const object = current ?? (await this.#apply(key, { metadata: { labels: MANAGED_BY }, spec: {} }, signal));
    const status = statusOf(object, known);
    if (!isSame(withoutHeartbeat(object.status), status)) {
      await this.#apply(key, { status }, signal, 'status');
    }
  }

  async #apply(
    key: ObjectKey,
    { metadata = {}, ...fields }: { readonly metadata?: object; readonly [field: string]: unknown },
    signal: AbortSignal,
    subresource?: string,
  ): Promise<NetworkPolicyProvider> {
    const { kind } = NETWORK_POLICY_PROVIDERS;
    const body: unknown = {
      apiVersion: apiVersionOf(NETWORK_POLICY_PROVIDERS),
      kind,
      metadata: { ...key, ...metadata },
      ...fields,
    };
    const patch = { type: 'apply', body: isJsonObject(body) ? body : {}, force: true } as const;
    const options = {
      fieldManager: NETWORK_POLICY_STATUS_MANAGER,
      signal,
      ...(subresource === undefined ? {} : { subresource }),
    };
    const written = await this.#options.cluster.patch(NETWORK_POLICY_PROVIDERS, key, patch, options);
    this.#declared.recordWrite(key, written);
    return written;
  }
}

/** We created it, and no administrator has written a spec. */
function isUntouched({ metadata, spec }: NetworkPolicyProvider): boolean {
  const { presence, ...others } = spec;
  return isManaged(metadata.labels) && presence === 'Detected' && Object.keys(others).length === 0;
}

/** What we write of a status. The time is the reporter's. */
function withoutHeartbeat(status: ProviderStatus | undefined): ProviderStatus | undefined {
  const { renewTime: _renewTime, ...ours } = status ?? {};
  return status && ours;
}

function statusOf(object: NetworkPolicyProvider, known: ClusterProviders): ProviderStatus {
  const name = object.metadata.name ?? '';
  const generation = object.metadata.generation ?? 0;
  const present = known.providers.find(({ instance }) => instance.name === name);
  const detected = known.detected.find((one) => one.name === name);
  const { version, settings = {} } = present?.instance ?? {};
  return {
    observedGeneration: generation,
    isPresent: present === undefined ? 'False' : 'True',
    ...(version === undefined ? {} : { version }),
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(object.spec.reporter === undefined ? {} : { isReporting: reportsItself(object, known) ? 'True' : 'False' }),
    ...(detected === undefined ? {} : { detected: { versions: detected.versions, nodes: detected.nodes.length } }),
    conditions: setReadiness(object.status?.conditions, readinessOf(object, known), generation, Date.now()),
  };
}

/** Whether the entries that the provider writes itself count. */
function reportsItself({ metadata, spec }: NetworkPolicyProvider, { reporting }: ClusterProviders): boolean {
  return reporting.get(spec.reporter?.controllerName ?? '')?.provider === metadata.name;
}

type Readiness = Parameters<typeof setReadiness>[1];

function readinessOf(object: NetworkPolicyProvider, known: ClusterProviders): Readiness {
  const fault = faultOf(object, known);
  if (fault !== undefined) {
    return { state: 'stalled', ...fault };
  }
  const present = known.providers.find(({ instance }) => instance.name === object.metadata.name);
  const count = known.unguardedNodes;
  const missing = count === 0 ? '' : `; ${count} nodes have no agent of any provider`;
  const message =
    present === undefined
      ? 'does not count: see spec.presence, or another provider enforces policies on its nodes'
      : `counts${reportsItself(object, known) ? ', by its own reports' : ''}${missing}`;
  return { state: 'ready', reason: 'Evaluated', message };
}

/** What an administrator must change, or the provider must do. */
function faultOf(
  object: NetworkPolicyProvider,
  known: ClusterProviders,
): Pick<Readiness, 'reason' | 'message'> | undefined {
  const name = object.metadata.name ?? '';
  const mistake = known.mistakes.get(name);
  if (mistake !== undefined) {
    return { reason: 'InvalidCapabilities', message: `spec.capabilities do not count: ${mistake}` };
  }
  const { reporter, presence } = object.spec;
  if (reporter !== undefined && presence !== 'Absent' && !reportsItself(object, known)) {
    const message = `its own reports do not count, but what the catalogue says: ${silenceOf(object, known)}`;
    return { reason: 'ReporterSilent', message };
  }
  const present = known.providers.find(({ instance }) => instance.name === name);
  return present !== undefined && present.support === undefined && reporter === undefined
    ? { reason: 'NotInCatalogue', message: 'the catalogue does not have this provider: write spec.capabilities' }
    : undefined;
}

/** Why the reports of a provider do not count. */
function silenceOf({ metadata, spec, status }: NetworkPolicyProvider, { reporters }: ClusterProviders): string {
  const { controllerName = '', username = '' } = spec.reporter ?? {};
  const other = reporters.get(controllerName)?.provider;
  if (other !== metadata.name) {
    return `NetworkPolicyProvider ${other} has the same spec.reporter.controllerName`;
  }
  return status?.renewTime === undefined
    ? `${username} has not written status.renewTime yet`
    : `status.renewTime, which ${username} writes, is more than ${spec.reporter?.expireAfterSeconds} seconds ago, or in the future`;
}
