// Whether the auditor works, and may read what policies are for.
import {
  type AdmissionPolicyObject,
  AUDITOR_LABEL,
  groupResourceOf,
  type KubernetesObject,
} from '../../resources/index.ts';
import { deploymentProgress } from '../installed-state.ts';
import { DEPLOYMENTS } from '../kinds.ts';
import { AUDITOR } from '../objects/naming.ts';
import { argumentOf, controllerOf } from './controller-arguments.ts';
import { type Finding, finding } from './finding.ts';
import { isUnread, type Snapshot } from './snapshot.ts';

const UNKNOWN = 'nothing new is known of existing objects';

export function checkAuditor(snapshot: Snapshot): readonly Finding[] {
  const { deployments, namespace, policies } = snapshot;
  const controller = controllerOf(snapshot);
  if (controller === undefined || !isAudited(controller) || isUnread(snapshot, DEPLOYMENTS)) {
    return [];
  }
  const where = `deployment/${AUDITOR} -n ${namespace}`;
  const auditor = deployments.find(({ metadata }) => metadata.namespace === namespace && metadata.name === AUDITOR);
  if (auditor === undefined) {
    return [finding('AuditorMissing', where, `it does not exist: ${UNKNOWN}`, 'Run `portcullis install`.')];
  }
  const { done, text } = deploymentProgress(auditor);
  return [
    ...(done
      ? []
      : [
          finding(
            'AuditorNotAvailable',
            where,
            `${text}: ${UNKNOWN}`,
            `Look at its pods: kubectl -n ${namespace} describe pods -l app.kubernetes.io/component=auditor`,
          ),
        ]),
    ...missingRights(policies),
  ];
}

/** Whether the values want an auditor. */
export function isAudited(controller: KubernetesObject): boolean {
  return argumentOf(controller, '--auditor') !== 'false';
}

/** One finding for each kind that the auditor may not read, by what it wrote into statuses. */
function missingRights(policies: readonly AdmissionPolicyObject[]): readonly Finding[] {
  const missing = policies.flatMap(
    ({ status }) => status?.audit?.kinds?.flatMap(({ missingRule }) => missingRule ?? []) ?? [],
  );
  const kinds = missing.flatMap(({ apiGroups: [group = ''], resources: [resource = ''] }) =>
    groupResourceOf({ group, resource }),
  );
  return [...new Set(kinds)].map((kind) =>
    finding(
      'AuditRightsMissing',
      kind,
      'policies are for these objects, and the auditor may not read them: whether they break a policy is not known',
      `Grant get, list and watch by a ClusterRole with the label ${AUDITOR_LABEL}: 'true'.`,
    ),
  );
}
