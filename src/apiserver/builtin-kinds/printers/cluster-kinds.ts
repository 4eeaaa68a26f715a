// Table cells of kinds for configuration, storage, access and the cluster.
import { ageOf } from '../../../resources/index.ts';
import { age, nameOf } from './table-cells.ts';
import type { Cells, PrintedCondition } from './table-cells.ts';

type Labels = Readonly<Record<string, string>>;

const count = (value: object | null | undefined): number => Object.keys(value ?? {}).length;

export const configMapCells: Cells = (object, now) => {
  const { data, binaryData } = object as { readonly data?: object; readonly binaryData?: object };
  return [nameOf(object), count(data) + count(binaryData), age(object, now)];
};

export const secretCells: Cells = (object, now) => {
  const { type, data } = object as { readonly type?: string; readonly data?: object };
  return [nameOf(object), type ?? '', count(data), age(object, now)];
};

export const serviceAccountCells: Cells = (object, now) => {
  const { secrets } = object as { readonly secrets?: readonly unknown[] };
  return [nameOf(object), secrets?.length ?? 0, age(object, now)];
};

export const namespaceCells: Cells = (object, now) => {
  const { status } = object as { readonly status?: { readonly phase?: string } };
  return [nameOf(object), status?.phase ?? '', age(object, now)];
};

interface Event {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly note?: string;
  readonly count?: number;
  readonly eventTime?: string | null;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string | null };
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly fieldPath?: string };
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}

/** For events of `v1`. */
export const eventCells: Cells = (object, now) => {
  const event = object as Event;
  const { series, involvedObject, source } = event;
  const first = ageOf(event.firstTimestamp ?? event.eventTime, now);
  const last = series === undefined ? lastSeen(event, first, now) : ageOf(series.lastObservedTime, now);
  const component = source?.component || event.reportingComponent || '';
  const instance = source?.host || event.reportingInstance || '';
  const kind = (involvedObject?.kind ?? '').toLowerCase();
  return [
    last,
    event.type ?? '',
    event.reason ?? '',
    involvedObject?.name ? `${kind}/${involvedObject.name}` : kind,
    involvedObject?.fieldPath ?? '',
    instance === '' ? component : `${component}, ${instance}`,
    (event.message ?? '').trim(),
    first,
    series?.count ?? (event.count || 1),
    nameOf(object),
  ];
};

function lastSeen({ lastTimestamp }: Event, first: string, now: number): string {
  return lastTimestamp === undefined || lastTimestamp === null ? first : ageOf(lastTimestamp, now);
}

interface Node {
  readonly metadata: { readonly labels?: Labels };
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly conditions?: readonly PrintedCondition[];
    readonly addresses?: readonly { readonly type?: string; readonly address?: string }[];
    readonly nodeInfo?: Labels;
  };
}

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

export const nodeCells: Cells = (object, now) => {
  const { metadata, spec, status } = object as Node;
  const ready = status?.conditions?.findLast(({ type }) => type === 'Ready');
  const readiness = ready?.status === 'True' ? 'Ready' : 'NotReady';
  const states = [ready === undefined ? 'Unknown' : readiness];
  if (spec?.unschedulable === true) {
    states.push('SchedulingDisabled');
  }
  const address = (wanted: string): string =>
    status?.addresses?.find(({ type }) => type === wanted)?.address ?? '<none>';
  const info = (field: string): string => status?.nodeInfo?.[field] || '<unknown>';
  return [
    nameOf(object),
    states.join(','),
    nodeRoles(metadata.labels ?? {}),
    age(object, now),
    status?.nodeInfo?.['kubeletVersion'] ?? '',
    address('InternalIP'),
    address('ExternalIP'),
    info('osImage'),
    info('kernelVersion'),
    info('containerRuntimeVersion'),
  ];
};

function nodeRoles(labels: Labels): string {
  const roles = Object.entries(labels).flatMap(([key, value]) => {
    const role = key.startsWith(ROLE_PREFIX) ? key.slice(ROLE_PREFIX.length) : key === ROLE_LABEL && value;
    return role || [];
  });
  return [...new Set(roles)].sort().join(',') || '<none>';
}

const ACCESS_MODES: readonly (readonly [mode: string, text: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

function accessModes(modes: readonly string[] | undefined): string {
  return ACCESS_MODES.flatMap(([mode, text]) => (modes?.includes(mode) === true ? text : [])).join(',');
}

/** The annotation that named the storage class before the field existed. It takes precedence. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

interface Volume {
  readonly metadata: { readonly annotations?: Labels; readonly deletionTimestamp?: string };
  readonly spec?: {
    readonly volumeName?: string;
    readonly storageClassName?: string;
    readonly volumeAttributesClassName?: string;
    readonly volumeMode?: string;
    readonly capacity?: Labels;
    readonly accessModes?: readonly string[];
    readonly persistentVolumeReclaimPolicy?: string;
    readonly claimRef?: { readonly namespace?: string; readonly name?: string };
  };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly capacity?: Labels;
    readonly accessModes?: readonly string[];
  };
}

const phaseOf = ({ metadata, status }: Volume): string =>
  metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating';

const storageClassOf = ({ metadata, spec }: Volume): string =>
  metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '';

export const persistentVolumeClaimCells: Cells = (object, now) => {
  const claim = object as Volume;
  const { spec, status } = claim;
  const isBound = (spec?.volumeName ?? '') !== '';
  return [
    nameOf(object),
    phaseOf(claim),
    spec?.volumeName ?? '',
    isBound ? (status?.capacity?.['storage'] ?? '0') : '',
    isBound ? accessModes(status?.accessModes) : '',
    storageClassOf(claim),
    spec?.volumeAttributesClassName ?? '<unset>',
    age(object, now),
    spec?.volumeMode ?? '<unset>',
  ];
};

export const persistentVolumeCells: Cells = (object, now) => {
  const volume = object as Volume;
  const { spec, status } = volume;
  const claim = spec?.claimRef;
  return [
    nameOf(object),
    spec?.capacity?.['storage'] ?? '0',
    accessModes(spec?.accessModes),
    spec?.persistentVolumeReclaimPolicy ?? '',
    phaseOf(volume),
    claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`,
    storageClassOf(volume),
    spec?.volumeAttributesClassName ?? '<unset>',
    status?.reason ?? '',
    age(object, now),
    spec?.volumeMode ?? '<unset>',
  ];
};

const DEFAULT_CLASS_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

interface StorageClass {
  readonly metadata: { readonly annotations?: Labels };
  readonly provisioner?: string;
  readonly reclaimPolicy?: string;
  readonly volumeBindingMode?: string;
  readonly allowVolumeExpansion?: boolean;
}

export const storageClassCells: Cells = (object, now) => {
  const kind = object as StorageClass;
  const isDefault = DEFAULT_CLASS_ANNOTATIONS.some((name) => kind.metadata.annotations?.[name] === 'true');
  return [
    isDefault ? `${nameOf(object)} (default)` : nameOf(object),
    kind.provisioner ?? '',
    kind.reclaimPolicy ?? 'Delete',
    kind.volumeBindingMode ?? 'Immediate',
    kind.allowVolumeExpansion ?? false,
    age(object, now),
  ];
};

interface RoleBinding {
  readonly roleRef?: { readonly kind?: string; readonly name?: string };
  readonly subjects?: readonly { readonly kind?: string; readonly name?: string; readonly namespace?: string }[];
}

export const roleBindingCells: Cells = (object, now) => {
  const { roleRef, subjects = [] } = object as RoleBinding;
  const named = (wanted: string): string =>
    subjects.flatMap(({ kind, name }) => (kind === wanted ? (name ?? '') : [])).join(', ');
  const accounts = subjects.flatMap(({ kind, name, namespace }) =>
    kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : [],
  );
  return [
    nameOf(object),
    `${roleRef?.kind}/${roleRef?.name}`,
    age(object, now),
    named('User'),
    named('Group'),
    accounts.join(', '),
  ];
};

/** The generic columns of API servers: the name, and a date that kubectl shows as an age. */
export const createdAtCells: Cells = (object) => [nameOf(object), object.metadata.creationTimestamp ?? null];

export const webhookConfigurationCells: Cells = (object, now) => {
  const { webhooks } = object as { readonly webhooks?: readonly unknown[] };
  return [nameOf(object), webhooks?.length ?? 0, age(object, now)];
};

interface AdmissionPolicy {
  readonly spec?: {
    readonly validations?: readonly unknown[];
    readonly paramKind?: { readonly apiVersion?: string; readonly kind?: string };
  };
}

export const validatingAdmissionPolicyCells: Cells = (object, now) => {
  const { validations, paramKind } = (object as AdmissionPolicy).spec ?? {};
  const parameters = paramKind === undefined ? '<unset>' : `${paramKind.apiVersion}/${paramKind.kind}`;
  return [nameOf(object), validations?.length ?? 0, parameters, age(object, now)];
};

interface GivenSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

interface AdmissionPolicyBinding {
  readonly spec?: {
    readonly policyName?: string;
    readonly paramRef?: { readonly name?: string; readonly namespace?: string; readonly selector?: GivenSelector };
  };
}

export const validatingAdmissionPolicyBindingCells: Cells = (object, now) => {
  const { policyName = '', paramRef } = (object as AdmissionPolicyBinding).spec ?? {};
  return [nameOf(object), policyName, parameterText(paramRef), age(object, now)];
};

function parameterText(reference: NonNullable<AdmissionPolicyBinding['spec']>['paramRef']): string {
  if (reference?.name) {
    return `${reference.namespace || '*'}/${reference.name}`;
  }
  return reference?.selector === undefined ? '<unset>' : structText(reference.selector);
}

/** A LabelSelector printed as a Go struct, as API servers do in this column only. */
function structText({ matchLabels = {}, matchExpressions = [] }: GivenSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}: ${value},`);
  const expressions = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  const labelsText = `map[string]string{${labels.sort().join('')}}`;
  return `&LabelSelector{MatchLabels:${labelsText},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`;
}

interface Quota {
  readonly status?: { readonly hard?: Labels; readonly used?: Labels };
}

export const resourceQuotaCells: Cells = (object, now) => {
  const { hard = {}, used = {} } = (object as Quota).status ?? {};
  const column = (isLimit: boolean): string =>
    Object.keys(hard)
      .filter((name) => name.startsWith('limits.') === isLimit)
      .sort()
      .map((name) => `${name}: ${used[name] ?? '0'}/${hard[name]}`)
      .join(', ');
  return [nameOf(object), column(false), column(true), age(object, now)];
};

interface PriorityClass {
  readonly value?: number;
  readonly globalDefault?: boolean;
  readonly preemptionPolicy?: string;
}

export const priorityClassCells: Cells = (object, now) => {
  const { value = 0, globalDefault = false, preemptionPolicy = '' } = object as PriorityClass;
  return [nameOf(object), value, globalDefault, age(object, now), preemptionPolicy];
};

export const leaseCells: Cells = (object, now) => {
  const { spec } = object as { readonly spec?: { readonly holderIdentity?: string } };
  return [nameOf(object), spec?.holderIdentity ?? '', age(object, now)];
};
