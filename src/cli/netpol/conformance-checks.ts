// What a network provider that reports for itself must do, tried on a cluster.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, listAll, unlessGone } from '../../cluster/index.ts';
import {
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyStatus,
  type ObjectKey,
} from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { CHANGED_POLICY, CHANGED_SPEC, conformancePolicies } from './conformance-policies.ts';
import { reportProblems } from './report-problems.ts';

export interface ConformanceResult {
  readonly check: string;
  readonly isPassed: boolean;
  readonly message: string;
}

export interface ConformanceOptions {
  readonly cluster: Cluster;
  /** The name of the NetworkPolicyProvider. */
  readonly provider: string;
  /** For each report. */
  readonly timeoutMs: number;
  /** For which nothing may be written. */
  readonly quietMs: number;
  readonly onResult: (result: ConformanceResult) => void;
}

const POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const NAMESPACES = knownKind('v1', 'Namespace');
/** Milliseconds between two looks at what a provider does. */
const LOOK_INTERVAL_MS = 200;

/** Runs all checks in a namespace that it creates and deletes. The first that fails of those that others need is the last. */
export class Conformance {
  readonly #options: ConformanceOptions;
  readonly #namespace = `portcullis-conformance-${randomBytes(4).toString('hex')}`;
  #controllerName = '';

  constructor(options: ConformanceOptions) {
    this.#options = options;
  }

  /** @returns whether all passed @throws ApiError, ClusterError */
  async run(): Promise<boolean> {
    const { cluster } = this.#options;
    if (
      !(await this.#check('named', () => this.#named())) ||
      !(await this.#check('heartbeat', () => this.#heartbeat()))
    ) {
      return false;
    }
    const metadata = { name: this.#namespace };
    await cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    try {
      return await this.#checkReports();
    } finally {
      await this.#remove();
    }
  }

  async #checkReports(): Promise<boolean> {
    const { cluster } = this.#options;
    const results: boolean[] = [];
    for (const policy of conformancePolicies(this.#namespace)) {
      const { name = '' } = policy.metadata;
      await cluster.create(POLICIES, policy);
      results.push(await this.#check(`report of ${name}`, () => this.#reported(name, 1)));
    }
    results.push(await this.#check('report of a change', () => this.#changed()));
    results.push(await this.#check('no write without a difference', () => this.#quiet()));
    results.push(await this.#check('nothing is left of a policy', () => this.#gone()));
    return results.every(Boolean);
  }

  async #check(check: string, run: () => Promise<string>): Promise<boolean> {
    const result = await run().then(
      (message) => ({ check, isPassed: true, message }),
      (error: unknown) => ({ check, isPassed: false, message: errorText(error) }),
    );
    this.#options.onResult(result);
    return result.isPassed;
  }

  async #named(): Promise<string> {
    const { cluster, provider } = this.#options;
    const { spec } = await cluster.get(NETWORK_POLICY_PROVIDERS, { name: provider });
    if (spec.reporter === undefined) {
      throw new Error(`NetworkPolicyProvider ${provider} has no spec.reporter: it names who reports`);
    }
    const { controllerName, username } = spec.reporter;
    this.#controllerName = controllerName;
    return `${username} reports for ${controllerName}`;
  }

  async #heartbeat(): Promise<string> {
    const { cluster, provider } = this.#options;
    return await this.#eventually(async () => {
      const { spec, status } = await cluster.get(NETWORK_POLICY_PROVIDERS, { name: provider });
      const age = Math.round((Date.now() - Date.parse(status?.renewTime ?? '')) / 1_000);
      const allowed = (spec.reporter?.expireAfterSeconds ?? 0) / 2;
      if (Number.isNaN(age) || age > allowed) {
        throw new Error(
          `status.renewTime is ${status?.renewTime ?? 'missing'}: expected at most ${allowed} seconds ago`,
        );
      }
      if (status?.isReporting !== 'True') {
        throw new Error('status.isReporting is not True: the condition Ready says why');
      }
      return `${age} seconds ago`;
    });
  }

  async #reported(name: string, generation: number): Promise<string> {
    return await this.#eventually(async () => {
      const { status } = await this.#options.cluster.get(NETWORK_POLICY_STATUSES, this.#key(name));
      const entry = status?.providers?.find(({ controllerName }) => controllerName === this.#controllerName);
      const problems = reportProblems(entry, generation);
      if (problems.length > 0) {
        throw new Error(problems.join('; '));
      }
      const { status: accepted = '', reason = '' } = entry?.conditions?.find(({ type }) => type === 'Accepted') ?? {};
      return `${accepted}, ${reason}`;
    });
  }

  async #changed(): Promise<string> {
    const key = this.#key(CHANGED_POLICY);
    await this.#options.cluster.patch(POLICIES, key, { type: 'merge', body: { spec: CHANGED_SPEC } });
    return await this.#reported(CHANGED_POLICY, 2);
  }

  async #quiet(): Promise<string> {
    const before = await this.#versions();
    await sleep(this.#options.quietMs);
    if ((await this.#versions()) !== before) {
      throw new Error('statuses were written, although no policy changed');
    }
    return `for ${this.#options.quietMs / 1_000} seconds`;
  }

  async #versions(): Promise<string> {
    const { cluster } = this.#options;
    const { items } = await listAll<NetworkPolicyStatus>(cluster, NETWORK_POLICY_STATUSES, {
      namespace: this.#namespace,
    });
    return items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).join();
  }

  async #gone(): Promise<string> {
    const key = this.#key(CHANGED_POLICY);
    await this.#options.cluster.delete(POLICIES, key);
    return await this.#eventually(async () => {
      const left = await unlessGone(this.#options.cluster.get(NETWORK_POLICY_STATUSES, key));
      if (left !== undefined) {
        throw new Error('the NetworkPolicyStatus of a deleted NetworkPolicy is still there');
      }
      return 'the status is deleted with it';
    });
  }

  /** @throws the error of the last attempt, after the time for a report */
  async #eventually(attempt: () => Promise<string>): Promise<string> {
    const deadline = Date.now() + this.#options.timeoutMs;
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (Date.now() > deadline) {
          throw error;
        }
      }
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  async #remove(): Promise<void> {
    const { cluster } = this.#options;
    const { items } = await listAll<KubernetesObject>(cluster, POLICIES, { namespace: this.#namespace });
    for (const { metadata } of items) {
      await unlessGone(cluster.delete(POLICIES, this.#key(metadata.name ?? '')));
    }
    await unlessGone(cluster.delete(NAMESPACES, { name: this.#namespace }));
  }

  #key(name: string): ObjectKey {
    return { namespace: this.#namespace, name };
  }
}
