import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  apiVersionOf,
  type AuditStatus,
  type ObjectKey,
  type ResourceType,
} from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';

/** A policy; with `uid`, no other of the same name; with `resourceVersion`, only as it was then. */
interface AppliedPolicy extends ObjectKey {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/**
 * Replaces what a policy says about existing objects, whoever has written it before.
 * @returns undefined when the policy is gone
 * @throws ApiError, ClusterError
 */
export async function applyAudit(
  cluster: Pick<Cluster, 'patch'>,
  kind: ResourceType<AdmissionPolicyObject>,
  { name, namespace, uid, resourceVersion }: AppliedPolicy,
  audit: AuditStatus,
  options: { readonly fieldManager: string; readonly signal: AbortSignal },
): Promise<AdmissionPolicyObject | undefined> {
  const key = { name, ...(namespace === undefined ? {} : { namespace }) };
  const body = asJson({
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      ...key,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    status: { audit },
  });
  const patch = { type: 'apply', body, force: true } as const;
  return await unlessGone(cluster.patch(kind, key, patch, { subresource: 'status', ...options }));
}
