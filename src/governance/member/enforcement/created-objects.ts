// Finds objects that a policy may have created and its status does not list: the process was killed between the two writes. Only the
// status proves a creation, with the uid of the API server's answer: whoever may write an object may also set its field managers.
import { ApiError, type Cluster, isNotFound } from '../../../cluster/index.ts';
import type { ConfigurationPolicy, RelatedObject } from '../../../resources/index.ts';
import { errorText } from '../../../values/index.ts';
import { type ObjectPlan, objectEntry, relatedKey, type ObjectTemplatePlan } from '../../configuration/index.ts';
import { GOVERNANCE_FIELD_MANAGER } from './field-manager.ts';

/**
 * The field manager with which a policy creates objects; with `DeleteIfCreated` it identifies the policy. It is a hint for
 * users, and no proof.
 */
export function creatorOf({ spec, metadata }: ConfigurationPolicy): string {
  return spec.pruneObjectBehavior === 'DeleteIfCreated'
    ? `${GOVERNANCE_FIELD_MANAGER}/${metadata.uid ?? ''}`
    : GOVERNANCE_FIELD_MANAGER;
}

export interface CreatedObjects {
  /** Without `createdByPolicy` for objects of which it is not known. */
  readonly plans: readonly ObjectTemplatePlan[];
  /** Why objects could not be read: one reason for each. */
  readonly unread: readonly string[];
  /** Objects that the policy may have created in a pass whose status was not written, such as `ConfigMap shop/a`. */
  readonly unproven: readonly string[];
}

/** Looks for objects that the policy may have created. @throws ClusterError */
export async function withCreatedObjects(
  policy: ConfigurationPolicy,
  plans: readonly ObjectTemplatePlan[],
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<CreatedObjects> {
  if (policy.spec.pruneObjectBehavior !== 'DeleteIfCreated') {
    return { plans, unread: [], unproven: [] };
  }
  const known = new Map((policy.status?.relatedObjects ?? []).map((entry) => [relatedKey(entry), entry.properties]));
  const unread: string[] = [];
  const unproven: string[] = [];
  const result: ObjectTemplatePlan[] = [];
  for (const plan of plans) {
    const objects: ObjectPlan[] = [];
    for (const object of plan.objects) {
      const { createdByPolicy, uid } = object.properties ?? {};
      const isNew = createdByPolicy === false && !isKnownCreation(known.get(relatedKey(objectEntry(object))), uid);
      const mark = isNew ? await markOf(policy, object, governed, signal) : 'none';
      objects.push(mark === 'none' ? object : withoutCreation(object));
      if (mark === 'own') {
        unproven.push(objectName(object));
      } else if (mark !== 'none') {
        unread.push(mark.failure);
      }
    }
    result.push({ ...plan, objects });
  }
  return { plans: result, unread, unproven };
}

/** Whether the status knows who created the object of this uid. */
function isKnownCreation(known: RelatedObject['properties'], uid: string | undefined): boolean {
  return known?.createdByPolicy !== undefined && known.uid === uid;
}

/** Whether an object has the mark of a policy, or why that cannot be read. */
type Mark = 'own' | 'none' | { readonly failure: string };

/** Without the property, nothing is deleted, and the next pass looks again. */
function withoutCreation(object: ObjectPlan): ObjectPlan {
  const { createdByPolicy: _, ...properties } = object.properties ?? {};
  return { ...object, properties };
}

function objectName({ type: { kind }, namespace, name }: ObjectPlan): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

async function markOf(
  policy: ConfigurationPolicy,
  { type, namespace, name, properties }: ObjectPlan,
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<Mark> {
  try {
    const object = await governed.get(type, namespace === '' ? { name } : { namespace, name }, { signal });
    const { uid, managedFields = [] } = object.metadata;
    const isMarked = uid === properties?.uid && managedFields.some(({ manager }) => manager === creatorOf(policy));
    return isMarked ? 'own' : 'none';
  } catch (error) {
    if (isNotFound(error)) {
      return 'none';
    }
    if (error instanceof ApiError) {
      return { failure: errorText(error) };
    }
    throw error;
  }
}
