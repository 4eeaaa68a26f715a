import { type Cluster, listAll } from '../../cluster/index.ts';
import { type AdmissionPolicyObject, POLICY_KINDS } from '../../resources/index.ts';

/** The policies of all kinds that a PolicyServer runs. @throws ApiError when the user may not list one of the kinds */
export async function policiesOfServer(
  cluster: Cluster,
  policyServer: string,
): Promise<readonly AdmissionPolicyObject[]> {
  const lists = await Promise.all(POLICY_KINDS.map((kind) => listAll(cluster, kind, {})));
  // Validated by the schemas of the kinds.
  const policies = lists.flatMap(({ items }) => items);
  return policies.filter(({ spec }) => (spec.policyServer ?? 'default') === policyServer);
}
