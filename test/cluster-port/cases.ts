// Cases for every implementation of the Cluster port.
import type { Cluster } from '../../src/cluster/index.ts';

/** The environment of a case. */
export interface PortContext {
  /** The cluster as the administrator. */
  readonly cluster: Cluster;
  /** The cluster as a user whose rights come from RBAC objects only. */
  readonly as: (user: 'alice' | 'bob') => Cluster;
  /** A namespace of this case. */
  readonly namespace: string;
  /** A unique name for cluster-scoped objects. */
  readonly unique: (prefix: string) => string;
}

export interface PortCase {
  readonly name: string;
  /** Why the case does not hold on an implementation: `kubernetes` is an API server without controllers and nodes. */
  readonly notOn?: { readonly kubernetes?: string; readonly embedded?: string };
  readonly run: (context: PortContext) => Promise<void>;
}
