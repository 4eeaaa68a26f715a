// What is said of the replicas of a policy server in the status of its PolicyServer.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { POLICY_SERVERS, setCondition } from '../../resources/index.ts';
import type { Condition, ConditionUpdate, JsonObject, ObjectKey, PolicyServer } from '../../resources/index.ts';
import { anyOf, Controller, generationChanged, watch } from '../../runtime/index.ts';
import type { Predicate, Runnable, RuntimeMetrics, SharedCaches } from '../../runtime/index.ts';
import { FIELD_MANAGER } from '../field-manager.ts';
import type { PolicyServerReport, PolicyServerReports } from '../policy-servers/policy-server-conditions.ts';
import { OBJECT_CONDITIONS } from '../policy-servers/policy-server-conditions.ts';
import { WrittenObjects } from '../written-objects.ts';
import type { KnownReplica, ReplicaDirectory } from './replica-directory.ts';

/** Replicas that come or go together are told of together. Milliseconds. */
const GATHER_MS = 50;
/** Names of replicas in a message. */
const MAX_NAMES = 10;

/** Condition of a PolicyServer: whether all of its replicas answer. */
export const READY_CONDITION = 'Ready';
/** Reasons of {@link READY_CONDITION}. */
export const READY_REASONS = {
  /** As many replicas as the spec says answer, and none is missing. */
  allReplicas: 'AllReplicasConnected',
  /** Some answer; fewer than the spec says, or others are lost. */
  someReplicas: 'ReplicasMissing',
  /** No replica answers. */
  noReplica: 'NoReplicaConnected',
} as const;

export interface PolicyServerControllerOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly replicas: Pick<ReplicaDirectory, 'replicas' | 'subscribe'>;
  /** What is made for PolicyServers, and whose they are. Default: nothing is, and all are ours. */
  readonly objects?: PolicyServerReports;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
}

type Status = NonNullable<PolicyServer['status']>;

/** Writes the status of PolicyServers, when it differs. Only a leader runs it. */
export class PolicyServerController implements Runnable {
  readonly name = 'policyserver-status';
  readonly ready: Promise<void>;
  readonly #options: PolicyServerControllerOptions;
  readonly #servers: WrittenObjects<PolicyServer>;
  readonly #controller: Controller;

  constructor(options: PolicyServerControllerOptions) {
    const { caches, log, metrics } = options;
    this.#options = options;
    const servers = caches.cache(POLICY_SERVERS);
    this.#servers = new WrittenObjects(servers);
    this.#controller = new Controller({
      name: this.name,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      // A status that somebody else wrote is put right; its own writing costs a look that finds nothing to do.
      watches: [watch(servers, { when: [anyOf(generationChanged, statusChanged)] })],
      log,
      ...(metrics === undefined ? {} : { metrics }),
    });
    this.ready = this.#controller.ready;
  }

  async start(signal: AbortSignal): Promise<void> {
    const look = (name: string): void => this.#controller.enqueue({ name }, { afterMs: GATHER_MS });
    const { objects, replicas } = this.#options;
    const ends = [
      replicas.subscribe(({ policyServer, policies }) => {
        if (policies === 'all') {
          look(policyServer);
        }
      }),
      objects?.subscribe(look),
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
    // Told of again when they are known.
    if (server === undefined || server.metadata.deletionTimestamp !== undefined || replicas === undefined) {
      return;
    }
    // Another controller's has its status, too.
    if (objects?.isOurs(key.name) === false) {
      return;
    }
    const before = server.status ?? {};
    const status = policyServerStatus(server, replicas, before, Date.now(), objects?.report(key.name));
    if (isDeepStrictEqual({ ...before, ...status }, { ...before })) {
      return;
    }
    const patch = { type: 'merge', body: { status } as unknown as JsonObject } as const;
    const options = { subresource: 'status', fieldManager: FIELD_MANAGER, signal };
    this.#servers.wrote(key, await unlessGone(this.#options.cluster.patch(POLICY_SERVERS, key, patch, options)));
  }
}

const statusChanged: Predicate<PolicyServer> = ({ before, after }) => !isDeepStrictEqual(before?.status, after?.status);

/** The status of a PolicyServer, after `before`. `now` in milliseconds since 1970. */
export function policyServerStatus(
  { metadata, spec }: Pick<PolicyServer, 'metadata' | 'spec'>,
  replicas: readonly Pick<KnownReplica, 'name' | 'state'>[],
  before: Status,
  now: number,
  report?: PolicyServerReport,
): Status {
  const generation = metadata.generation ?? 0;
  const ready = replicas.filter(({ state }) => state === 'connected').length;
  const missing = replicas.filter(({ state }) => state !== 'connected').map(({ name }) => name);
  const isReady = missing.length === 0 && ready > 0 && ready >= spec.replicas;
  const reason = isReady ? 'allReplicas' : ready > 0 ? 'someReplicas' : 'noReplica';
  const trouble = isReady ? undefined : troubleOf(report);
  const counts = messageOf(spec.replicas, ready, missing);
  const updates: readonly ConditionUpdate[] = [
    {
      type: READY_CONDITION,
      status: isReady ? 'True' : 'False',
      observedGeneration: generation,
      reason: READY_REASONS[reason],
      message: trouble === undefined ? counts : `${counts}; ${trouble}`,
    },
    ...(report?.conditions.map((condition) => ({ ...condition, observedGeneration: report.generation })) ?? []),
  ];
  const conditions = updates.reduce<readonly Condition[]>(
    (list, update) => setCondition(list, update, now),
    before.conditions ?? [],
  );
  return {
    observedGeneration: generation,
    readyReplicas: ready,
    totalReplicas: replicas.length,
    ...(report === undefined ? {} : { image: report.image, moduleCache: report.moduleCache }),
    conditions: [...conditions],
  };
}

/** Why there may be no processes: whoever sees no pods looks here first. */
function troubleOf(report: PolicyServerReport | undefined): string | undefined {
  const deployment = report?.conditions.find(({ type }) => type === OBJECT_CONDITIONS.Deployment);
  return deployment?.status === 'False' ? deployment.message : undefined;
}

function messageOf(wanted: number, ready: number, missing: readonly string[]): string {
  const known = ready + missing.length;
  const counts = `${ready} of ${Math.max(wanted, known)} replicas ${ready === 1 ? 'answers' : 'answer'}`;
  if (missing.length === 0) {
    return counts;
  }
  const names = missing.slice(0, MAX_NAMES).join(', ');
  const more = missing.length > MAX_NAMES ? ` and ${missing.length - MAX_NAMES} more` : '';
  return `${counts}; not: ${names}${more}`;
}
