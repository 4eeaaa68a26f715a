// Prometheus metrics of policies and rollouts. Docs: docs/metrics.md.
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import {
  type AdmissionPolicyObject,
  DEFAULT_POLICY_SERVER,
  DISARMED,
  findCondition,
  MODULES_KEPT,
  POLICY_ENFORCED,
} from '../resources/index.ts';
import { LabelLimit } from '../metrics/index.ts';

/** From a cached module to one that is fetched with many retries. Seconds. */
const ROLLOUT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** A rollout under way. */
interface Rollout {
  readonly generation: number;
  /** Milliseconds of a monotonic clock. */
  readonly startedAt: number;
}

/**
 * PolicyServers with a label of their own: those with the most policies. Authors of policies name any, also one that does not exist.
 */
const MAX_SERVERS = 100;

/** No metric has a policy as a label: there may be thousands. */
export class LifecycleMetrics {
  /** By policy id. */
  readonly #underWay = new Map<string, Rollout>();
  readonly #rollouts;
  readonly #seconds;

  /** @param policies returns all policies of the cluster */
  constructor(registry: Registry, policies: () => Iterable<AdmissionPolicyObject>) {
    const registers = [registry];
    const counted = new Gauge({
      name: 'portcullis_policies',
      help: 'Policies by policy server, phase, and whether they are enforced',
      labelNames: ['policy_server', 'phase', 'enforced'],
      registers,
      collect() {
        this.reset();
        const serverOf = serverLabels(policies());
        for (const { spec, status } of policies()) {
          const enforced = findCondition(status?.conditions, POLICY_ENFORCED)?.status ?? 'Unknown';
          const phase = status?.phase ?? 'Pending';
          this.inc({ policy_server: serverOf(spec), phase, enforced: enforced.toLowerCase() });
        }
      },
    });
    counted.reset();
    const disarmed = new Gauge({
      name: 'portcullis_policies_disarmed',
      help: 'Policies by policy server whose enforcement was ended by break-glass',
      labelNames: ['policy_server'],
      registers,
      collect() {
        this.reset();
        const serverOf = serverLabels(policies());
        for (const { spec, status } of policies()) {
          if (findCondition(status?.conditions, POLICY_ENFORCED)?.reason === DISARMED) {
            this.inc({ policy_server: serverOf(spec) });
          }
        }
      },
    });
    disarmed.reset();
    const kept = new Gauge({
      name: 'portcullis_policies_modules_kept',
      help: 'Policies with WebAssembly modules by policy server, and whether the modules survive the loss of policy servers',
      labelNames: ['policy_server', 'kept', 'reason'],
      registers,
      collect() {
        this.reset();
        const serverOf = serverLabels(policies());
        for (const { spec, status } of policies()) {
          const condition = findCondition(status?.conditions, MODULES_KEPT);
          if (condition !== undefined) {
            const { status: kept, reason } = condition;
            this.inc({ policy_server: serverOf(spec), kept: kept.toLowerCase(), reason });
          }
        }
      },
    });
    kept.reset();
    const issues = new Gauge({
      name: 'portcullis_policy_issues',
      help: 'Policies with issues in their status, by policy server, reason and severity',
      labelNames: ['policy_server', 'reason', 'severity'],
      registers,
      collect() {
        this.reset();
        const serverOf = serverLabels(policies());
        for (const { spec, status } of policies()) {
          const kinds = new Map(
            (status?.issues ?? []).map(({ reason, severity }) => [`${reason} ${severity}`, { reason, severity }]),
          );
          for (const { reason, severity } of kinds.values()) {
            this.inc({ policy_server: serverOf(spec), reason, severity: severity.toLowerCase() });
          }
        }
      },
    });
    issues.reset();
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

  /** Records that a revision was created. @param now milliseconds of a monotonic clock */
  rolloutStarted(id: string, generation: number, now: number): void {
    if (this.#underWay.has(id)) {
      this.#rollouts.inc({ result: 'superseded' });
    }
    this.#underWay.set(id, { generation, startedAt: now });
  }

  /** Records that the status of a policy was written. @param now milliseconds of a monotonic clock */
  statusWritten(id: string, phase: string, generation: number, now: number): void {
    const rollout = this.#underWay.get(id);
    if (rollout === undefined || generation < rollout.generation) {
      return;
    }
    if (phase === 'Active' || phase === 'RolledBack') {
      this.#underWay.delete(id);
      this.#rollouts.inc({ result: 'active' });
      this.#seconds.observe((now - rollout.startedAt) / 1000);
    } else if (phase === 'Error' || phase === 'Degraded') {
      this.#underWay.delete(id);
      this.#rollouts.inc({ result: 'failed' });
    }
  }

  forget(id: string): void {
    this.#underWay.delete(id);
  }
}

function serverLabels(policies: Iterable<AdmissionPolicyObject>): (spec: AdmissionPolicyObject['spec']) => string {
  const limit = new LabelLimit(MAX_SERVERS);
  const nameOf = ({ policyServer }: AdmissionPolicyObject['spec']): string => policyServer ?? DEFAULT_POLICY_SERVER;
  for (const { spec } of policies) {
    limit.count(nameOf(spec));
  }
  return (spec) => limit.label(nameOf(spec));
}
