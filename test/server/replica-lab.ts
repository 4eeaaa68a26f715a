// A policy server as a replica of a PolicyServer, an in-memory cluster, and revisions written like the controller's.
import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { ClusterError } from '../../src/cluster/index.ts';
import type { Cluster } from '../../src/cluster/index.ts';
import {
  customResourceDefinition,
  type JsonObject,
  kubernetesKind,
  OWN_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  policyId,
  type PolicyRevision,
  type ResourceType,
  revisionName,
} from '../../src/resources/index.ts';
import type { PinnedModule, PrevalidationResult } from '../../src/control/index.ts';
import type { ClusterPoliciesOptions } from '../../src/server/index.ts';
import { requires, startServer, TestFolder, type TestServer, type TestServerOptions } from './harness.ts';

export const NAMESPACE = 'portcullis';

type RevisionStatus = NonNullable<PolicyRevision['status']>;

function kind(apiVersion: string, name: string): ResourceType {
  const type = kubernetesKind(apiVersion, name);
  assert.ok(type);
  return type;
}

/** The spec of a ClusterAdmissionPolicy that requires a label. */
export function requiresLabel(label: string, rest: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { module, settings } = requires(label);
  return { module, settings, mutating: false, rules: [], ...rest };
}

/** An in-memory cluster with our kinds. */
export async function openCluster(): Promise<EmbeddedCluster> {
  const cluster = await EmbeddedCluster.open();
  for (const own of OWN_KINDS) {
    await cluster.admin.create(
      kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
      customResourceDefinition(own),
    );
  }
  await cluster.admin.create(kind('v1', 'Namespace'), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE },
  });
  return cluster;
}

/** Writes revisions of cluster-wide policies like the controller. */
export class Revisions {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  static id(policy: string): string {
    return policyId({ kind: 'ClusterAdmissionPolicy', metadata: { name: policy } });
  }

  /** Creates a revision, then writes its status, if any. */
  async create(policy: string, revision: number, snapshot: unknown, status?: RevisionStatus): Promise<PolicyRevision> {
    const id = Revisions.id(policy);
    const created = await this.#cluster.create(POLICY_REVISIONS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyRevision',
      metadata: {
        name: revisionName(id, revision),
        namespace: NAMESPACE,
        labels: { [POLICY_SERVER_LABEL]: 'default' },
      },
      spec: {
        policy: {
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'ClusterAdmissionPolicy',
          name: policy,
          uid: `uid-of-${policy}`,
        },
        policyId: id,
        policyServer: 'default',
        revision,
        policyGeneration: revision,
        snapshot,
      },
    });
    return status === undefined ? created : await this.setStatus(policy, revision, status);
  }

  /** Merges into the status of a revision. */
  async setStatus(policy: string, revision: number, status: RevisionStatus): Promise<PolicyRevision> {
    const key = { name: revisionName(Revisions.id(policy), revision), namespace: NAMESPACE };
    return await this.#cluster.patch(
      POLICY_REVISIONS,
      key,
      { type: 'merge', body: { status } as unknown as JsonObject },
      { subresource: 'status' },
    );
  }

  async delete(policy: string, revision: number): Promise<void> {
    const key = { name: revisionName(Revisions.id(policy), revision), namespace: NAMESPACE };
    await this.#cluster.delete(POLICY_REVISIONS, key);
  }
}

/** Options of a replica: its cluster and its name. */
export interface LabReplicaOptions extends Partial<Omit<TestServerOptions, 'policies' | 'replica' | 'cluster'>> {
  readonly cluster: Cluster;
  readonly name?: string;
  /** Default: `default`. */
  readonly policyServer?: string;
  readonly modulesUrl?: URL;
  readonly policyCluster?: Cluster;
  readonly monitoredReportMs?: number;
}

/** Starts a replica of a PolicyServer; `await using` stops it. */
export async function startReplica({
  cluster,
  name = 'replica-0',
  policyServer = 'default',
  modulesUrl,
  policyCluster,
  monitoredReportMs,
  ...options
}: LabReplicaOptions): Promise<TestServer> {
  const folder = options.folder ?? (await TestFolder.create());
  const { controlCertFile: certFile, controlKeyFile: keyFile, caFile } = folder.certificates;
  const replica: ClusterPoliciesOptions = {
    cluster,
    namespace: NAMESPACE,
    policyServer,
    name,
    control: { host: '127.0.0.1', port: 0, tls: { certFile, keyFile, caFile } },
    ...(modulesUrl === undefined ? {} : { modulesUrl }),
    ...(policyCluster === undefined ? {} : { policyCluster }),
    ...(monitoredReportMs === undefined ? {} : { monitoredReportMs }),
  };
  return await startServer({ ...options, folder, policies: {}, replica });
}

/** A folder with the certificates of another one: replicas of a PolicyServer have the same CA. */
export async function folderLike(other: TestFolder): Promise<TestFolder> {
  const folder = await TestFolder.create();
  const from = Object.values(other.certificates) as string[];
  const to = Object.values(folder.certificates) as string[];
  await Promise.all(from.map((file, i) => copyFile(file, to[i] ?? '')));
  return folder;
}

/** The status of a validated revision, like the controller's. */
export function pinned(result: PrevalidationResult): readonly PinnedModule[] {
  assert.ok(result.ok, JSON.stringify(result));
  return result.modules;
}

/** A cluster that can be made unavailable; running watches stay open. */
export class SwitchedCluster {
  readonly view: Cluster;
  isDown = false;

  constructor(cluster: Cluster) {
    const fail = (): void => {
      if (this.isDown) {
        throw new ClusterError('unreachable', 'the cluster is switched off');
      }
    };
    this.view = new Proxy(cluster, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') {
          return member;
        }
        return (...parameters: unknown[]): unknown => {
          if (name === 'watch') {
            fail();
            return Reflect.apply(member, target, parameters);
          }
          return (async () => {
            fail();
            return (await Reflect.apply(member, target, parameters)) as unknown;
          })();
        };
      },
    });
  }
}
