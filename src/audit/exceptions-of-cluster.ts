import { type Cluster, isNotFound, listAll, type RequestOptions } from '../cluster/index.ts';
import { acceptedTerms, type ExceptionTerms, POLICY_EXCEPTIONS } from '../resources/index.ts';
import type { AuditPolicy } from './audit-policy.ts';
import { type Coverage, failedList, NO_COUNTS } from './coverage.ts';

/** The exceptions of a cluster that are in force, and why they are not known. */
export interface ExceptionsOfCluster {
  readonly exceptions: readonly ExceptionTerms[];
  readonly coverage: readonly Coverage[];
}

/**
 * Reads the exceptions that the controller has accepted for these policies.
 * @param namespace reads exceptions only there. Default: of all namespaces
 */
export async function exceptionsOfCluster(
  cluster: Pick<Cluster, 'list'>,
  policies: readonly AuditPolicy[],
  options: RequestOptions & { readonly namespace?: string } = {},
): Promise<ExceptionsOfCluster> {
  const uids = new Map(policies.map(({ id, uid }) => [id, uid]));
  try {
    const { items } = await listAll(cluster, POLICY_EXCEPTIONS, options);
    return { exceptions: items.flatMap((one) => acceptedTerms(one, (id) => uids.get(id)) ?? []), coverage: [] };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (isNotFound(error)) {
      // Of an older version, the cluster has no such kind.
      return { exceptions: [], coverage: [] };
    }
    const { group, version, resource, kind, namespaced } = POLICY_EXCEPTIONS;
    const type = { group, version, resource, kind, namespaced };
    return { exceptions: [], coverage: [{ policy: '*', kind: type, ...failedList(error, type), counts: NO_COUNTS }] };
  }
}
