// Recognizes objects of Open Cluster Management in a cluster. Changes nothing.
import { isInstalledObject } from './objects/naming.ts';
import { GOVERNANCE_GROUP, type KubernetesObject, valueAt } from '../resources/index.ts';

/**
 * Whether a CustomResourceDefinition of the governance group is not of Portcullis. Its own controllers, or those of a hub,
 * rely on its schema.
 */
export function isForeignGovernanceKind(definition: KubernetesObject): boolean {
  return valueAt(definition['spec'], 'group') === GOVERNANCE_GROUP && !isInstalledObject(definition);
}

/** What a user can do about a foreign CustomResourceDefinition. */
export function takeOverHint({ metadata }: KubernetesObject): string {
  return `Where Open Cluster Management does not run any more, take it over: kubectl label customresourcedefinition ${metadata.name} app.kubernetes.io/part-of=portcullis, and install again.`;
}
