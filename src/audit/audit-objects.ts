import type { ApiResource } from '../cluster/index.ts';
import { groupResourceOf, type KubernetesObject } from '../resources/index.ts';
import { auditPlan, type ClusterAudit } from './audit-cluster.ts';
import type { AuditPart, ObjectPage } from './audit-kind.ts';
import { type AuditScope, planAudit } from './plan-audit.ts';

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
  const byKind = Map.groupBy(objects, ({ type }) => keyOfType(type));
  const served = [...byKind.values()].flatMap(([first]) => (first === undefined ? [] : [first.type]));
  const plan = planAudit(policies, served, { ...scope, knowsAllKinds: false });
  yield* auditPlan(plan, (listing) => pageOf(byKind.get(keyOfType(listing.type)) ?? [], listing.namespace), audit);
}

function keyOfType(type: ApiResource): string {
  return `${groupResourceOf(type)}/${type.version}`;
}

async function* pageOf(objects: readonly GivenObject[], namespace: string | undefined): AsyncGenerator<ObjectPage> {
  const items = objects.map(({ object }) => object);
  yield { items: namespace === undefined ? items : items.filter(({ metadata }) => metadata.namespace === namespace) };
}
