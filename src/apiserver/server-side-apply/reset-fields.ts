import { groupResourceOf } from '../../resources/index.ts';
import { fieldElement, FieldSet } from '../../resources/structured-merge/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** What a write of `status` leaves alone besides `spec`, where Kubernetes' own kinds say so: the paths in their metadata. */
const STATUS_RESETS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  pods: [
    ['metadata', 'deletionTimestamp'],
    ['metadata', 'ownerReferences'],
  ],
  'deployments.apps': [['metadata', 'labels']],
  'customresourcedefinitions.apiextensions.k8s.io': [['metadata']],
  'validatingadmissionpolicies.admissionregistration.k8s.io': [['metadata']],
};

/** The fields that a write to this part of an object never changes: nobody comes to own them by it. */
export function resetFieldsOf(
  definition: Pick<ResourceDefinition, 'group' | 'resource' | 'hasStatus'>,
  subresource: string | undefined,
): FieldSet {
  const paths: (readonly string[])[] = [];
  if (subresource === 'status') {
    const resource = groupResourceOf(definition);
    paths.push(['spec'], ...(Object.hasOwn(STATUS_RESETS, resource) ? (STATUS_RESETS[resource] ?? []) : []));
  } else if (definition.hasStatus) {
    paths.push(['status']);
  }
  return FieldSet.of(paths.map((path) => path.map(fieldElement)));
}

/** Fields of metadata that belong to the server, and of which nobody is an owner. */
export const UNTRACKED_FIELDS: readonly (readonly string[])[] = [
  ['apiVersion'],
  ['kind'],
  ['metadata'],
  ['metadata', 'name'],
  ['metadata', 'namespace'],
  ['metadata', 'creationTimestamp'],
  ['metadata', 'selfLink'],
  ['metadata', 'uid'],
  ['metadata', 'clusterName'],
  ['metadata', 'generation'],
  ['metadata', 'managedFields'],
  ['metadata', 'resourceVersion'],
];

/** The set without {@link UNTRACKED_FIELDS}. */
export function trackedFields(fields: FieldSet): FieldSet {
  return fields.difference(FieldSet.of(UNTRACKED_FIELDS.map((path) => path.map(fieldElement))));
}
