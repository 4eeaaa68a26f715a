// The other replicas of a PolicyServer, from their PolicyServerReplicas.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyServerReplica } from '../../resources/index.ts';
import type { ObjectView } from '../../runtime/index.ts';

export interface PeerDirectoryOptions {
  /** PolicyServerReplicas; those of other PolicyServers are ignored. */
  readonly replicas: Pick<ObjectView<PolicyServerReplica>, 'list' | 'subscribe'>;
  readonly namespace: string;
  readonly policyServer: string;
  /** The replica itself, which is not its own peer. */
  readonly name: string;
}

/** The addresses of other replicas of the same PolicyServer. */
export class PeerDirectory {
  readonly #options: PeerDirectoryOptions;

  constructor(options: PeerDirectoryOptions) {
    this.#options = options;
  }

  /** `host:port` of their control ports, sorted. */
  addresses(): readonly string[] {
    const { replicas, namespace, policyServer, name } = this.#options;
    return replicas
      .list(namespace)
      .filter(({ metadata, spec }) => metadata.name !== name && spec.policyServer === policyServer)
      .flatMap(({ spec }) => spec.controlAddress ?? [])
      .toSorted();
  }

  /** Calls the listener with the addresses now and after each change. Returns a function that ends the subscription. */
  subscribe(listener: (addresses: readonly string[]) => void): () => void {
    let reported: readonly string[] = this.addresses();
    listener(reported);
    return this.#options.replicas.subscribe(() => {
      const addresses = this.addresses();
      if (!isDeepStrictEqual(addresses, reported)) {
        reported = addresses;
        listener(addresses);
      }
    });
  }
}
