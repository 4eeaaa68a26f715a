// Validation of pods and pod templates.
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject } from '../../../resources/index.ts';
import {
  dnsLabelProblems,
  dnsSubdomainProblems,
  labelValueProblems,
  qualifiedNameProblems,
} from '../../../names/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { checkContainers, checkProfiles } from './container-validation.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';
import { checkVolumes } from './volume-validation.ts';

const MAX_ID = 2 ** 31 - 1;
const SYSCTL = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

/** Validates a pod template. API servers report errors in labels at `template.labels`, not at `template.metadata.labels`. */
export function checkTemplate(template: CheckedValue): void {
  template.at('metadata').at('labels').named(`${template.path}.labels`).labels();
  checkPodSpec(template.at('spec'));
}

export function checkPodSpec(spec: CheckedValue): void {
  const volumes = checkVolumes(spec.at('volumes'));
  const hostNetwork = spec.at('hostNetwork').value === true;
  checkContainers(spec, { volumes, hostNetwork });
  spec.at('restartPolicy').oneOf(['Always', 'OnFailure', 'Never']);
  checkDns(spec);
  spec.at('nodeSelector').labels();
  checkSecurityContext(spec.at('securityContext'));
  checkAffinity(spec.at('affinity'));
  checkSpread(spec.at('topologySpreadConstraints'));
  for (const name of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName']) {
    spec.at(name).follows(dnsSubdomainProblems);
  }
  for (const name of ['hostname', 'subdomain']) {
    spec.at(name).follows(dnsLabelProblems);
  }
  spec.at('activeDeadlineSeconds').between(1, MAX_ID);
  spec.at('preemptionPolicy').oneOf(['PreemptLowerPriority', 'Never']);
  spec.at('tolerations').items.forEach(checkToleration);
  for (const alias of spec.at('hostAliases').items) {
    alias.at('ip').ip();
    for (const name of alias.at('hostnames').items) {
      name.follows(dnsSubdomainProblems);
    }
  }
  spec.at('os').at('name').oneOf(['linux', 'windows']);
  checkTokenProjections(spec);
}

function checkDns(spec: CheckedValue): void {
  spec.at('dnsPolicy').oneOf(['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']);
  if (spec.at('dnsPolicy').text === 'None') {
    const config = spec.at('dnsConfig');
    if (!config.isSet) {
      config.required('must provide `dnsConfig` when `dnsPolicy` is None');
    } else if (config.at('nameservers').isEmpty) {
      config.at('nameservers').required('must provide at least one DNS nameserver when `dnsPolicy` is None');
    }
  }
  for (const server of spec.at('dnsConfig').at('nameservers').items) {
    server.ip();
  }
}

function checkSecurityContext(context: CheckedValue): void {
  for (const field of ['fsGroup', 'runAsUser', 'runAsGroup']) {
    context.at(field).between(0, MAX_ID);
  }
  for (const group of context.at('supplementalGroups').items) {
    group.between(0, MAX_ID);
  }
  for (const name of context.at('sysctls').items.map((sysctl) => sysctl.at('name'))) {
    if (name.needed() && (name.text.length > 253 || !SYSCTL.test(name.text))) {
      name.invalid(
        String.raw`must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
      );
    }
  }
  context.at('fsGroupChangePolicy').oneOf(['Always', 'OnRootMismatch']);
  checkProfiles(context);
}

/** Rejects projected service account tokens in pods without a service account. */
function checkTokenProjections(spec: CheckedValue): void {
  if (spec.at('serviceAccountName').text !== '') {
    return;
  }
  for (const volume of spec.at('volumes').items) {
    for (const source of volume.at('projected').at('sources').items) {
      if (source.at('serviceAccountToken').isSet) {
        source.at('serviceAccountToken').forbidden('must not be specified when serviceAccountName is not set');
      }
    }
  }
}

function checkToleration(toleration: CheckedValue): void {
  const [key, operator, effect] = [toleration.at('key'), toleration.at('operator'), toleration.at('effect')];
  const value = toleration.at('value').text;
  key.follows(qualifiedNameProblems);
  if (key.text === '' && operator.text !== 'Exists') {
    operator.invalid(
      'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      operator.text,
    );
  }
  if (toleration.at('tolerationSeconds').isSet && effect.text !== 'NoExecute') {
    effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set", effect.text);
  }
  if (operator.text === 'Exists') {
    if (value !== '') {
      operator.invalid("value must be empty when `operator` is 'Exists'", value);
    }
  } else if (operator.text === '' || operator.text === 'Equal') {
    labelValueProblems(value).forEach((problem) => operator.invalid(problem, value));
  } else {
    operator.oneOf(['Equal', 'Exists']);
  }
  if (effect.text !== '') {
    effect.oneOf(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
  }
}

function checkAffinity(affinity: CheckedValue): void {
  const nodes = affinity.at('nodeAffinity');
  const must = nodes.at('requiredDuringSchedulingIgnoredDuringExecution');
  if (must.isSet) {
    must.at('nodeSelectorTerms').needed('must have at least one node selector term');
    must.at('nodeSelectorTerms').items.forEach(checkNodeTerm);
  }
  for (const term of nodes.at('preferredDuringSchedulingIgnoredDuringExecution').items) {
    checkWeight(term.at('weight'));
    checkNodeTerm(term.at('preference'));
  }
  for (const pods of [affinity.at('podAffinity'), affinity.at('podAntiAffinity')]) {
    pods.at('requiredDuringSchedulingIgnoredDuringExecution').items.forEach(checkPodTerm);
    for (const term of pods.at('preferredDuringSchedulingIgnoredDuringExecution').items) {
      checkWeight(term.at('weight'));
      checkPodTerm(term.at('podAffinityTerm'));
    }
  }
}

function checkWeight(weight: CheckedValue): void {
  const value = weight.number ?? 0;
  if (value < 1 || value > 100) {
    weight.invalid('must be in the range 1-100');
  }
}

function checkNodeTerm(term: CheckedValue): void {
  for (const expression of term.at('matchExpressions').items) {
    const operator = expression.at('operator');
    const values = expression.at('values');
    switch (operator.text) {
      case 'In':
      case 'NotIn':
        values.needed("must be specified when `operator` is 'In' or 'NotIn'");
        break;
      case 'Exists':
      case 'DoesNotExist':
        if (!values.isEmpty) {
          values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        break;
      case 'Gt':
      case 'Lt':
        if (values.items.length !== 1) {
          values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        break;
      default:
        operator.invalid('not a valid selector operator');
    }
    qualifiedNameProblems(expression.at('key').text).forEach((problem) => expression.at('key').invalid(problem));
  }
}

function checkPodTerm(term: CheckedValue): void {
  term.at('labelSelector').labelSelector();
  term.at('namespaceSelector').labelSelector();
  const key = term.at('topologyKey');
  key.needed('can not be empty');
  qualifiedNameProblems(key.text).forEach((problem) => key.invalid(problem, key.text));
}

function checkSpread(constraints: CheckedValue): void {
  for (const constraint of constraints.items) {
    const skew = constraint.at('maxSkew');
    if ((skew.number ?? 0) <= 0) {
      skew.invalid('must be greater than zero');
    }
    constraint.at('topologyKey').needed('can not be empty');
    constraint.at('whenUnsatisfiable').oneOf(['DoNotSchedule', 'ScheduleAnyway']);
    constraint.at('labelSelector').labelSelector();
  }
}

const UPDATABLE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** Validates an update of a pod. It may change images and the deadline, add tolerations, and remove scheduling gates. */
export function checkPodUpdate(pod: CheckedValue, old: KubernetesObject): void {
  const spec = pod.at('spec');
  const before = (old['spec'] ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of ['containers', 'initContainers']) {
    if (spec.at(name).items.length !== listOf(before[name]).length) {
      spec.at(name).forbidden('pod updates may not add or remove containers');
      return;
    }
  }
  const deadline = spec.at('activeDeadlineSeconds');
  if (deadline.number !== undefined) {
    if (deadline.number < 0) {
      deadline.invalid(`must be between 0 and ${MAX_ID}, inclusive`);
      return;
    }
    if (typeof before['activeDeadlineSeconds'] === 'number' && before['activeDeadlineSeconds'] < deadline.number) {
      deadline.invalid('must be less than or equal to previous value');
      return;
    }
  } else if (before['activeDeadlineSeconds'] !== undefined) {
    deadline.invalid('must not update from a positive integer to nil value');
  }
  checkAddedTolerations(spec.at('tolerations'), listOf(before['tolerations']));
  const gates = spec.at('schedulingGates').items.map(({ value }) => value);
  if (gates.some((gate) => !listOf(before['schedulingGates']).some((other) => isDeepStrictEqual(gate, other)))) {
    spec.at('schedulingGates').forbidden('only deletion is allowed, but found new scheduling gates');
  }
  if (!isDeepStrictEqual(immutableParts(spec.value), immutableParts(before))) {
    spec.forbidden(UPDATABLE);
  }
}

function checkAddedTolerations(tolerations: CheckedValue, before: readonly unknown[]): void {
  const now = listOf(tolerations.value);
  const isSame = (left: unknown, right: unknown): boolean =>
    isDeepStrictEqual(left, right) ||
    isDeepStrictEqual({ ...(left as object), tolerationSeconds: 0 }, { ...(right as object), tolerationSeconds: 0 });
  if (before.some((toleration) => !now.some((other) => isSame(toleration, other)))) {
    tolerations.forbidden('existing toleration can not be modified except its tolerationSeconds');
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A pod's spec without the fields that an update may change. */
function immutableParts(spec: unknown): unknown {
  if (!isJsonObject(spec)) {
    return spec;
  }
  const withoutImages = (containers: unknown): unknown =>
    listOf(containers).map((container) => (isJsonObject(container) ? { ...container, image: '' } : container));
  const { activeDeadlineSeconds: _, tolerations: __, schedulingGates: ___, ...rest } = spec;
  return {
    ...rest,
    containers: withoutImages(spec['containers']),
    initContainers: withoutImages(spec['initContainers']),
    ...(Number(spec['terminationGracePeriodSeconds']) < 0 ? { terminationGracePeriodSeconds: 1 } : {}),
  };
}
