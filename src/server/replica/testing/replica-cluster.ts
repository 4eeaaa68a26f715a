import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import { ClusterError } from '../../../cluster/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import {
  customResourceDefinition,
  kubernetesKind,
  OWN_KINDS,
  POLICY_SERVER_REPLICAS,
} from '../../../resources/index.ts';
import type { PolicyServerReplica, ResourceType } from '../../../resources/index.ts';
import { LEASES } from '../../../runtime/index.ts';
import type { Lease } from '../../../runtime/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_RULES } from '../../../control/access-rules/index.ts';

export const NAMESPACE = 'portcullis';
const REPLICA_USER = { username: 'replica', groups: ['system:authenticated'] };

function kind(apiVersion: string, name: string): ResourceType {
  return kubernetesKind(apiVersion, name) as ResourceType;
}

/** An in-memory cluster with the rights of a replica, which counts requests and can be made unavailable. */
export class ReplicaCluster implements AsyncDisposable {
  /** With all rights. */
  readonly admin: Cluster;
  /** With the rights of a replica. */
  readonly cluster: Cluster;
  /** Requests of the replica, such as `update policyserverreplicas/status`. */
  readonly requests: string[] = [];
  isDown = false;
  readonly #embedded: EmbeddedCluster;

  private constructor(embedded: EmbeddedCluster) {
    this.#embedded = embedded;
    this.admin = embedded.admin;
    this.cluster = this.#counted(embedded.as(REPLICA_USER));
  }

  static async open(): Promise<ReplicaCluster> {
    const embedded = await EmbeddedCluster.open();
    for (const own of OWN_KINDS) {
      await embedded.admin.create(
        kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(own),
      );
    }
    const rbac = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: 'replica', namespace: NAMESPACE };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'replica' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: REPLICA_USER.username }];
    const objects = [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
      { apiVersion: rbac, kind: 'Role', metadata, rules: REPLICA_RULES },
      { apiVersion: rbac, kind: 'RoleBinding', metadata, roleRef, subjects },
      { apiVersion: rbac, kind: 'ClusterRole', metadata: { name: 'replica' }, rules: REPLICA_CLUSTER_RULES },
      {
        apiVersion: rbac,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'replica' },
        roleRef: { ...roleRef, kind: 'ClusterRole' },
        subjects,
      },
    ];
    for (const object of objects) {
      await embedded.admin.create(kind(object.apiVersion, object.kind), object);
    }
    return new ReplicaCluster(embedded);
  }

  /** Requests that changed something, except renewals of Leases. */
  get writes(): readonly string[] {
    return this.requests.filter((request) => /^(create|update|patch|delete) policy/.test(request));
  }

  async replica(name: string): Promise<PolicyServerReplica | undefined> {
    return await this.admin.get(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE, name }).catch(() => undefined);
  }

  async lease(name: string): Promise<Lease | undefined> {
    return await this.admin.get(LEASES, { namespace: NAMESPACE, name }).catch(() => undefined);
  }

  /** Waits until a replica's object meets a condition. */
  async until(name: string, holds: (replica: PolicyServerReplica) => boolean): Promise<PolicyServerReplica> {
    for (;;) {
      const replica = await this.replica(name);
      if (replica !== undefined && holds(replica)) {
        return replica;
      }
      await sleep(5);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#embedded.close();
  }

  #counted(cluster: Cluster): Cluster {
    return new Proxy(cluster, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== 'function') {
          return value;
        }
        return (type: ResourceType, ...rest: readonly unknown[]): unknown => {
          const { subresource } = (rest.at(-1) ?? {}) as { subresource?: string };
          this.requests.push(
            `${String(property)} ${type.resource}${subresource === undefined ? '' : `/${subresource}`}`,
          );
          if (this.isDown && property !== 'watch') {
            return Promise.reject(new ClusterError('unreachable', 'the API server is down'));
          }
          return Reflect.apply(value, target, [type, ...rest]);
        };
      },
    });
  }
}
