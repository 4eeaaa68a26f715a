// Validation of containers.
import { dnsLabelProblems, dnsSubdomainProblems, qualifiedNameProblems } from '../../../names/index.ts';
import { configKeyProblems, portNameProblems } from '../../../resources/kind-validation/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
/** The largest int32. */
const MAX_ID = 2 ** 31 - 1;

/** Properties of the pod that the validation of its containers needs. */
export interface ContainerContext {
  readonly volumes: ReadonlySet<string>;
  readonly hostNetwork: boolean;
}

export function checkContainers(spec: CheckedValue, context: ContainerContext): void {
  const containers = spec.at('containers');
  containers.needed();
  const names = new Set<string>();
  for (const container of containers.items) {
    checkContainer(container, context);
    checkName(container.at('name'), names);
    checkHandlers(container);
  }
  for (const container of spec.at('initContainers').items) {
    checkContainer(container, context);
    checkName(container.at('name'), names);
    if (container.at('restartPolicy').text === 'Always') {
      checkHandlers(container);
    } else {
      for (const name of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']) {
        if (container.at(name).isSet) {
          container.at(name).forbidden('may not be set for init containers without restartPolicy=Always');
        }
      }
    }
  }
}

function checkName(name: CheckedValue, names: Set<string>): void {
  if (name.text !== '' && names.has(name.text)) {
    name.duplicate();
  }
  names.add(name.text);
}

function checkContainer(container: CheckedValue, context: ContainerContext): void {
  if (container.at('name').needed()) {
    container.at('name').follows(dnsLabelProblems);
  }
  const image = container.at('image');
  if (image.needed() && image.text !== image.text.trim()) {
    image.invalid('must not have leading or trailing whitespace');
  }
  container.at('imagePullPolicy').oneOf(['Always', 'IfNotPresent', 'Never']);
  container.at('terminationMessagePolicy').oneOf(['File', 'FallbackToLogsOnError']);
  checkPorts(container.at('ports'), context);
  container.at('env').items.forEach(checkVariable);
  for (const source of container.at('envFrom').items) {
    checkVariablesFrom(source, container.at('envFrom'));
  }
  checkMounts(container.at('volumeMounts'), context);
  checkResources(container.at('resources'));
  checkSecurityContext(container.at('securityContext'));
}

function checkPorts(ports: CheckedValue, { hostNetwork }: ContainerContext): void {
  const names = new Set<string>();
  for (const port of ports.items) {
    const name = port.at('name');
    const isValid = portNameProblems(name.text).length === 0;
    name.follows(portNameProblems);
    if (isValid) {
      checkName(name, names);
    }
    const [inside, outside] = [port.at('containerPort'), port.at('hostPort')];
    if (inside.number === 0 || !inside.isSet) {
      inside.required();
    } else {
      inside.port();
    }
    outside.port();
    if (hostNetwork && outside.isSet && outside.value !== inside.value) {
      outside.invalid('must match `containerPort` when `hostNetwork` is true');
    }
    port.at('protocol').oneOf(PROTOCOLS);
  }
}

const VARIABLE_SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'];

/** Fields of pods that environment variables may refer to, besides single labels and annotations. */
const FIELDS = new Set([
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]);
const FIELD_WITH_KEY = /^metadata\.(?:labels|annotations)\['[^']*'\]$/;

function checkVariable(variable: CheckedValue): void {
  const name = variable.at('name');
  if (name.needed() && !/^[ -<>-~]+$/.test(name.text)) {
    name.invalid("a valid environment variable name must consist only of printable ASCII characters other than '='");
  }
  const from = variable.at('valueFrom');
  if (!from.isSet) {
    return;
  }
  const path = from.at('fieldRef').at('fieldPath');
  if (from.at('fieldRef').isSet && path.needed() && !FIELDS.has(path.text) && !FIELD_WITH_KEY.test(path.text)) {
    path.invalid(`error converting fieldPath: field label not supported: ${path.text}`);
  }
  for (const source of ['configMapKeyRef', 'secretKeyRef']) {
    checkKeySelector(from.at(source));
  }
  const resource = from.at('resourceFieldRef');
  if (resource.isSet) {
    resource.at('resource').needed();
  }
  const count = VARIABLE_SOURCES.filter((source) => from.at(source).isSet).length;
  if (count === 0) {
    from.invalid('must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`', '');
  } else if (variable.at('value').text !== '') {
    from.invalid('may not be specified when `value` is not empty', '');
  } else if (count > 1) {
    from.invalid('may not have more than one field specified at a time', '');
  }
}

function checkKeySelector(selector: CheckedValue): void {
  if (!selector.isSet) {
    return;
  }
  const name = selector.at('name');
  dnsSubdomainProblems(name.text).forEach((problem) => name.invalid(problem, name.text));
  if (selector.at('key').needed()) {
    selector.at('key').follows(configKeyProblems);
  }
}

function checkVariablesFrom(source: CheckedValue, all: CheckedValue): void {
  const references = ['configMapRef', 'secretRef'].map((name) => source.at(name)).filter(({ isSet }) => isSet);
  for (const name of references.map((reference) => reference.at('name'))) {
    dnsSubdomainProblems(name.text).forEach((problem) => name.invalid(problem, name.text));
  }
  if (references.length === 0) {
    all.invalid('must specify one of: `configMapRef` or `secretRef`', '');
  } else if (references.length > 1) {
    all.invalid('may not have more than one field specified at a time', '');
  }
}

function checkMounts(mounts: CheckedValue, { volumes }: ContainerContext): void {
  const paths = new Set<string>();
  for (const mount of mounts.items) {
    const [name, path] = [mount.at('name'), mount.at('mountPath')];
    if (name.needed() && !volumes.has(name.text)) {
      name.notFound();
    }
    if (path.needed()) {
      if (paths.has(path.text)) {
        path.invalid('must be unique');
      }
      paths.add(path.text);
    }
    for (const field of ['subPath', 'subPathExpr']) {
      const sub = mount.at(field).named(`${mounts.path}.${field}`);
      if (sub.text.startsWith('/')) {
        sub.invalid('must be a relative path');
      }
      checkNoBacksteps(sub);
    }
  }
}

export function checkNoBacksteps(path: CheckedValue): void {
  if (path.text.split('/').includes('..')) {
    path.invalid("must not contain '..'");
  }
}

const STANDARD_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);

function isStandard(name: string): boolean {
  return STANDARD_RESOURCES.has(name) || name.startsWith('hugepages-');
}

/** Validates resources. Extended resources have a domain and whole numbers, and their requests equal their limits. */
function checkResources(resources: CheckedValue): void {
  const [limits, requests] = [resources.at('limits'), resources.at('requests')];
  for (const [name, amount] of [...limits.entries, ...requests.entries]) {
    checkResourceName(amount, name);
    checkAmount(amount, name);
  }
  for (const [name, request] of requests.entries) {
    const limit = new Map(limits.entries).get(name);
    const [requested, max] = [request.quantity, limit?.quantity];
    if (requested !== undefined && max !== undefined && requested.compareTo(max) > 0) {
      requests.invalid(`must be less than or equal to ${name} limit of ${max.toString()}`, requested.toString());
    } else if (max === undefined && name.includes('/')) {
      limits.required('Limit must be set for non overcommitable resources');
    } else if (requested !== undefined && max !== undefined && name.includes('/') && requested.compareTo(max) !== 0) {
      requests.invalid(`must be equal to ${name} limit of ${max.toString()}`, requested.toString());
    }
  }
}

function checkResourceName(place: CheckedValue, name: string): void {
  const problems = qualifiedNameProblems(name);
  problems.forEach((problem) => place.invalid(problem, name));
  if (problems.length === 0 && !name.includes('/') && !isStandard(name)) {
    place.invalid('must be a standard resource type or fully qualified', name);
    place.invalid('must be a standard resource for containers', name);
  }
}

function checkAmount(place: CheckedValue, name: string): void {
  const amount = place.quantity;
  if (amount === undefined) {
    return;
  }
  if (amount.sign < 0) {
    place.invalid('must be greater than or equal to 0', amount.toString());
  }
  if (name.includes('/') && amount.toString().endsWith('m')) {
    place.invalid('must be an integer', amount.toString());
  }
}

function checkSecurityContext(context: CheckedValue): void {
  for (const field of ['runAsUser', 'runAsGroup']) {
    context.at(field).between(0, MAX_ID);
  }
  checkProfiles(context);
  checkEscalation(context);
  context.at('procMount').oneOf(['Default', 'Unmasked']);
}

/** The Go fields of a security context, in the order in which messages print them. */
const CONTEXT_FIELDS = [
  'Capabilities',
  'Privileged',
  'SELinuxOptions',
  'WindowsOptions',
  'RunAsUser',
  'RunAsGroup',
  'RunAsNonRoot',
  'ReadOnlyRootFilesystem',
  'AllowPrivilegeEscalation',
  'ProcMount',
  'SeccompProfile',
  'AppArmorProfile',
];

function checkEscalation(context: CheckedValue): void {
  if (context.at('allowPrivilegeEscalation').value !== false) {
    return;
  }
  const jsonName = (field: string): string =>
    field === 'SELinuxOptions' ? 'seLinuxOptions' : `${field[0]?.toLowerCase()}${field.slice(1)}`;
  const struct = Object.fromEntries(CONTEXT_FIELDS.map((field) => [field, context.at(jsonName(field)).value ?? null]));
  if (context.at('privileged').value === true) {
    context.invalidStruct(struct, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true');
  }
  if (
    context
      .at('capabilities')
      .at('add')
      .items.some(({ text }) => text === 'CAP_SYS_ADMIN')
  ) {
    context.invalidStruct(
      struct,
      'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
    );
  }
}

/** Validates the seccomp and AppArmor profiles of a security context. */
export function checkProfiles(context: CheckedValue): void {
  const seccomp = context.at('seccompProfile');
  if (seccomp.isSet && seccomp.at('type').needed('type is required when seccompProfile is set')) {
    seccomp.at('type').oneOf(['Localhost', 'RuntimeDefault', 'Unconfined']);
    const file = seccomp.at('localhostProfile');
    if (seccomp.at('type').text === 'Localhost') {
      file.needed('must be set when seccomp type is Localhost');
    } else if (file.isSet) {
      file.invalid('can only be set when seccomp type is Localhost');
    }
  }
  const apparmor = context.at('appArmorProfile');
  if (apparmor.isSet && apparmor.at('type').needed('type is required when appArmorProfile is set')) {
    apparmor.at('type').oneOf(['Localhost', 'RuntimeDefault', 'Unconfined']);
    if (apparmor.at('type').text === 'Localhost') {
      apparmor.at('localhostProfile').needed('must be set when AppArmor type is Localhost');
    }
  }
}

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'];

function checkHandlers(container: CheckedValue): void {
  for (const name of ['preStop', 'postStart']) {
    checkHandler(container.at('lifecycle').at(name));
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    checkProbe(container.at(name), name !== 'readinessProbe');
  }
}

function checkProbe(probe: CheckedValue, mustSucceedOnce: boolean): void {
  if (!probe.isSet) {
    return;
  }
  checkHandler(probe);
  for (const field of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]) {
    probe.at(field).nonNegative();
  }
  const grace = probe.at('terminationGracePeriodSeconds');
  if (grace.number !== undefined && grace.number <= 0) {
    grace.invalid('must be greater than 0');
  }
  const successes = probe.at('successThreshold');
  if (mustSucceedOnce && successes.isSet && successes.number !== 1) {
    successes.invalid('must be 1');
  }
}

function checkHandler(handler: CheckedValue): void {
  if (!handler.isSet) {
    return;
  }
  const [first, ...others] = HANDLERS.map((name) => handler.at(name)).filter(({ isSet }) => isSet);
  if (first === undefined) {
    handler.required('must specify a handler type');
    return;
  }
  others.forEach((other) => other.forbidden('may not specify more than 1 handler type'));
  if (handler.at('exec').isSet) {
    handler.at('exec').at('command').needed();
  }
  for (const name of ['httpGet', 'tcpSocket']) {
    if (handler.at(name).isSet) {
      handler.at(name).at('port').portOrName();
    }
  }
  handler.at('httpGet').at('scheme').oneOf(['HTTP', 'HTTPS']);
  handler.at('grpc').at('port').port();
}
