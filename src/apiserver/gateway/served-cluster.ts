import type { Cluster } from '../../cluster/index.ts';
import type { Authorizer, ClusterState, UserInfo } from '../embedded/request.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** What a gateway serves: an embedded cluster. */
export interface ServedCluster {
  /** The cluster as that user may use it. */
  as(user: UserInfo): Cluster;
  readonly state: ClusterState;
  /** Decides about paths and unknown resources; about all else the cluster decides itself. */
  readonly authorizer: Authorizer;
  /** All kinds in all versions that are served, a group's preferred version first. The same array while nothing changes. */
  definitions(): readonly ResourceDefinition[];
}
