// Rights of the current user (authorization.k8s.io/v1 SelfSubjectAccessReview).
import type { KubernetesCluster } from '../../cluster/index.ts';
import { isJsonObject, type ResourceType } from '../../resources/index.ts';

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** A verb on a kind, or on one object. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Absent: in all namespaces, or of a cluster-scoped kind. */
  readonly namespace?: string;
  /** Absent: all objects. */
  readonly name?: string;
}

/** For messages: `patch deployments.apps in namespace portcullis`. */
export function rightText({ verb, group, resource, namespace, name }: Right): string {
  const what = `${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` ${name}`}`;
  return `${verb} ${what}${namespace === undefined ? '' : ` in namespace ${namespace}`}`;
}

/** A right to each verb on a type, or on one object of it. */
export function rightsTo(
  verbs: readonly string[],
  { group, resource }: Pick<ResourceType, 'group' | 'resource'>,
  namespace?: string,
  name?: string,
): readonly Right[] {
  const where = { ...(namespace === undefined ? {} : { namespace }), ...(name === undefined ? {} : { name }) };
  return verbs.map((verb) => ({ verb, group, resource, ...where }));
}

/** The rights that the user does not have, without duplicates. @throws ApiError, ClusterError */
export async function missingRights(cluster: KubernetesCluster, rights: Iterable<Right>): Promise<readonly Right[]> {
  const unique = [...new Map([...rights].map((right) => [rightText(right), right])).values()];
  const allowed = await Promise.all(unique.map((right) => isAllowed(cluster, right)));
  return unique.filter((_, index) => allowed[index] !== true);
}

async function isAllowed(cluster: KubernetesCluster, right: Right): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: right },
  };
  const review = (await cluster.request('POST', PATH, { body })).json();
  const status = isJsonObject(review) ? review['status'] : undefined;
  return isJsonObject(status) && status['allowed'] === true;
}
