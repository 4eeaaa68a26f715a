// Prometheus metrics of the status of NetworkPolicies. Docs: docs/metrics.md.
import { Counter, Gauge, type Registry } from 'prom-client';
import { ApiError, type Cluster } from '../cluster/index.ts';
import { EFFECTS, FEATURES } from '../engine/network-policy/index.ts';
import { findCondition, type NetworkPolicyStatus, type ProviderEntry } from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';
import { ACCEPTED } from './status-terms.ts';
import type { ClusterProviders } from './cluster-providers.ts';
import { countedEntries, foreignEntries } from './reported-entries.ts';
import type { ForgedKind } from './status-reconciler.ts';

export interface NetworkPolicyMetricsOptions {
  readonly registry: Registry;
  readonly statuses: Pick<ObjectCache<NetworkPolicyStatus>, 'list'>;
  readonly providers: () => ClusterProviders | undefined;
  /** Whether the configured catalogue could not be loaded. */
  readonly isCatalogueMissing: () => boolean;
}

/** The provider of NetworkPolicies for which none was found. */
const NO_PROVIDER = 'none';

/** The metrics. None has a policy as a label: there may be thousands. */
export class NetworkPolicyMetrics {
  readonly #requests: Counter<'code'>;
  readonly #forged: Counter<'kind'>;

  constructor({ registry, statuses, providers, isCatalogueMissing }: NetworkPolicyMetricsOptions) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'portcullis_network_policy_status_requests_total',
      help: 'Requests that write statuses of NetworkPolicies and providers, by code',
      labelNames: ['code'],
      registers,
    });
    this.#forged = new Counter({
      name: 'portcullis_network_policy_status_forged_total',
      help: 'Statuses of NetworkPolicies that other clients wrote, and that were ignored, overwritten or removed',
      labelNames: ['kind'],
      registers,
    });
    const counts = { registers, statuses, providers };
    countPolicies(counts);
    countUnsupported(counts);
    showNumber(registers, {
      name: 'portcullis_network_policy_nodes_without_agent',
      help: 'Nodes without an agent of a network provider that enforces NetworkPolicies',
      value: () => providers()?.unguardedNodes ?? 0,
    });
    showNumber(registers, {
      name: 'portcullis_network_policy_catalogue_missing',
      help: 'Whether the configured catalogue of network providers cannot be loaded, and the builtin one counts',
      value: () => (isCatalogueMissing() ? 1 : 0),
    });
  }

  forged(kind: ForgedKind): void {
    this.#forged.inc({ kind });
  }

  /** The cluster, whose writes are counted. */
  counted(cluster: Pick<Cluster, 'patch' | 'delete'>): Pick<Cluster, 'patch' | 'delete'> {
    const count = async <Result>(request: Promise<Result>): Promise<Result> => {
      try {
        const result = await request;
        this.#requests.inc({ code: '200' });
        return result;
      } catch (error) {
        this.#requests.inc({ code: error instanceof ApiError ? String(error.code) : 'none' });
        throw error;
      }
    };
    return {
      patch: (type, key, patch, options) => count(cluster.patch(type, key, patch, options)),
      delete: (type, key, options) => count(cluster.delete(type, key, options)),
    };
  }
}

interface Counts extends Pick<NetworkPolicyMetricsOptions, 'statuses' | 'providers'> {
  readonly registers: Registry[];
}

function countPolicies({ registers, statuses, providers }: Counts): void {
  const gauge = new Gauge({
    name: 'portcullis_network_policies',
    help: 'NetworkPolicies by provider, and whether the provider does what they say',
    labelNames: ['provider', 'accepted'],
    registers,
    collect() {
      this.reset();
      const known = providers();
      for (const { name, entry } of knownEntries(statuses.list(), known)) {
        this.inc({ provider: name, accepted: findCondition(entry.conditions, ACCEPTED)?.status ?? 'Unknown' });
      }
      if (known?.providers.length === 0) {
        this.set({ provider: NO_PROVIDER, accepted: 'Unknown' }, statuses.list().length);
      }
    },
  });
  gauge.reset();
}

function countUnsupported({ registers, statuses, providers }: Counts): void {
  const gauge = new Gauge({
    name: 'portcullis_network_policy_unsupported_features',
    help: 'NetworkPolicies with a feature that the provider does not support, by feature and effect',
    labelNames: ['provider', 'feature', 'effect'],
    registers,
    collect() {
      this.reset();
      for (const { name, entry } of knownEntries(statuses.list(), providers())) {
        for (const { type, effect } of (entry.features ?? []).filter(({ status }) => status === 'False')) {
          this.inc({ provider: name, feature: oneOf(FEATURES, type), effect: oneOf(EFFECTS, effect) });
        }
      }
    },
  });
  gauge.reset();
}

/** @param value the number at the time of a scrape */
function showNumber(
  registers: Registry[],
  { name, help, value }: { readonly name: string; readonly help: string; readonly value: () => number },
): void {
  const gauge = new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(value());
    },
  });
  gauge.set(0);
}

/** The entries of providers that count, so that forged statuses add no series. */
function knownEntries(
  statuses: readonly NetworkPolicyStatus[],
  known: ClusterProviders | undefined,
): readonly { readonly name: string; readonly entry: ProviderEntry }[] {
  const names = new Map(known?.providers.map(({ controllerName, instance }) => [controllerName, instance.name]));
  return statuses.flatMap(({ status }) => {
    const foreign = foreignEntries(status);
    const ours = (status?.providers ?? []).filter((entry) => !foreign.includes(entry));
    const reported = countedEntries(status, known?.reporting ?? new Map(), status?.observedGeneration ?? 0);
    return [...ours, ...reported].flatMap((entry) => {
      const name = names.get(entry.controllerName);
      return name === undefined ? [] : [{ name, entry }];
    });
  });
}

function oneOf(names: readonly string[], text: string | undefined): string {
  return names.find((name) => name === text) ?? 'Unknown';
}
