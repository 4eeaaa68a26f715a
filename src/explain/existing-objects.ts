// What a policy says about existing objects, by its status.
import { type AdmissionPolicyObject, AUDITOR_LABEL, groupResourceOf } from '../resources/index.ts';
import type { Asked, Explanation } from './explanation.ts';

/** Empty where no auditor has judged any: that is not known to be clean, and nothing is said about it. */
export function existingObjects(
  policy: AdmissionPolicyObject,
  { program }: Asked,
): Pick<Explanation, 'because' | 'toDo'> {
  const { audit } = policy.status ?? {};
  if (audit === undefined) {
    return { because: [], toDo: [] };
  }
  const { generation = 0 } = policy.metadata;
  const isUnknown = audit.state === 'Unknown';
  const isBehind = !isUnknown && (audit.observedGeneration ?? 0) < generation;
  const state = isBehind ? `not judged by generation ${generation} yet` : `${audit.state}: ${audit.message}`;
  const failed = audit.counts?.failed ?? 0;
  const missing = (audit.kinds ?? []).flatMap(({ missingRule }) => missingRule ?? []);
  const resources = missing.flatMap(({ apiGroups: [group = ''], resources: [resource = ''] }) =>
    groupResourceOf({ group, resource }),
  );
  return {
    because: [`Existing objects: ${state}.`],
    toDo: [
      ...(failed > 0
        ? [
            `To see the objects that it would reject${isUnknown ? ', as far as they were known then' : ''}: ${program} findings --policy ${policy.metadata.name}`,
          ]
        : []),
      ...(isUnknown
        ? [`To judge existing objects now, with your rights: ${program} audit --policy ${policy.metadata.name}`]
        : []),
      ...(resources.length > 0
        ? [
            `To have ${resources.join(', ')} judged: a ClusterRole with the label ${AUDITOR_LABEL}: 'true' that may get, list and watch them.`,
          ]
        : []),
    ],
  };
}
