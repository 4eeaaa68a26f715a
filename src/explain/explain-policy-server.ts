// Why a PolicyServer is not ready.
import {
  type Condition,
  findCondition,
  type PolicyServerObject,
  READY,
  RECONCILING,
  STALLED,
} from '../resources/index.ts';
import { commandNameOf } from './command-name.ts';
import type { Asked, Explanation, RootCause } from './explanation.ts';

/** What to do about a reason, where the message does not say it. docs/policy-servers.md has the reasons. */
const STEPS: ReadonlyMap<string, string> = new Map([
  ['NameTaken', 'Delete or rename the object that the message names: another owner created it.'],
  ['VerificationConfigNotFound', 'Create the ConfigMap that spec.verificationConfig names.'],
  ['VerificationConfigInvalid', 'Correct the ConfigMap that spec.verificationConfig names.'],
  ['NotGranted', 'Give the controller the rights that the message names, so that it can grant them.'],
  ['KindsNotServed', 'Install the definitions of these kinds, or correct the policies that read them.'],
]);

/** @param namespace of the pods */
export function explainPolicyServer(server: PolicyServerObject, namespace: string, { program }: Asked): Explanation {
  const { conditions = [], readyReplicas, observedGeneration = 0 } = server.status ?? {};
  const { name = '', generation = 0 } = server.metadata;
  const ready = findCondition(conditions, READY);
  const evidence = conditions.filter(isAbnormal);
  const isStale = ready !== undefined && observedGeneration < generation;
  const unseen = 'No controller has looked at it yet, so its state is not known.';
  const isFine = ready?.status === 'True' && !isStale && evidence.length === 0;
  return {
    object: commandNameOf(server),
    state: ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady',
    ...(ready === undefined ? {} : { since: ready.lastTransitionTime }),
    because: [
      ...(ready === undefined ? [unseen] : []),
      ...(isStale ? [`The controller has not seen generation ${generation} yet: this is about an older spec.`] : []),
      ...(ready !== undefined && ready.status !== 'True' ? [conditionText(ready)] : []),
      ...evidence.map((one) => `${one.type} is ${one.status}: ${conditionText(one)}`),
      ...(isFine ? [`${readyReplicas ?? 0} replicas are ready.`] : []),
    ],
    ...(ready === undefined || isFine ? {} : { rootCauses: causesOf(ready, evidence) }),
    ...(evidence.length === 0 ? {} : { evidence }),
    toDo: isFine
      ? []
      : [
          ...new Set([
            ...(ready === undefined ? [`To find out why no controller has looked at it: ${program} doctor`] : []),
            ...evidence.flatMap(({ reason }) => STEPS.get(reason) ?? []),
            ...(ready?.status === 'False'
              ? [`Look at its pods: kubectl -n ${namespace} describe pods -l portcullis.dev/policy-server=${name}`]
              : []),
          ]),
        ],
  };
}

function isAbnormal({ type, status }: Condition): boolean {
  return status !== 'True' && type !== READY && type !== RECONCILING && type !== STALLED;
}

function causesOf(ready: Condition, evidence: readonly Condition[]): readonly RootCause[] {
  const causes = evidence.length > 0 ? evidence : ready.status === 'True' ? [] : [ready];
  return causes.map(({ reason, message, lastTransitionTime }) => ({ reason, message, since: lastTransitionTime }));
}

function conditionText({ reason, message, lastTransitionTime }: Condition): string {
  return `${reason} since ${lastTransitionTime}: ${message}`;
}
