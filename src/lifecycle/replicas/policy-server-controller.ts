// What is said of the replicas of a policy server in the status of its PolicyServer.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { unlessGone } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { POLICY_SERVERS, setCondition } from '../../resources/index.ts';
import type { Condition, JsonObject, ObjectKey, PolicyServer } from '../../resources/index.ts';
import { anyOf, Controller, generationChanged, watch } from '../../runtime/index.ts';
import type { Predicate, Runnable, RuntimeMetrics, SharedCaches } from '../../runtime/index.ts';
import { FIELD_MANAGER } from '../field-manager.ts';
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
    const unsubscribe = this.#options.replicas.subscribe(({ policyServer, policies }) => {
      if (policies === 'all') {
        this.#controller.enqueue({ name: policyServer }, { afterMs: GATHER_MS });
      }
    });
    try {
      await this.#controller.start(signal);
    } finally {
      unsubscribe();
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const server = this.#servers.get(key);
    const replicas = this.#options.replicas.replicas(key.name);
    // Told of again when they are known.
    if (server === undefined || server.metadata.deletionTimestamp !== undefined || replicas === undefined) {
      return;
    }
    const before = server.status ?? {};
    const status = policyServerStatus(server, replicas, before, Date.now());
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
): Status {
  const generation = metadata.generation ?? 0;
  const ready = replicas.filter(({ state }) => state === 'connected').length;
  const missing = replicas.filter(({ state }) => state !== 'connected').map(({ name }) => name);
  const isReady = missing.length === 0 && ready > 0 && ready >= spec.replicas;
  const reason = isReady ? 'allReplicas' : ready > 0 ? 'someReplicas' : 'noReplica';
  const conditions: readonly Condition[] = setCondition(
    before.conditions,
    {
      type: READY_CONDITION,
      status: isReady ? 'True' : 'False',
      observedGeneration: generation,
      reason: READY_REASONS[reason],
      message: messageOf(spec.replicas, ready, missing),
    },
    now,
  );
  return {
    observedGeneration: generation,
    readyReplicas: ready,
    totalReplicas: replicas.length,
    conditions: [...conditions],
  };
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
