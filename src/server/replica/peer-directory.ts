// The other replicas of a PolicyServer, and the controllers, from the objects that they write.
import { isDeepStrictEqual } from 'node:util';
import type { PeerAddresses } from '../../modules/index.ts';
import type { ControllerReplica, PolicyServerReplica } from '../../resources/index.ts';
import type { CachedObjects } from '../../runtime/index.ts';

export interface PeerDirectoryOptions {
  /** PolicyServerReplicas; those of other PolicyServers are ignored. */
  readonly replicas: Pick<CachedObjects<PolicyServerReplica>, 'list' | 'subscribe'>;
  readonly controllers: Pick<CachedObjects<ControllerReplica>, 'list' | 'subscribe'>;
  readonly namespace: string;
  readonly policyServer: string;
  /** The replica itself, which is not its own peer. */
  readonly name: string;
}

export type PeersListener = (addresses: PeerAddresses, hasNewModules: boolean) => void;

/** The addresses of other replicas of the same PolicyServer, and of controllers. */
export class PeerDirectory {
  readonly #options: PeerDirectoryOptions;

  constructor(options: PeerDirectoryOptions) {
    this.#options = options;
  }

  /** The addresses of their control ports, sorted. */
  addresses(): PeerAddresses {
    const { replicas, controllers, namespace, policyServer, name } = this.#options;
    return {
      replicas: replicas
        .list(namespace)
        .filter(({ metadata, spec }) => metadata.name !== name && spec.policyServer === policyServer)
        .flatMap(({ spec }) => spec.controlAddress ?? [])
        .toSorted(),
      controllers: controllers
        .list(namespace)
        .map(({ spec }) => spec.controlAddress)
        .toSorted(),
    };
  }

  /**
   * Calls the listener with the addresses now and after each change, and whether a peer may have modules that no peer had before: a
   * controller has started since, or another replica has loaded what it could not load. Returns a function that ends the
   * subscription.
   */
  subscribe(listener: PeersListener): () => void {
    let reported = this.addresses();
    let started = this.#starts();
    listener(reported, started.size > 0);
    const changed = (hasRecovered: boolean): void => {
      const addresses = this.addresses();
      const starts = this.#starts();
      const isNew = hasRecovered || !starts.isSubsetOf(started);
      if (isNew || !isDeepStrictEqual(addresses, reported)) {
        reported = addresses;
        started = starts;
        listener(addresses, isNew);
      }
    };
    const { replicas, controllers, name } = this.#options;
    const ends = [
      replicas.subscribe(({ before, after }) => changed(after?.metadata.name !== name && hasRecovered(before, after))),
      controllers.subscribe(() => changed(false)),
    ];
    return () => ends.forEach((end) => end());
  }

  /** Processes of controllers. One that is started again has its address, and other copies maybe. */
  #starts(): ReadonlySet<string> {
    const { controllers, namespace } = this.#options;
    return new Set(controllers.list(namespace).map(({ spec }) => `${spec.controlAddress} ${spec.startedAt ?? ''}`));
  }
}

/** Whether a process has loaded a revision that it could not load. Replicas report every two seconds at most. */
function hasRecovered(before: PolicyServerReplica | undefined, after: PolicyServerReplica | undefined): boolean {
  const failed = before?.status?.failedRevisions ?? 0;
  const isSameProcess = before?.status?.startedAt === after?.status?.startedAt;
  return after !== undefined && isSameProcess && (after.status?.failedRevisions ?? 0) < failed;
}
