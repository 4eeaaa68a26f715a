// The other replicas of a PolicyServer, as its PolicyServerReplicas tell.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyServerReplica } from '../../resources/index.ts';
import type { ObjectView } from '../../runtime/index.ts';

export interface PeerDirectoryOptions {
  /** PolicyServerReplicas; others than those of this PolicyServer do no harm. */
  readonly replicas: Pick<ObjectView<PolicyServerReplica>, 'list' | 'subscribe'>;
  readonly namespace: string;
  readonly policyServer: string;
  /** The replica that asks: it is no peer of its own. */
  readonly name: string;
}

/** Knows where other replicas of the same PolicyServer are. */
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

  /** Tells the addresses now, and whenever they change, until the function that it returns is called. */
  subscribe(listener: (addresses: readonly string[]) => void): () => void {
    let told: readonly string[] = this.addresses();
    listener(told);
    return this.#options.replicas.subscribe(() => {
      const addresses = this.addresses();
      if (!isDeepStrictEqual(addresses, told)) {
        told = addresses;
        listener(addresses);
      }
    });
  }
}
