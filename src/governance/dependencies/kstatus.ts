// The state of any object, by the rules of kstatus:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
// Two differ, because a dependency waits for a result: a Job that runs or is suspended is in progress, and a Pod that
// failed has failed. kstatus calls all of these Current.
import {
  type Condition,
  findCondition,
  groupVersionOf,
  isConditionTrue,
  type KubernetesObject,
  POLICIES_GROUP,
  READY,
  RECONCILING,
  STALLED,
} from '../../resources/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../values/index.ts';

export interface ObjectState {
  readonly status: 'Current' | 'InProgress' | 'Failed' | 'Terminating';
  /** For users; may be empty. */
  readonly message: string;
}

/** An object with its fields read safely. */
interface Facts {
  readonly object: KubernetesObject;
  readonly conditions: readonly Condition[];
}

/** The state of an object; undefined when nothing in it says so. */
export function kstatusOf(object: KubernetesObject): ObjectState | undefined {
  if (object.metadata.deletionTimestamp !== undefined) {
    return { status: 'Terminating', message: 'the object is being deleted' };
  }
  const facts = { object, conditions: conditionsOf(object) };
  if (isOlderSpec(object)) {
    return inProgress('the controller has not seen the newest spec');
  }
  return abnormalState(facts) ?? kindRule(object)?.(facts) ?? genericState(facts);
}

/** Whether the status was observed for an older generation than the object has. */
export function isOlderSpec(object: KubernetesObject): boolean {
  const { generation } = object.metadata;
  return (
    typeof generation === 'number' &&
    ['observedGeneration', 'lastEvaluatedGeneration'].some((name) => {
      const observed = valueAt(object, 'status', name);
      return typeof observed === 'number' && observed < generation;
    })
  );
}

/** The well-formed conditions of an object. */
export function conditionsOf(object: KubernetesObject): readonly Condition[] {
  const list = valueAt(object, 'status', 'conditions');
  return (Array.isArray(list) ? list.filter(isJsonObject) : []).map((item) => ({
    type: textOf(own(item, 'type')),
    status: own(item, 'status') === 'True' ? 'True' : own(item, 'status') === 'False' ? 'False' : 'Unknown',
    lastTransitionTime: textOf(own(item, 'lastTransitionTime')),
    reason: textOf(own(item, 'reason')),
    message: textOf(own(item, 'message')),
  }));
}

type Rule = (facts: Facts) => ObjectState;

const KIND_RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['/ConfigMap', () => CURRENT],
  ['/Secret', () => CURRENT],
  ['/Namespace', ({ object }) => phaseState(object, 'Active')],
  ['/PersistentVolumeClaim', ({ object }) => phaseState(object, 'Bound')],
  ['/Pod', podState],
  ['apiextensions.k8s.io/CustomResourceDefinition', definitionState],
  ['apps/DaemonSet', daemonSetState],
  ['apps/Deployment', deploymentState],
  ['apps/StatefulSet', statefulSetState],
  ['batch/Job', jobState],
]);

function kindRule({ apiVersion, kind }: KubernetesObject): Rule | undefined {
  return KIND_RULES.get(`${groupVersionOf(apiVersion).group}/${kind}`);
}

function abnormalState({ conditions }: Facts): ObjectState | undefined {
  const found = conditions.find(({ type, status }) => status === 'True' && (type === RECONCILING || type === STALLED));
  return found && { status: found.type === STALLED ? 'Failed' : 'InProgress', message: found.message };
}

/** Admission policies of Kubewarden's own controllers have no condition Ready. */
function genericState({ object, conditions }: Facts): ObjectState | undefined {
  const isAdmissionPolicy = groupVersionOf(object.apiVersion).group === POLICIES_GROUP;
  const ready =
    findCondition(conditions, READY) ?? (isAdmissionPolicy ? findCondition(conditions, 'PolicyActive') : undefined);
  if (ready !== undefined) {
    return { status: ready.status === 'True' ? 'Current' : 'InProgress', message: ready.message };
  }
  return typeof valueAt(object, 'status', 'observedGeneration') === 'number' ? CURRENT : undefined;
}

function deploymentState({ object, conditions }: Facts): ObjectState {
  if (findCondition(conditions, 'Progressing')?.reason === 'ProgressDeadlineExceeded') {
    return failed('the progress deadline is exceeded');
  }
  const wanted = countAt(object, 1, 'spec', 'replicas');
  const total = countAt(object, 0, 'status', 'replicas');
  const updated = countAt(object, 0, 'status', 'updatedReplicas');
  const lagging = firstBelow(wanted, [
    ['updated', updated],
    ['available', countAt(object, 0, 'status', 'availableReplicas')],
    ['ready', countAt(object, 0, 'status', 'readyReplicas')],
  ]);
  if (lagging !== undefined) {
    return lagging;
  }
  if (total > wanted) {
    return inProgress(`${total - wanted} old replicas are ending`);
  }
  return isConditionTrue(conditions, 'Available') ? CURRENT : inProgress('the Deployment is not Available');
}

function statefulSetState({ object }: Facts): ObjectState {
  if (valueAt(object, 'spec', 'updateStrategy', 'type') === 'OnDelete') {
    return CURRENT;
  }
  const wanted = countAt(object, 1, 'spec', 'replicas');
  const total = countAt(object, 0, 'status', 'replicas');
  const lagging = firstBelow(wanted, [
    ['created', total],
    ['ready', countAt(object, 0, 'status', 'readyReplicas')],
  ]);
  if (lagging !== undefined) {
    return lagging;
  }
  if (total > wanted) {
    return inProgress(`${total - wanted} replicas are ending`);
  }
  const partition = countAt(object, 0, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
  const updated = countAt(object, 0, 'status', 'updatedReplicas');
  if (partition > 0) {
    return firstBelow(wanted - partition, [['updated', updated]]) ?? CURRENT;
  }
  return valueAt(object, 'status', 'currentRevision') === valueAt(object, 'status', 'updateRevision')
    ? CURRENT
    : inProgress('the update is not finished');
}

function daemonSetState({ object }: Facts): ObjectState {
  const wanted = countAt(object, -1, 'status', 'desiredNumberScheduled');
  if (wanted === -1 || typeof valueAt(object, 'status', 'observedGeneration') !== 'number') {
    return inProgress('the controller has not seen the DaemonSet');
  }
  return (
    firstBelow(wanted, [
      ['scheduled', countAt(object, 0, 'status', 'currentNumberScheduled')],
      ['updated', countAt(object, 0, 'status', 'updatedNumberScheduled')],
      ['available', countAt(object, 0, 'status', 'numberAvailable')],
      ['ready', countAt(object, 0, 'status', 'numberReady')],
    ]) ?? CURRENT
  );
}

function jobState({ conditions }: Facts): ObjectState {
  const failure = findCondition(conditions, 'Failed');
  if (failure?.status === 'True') {
    return failed(failure.message);
  }
  return isConditionTrue(conditions, 'Complete') ? CURRENT : inProgress('the Job is not complete');
}

function podState({ object, conditions }: Facts): ObjectState {
  switch (valueAt(object, 'status', 'phase')) {
    case 'Succeeded':
      return CURRENT;
    case 'Failed':
      return failed('the Pod has failed');
    case 'Running':
      if (isConditionTrue(conditions, READY)) {
        return CURRENT;
      }
      return isCrashLooping(object)
        ? failed('a container ends again and again (CrashLoopBackOff)')
        : inProgress('the Pod is not ready');
    default:
      return inProgress(findCondition(conditions, 'PodScheduled')?.message || 'the Pod does not run yet');
  }
}

function isCrashLooping(object: KubernetesObject): boolean {
  const containers = valueAt(object, 'status', 'containerStatuses');
  return (
    Array.isArray(containers) &&
    containers.some((container) => valueAt(container, 'state', 'waiting', 'reason') === 'CrashLoopBackOff')
  );
}

function definitionState({ conditions }: Facts): ObjectState {
  const names = findCondition(conditions, 'NamesAccepted');
  const established = findCondition(conditions, 'Established');
  if (names?.status === 'False') {
    return failed(names.message);
  }
  if (established?.status === 'False' && established.reason !== 'Installing') {
    return failed(established.message);
  }
  return established?.status === 'True' ? CURRENT : inProgress('the kind is not served yet');
}

function phaseState(object: KubernetesObject, wanted: string): ObjectState {
  const phase = textOf(valueAt(object, 'status', 'phase'));
  return phase === wanted ? CURRENT : inProgress(`the phase is ${phase || 'not known'}, not ${wanted}`);
}

/** InProgress for the first count that is too small. */
function firstBelow(
  wanted: number,
  counts: readonly (readonly [what: string, count: number])[],
): ObjectState | undefined {
  const found = counts.find(([, count]) => count < wanted);
  return found && inProgress(`${found[1]} of ${wanted} replicas are ${found[0]}`);
}

function countAt(object: KubernetesObject, fallback: number, ...path: readonly string[]): number {
  const value = valueAt(object, ...path);
  return typeof value === 'number' ? value : fallback;
}

const CURRENT: ObjectState = { status: 'Current', message: '' };

function inProgress(message: string): ObjectState {
  return { status: 'InProgress', message };
}

function failed(message: string): ObjectState {
  return { status: 'Failed', message };
}
