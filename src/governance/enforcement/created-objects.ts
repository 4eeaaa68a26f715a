// Recognises objects that a policy created when its status does not say so: the process was killed between both writes.
import { ApiError, type Cluster } from '../../cluster/index.ts';
import type { ConfigurationPolicy } from '../../resources/index.ts';
import { type ObjectPlan, relatedKey, relatedObjects, type TemplatePlan } from '../configuration/index.ts';
import { GOVERNANCE_FIELD_MANAGER } from './field-manager.ts';

/**
 * The owner of the fields of objects that a policy creates, if it deletes only these. API servers record it with the
 * object, in one write.
 */
export function creatorOf({ spec, metadata }: ConfigurationPolicy): string {
  return spec.pruneObjectBehavior === 'DeleteIfCreated'
    ? `${GOVERNANCE_FIELD_MANAGER}/${metadata.uid ?? ''}`
    : GOVERNANCE_FIELD_MANAGER;
}

/** The plans, with `createdByPolicy` for objects that the policy created in a pass whose status was not written. */
export async function withCreatedObjects(
  policy: ConfigurationPolicy,
  plans: readonly TemplatePlan[],
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<readonly TemplatePlan[]> {
  if (policy.spec.pruneObjectBehavior !== 'DeleteIfCreated') {
    return plans;
  }
  const known = new Set(
    (policy.status?.relatedObjects ?? [])
      .filter(({ properties }) => properties?.createdByPolicy !== undefined)
      .map((object) => relatedKey(object as Parameters<typeof relatedKey>[0])),
  );
  const result: TemplatePlan[] = [];
  for (const plan of plans) {
    const objects: ObjectPlan[] = [];
    for (const object of plan.objects) {
      const isNew = object.properties?.createdByPolicy === false && !known.has(keyOfPlan(object));
      const isCreated = isNew && (await isCreatedBy(creatorOf(policy), object, governed, signal));
      objects.push(isCreated ? { ...object, properties: { ...object.properties, createdByPolicy: true } } : object);
    }
    result.push({ ...plan, objects });
  }
  return result;
}

function keyOfPlan({ type, history }: ObjectPlan): string {
  const [object] = history.flatMap((result) => relatedObjects(type, result));
  return object === undefined ? '' : relatedKey(object);
}

async function isCreatedBy(
  creator: string,
  { type, namespace, name, live }: ObjectPlan,
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const object = await governed.get(type, namespace === '' ? { name } : { namespace, name }, { signal });
    const { uid, managedFields = [] } = object.metadata;
    return uid === live?.metadata.uid && managedFields.some(({ manager }) => manager === creator);
  } catch (error) {
    if (error instanceof ApiError) {
      return false;
    }
    throw error;
  }
}
