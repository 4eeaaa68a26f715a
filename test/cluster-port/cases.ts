// What every cluster does, whichever it is: cases that run against each implementation of the Cluster port.
import type { Cluster } from '../../src/cluster/index.ts';

/** Where a case runs. */
export interface PortContext {
  /** As the administrator. */
  readonly cluster: Cluster;
  /** As somebody whom nothing is allowed that no RBAC object allows. */
  readonly as: (user: 'alice' | 'bob') => Cluster;
  /** A namespace of the case's own. */
  readonly namespace: string;
  /** A name that no other case has, for cluster-scoped objects. */
  readonly unique: (prefix: string) => string;
}

export interface PortCase {
  readonly name: string;
  /** Where it cannot hold, and why: `kubernetes` is an API server without controllers and nodes. */
  readonly notOn?: { readonly kubernetes?: string; readonly embedded?: string };
  readonly run: (context: PortContext) => Promise<void>;
}
