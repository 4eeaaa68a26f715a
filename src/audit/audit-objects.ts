import type { ApiResource } from '../cluster/index.ts';
import { groupResourceOf, type KubernetesObject } from '../resources/index.ts';
import { auditPlan, type ClusterAudit } from './audit-cluster.ts';
import type { AuditPart, ObjectPage } from './audit-kind.ts';
import { type AuditScope, type KindListing, planAudit } from './plan-audit.ts';

/** An object, and the resource of its kind. */
export interface GivenObject {
  readonly object: KubernetesObject;
  readonly type: ApiResource;
}

/** An audit of objects that are in no cluster. */
export interface ObjectsAudit extends Omit<ClusterAudit, 'cluster' | 'scope'> {
  readonly objects: readonly GivenObject[];
  readonly scope?: Omit<AuditScope, 'knowsAllKinds'>;
}

/** Judges given objects, kind by kind. */
export async function* auditObjects(audit: ObjectsAudit): AsyncGenerator<AuditPart> {
  const { objects, policies, scope = {} } = audit;
  const plan = planAudit(policies, givenKinds(objects), { ...scope, knowsAllKinds: false });
  yield* auditPlan(plan, (listing) => givenPages(objects, listing), audit);
}

/** The kinds of given objects, in the order in which they come. */
export function givenKinds(objects: readonly GivenObject[]): readonly ApiResource[] {
  const byKind = Map.groupBy(objects, ({ type }) => keyOfType(type));
  return [...byKind.values()].flatMap(([first]) => (first === undefined ? [] : [first.type]));
}

/** Those of given objects that are of a kind. */
export async function* givenPages(
  objects: readonly GivenObject[],
  { type, namespace }: Pick<KindListing, 'type' | 'namespace'>,
): AsyncGenerator<ObjectPage> {
  const ofKind = objects.filter((one) => keyOfType(one.type) === keyOfType(type)).map(({ object }) => object);
  yield { items: namespace === undefined ? ofKind : ofKind.filter(({ metadata }) => metadata.namespace === namespace) };
}

function keyOfType(type: ApiResource): string {
  return `${groupResourceOf(type)}/${type.version}`;
}
