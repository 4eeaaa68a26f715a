import type { Cluster } from '../../cluster/index.ts';
import type { Authorizer, ClusterState, UserInfo } from '../embedded/request/request.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** The part of an embedded cluster that a gateway uses. */
export interface ServedCluster {
  /** The cluster as a user sees it. */
  as(user: UserInfo): Cluster;
  readonly state: ClusterState;
  /** Authorizes requests for non-resource paths and unknown resources. The cluster authorizes all others. */
  readonly authorizer: Authorizer;
  /** All served kinds in all versions, a group's preferred version first. The same array until one changes. */
  definitions(): readonly ResourceDefinition[];
}
