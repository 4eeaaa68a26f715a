// Recognizes objects of Open Cluster Management in a cluster. Changes nothing.
import { GOVERNANCE_GROUP, type KubernetesObject, valueAt } from '../../resources/index.ts';

const PART_OF = 'app.kubernetes.io/part-of';

/**
 * Whether a CustomResourceDefinition of the governance group is not of Portcullis. Its own controllers, or those of a hub,
 * rely on its schema.
 */
export function isForeignGovernanceKind({ metadata, spec }: KubernetesObject): boolean {
  const group = valueAt(spec, 'group');
  return group === GOVERNANCE_GROUP && metadata.labels?.[PART_OF] !== 'portcullis';
}

/** What a user can do about a foreign CustomResourceDefinition. */
export function takeOverHint({ metadata }: KubernetesObject): string {
  return `Where Open Cluster Management does not run any more, take it over: kubectl label customresourcedefinition ${metadata.name} ${PART_OF}=portcullis, and install again.`;
}
