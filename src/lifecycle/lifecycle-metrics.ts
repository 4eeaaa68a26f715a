// What the controller counts of policies, for Prometheus. Docs: docs/metrics.md.
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { AdmissionPolicyObject } from '../resources/index.ts';

/** From a module that is cached to one that is fetched again and again. Seconds. */
const ROLLOUT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** How a rollout ends. `superseded`: by a newer spec. */
export type RolloutResult = 'active' | 'failed' | 'superseded';

/** A rollout that has begun, and has not ended. */
interface Begun {
  readonly generation: number;
  /** Milliseconds of a clock that does not go back. */
  readonly at: number;
}

/** Counts are by server and phase, never by policy: there may be thousands. */
export class LifecycleMetrics {
  readonly #begun = new Map<string, Begun>();
  readonly #rollouts;
  readonly #seconds;

  /** `policies` gives all policies of the cluster, as they are known. */
  constructor(registry: Registry, policies: () => Iterable<AdmissionPolicyObject>) {
    const registers = [registry];
    const counted = new Gauge({
      name: 'portcullis_policies',
      help: 'Policies by policy server and phase',
      labelNames: ['policy_server', 'phase'],
      registers,
      collect() {
        this.reset();
        for (const { spec, status } of policies()) {
          this.inc({ policy_server: spec.policyServer ?? 'default', phase: status?.phase ?? 'Pending' });
        }
      },
    });
    counted.reset();
    this.#rollouts = new Counter({
      name: 'portcullis_rollouts_total',
      help: 'Rollouts by how they ended',
      labelNames: ['result'],
      registers,
    });
    this.#seconds = new Histogram({
      name: 'portcullis_rollout_seconds',
      help: 'Time from when a change of a policy was seen until it served on every replica',
      buckets: ROLLOUT_BUCKETS,
      registers,
    });
  }

  /** A revision of a policy was made. `now` in milliseconds of a clock that does not go back. */
  begun(id: string, generation: number, now: number): void {
    if (this.#begun.has(id)) {
      this.#rollouts.inc({ result: 'superseded' });
    }
    this.#begun.set(id, { generation, at: now });
  }

  /** The status of a policy was written. */
  told(id: string, phase: string, generation: number, now: number): void {
    const begun = this.#begun.get(id);
    if (begun === undefined || generation < begun.generation) {
      return;
    }
    if (phase === 'Active' || phase === 'RolledBack') {
      this.#begun.delete(id);
      this.#rollouts.inc({ result: 'active' });
      this.#seconds.observe((now - begun.at) / 1000);
    } else if (phase === 'Error' || phase === 'Degraded') {
      this.#begun.delete(id);
      this.#rollouts.inc({ result: 'failed' });
    }
  }

  forget(id: string): void {
    this.#begun.delete(id);
  }
}
