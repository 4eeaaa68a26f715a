// Objects and dependencies for tests.
import { type KubernetesObject, GOVERNANCE_GROUP } from '../../../resources/index.ts';
import { type Dependency, objectId, type Requirement } from '../dependency.ts';
import type { DependencyLookup } from '../unmet-dependencies.ts';

export const CLUSTER = 'local-cluster';

/** A dependency on a policy, unless another kind is given. */
export function dependency(name: string, compliance = 'Compliant', rest: Partial<Dependency> = {}): Dependency {
  return { apiVersion: `${GOVERNANCE_GROUP}/v1`, kind: 'Policy', name, namespace: '', compliance, ...rest };
}

/** An object of the cluster namespace with a status. */
export function policyObject(
  name: string,
  status: Readonly<Record<string, unknown>>,
  rest: Partial<KubernetesObject> = {},
): KubernetesObject {
  return {
    apiVersion: `${GOVERNANCE_GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: CLUSTER },
    status,
    ...rest,
  };
}

/** A template of a root policy, as users write it. */
export function template(
  name: string,
  extraDependencies: readonly Dependency[] = [],
  ignorePending = false,
): Readonly<Record<string, unknown>> {
  return {
    objectDefinition: { apiVersion: `${GOVERNANCE_GROUP}/v1`, kind: 'ConfigurationPolicy', metadata: { name } },
    extraDependencies,
    ignorePending,
  };
}

/** A root policy in the namespace `default`. */
export function rootPolicy(
  name: string,
  dependencies: readonly Dependency[],
  templates: readonly unknown[] = [template(`${name}-config`)],
): KubernetesObject {
  return {
    apiVersion: `${GOVERNANCE_GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'default' },
    spec: { disabled: false, dependencies, 'policy-templates': templates },
  };
}

/** Finds the given objects, and no others. */
export function lookupIn(...objects: readonly KubernetesObject[]): DependencyLookup {
  const known = new Map(
    objects.map((object) => {
      const { apiVersion, kind, metadata } = object;
      return [objectId({ apiVersion, kind, namespace: metadata.namespace ?? '', name: metadata.name ?? '' }), object];
    }),
  );
  return (requirement: Requirement) => {
    const object = known.get(objectId(requirement));
    return object === undefined ? { type: 'not-found' } : { type: 'found', object };
  };
}
