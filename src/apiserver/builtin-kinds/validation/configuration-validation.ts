// Validation of ConfigMaps, Secrets, storage, quotas and events.
import { isDeepStrictEqual } from 'node:util';
import { dnsSubdomainProblems, qualifiedNameProblems } from '../../../names/index.ts';
import { valueAt } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { configKeyProblems } from '../../../resources/kind-validation/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';
import { checkHostPath, checkNfs } from './volume-validation.ts';
import { immutable } from './workload-validation.ts';

type Old = KubernetesObject | undefined;

/** Maximum total size of the data of a ConfigMap or Secret. */
const MAX_DATA_BYTES = 1024 ** 2;

const IMMUTABLE = 'field is immutable when `immutable` is set';

export function checkConfigMap(object: CheckedValue, old: Old): void {
  const [data, binary] = [object.at('data'), object.at('binaryData')];
  const binaryKeys = new Set(binary.entries.map(([key]) => key));
  let bytes = 0;
  for (const [key, value] of [...data.entries, ...binary.entries]) {
    configKeyProblems(key).forEach((problem) => value.invalid(problem, key));
    bytes += Buffer.byteLength(value.text);
  }
  for (const [key, value] of data.entries) {
    if (binaryKeys.has(key)) {
      value.invalid('duplicate of key present in binaryData', key);
    }
  }
  checkSize(object, bytes);
  checkImmutableData(object, old, ['data', 'binaryData']);
}

/** Required keys of a Secret's data by type. */
const SECRET_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
};

const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

export function checkSecret(object: CheckedValue, old: Old): void {
  const data = object.at('data');
  let bytes = 0;
  for (const [key, value] of data.entries) {
    configKeyProblems(key).forEach((problem) => value.invalid(problem, key));
    bytes += Buffer.byteLength(value.text, 'base64');
  }
  checkSize(object, bytes);
  const keys = new Map(data.entries);
  const type = object.at('type').text;
  for (const key of Object.hasOwn(SECRET_KEYS, type) ? (SECRET_KEYS[type] ?? []) : []) {
    if (!keys.has(key)) {
      data.at(key).named(`data[${key}]`).required();
    }
  }
  if (type === 'kubernetes.io/service-account-token') {
    const account = object.at('metadata').at('annotations').at(ACCOUNT_ANNOTATION);
    account.named(`metadata.annotations[${ACCOUNT_ANNOTATION}]`).needed();
  } else if (type === 'kubernetes.io/basic-auth' && !keys.has('username') && !keys.has('password')) {
    data.named('data[username]').required();
    data.named('data[password]').required();
  }
  if (old !== undefined) {
    immutable(object.at('type'), old['type']);
  }
  checkImmutableData(object, old, ['data']);
}

function checkSize(object: CheckedValue, bytes: number): void {
  if (bytes > MAX_DATA_BYTES) {
    const kind = object.at('kind').text;
    const place = kind === 'Secret' ? 'data' : '';
    object.add({
      reason: 'FieldValueTooLong',
      field: place,
      message: `Too long: may not be more than ${MAX_DATA_BYTES} bytes`,
    });
  }
}

function checkImmutableData(object: CheckedValue, old: Old, fields: readonly string[]): void {
  if (old?.['immutable'] !== true) {
    return;
  }
  if (object.at('immutable').value !== true) {
    object.at('immutable').forbidden(IMMUTABLE);
  }
  for (const field of fields) {
    if (!isDeepStrictEqual(object.at(field).value ?? {}, old[field] ?? {})) {
      object.at(field).forbidden(IMMUTABLE);
    }
  }
}

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

function checkAccessModes(modes: CheckedValue): void {
  for (const mode of modes.items) {
    mode.named(modes.path).oneOf(ACCESS_MODES);
  }
  if (modes.items.length > 1 && modes.items.some(({ text }) => text === 'ReadWriteOncePod')) {
    modes.forbidden('may not use ReadWriteOncePod with other access modes');
  }
}

const CLAIM_UPDATE =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

export function checkPersistentVolumeClaim(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  spec.at('accessModes').needed('at least 1 access mode is required');
  checkAccessModes(spec.at('accessModes'));
  spec.at('selector').labelSelector();
  const storage = spec.at('resources').at('requests').at('storage').named('spec.resources[storage]');
  if (!storage.isSet) {
    storage.required();
  } else if ((storage.quantity?.sign ?? 1) <= 0) {
    storage.invalid('must be greater than zero', storage.quantity?.toString());
  }
  spec.at('storageClassName').follows(dnsSubdomainProblems);
  spec.at('volumeMode').oneOf(['Block', 'Filesystem']);
  if (old !== undefined) {
    const isBound = object.at('status').at('phase').text === 'Bound';
    const before = { ...(old['spec'] as object) } as Record<string, unknown>;
    const after = { ...(spec.value as object) } as Record<string, unknown>;
    before['volumeName'] ??= after['volumeName'];
    before['storageClassName'] ??= after['storageClassName'];
    if (isBound) {
      after['resources'] = before['resources'];
      after['volumeAttributesClassName'] = before['volumeAttributesClassName'];
    }
    if (!isDeepStrictEqual(cleaned(after), cleaned(before))) {
      spec.forbidden(CLAIM_UPDATE);
    }
    checkShrinking(spec, old);
  }
}

function checkShrinking(spec: CheckedValue, old: KubernetesObject): void {
  const place = spec.at('resources').at('requests').at('storage');
  const [now, capacityBefore] = [place.quantity, valueAt(old, 'status', 'capacity', 'storage')];
  const before = place.read(valueAt(old, 'spec', 'resources', 'requests', 'storage')).quantity;
  if (now !== undefined && before !== undefined && now.compareTo(before) < 0) {
    const capacity = place.read(capacityBefore ?? '0').quantity;
    if (capacity !== undefined && now.compareTo(capacity) <= 0) {
      place.forbidden('field can not be less than status.capacity');
    }
  }
}

const cleaned = (fields: Record<string, unknown>): unknown =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Fields in the spec of a PersistentVolume that are not volume sources. */
const VOLUME_FIELDS = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
]);

export function checkPersistentVolume(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  spec.at('accessModes').needed();
  checkAccessModes(spec.at('accessModes'));
  const capacity = spec.at('capacity');
  capacity.needed();
  if (capacity.entries.length !== 1 || capacity.at('storage').value === undefined) {
    capacity.unsupported(capacity.value ?? null, ['storage']);
  }
  for (const [, amount] of capacity.entries) {
    if ((amount.quantity?.sign ?? 1) <= 0) {
      amount.invalid('must be greater than zero', amount.quantity?.toString());
    }
  }
  spec.at('persistentVolumeReclaimPolicy').oneOf(['Delete', 'Recycle', 'Retain']);
  spec.at('volumeMode').oneOf(['Block', 'Filesystem']);
  spec.at('storageClassName').follows(dnsSubdomainProblems);
  const sources = sourcesOf(spec.value);
  if (Object.keys(sources).length === 0) {
    spec.required('must specify a volume type');
  }
  if (spec.at('hostPath').isSet) {
    checkHostPath(spec.at('hostPath'));
  }
  if (spec.at('nfs').isSet) {
    checkNfs(spec.at('nfs'));
  }
  if (old !== undefined && !isDeepStrictEqual(sources, sourcesOf(old['spec']))) {
    const place = spec.named('spec.persistentvolumesource');
    place.forbidden('spec.persistentvolumesource is immutable after creation');
  }
}

function sourcesOf(spec: unknown): object {
  return Object.fromEntries(Object.entries(spec ?? {}).filter(([name]) => !VOLUME_FIELDS.has(name)));
}

const STORAGE_UPDATES = ['parameters', 'provisioner', 'reclaimPolicy'];

export function checkStorageClass(object: CheckedValue, old: Old): void {
  object.at('provisioner').needed();
  object.at('reclaimPolicy').oneOf(['Delete', 'Retain']);
  object.at('volumeBindingMode').oneOf(['Immediate', 'WaitForFirstConsumer']);
  if (old !== undefined) {
    for (const field of STORAGE_UPDATES) {
      if (!isDeepStrictEqual(object.at(field).value, old[field])) {
        object.at(field).forbidden(`updates to ${field} are forbidden.`);
      }
    }
    immutable(object.at('volumeBindingMode'), old['volumeBindingMode']);
  }
}

const QUOTA_RESOURCES = new Set([
  'configmaps',
  'cpu',
  'ephemeral-storage',
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'memory',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
  'requests.storage',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
]);

export function checkResourceQuota(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  for (const [name, amount] of spec.at('hard').entries) {
    qualifiedNameProblems(name).forEach((problem) => amount.invalid(problem, name));
    if (!name.includes('/') && !QUOTA_RESOURCES.has(name) && !/hugepages-/.test(name)) {
      amount.invalid('must be a standard resource for quota', name);
    }
    if ((amount.quantity?.sign ?? 0) < 0) {
      amount.invalid('must be greater than or equal to 0', amount.quantity?.toString());
    }
  }
  for (const scope of spec.at('scopes').items) {
    scope
      .named('spec.scopes')
      .oneOf([
        'BestEffort',
        'CrossNamespacePodAffinity',
        'NotBestEffort',
        'NotTerminating',
        'PriorityClass',
        'Terminating',
        'VolumeAttributesClass',
      ]);
  }
  if (old !== undefined) {
    immutable(spec.at('scopes'), valueAt(old, 'spec', 'scopes'));
  }
}

export function checkLimitRange(object: CheckedValue): void {
  for (const item of object.at('spec').at('limits').items) {
    const type = item.at('type').text;
    item.at('type').needed();
    if (type === 'Pod') {
      for (const field of ['default', 'defaultRequest']) {
        if (!item.at(field).isEmpty) {
          item.at(field).forbidden("may not be specified when `type` is 'Pod'");
        }
      }
      checkLimits(item, []);
    } else {
      checkLimits(item, [
        ['defaultRequest', 'default request'],
        ['default', 'default'],
      ]);
    }
  }
}

/** Checks that the minimum, the defaults and the maximum do not contradict each other. */
function checkLimits(item: CheckedValue, defaults: readonly (readonly [field: string, text: string])[]): void {
  const names = new Set(
    ['max', 'min', ...defaults.map(([field]) => field)].flatMap((field) =>
      item.at(field).entries.map(([name]) => name),
    ),
  );
  for (const name of names) {
    const amount = (field: string): CheckedValue => item.at(field).at(name).named(`${item.path}.${field}[${name}]`);
    const [min, max] = [amount('min'), amount('max')];
    above(min, max, min, `min value ${String(min.value)} is greater than max value ${String(max.value)}`);
    for (const [field, text] of defaults) {
      const place = amount(field);
      const detail = `min value ${String(min.value)} is greater than ${text} value ${String(place.value)}`;
      // For `default`, API servers print the minimum instead of the default.
      above(min, place, field === 'default' ? place.read(min.value) : place, detail);
    }
    for (const [field, text] of defaults) {
      const place = amount(field);
      above(place, max, place, `${text} value ${String(place.value)} is greater than max value ${String(max.value)}`);
    }
    const [request, limit] = [amount('defaultRequest'), amount('default')];
    if (defaults.length > 0) {
      above(
        request,
        limit,
        request,
        `default request value ${String(request.value)} is greater than default limit value ${String(limit.value)}`,
      );
    }
  }
}

function above(left: CheckedValue, right: CheckedValue, place: CheckedValue, detail: string): void {
  const [one, other] = [left.quantity, right.quantity];
  if (one !== undefined && other !== undefined && one.compareTo(other) > 0) {
    place.invalid(detail);
  }
}

export function checkPriorityClass(object: CheckedValue, old: Old): void {
  const [name, value] = [object.at('metadata').at('name').text, object.at('value')];
  if (name.startsWith('system-')) {
    if (!['system-cluster-critical', 'system-node-critical'].includes(name)) {
      object
        .at('metadata')
        .at('name')
        .forbidden("priority class names with 'system-' prefix are reserved for system use only");
    }
  } else if ((value.number ?? 0) > 1_000_000_000) {
    value.forbidden('maximum allowed value of a user defined priority is 1000000000');
  }
  object.at('preemptionPolicy').oneOf(['PreemptLowerPriority', 'Never']);
  if (old !== undefined) {
    if (value.value !== old['value']) {
      value.forbidden('may not be changed in an update.');
    }
    if (object.at('preemptionPolicy').value !== old['preemptionPolicy']) {
      immutable(object.at('preemptionPolicy'), old['preemptionPolicy']);
    }
  }
}

export function checkLease(object: CheckedValue): void {
  const spec = object.at('spec');
  const seconds = spec.at('leaseDurationSeconds');
  if (seconds.number !== undefined && seconds.number <= 0) {
    seconds.invalid('must be greater than 0');
  }
  spec.at('leaseTransitions').nonNegative();
}

/** For events of `v1`. */
export function checkEvent(object: CheckedValue): void {
  const place = object.at('involvedObject').at('namespace');
  const namespace = object.at('metadata').at('namespace').text;
  if (place.text !== namespace && !(place.text === '' && namespace === 'default')) {
    place.invalid('does not match event.namespace', place.text);
  }
}
