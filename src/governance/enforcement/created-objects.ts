// Finds objects that a policy created and its status does not list: the process was killed between the two writes.
import { ApiError, type Cluster, isNotFound } from '../../cluster/index.ts';
import type { ConfigurationPolicy, RelatedObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { type ObjectPlan, objectEntry, relatedKey, type TemplatePlan } from '../configuration/index.ts';
import { GOVERNANCE_FIELD_MANAGER } from './field-manager.ts';

/**
 * The field manager with which a policy creates objects; with `DeleteIfCreated` it identifies the policy. API servers record it
 * in the same write as the object.
 */
export function creatorOf({ spec, metadata }: ConfigurationPolicy): string {
  return spec.pruneObjectBehavior === 'DeleteIfCreated'
    ? `${GOVERNANCE_FIELD_MANAGER}/${metadata.uid ?? ''}`
    : GOVERNANCE_FIELD_MANAGER;
}

export interface CreatedObjects {
  /** With `createdByPolicy` for objects that the policy created in a pass whose status was not written. */
  readonly plans: readonly TemplatePlan[];
  /** Why it is not known whether the policy created an object: one reason for each. They have no `createdByPolicy`. */
  readonly unknown: readonly string[];
}

/** Looks for objects that the policy created. @throws ClusterError */
export async function withCreatedObjects(
  policy: ConfigurationPolicy,
  plans: readonly TemplatePlan[],
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<CreatedObjects> {
  if (policy.spec.pruneObjectBehavior !== 'DeleteIfCreated') {
    return { plans, unknown: [] };
  }
  const known = new Map((policy.status?.relatedObjects ?? []).map((entry) => [relatedKey(entry), entry.properties]));
  const unknown: string[] = [];
  const result: TemplatePlan[] = [];
  for (const plan of plans) {
    const objects: ObjectPlan[] = [];
    for (const object of plan.objects) {
      const { createdByPolicy, uid } = object.properties ?? {};
      const isNew = createdByPolicy === false && !isKnownCreation(known.get(relatedKey(objectEntry(object))), uid);
      const created = isNew ? await createdByMark(policy, object, governed, signal) : { isCreated: false };
      objects.push(withCreation(object, created));
      unknown.push(...('failure' in created ? [created.failure] : []));
    }
    result.push({ ...plan, objects });
  }
  return { plans: result, unknown };
}

/** Whether the status knows who created the object of this uid. */
export function isKnownCreation(known: RelatedObject['properties'], uid: string | undefined): boolean {
  return known?.createdByPolicy !== undefined && (known.uid === undefined || known.uid === uid);
}

/** Whether an object has the mark of a policy, or why that cannot be read. */
type MarkedCreation = { readonly isCreated: boolean } | { readonly failure: string };

function withCreation(object: ObjectPlan, creation: MarkedCreation): ObjectPlan {
  const { createdByPolicy: _, ...properties } = object.properties ?? {};
  if ('failure' in creation) {
    // Without the property, the next pass looks again.
    return { ...object, properties };
  }
  return creation.isCreated ? { ...object, properties: { ...properties, createdByPolicy: true } } : object;
}

/** Whether the policy created an object: its mark says so. Without `DeleteIfCreated` there are no marks. */
export async function createdByMark(
  policy: ConfigurationPolicy,
  { type, namespace, name, live, properties }: ObjectPlan,
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<MarkedCreation> {
  const creator = creatorOf(policy);
  if (creator === GOVERNANCE_FIELD_MANAGER) {
    return { isCreated: false };
  }
  try {
    const object = await governed.get(type, namespace === '' ? { name } : { namespace, name }, { signal });
    const { uid, managedFields = [] } = object.metadata;
    const isSame = uid === (properties?.uid ?? live?.metadata.uid);
    return { isCreated: isSame && managedFields.some(({ manager }) => manager === creator) };
  } catch (error) {
    if (isNotFound(error)) {
      return { isCreated: false };
    }
    if (error instanceof ApiError) {
      return { failure: errorText(error) };
    }
    throw error;
  }
}
