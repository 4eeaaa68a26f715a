// Writes the status of PolicyServers: replicas, conditions, image.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  POLICY_SERVERS,
  removeCondition,
  setCondition,
  setReadiness,
} from '../../resources/index.ts';
import type { Condition, ObjectKey, PolicyServerObject, Readiness } from '../../resources/index.ts';
import { anyOf, Controller, generationChanged, watch, WrittenObjects } from '../../runtime/index.ts';
import type { Predicate, Runnable, RuntimeMetrics, SharedCaches } from '../../runtime/index.ts';
import type { PolicyServerReport, PolicyServerReports } from '../policy-servers/policy-server-conditions.ts';
import { AUTHORITY_CONDITION, CERTIFICATE_CONDITION } from '../policy-servers/certificate-conditions.ts';
import { OBJECT_CONDITIONS, STALLED_REASONS } from '../policy-servers/policy-server-conditions.ts';
import type { KnownReplica, ReplicaDirectory } from './replica-directory.ts';
import { asJson, inertTexts, listed } from '../../values/index.ts';

/** Delay that collects changes of several replicas into one write. Milliseconds. */
const GATHER_MS = 50;
/** Names of replicas in a message; further ones are counted. */
const MAX_NAMES = 10;

/** The condition of clocks, and its reason. */
const CLOCKS_AGREE = 'ClocksAgree';
const CLOCK_SKEW = 'ClockSkew';

/** Reasons of the condition `Ready`, besides those of the conditions that it summarises. */
const READY_REASONS = {
  /** All replicas of the spec are connected, and no other is lost. */
  allReplicas: 'AllReplicasConnected',
  /** Some are connected; fewer than in the spec, or others are lost. */
  someReplicas: 'ReplicasMissing',
  /** No replica is connected. */
  noReplica: 'NoReplicaConnected',
  /** All are connected, and the objects of the newest spec are not applied yet. */
  applying: 'ApplyingChanges',
  /** All are connected, and pods of the previous version are still being replaced. */
  rollingOut: 'RollingOut',
} as const;

export interface PolicyServerControllerOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly replicas: Pick<ReplicaDirectory, 'replicas' | 'subscribe'>;
  /**
   * Reports on the objects and the owner of PolicyServers. Default: no objects are created, and all PolicyServers are
   * ours.
   */
  readonly objects?: PolicyServerReports;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
}

type Status = NonNullable<PolicyServerObject['status']>;

/** Writes the status of PolicyServers when it changes. Only the leader runs it. */
export class PolicyServerController implements Runnable {
  readonly name = 'policyserver-status';
  readonly ready: Promise<void>;
  readonly #options: PolicyServerControllerOptions;
  readonly #servers: WrittenObjects<PolicyServerObject>;
  readonly #controller: Controller;

  constructor(options: PolicyServerControllerOptions) {
    const { caches, log, metrics } = options;
    this.#options = options;
    const servers = caches.cache(POLICY_SERVERS);
    this.#servers = new WrittenObjects(servers);
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      // Restores a status that another writer changed. Its own writes cause a reconciliation without a change.
      watches: [watch(servers, { when: [anyOf(generationChanged, statusChanged)] })],
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    this.ready = this.#controller.ready;
  }

  async start(signal: AbortSignal): Promise<void> {
    const enqueue = (name: string): void => this.#controller.enqueue({ name }, { afterMs: GATHER_MS });
    const { objects, replicas } = this.#options;
    const ends = [
      replicas.subscribe(({ policyServer, policies }) => {
        if (policies === 'all') {
          enqueue(policyServer);
        }
      }),
      objects?.subscribe(enqueue),
    ];
    try {
      await this.#controller.start(signal);
    } finally {
      for (const end of ends) {
        end?.();
      }
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const server = this.#servers.get(key);
    const replicas = this.#options.replicas.replicas(key.name);
    const { objects } = this.#options;
    // The directory reports the replicas once they are known.
    if (server === undefined || replicas === undefined) {
      return;
    }
    // Another controller writes the status of its PolicyServers.
    if (objects?.isOurs(key.name) === false) {
      return;
    }
    const report = objects?.report(key.name);
    if (server.metadata.deletionTimestamp !== undefined && report?.failure === undefined) {
      return;
    }
    const before = server.status ?? {};
    const made = objects === undefined ? undefined : { report };
    const status = inertTexts(policyServerStatus(server, replicas, before, Date.now(), made));
    if (isDeepStrictEqual({ ...before, ...status }, { ...before })) {
      return;
    }
    const patch = { type: 'merge', body: asJson({ status }) } as const;
    const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    this.#servers.recordWrite(key, await unlessGone(this.#options.cluster.patch(POLICY_SERVERS, key, patch, options)));
  }
}

const statusChanged: Predicate<PolicyServerObject> = ({ before, after }) =>
  !isDeepStrictEqual(before?.status, after?.status);

/** Conditions that `Ready` summarises, besides the number of replicas. */
const SUMMARISED: ReadonlySet<string> = new Set([
  ...Object.values(OBJECT_CONDITIONS),
  AUTHORITY_CONDITION,
  CERTIFICATE_CONDITION,
]);

/**
 * The status of a PolicyServer.
 *
 * @param before the current status
 * @param now milliseconds since 1970
 * @param objects the report on its objects, undefined until known. Without `objects`, none are created
 */
export function policyServerStatus(
  { metadata, spec }: Pick<PolicyServerObject, 'metadata' | 'spec'>,
  replicas: readonly Pick<KnownReplica, 'name' | 'state' | 'clockOffsetMs'>[],
  before: Status,
  now: number,
  objects?: { readonly report: PolicyServerReport | undefined },
): Status {
  const { generation = 0 } = metadata;
  const report = objects?.report;
  const updates = report?.conditions.map((one) => ({ ...one, observedGeneration: report.generation })) ?? [];
  const withReport = (list: readonly Condition[]): readonly Condition[] =>
    updates.reduce((all, update) => setCondition(all, update, now), list);
  const known = withReport(before.conditions ?? []);
  const readiness = readinessOf(spec.replicas, replicas, known, objects, generation);
  // A generation is observed once its objects are applied. Conditions must not have the -1 of a status that was never
  // written.
  const observed = objects === undefined ? generation : (report?.generation ?? before.observedGeneration);
  const about = Math.max(observed ?? 0, 0);
  return {
    ...(observed === undefined ? {} : { observedGeneration: observed }),
    // A process may be connected before its pod is ready, and API servers do not reach it until then.
    readyReplicas: report?.readyPods ?? replicas.filter(({ state }) => state === 'connected').length,
    totalReplicas: replicas.length,
    ...(report === undefined ? {} : { image: report.image, moduleCache: report.moduleCache }),
    conditions: withClocks(withReport(setReadiness(before.conditions, readiness, about, now)), replicas, now),
  };
}

/** The condition {@link CLOCKS_AGREE} is there while clocks differ, because the end of exceptions is decided by each. */
function withClocks(
  conditions: readonly Condition[],
  replicas: readonly Pick<KnownReplica, 'name' | 'clockOffsetMs'>[],
  now: number,
): readonly Condition[] {
  const others = replicas.filter(({ clockOffsetMs = 0 }) => clockOffsetMs !== 0);
  if (others.length === 0) {
    return removeCondition(conditions, CLOCKS_AGREE);
  }
  const offsets = others.map(({ name, clockOffsetMs = 0 }) => `${name} ${offsetText(clockOffsetMs)}`);
  const message = `clocks differ from that of the controller, so that exceptions begin and end earlier or later there: ${listed(offsets, MAX_NAMES)}`;
  return setCondition(conditions, { type: CLOCKS_AGREE, status: 'False', reason: CLOCK_SKEW, message }, now);
}

function offsetText(ms: number): string {
  return `by ${ms > 0 ? '+' : ''}${ms / 1_000} s`;
}

function readinessOf(
  wanted: number,
  replicas: readonly Pick<KnownReplica, 'name' | 'state'>[],
  conditions: readonly Condition[],
  objects: { readonly report: PolicyServerReport | undefined } | undefined,
  generation: number,
): Readiness {
  const ready = replicas.filter(({ state }) => state === 'connected').length;
  const missing = replicas.filter(({ state }) => state !== 'connected').map(({ name }) => name);
  const failed = conditions.filter(({ type, status }) => status === 'False' && SUMMARISED.has(type));
  const { failure, rollout } = objects?.report ?? {};
  const isStalled = failure?.state === 'stalled' || failed.some(({ reason }) => STALLED_REASONS.has(reason));
  const state = isStalled ? 'stalled' : 'reconciling';
  const counts = messageOf(wanted, ready, missing);
  if (missing.length > 0 || ready === 0 || ready < wanted) {
    const reason = ready > 0 ? READY_REASONS.someReplicas : READY_REASONS.noReplica;
    const why = failed.find(({ type }) => type === OBJECT_CONDITIONS.Deployment)?.message ?? failure?.message;
    return { state, reason, message: why === undefined ? counts : `${counts}; ${why}` };
  }
  const [first] = failed;
  if (first !== undefined) {
    return { state, reason: first.reason, message: `${counts}; ${first.type}: ${first.message}` };
  }
  if (failure !== undefined) {
    return { ...failure, message: `${counts}; ${failure.message}` };
  }
  if (objects?.report !== undefined && objects.report.generation < generation) {
    return { state, reason: READY_REASONS.applying, message: `${counts}; the newest spec is being applied` };
  }
  return rollout === undefined
    ? { state: 'ready', reason: READY_REASONS.allReplicas, message: counts }
    : { state, reason: READY_REASONS.rollingOut, message: `${counts}; ${rollout}` };
}

function messageOf(wanted: number, ready: number, missing: readonly string[]): string {
  const known = ready + missing.length;
  const counts = `${ready} of ${Math.max(wanted, known)} replicas ${ready === 1 ? 'answers' : 'answer'}`;
  return missing.length === 0 ? counts : `${counts}; not: ${listed(missing, MAX_NAMES)}`;
}
