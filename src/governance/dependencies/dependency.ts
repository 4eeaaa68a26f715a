// Dependencies of policies as written, and as a cluster looks them up.
import { GOVERNANCE_GROUP, groupVersionOf } from '../../resources/index.ts';
import { CodedError, textOf, valueAt } from '../../values/index.ts';

/** `PolicyDependency`: an object, and the state that it must have. */
export interface Dependency {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Empty when absent. */
  readonly namespace: string;
  /** Compared exactly, case included. */
  readonly compliance: string;
}

/** A dependency whose namespace is that of the object on the cluster. */
export type Requirement = Dependency;

export type DependencyErrorCode = 'too-many-dependencies' | 'graph-too-large';

export class DependencyError extends CodedError<DependencyErrorCode> {
  override readonly name = 'DependencyError';
}

/**
 * The dependencies of a list in a spec. Malformed ones are kept with empty fields, so that they are never met: the CRDs
 * of older releases allow them.
 */
export function readDependencies(value: unknown): readonly Dependency[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  return items.map((item) => {
    const field = (name: string): string => textOf(valueAt(item, name));
    return {
      apiVersion: field('apiVersion'),
      kind: field('kind'),
      name: field('name'),
      namespace: field('namespace'),
      compliance: field('compliance'),
    };
  });
}

/** The dependency as the cluster looks it up: all policies are in the cluster namespace, whatever namespace the dependency names. */
export function requirementOf(dependency: Dependency, clusterNamespace: string): Requirement {
  const { group } = groupVersionOf(dependency.apiVersion);
  const isPolicy = group === GOVERNANCE_GROUP && dependency.kind.endsWith('Policy');
  return isPolicy ? { ...dependency, namespace: clusterNamespace } : dependency;
}

/** Identifies the object of a requirement, in its version. */
export function objectId({ apiVersion, kind, namespace, name }: Omit<Requirement, 'compliance'>): string {
  return JSON.stringify([apiVersion, kind, namespace, name]);
}

/** Whether an object is of the kind `Policy` of Open Cluster Management, in any version. */
export function isGovernancePolicyKind({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): boolean {
  return kind === 'Policy' && groupVersionOf(apiVersion).group === GOVERNANCE_GROUP;
}
