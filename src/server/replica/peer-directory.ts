// The other replicas of a PolicyServer, and the controllers, from the objects that they write.
import { isDeepStrictEqual } from 'node:util';
import type { PeerAddresses } from '../../modules/index.ts';
import type { ControllerReplica, PolicyServerReplica } from '../../resources/index.ts';
import type { ObjectView } from '../../runtime/index.ts';

export interface PeerDirectoryOptions {
  /** PolicyServerReplicas; those of other PolicyServers are ignored. */
  readonly replicas: Pick<ObjectView<PolicyServerReplica>, 'list' | 'subscribe'>;
  readonly controllers: Pick<ObjectView<ControllerReplica>, 'list' | 'subscribe'>;
  readonly namespace: string;
  readonly policyServer: string;
  /** The replica itself, which is not its own peer. */
  readonly name: string;
}

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

  /** Calls the listener with the addresses now and after each change. Returns a function that ends the subscription. */
  subscribe(listener: (addresses: PeerAddresses) => void): () => void {
    let reported = this.addresses();
    listener(reported);
    const changed = (): void => {
      const addresses = this.addresses();
      if (!isDeepStrictEqual(addresses, reported)) {
        reported = addresses;
        listener(addresses);
      }
    };
    const ends = [this.#options.replicas.subscribe(changed), this.#options.controllers.subscribe(changed)];
    return () => ends.forEach((end) => end());
  }
}
