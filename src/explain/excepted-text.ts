// What an exception is for, in words.
import type { PolicyException } from '../resources/index.ts';

type Spec = PolicyException['spec'];
type LabelSelector = NonNullable<Spec['objects']['labelSelector']>;

/** As in `Pod of namespace shop, with the labels app=importer, from ClusterAdmissionPolicy pinned-images`. */
export function exceptedText({ metadata, spec }: PolicyException): string {
  const { objects, policies, matchConditions = [] } = spec;
  const { kinds, names = [], labelSelector } = objects;
  return [
    `${kinds.map(kindText).join(' or ')} of namespace ${metadata.namespace ?? ''}`,
    ...(names.length === 0 ? [] : [`named ${names.join(' or ')}`]),
    ...(labelSelector === undefined ? [] : [`with the labels ${labelsText(labelSelector)}`]),
    ...(matchConditions.length === 0
      ? []
      : [`under the conditions ${matchConditions.map(({ name }) => name).join(' and ')}`]),
    `from ${policies.map(policyText).join(' and ')}`,
  ].join(', ');
}

function kindText({ apiGroup, kind }: Spec['objects']['kinds'][number]): string {
  return apiGroup === '' ? kind : `${kind}.${apiGroup}`;
}

function labelsText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(
      ({ key, operator, values = [] }) => `${key} ${operator}${values.length === 0 ? '' : ` (${values.join(', ')})`}`,
    ),
  ].join(' and ');
}

function policyText({ kind, name, members = [] }: Spec['policies'][number]): string {
  return `${kind} ${name}${members.length === 0 ? '' : ` (members ${members.join(', ')})`}`;
}
