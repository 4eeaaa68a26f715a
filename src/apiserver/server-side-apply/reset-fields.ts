import { groupResourceOf } from '../../resources/index.ts';
import { fieldElement, FieldSet } from '../../resources/structured-merge/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** Fields of builtin kinds that a write of `status` resets, besides `spec`. */
const STATUS_RESETS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  pods: [
    ['metadata', 'deletionTimestamp'],
    ['metadata', 'ownerReferences'],
  ],
  'deployments.apps': [['metadata', 'labels']],
  'customresourcedefinitions.apiextensions.k8s.io': [['metadata']],
  'validatingadmissionpolicies.admissionregistration.k8s.io': [['metadata']],
};

/** The fields that a write of this subresource neither changes nor owns (`GetResetFields` in Kubernetes' registries). */
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

/** Fields that the server sets, and that have no manager. */
const UNTRACKED_FIELDS: readonly (readonly string[])[] = [
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
