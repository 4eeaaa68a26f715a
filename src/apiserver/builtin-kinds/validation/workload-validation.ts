import { isDeepStrictEqual } from 'node:util';
import { labelSelector, valueAt } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { amountOf, percentOrNumber } from '../../../resources/kind-validation/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';
import { checkTemplate } from './pod-validation.ts';
import { isTimeZone, scheduleProblem } from './schedule.ts';

type Old = KubernetesObject | undefined;

/** Reports a change of an immutable field. */
export function immutable(place: CheckedValue, before: unknown): void {
  if (!isDeepStrictEqual(place.value ?? null, before ?? null)) {
    place.invalid('field is immutable');
  }
}

/** Checks that the selector is valid, and selects the pods of the template. */
function checkSelector(spec: CheckedValue, what: string): void {
  const selector = spec.at('selector');
  const errors = selector.errors.length;
  if (!selector.isSet) {
    selector.required();
  } else {
    selector.labelSelector();
    if (Object.keys(selector.value as object).length === 0) {
      selector.invalid(`empty selector is invalid for ${what}`);
    }
  }
  if (selector.errors.length > errors && selector.isSet) {
    if (!selector.isEmpty && what !== 'job') {
      selector.invalid(what === 'deployment' || what === 'statefulset' ? 'invalid label selector' : '');
    }
    return;
  }
  checkSelected(spec, (labels) => selects(selector, labels));
}

/** Whether a LabelSelector selects labels. True for a malformed one, which has been reported already. */
function selects(selector: CheckedValue, labels: Record<string, string>): boolean {
  try {
    return selector.isSet && labelSelector(selector.value).matches(labels);
  } catch {
    return true;
  }
}

function checkSelected(spec: CheckedValue, matches: (labels: Record<string, string>) => boolean): void {
  const labels = spec.at('template').at('metadata').at('labels');
  if (!matches((labels.value ?? {}) as Record<string, string>)) {
    labels.invalid('`selector` does not match template `labels`');
  }
}

/** Checks that pods restart always, and have no deadline. */
function checkLongRunning(spec: CheckedValue): void {
  const pod = spec.at('template').at('spec');
  const policy = pod.at('restartPolicy');
  if (['Never', 'OnFailure'].includes(policy.text)) {
    policy.oneOf(['Always']);
  }
  if (pod.at('activeDeadlineSeconds').isSet) {
    pod.at('activeDeadlineSeconds').forbidden('activeDeadlineSeconds in ReplicaSet is not Supported');
  }
}

export function checkDeployment(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  for (const field of ['replicas', 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds']) {
    spec.at(field).nonNegative();
  }
  checkSelector(spec, 'deployment');
  checkTemplate(spec.at('template'));
  checkLongRunning(spec);
  checkDeploymentStrategy(spec.at('strategy'));
  const deadline = spec.at('progressDeadlineSeconds');
  if (deadline.number !== undefined && deadline.number <= (spec.at('minReadySeconds').number ?? 0)) {
    deadline.invalid('must be greater than minReadySeconds');
  }
  if (old !== undefined) {
    immutable(spec.at('selector'), valueAt(old, 'spec', 'selector'));
  }
}

/** A strategy as messages show it, with Go's field names. */
function strategyText(strategy: CheckedValue): object {
  return { Type: strategy.at('type').text, RollingUpdate: strategy.at('rollingUpdate').value ?? null };
}

function checkDeploymentStrategy(strategy: CheckedValue): void {
  const type = strategy.at('type').text;
  const rolling = strategy.at('rollingUpdate');
  if (type === 'RollingUpdate') {
    checkRollingUpdate(rolling);
  } else if (type !== 'Recreate') {
    strategy.unsupportedStruct(strategyText(strategy), ['Recreate', 'RollingUpdate']);
  } else if (rolling.isSet) {
    rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
  }
}

function checkRollingUpdate(rolling: CheckedValue): void {
  const [unavailable, surge] = [rolling.at('maxUnavailable'), rolling.at('maxSurge')];
  percentOrNumber(unavailable);
  percentOrNumber(surge);
  if (amountOf(unavailable) === 0 && amountOf(surge) === 0 && isAmount(unavailable) && isAmount(surge)) {
    unavailable.invalid('may not be 0 when `maxSurge` is 0');
  }
}

const isAmount = ({ value }: CheckedValue): boolean => typeof value === 'number' || /^\d+%$/.test(String(value));

const STATEFUL_UPDATE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const STATEFUL_MUTABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

export function checkStatefulSet(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  const management = spec.at('podManagementPolicy');
  if (!['OrderedReady', 'Parallel'].includes(management.text)) {
    management.invalid("must be 'OrderedReady' or 'Parallel'");
  }
  const strategy = spec.at('updateStrategy');
  const type = strategy.at('type').text;
  if (type !== 'RollingUpdate' && type !== 'OnDelete') {
    strategy.invalidStruct(strategyText(strategy), "must be 'RollingUpdate' or 'OnDelete'");
  } else if (type === 'OnDelete' && strategy.at('rollingUpdate').isSet) {
    strategy.at('rollingUpdate').invalid("only allowed for updateStrategy 'RollingUpdate'");
  }
  strategy.at('rollingUpdate').at('partition').nonNegative();
  const retention = spec.at('persistentVolumeClaimRetentionPolicy');
  for (const field of ['whenDeleted', 'whenScaled']) {
    retention.at(field).oneOf(['Retain', 'Delete']);
  }
  for (const field of ['replicas', 'minReadySeconds']) {
    spec.at(field).nonNegative();
  }
  checkSelector(spec, 'statefulset');
  checkTemplate(spec.at('template'));
  checkLongRunning(spec);
  if (old !== undefined && !isDeepStrictEqual(immutableFields(spec.value), immutableFields(old['spec']))) {
    spec.forbidden(STATEFUL_UPDATE);
  }
}

function immutableFields(spec: unknown): unknown {
  const rest = { ...(spec as object) } as Record<string, unknown>;
  for (const field of STATEFUL_MUTABLE) {
    delete rest[field];
  }
  return rest;
}

export function checkDaemonSet(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  checkSelector(spec, 'daemonset');
  checkTemplate(spec.at('template'));
  checkLongRunning(spec);
  for (const field of ['minReadySeconds', 'revisionHistoryLimit']) {
    spec.at(field).nonNegative();
  }
  const strategy = spec.at('updateStrategy');
  const rolling = strategy.at('rollingUpdate');
  if (strategy.at('type').text === 'RollingUpdate') {
    const [unavailable, surge] = [rolling.at('maxUnavailable'), rolling.at('maxSurge')];
    percentOrNumber(unavailable);
    percentOrNumber(surge);
    if (amountOf(unavailable) === 0 && amountOf(surge) === 0) {
      unavailable.required('cannot be 0 when maxSurge is 0');
    } else if (amountOf(unavailable) > 0 && amountOf(surge) > 0) {
      surge.invalid('may not be set when maxUnavailable is non-zero');
    }
  } else if (strategy.at('type').text !== 'OnDelete') {
    strategy.unsupportedStruct(strategyText(strategy), ['RollingUpdate', 'OnDelete']);
  }
  if (old !== undefined) {
    immutable(spec.at('selector'), valueAt(old, 'spec', 'selector'));
  }
}

export function checkReplicaSet(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  for (const field of ['replicas', 'minReadySeconds']) {
    spec.at(field).nonNegative();
  }
  checkSelector(spec, 'replicaset');
  checkTemplate(spec.at('template'));
  checkLongRunning(spec);
  if (old !== undefined) {
    immutable(spec.at('selector'), valueAt(old, 'spec', 'selector'));
  }
}

export function checkReplicationController(object: CheckedValue): void {
  const spec = object.at('spec');
  for (const field of ['replicas', 'minReadySeconds']) {
    spec.at(field).nonNegative();
  }
  const selector = spec.at('selector');
  selector.needed();
  if (spec.at('template').needed()) {
    const wanted = Object.entries((selector.value ?? {}) as Record<string, string>);
    checkSelected(spec, (labels) => wanted.every(([key, value]) => labels[key] === value));
    checkTemplate(spec.at('template'));
    checkLongRunning(spec);
  }
}

const JOB_COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
];

function checkJobSpec(spec: CheckedValue): void {
  for (const field of JOB_COUNTS) {
    spec.at(field).nonNegative();
  }
  const mode = spec.at('completionMode');
  mode.oneOf(['NonIndexed', 'Indexed']);
  if (mode.text === 'Indexed') {
    if (!spec.at('completions').isSet) {
      spec.at('completions').required('when completion mode is Indexed');
    }
  } else {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'successPolicy']) {
      if (spec.at(field).isSet) {
        spec.at(field).invalid('requires indexed completion mode');
      }
    }
  }
  spec.at('podReplacementPolicy').oneOf(['Failed', 'TerminatingOrFailed']);
  checkTemplate(spec.at('template'));
  const policy = spec.at('template').at('spec').at('restartPolicy');
  if (policy.text === 'Always' || policy.text === '') {
    policy.required('valid values: "OnFailure", "Never"');
  } else if (!['OnFailure', 'Never'].includes(policy.text)) {
    policy.oneOf(['OnFailure', 'Never']);
  } else if (spec.at('podFailurePolicy').isSet && policy.text !== 'Never') {
    policy.invalid('only "Never" is supported when podFailurePolicy is specified');
  }
}

const UID_LABEL = 'batch.kubernetes.io/controller-uid';

export function checkJob(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  const selector = spec.at('selector');
  if (spec.at('manualSelector').value !== true && selector.isSet) {
    const expected = { matchLabels: { [UID_LABEL]: object.at('metadata').at('uid').value } };
    const legacy = { matchLabels: { 'controller-uid': object.at('metadata').at('uid').value } };
    if (!isDeepStrictEqual(selector.value, expected) && !isDeepStrictEqual(selector.value, legacy)) {
      selector.invalid('`selector` not auto-generated');
    }
  }
  if (selector.needed()) {
    selector.labelSelector();
  }
  checkSelected(spec, (labels) => selects(selector, labels));
  checkJobSpec(spec);
  if (old !== undefined) {
    const before = (name: string): unknown => valueAt(old, 'spec', name);
    const isElastic =
      spec.at('completionMode').text === 'Indexed' && spec.at('parallelism').value === spec.at('completions').value;
    if (!isElastic) {
      immutable(spec.at('completions'), before('completions'));
    }
    for (const field of [
      'selector',
      'completionMode',
      'podFailurePolicy',
      'backoffLimitPerIndex',
      'managedBy',
      'successPolicy',
    ]) {
      immutable(spec.at(field), before(field));
    }
    if (valueAt(old, 'spec', 'suspend') !== true || valueAt(old, 'status', 'startTime') !== undefined) {
      immutable(spec.at('template'), before('template'));
    }
  }
}

/** Longest name of a CronJob. Its Jobs append up to 11 characters to it, and names of Jobs have at most 63. */
const MAX_CRON_JOB_NAME = 52;

export function checkCronJob(object: CheckedValue): void {
  const spec = object.at('spec');
  const name = object.at('metadata').at('name');
  if (name.text.length > MAX_CRON_JOB_NAME) {
    name.invalid(`must be no more than ${MAX_CRON_JOB_NAME} characters`);
  }
  const schedule = spec.at('schedule');
  if (schedule.needed()) {
    const problem = scheduleProblem(schedule.text);
    if (problem !== undefined) {
      schedule.invalid(problem);
    }
    if (schedule.text.includes('TZ')) {
      schedule.invalid('cannot use TZ or CRON_TZ in schedule, use timeZone field instead');
    }
  }
  const zone = spec.at('timeZone');
  if (zone.value === '') {
    zone.invalid('timeZone must be nil or non-empty string');
  } else if (zone.isSet && !isTimeZone(zone.text)) {
    zone.invalid(`unknown time zone ${zone.text}`);
  }
  for (const field of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit']) {
    spec.at(field).nonNegative();
  }
  const policy = spec.at('concurrencyPolicy');
  if (policy.needed()) {
    policy.oneOf(['Allow', 'Forbid', 'Replace']);
  }
  checkJobSpec(spec.at('jobTemplate').at('spec'));
}

export function checkPodDisruptionBudget(object: CheckedValue): void {
  const spec = object.at('spec');
  const [min, max] = [spec.at('minAvailable'), spec.at('maxUnavailable')];
  if (min.isSet && max.isSet) {
    const text = {
      MinAvailable: min.value,
      Selector: spec.at('selector').value ?? null,
      MaxUnavailable: max.value,
      UnhealthyPodEvictionPolicy: spec.at('unhealthyPodEvictionPolicy').value ?? null,
    };
    spec.invalidStruct(text, 'minAvailable and maxUnavailable cannot be both set');
  }
  percentOrNumber(min);
  percentOrNumber(max);
  spec.at('selector').labelSelector();
  spec.at('unhealthyPodEvictionPolicy').oneOf(['AlwaysAllow', 'IfHealthyBudget']);
}
