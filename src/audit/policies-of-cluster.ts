import { ApiError, type Cluster, listAll, type RequestOptions } from '../cluster/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  type AdmissionPolicyObject,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  type OwnKind,
} from '../resources/index.ts';
import { auditPolicy, type AuditedInstallation, type AuditPolicy } from './audit-policy.ts';
import { type Coverage, failedList, NO_COUNTS } from './coverage.ts';

/** The policies of a cluster, and what is not known of them. */
export interface PoliciesOfCluster {
  readonly policies: readonly AuditPolicy[];
  /** Of kinds of policies that could not be read, and of policies with mistakes. */
  readonly coverage: readonly Coverage[];
}

const KINDS: readonly OwnKind[] = [
  CLUSTER_ADMISSION_POLICIES,
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  ADMISSION_POLICY_GROUPS,
];

/**
 * Reads the admission policies of a cluster.
 * @param namespace reads policies of namespaces only there. Default: of all namespaces
 */
export async function policiesOfCluster(
  cluster: Pick<Cluster, 'list'>,
  installation: AuditedInstallation,
  { namespace, ...options }: RequestOptions & { readonly namespace?: string } = {},
): Promise<PoliciesOfCluster> {
  const lists = await Promise.all(
    KINDS.map(async (kind): Promise<PoliciesOfCluster> => {
      const scope = namespace === undefined || !kind.namespaced ? options : { ...options, namespace };
      try {
        const { items } = await listAll(cluster, kind, scope);
        return readAll(
          items.map((item) => ({ ...item, kind: kind.kind }) as AdmissionPolicyObject),
          installation,
        );
      } catch (error) {
        options.signal?.throwIfAborted();
        return { policies: [], coverage: [unreadKind(error, kind)] };
      }
    }),
  );
  return {
    policies: lists.flatMap(({ policies }) => policies),
    coverage: lists.flatMap(({ coverage }) => coverage),
  };
}

function readAll(objects: readonly AdmissionPolicyObject[], installation: AuditedInstallation): PoliciesOfCluster {
  const read = objects.map((object) => auditPolicy(object, installation));
  return {
    policies: read.filter((one) => 'id' in one),
    coverage: read.flatMap((one) =>
      'id' in one
        ? []
        : { policy: one.name, state: 'Failed', reason: 'Invalid', message: one.problems.join('; '), counts: NO_COUNTS },
    ),
  };
}

/**
 * Coverage by policies of a kind that cannot be listed. Without the kind there are none.
 * @param verbs see {@link failedList}
 */
export function unreadKind(error: unknown, kind: OwnKind, verbs?: readonly string[]): Coverage {
  const { group, version, resource, namespaced } = kind;
  const failed = failedList(error, { group, version, resource, kind: kind.kind, namespaced }, verbs);
  const isMissing = error instanceof ApiError && error.code === 404;
  return {
    policy: '*',
    kind: { group, version, resource, kind: kind.kind, namespaced },
    ...failed,
    counts: NO_COUNTS,
    ...(isMissing ? { message: 'the cluster does not serve this kind of policies' } : {}),
  };
}
