// Finds objects that a policy created and its status does not list: the process was killed between the two writes.
import { ApiError, type Cluster, isNotFound } from '../../cluster/index.ts';
import type { ConfigurationPolicy } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { type ObjectPlan, relatedKey, relatedObjects, type TemplatePlan } from '../configuration/index.ts';
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
  const known = new Set(
    (policy.status?.relatedObjects ?? [])
      .filter(({ properties }) => properties?.createdByPolicy !== undefined)
      .map((object) => relatedKey(object as Parameters<typeof relatedKey>[0])),
  );
  const unknown: string[] = [];
  const result: TemplatePlan[] = [];
  for (const plan of plans) {
    const objects: ObjectPlan[] = [];
    for (const object of plan.objects) {
      const isNew = object.properties?.createdByPolicy === false && !known.has(keyOfPlan(object));
      const created = isNew ? await creationBy(creatorOf(policy), object, governed, signal) : { isCreated: undefined };
      objects.push(withCreation(object, created));
      unknown.push(...('failure' in created ? [created.failure] : []));
    }
    result.push({ ...plan, objects });
  }
  return { plans: result, unknown };
}

/** Whether a policy created an object, or why that cannot be read. */
type Creation = { readonly isCreated: boolean | undefined } | { readonly failure: string };

function withCreation(object: ObjectPlan, creation: Creation): ObjectPlan {
  const { createdByPolicy: _, ...properties } = object.properties ?? {};
  if ('failure' in creation) {
    // Without the property, the next pass looks again.
    return { ...object, properties };
  }
  return creation.isCreated === true ? { ...object, properties: { ...properties, createdByPolicy: true } } : object;
}

function keyOfPlan({ type, history }: ObjectPlan): string {
  const [object] = history.flatMap((result) => relatedObjects(type, result));
  return object === undefined ? '' : relatedKey(object);
}

async function creationBy(
  creator: string,
  { type, namespace, name, live }: ObjectPlan,
  governed: Pick<Cluster, 'get'>,
  signal: AbortSignal,
): Promise<Creation> {
  try {
    const object = await governed.get(type, namespace === '' ? { name } : { namespace, name }, { signal });
    const { uid, managedFields = [] } = object.metadata;
    const isSame = uid === live?.metadata.uid;
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
