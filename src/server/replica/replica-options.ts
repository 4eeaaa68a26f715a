import type { Cluster } from '../../cluster/index.ts';
import type { ControlTls } from '../../control/index.ts';

/** How a policy server is a replica of a PolicyServer of a cluster: what it serves are the cluster's PolicyRevisions. */
export interface ReplicaOptions {
  /** Seen with the replica's own rights, see `REPLICA_RULES` and `REPLICA_CLUSTER_RULES`. */
  readonly cluster: Cluster;
  /** Namespace of the product: of PolicyRevisions, PolicyServerReplicas and Leases. */
  readonly namespace: string;
  /** The PolicyServer that it is a replica of. */
  readonly policyServer: string;
  /** `metadata.name` of its PolicyServerReplica; no other process may have it at the same time. */
  readonly name: string;
  /** The pod that it runs in: it owns what the replica reports. Default: none, and a Lease of its own does. */
  readonly pod?: { readonly name: string; readonly uid: string };
  readonly control: {
    readonly host: string;
    /** 0 takes a free one. */
    readonly port: number;
    /** The host that others reach it by. Default: `host`. */
    readonly advertise?: string;
    readonly tls: ControlTls;
  };
  /** Where `file://./…` leads: a URL of a folder that ends with a slash. Absent: such modules are refused. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that policies of namespaces may use. Default: all. */
  readonly namespacedPoliciesCapabilities?: readonly string[];
}
