import type { Cluster } from '../../cluster/index.ts';
import type { ControlTls } from '../../control/index.ts';

/** Options of a policy server that is a replica of a PolicyServer: it serves the PolicyRevisions of a cluster. */
export interface ClusterPoliciesOptions {
  /** With the rights of a replica, see `REPLICA_RULES` and `REPLICA_CLUSTER_RULES`. */
  readonly cluster: Cluster;
  /** The cluster with the account that context-aware policies read with. Default: `cluster`. */
  readonly policyCluster?: Cluster;
  /** Namespace of the product: of PolicyRevisions, PolicyServerReplicas and Leases. */
  readonly namespace: string;
  /** The PolicyServer of the replica. */
  readonly policyServer: string;
  /** `metadata.name` of its PolicyServerReplica, unique among running processes. */
  readonly name: string;
  /** The pod of the process, which owns the replica's objects. Default: none; a Lease owns them. */
  readonly pod?: { readonly name: string; readonly uid: string; readonly nodeName?: string };
  readonly control: {
    readonly host: string;
    /** 0 for a free port. */
    readonly port: number;
    /** The host for other replicas and controllers. Default: `host`. */
    readonly advertise?: string;
    readonly tls: ControlTls;
  };
  /** Folder that `file://./…` is relative to: a URL that ends with a slash. Absent: such references are refused. */
  readonly modulesUrl?: URL;
  /**
   * Interval of reports on what one policy in monitor mode would have rejected, and of those on uses of exceptions. Default:
   * MONITORED_REPORT_MS and USES_REPORT_MS.
   */
  readonly monitoredReportMs?: number;
  /** Patterns of host capabilities that policies of namespaces may use. Default: none. */
  readonly namespacedPoliciesCapabilities?: readonly string[];
}
