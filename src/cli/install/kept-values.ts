// What an installation keeps of the one before: the values that it was told then, and what was changed in the cluster since.
import { isDeepStrictEqual } from 'node:util';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubernetesObject,
  textOf,
  textsOf,
  valueAt,
} from '../../resources/index.ts';
import { parseJson } from '../../values/index.ts';
import { usageError } from '../errors.ts';
import {
  controllerDeployment,
  type InstallValues,
  isSection,
  type ValueDeclaration,
  valuesDeclaration,
  type ValueSection,
} from '../../installation/index.ts';

/** An annotation of the controller's Deployment: the values of the installation. */
export const VALUES_ANNOTATION = 'portcullis.dev/install-values';

/** The values of an installation. */
export interface ValuesRecord {
  /** Those that it was told; the others have the defaults of its version. */
  readonly given: JsonObject;
  readonly all: JsonObject;
}

/** What is in the cluster of an installation. */
export interface InstalledObjects {
  readonly deployment: KubernetesObject;
  /** The Deployment of the auditor. */
  readonly auditor?: KubernetesObject;
  readonly policyServer?: KubernetesObject;
  /** ClusterRoles that are bound for Policies. */
  readonly governanceRoles: readonly string[];
  /** Of parts that a value switches: by its path, whether their objects exist. */
  readonly parts: Readonly<Record<string, boolean>>;
}

type Path = readonly string[];

/** Values that are flags of the controller, by path. */
const FLAGS: Readonly<Record<string, string>> = {
  exemptNamespaces: 'exempt-namespaces',
  listenAddress: 'webhook-addr',
  apiServers: 'webhook-api-servers',
  'certificates.mode': 'certificates',
  'certificates.caLifetime': 'ca-lifetime',
  'certificates.caOverlap': 'ca-overlap',
  'certificates.lifetime': 'certificate-lifetime',
  'controller.rolloutStrategy': 'rollout-strategy',
  'controller.progressDeadline': 'progress-deadline',
  'controller.revisionHistoryLimit': 'revision-history-limit',
  'controller.degradedPolicies': 'degraded-policies',
  'controller.unservedPolicies': 'unserved-policies',
  'controller.logLevel': 'log-level',
  'controller.logFormat': 'log-fmt',
  'auditor.enabled': 'auditor',
  'governance.enabled': 'governance',
  'governance.mode': 'governance-mode',
  'governance.clusterName': 'cluster-name',
  'governance.namespaces': 'governance-namespaces',
  'networkPolicyStatus.enabled': 'network-policy-status',
  'networkPolicyStatus.annotation': 'network-policy-annotation',
  'networkPolicyStatus.catalogue': 'network-policy-catalogue',
};

const POD: Path = ['spec', 'template', 'spec'];
const CONTAINER: Path = [...POD, 'containers', '0'];
/** Values that are fields of the controller's Deployment, by path. */
const DEPLOYMENT_FIELDS: Readonly<Record<string, Path>> = {
  'controller.replicas': ['spec', 'replicas'],
  imagePullPolicy: [...CONTAINER, 'imagePullPolicy'],
  imagePullSecrets: [...POD, 'imagePullSecrets'],
  'controller.resources': [...CONTAINER, 'resources'],
  'controller.nodeSelector': [...POD, 'nodeSelector'],
  'controller.tolerations': [...POD, 'tolerations'],
  'controller.affinity': [...POD, 'affinity'],
  'controller.priorityClassName': [...POD, 'priorityClassName'],
};
/** Values that are fields of the auditor's Deployment, by path. */
const AUDITOR_FIELDS: Readonly<Record<string, Path>> = {
  'auditor.replicas': ['spec', 'replicas'],
  'auditor.resources': [...CONTAINER, 'resources'],
  'auditor.nodeSelector': [...POD, 'nodeSelector'],
  'auditor.tolerations': [...POD, 'tolerations'],
  'auditor.affinity': [...POD, 'affinity'],
  'auditor.priorityClassName': [...POD, 'priorityClassName'],
  'auditor.imagePullSecret': [...POD, 'volumes', '1', 'secret', 'secretName'],
};
/** Values that are fields of the default PolicyServer, by path. */
const POLICY_SERVER_FIELDS: Readonly<Record<string, Path>> = {
  'policyServer.replicas': ['spec', 'replicas'],
  'policyServer.requests': ['spec', 'requests'],
  'policyServer.limits': ['spec', 'limits'],
  'policyServer.imagePullSecret': ['spec', 'imagePullSecret'],
  'policyServer.env': ['spec', 'env'],
};
const IMAGE: Path = [...CONTAINER, 'image'];
/** Lists of the controller's container and pod that have items of ours, by the path of the value. API servers set their defaults. */
const LISTS: Readonly<Record<string, Path>> = {
  'controller.extraEnv': [...CONTAINER, 'env'],
  'controller.extraVolumes': [...POD, 'volumes'],
  'controller.extraVolumeMounts': [...CONTAINER, 'volumeMounts'],
};
/** The default image of any version: nobody chose it. */
const DEFAULT_IMAGE = /^portcullis:[\w.-]+$/;

/** The annotation that {@link keptValues} reads. */
export function recordText(given: JsonObject, values: InstallValues): string {
  return JSON.stringify({ given, all: values });
}

/** The record of the last installation; undefined where another program, or a version before it, installed. @throws CliError */
export function recordOf(deployment: KubernetesObject): ValuesRecord | undefined {
  const text = deployment.metadata.annotations?.[VALUES_ANNOTATION];
  if (text === undefined) {
    return undefined;
  }
  const record = parsed(text);
  const [given, all] = [valueAt(record, 'given'), valueAt(record, 'all')];
  if (!isJsonObject(given) || !isJsonObject(all)) {
    throw usageError(
      `the annotation ${VALUES_ANNOTATION} of deployment ${deployment.metadata.name} is not what an installation wrote`,
      'Nothing was changed. Add --reset-values, and name all values that are not the defaults.',
    );
  }
  return { given, all };
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * The values to install with when none is told: those that the last installation was told, and what was changed in the cluster
 * since. Without a record, all that differs from the defaults.
 * @param defaults the default values of this version
 */
export function keptValues(installed: InstalledObjects, defaults: InstallValues, version: string): JsonObject {
  const record = recordOf(installed.deployment);
  const before: JsonValue = record?.all ?? (defaults as unknown as JsonObject);
  const live = { ...liveValues(installed, version), ...(record === undefined ? unrecorded(installed, defaults) : {}) };
  let kept: JsonObject = record?.given ?? {};
  for (const [path, value] of Object.entries(live)) {
    const was = valueAt(before, ...path.split('.'));
    if (!isSame(value, was)) {
      kept = withValue(kept, path.split('.'), replacing(value, declarationAt(version, path).default));
    }
  }
  return kept;
}

/** The order of texts has no meaning: those of the cluster are sorted. */
function isSame(one: JsonValue, other: JsonValue | undefined): boolean {
  const [left, right] = [one, other].map((value) =>
    Array.isArray(value) && value.every((item) => typeof item === 'string') ? value.toSorted() : value,
  );
  return isDeepStrictEqual(left, right);
}

/** Values that can be read in the cluster, by path. */
function liveValues(installed: InstalledObjects, version: string): Readonly<Record<string, JsonValue>> {
  const { auditor, deployment, policyServer, governanceRoles } = installed;
  const args = textsOf(at(deployment, [...CONTAINER, 'args']));
  const isGoverning = !args.includes('--governance=false');
  const flags = Object.entries(FLAGS).flatMap(([path, flag]) => {
    // The first one: extra arguments come last.
    const text = args.find((argument) => argument.startsWith(`--${flag}=`))?.slice(flag.length + 3);
    return text === undefined ? [] : [[path, flagValue(declarationAt(version, path), text)] as const];
  });
  const fields = (object: KubernetesObject, paths: Readonly<Record<string, Path>>): (readonly [string, JsonValue])[] =>
    Object.entries(paths).map(([path, field]) => [path, at(object, field) ?? emptyOf(declarationAt(version, path))]);
  return Object.fromEntries([
    ...flags,
    ...fields(deployment, DEPLOYMENT_FIELDS),
    ...(auditor === undefined ? [] : fields(auditor, AUDITOR_FIELDS)),
    ...(policyServer === undefined ? [] : fields(policyServer, POLICY_SERVER_FIELDS)),
    ...(isGoverning ? [['governance.roles', [...governanceRoles]] as const] : []),
  ]);
}

/** Values that only a record has otherwise. */
function unrecorded(
  { deployment, parts }: InstalledObjects,
  values: InstallValues,
): Readonly<Record<string, JsonValue>> {
  const image = textOf(at(deployment, IMAGE));
  const [preset] = controllerDeployment({ namespace: '', values });
  const lists = Object.entries(LISTS).map(([path, field]) => {
    const ours = new Set((preset === undefined ? [] : itemsAt(preset, field)).map(({ name }) => name));
    return [path, itemsAt(deployment, field).filter(({ name }) => !ours.has(name))] as const;
  });
  return { ...Object.fromEntries(lists), ...parts, ...(DEFAULT_IMAGE.test(image) ? {} : { image }) };
}

function itemsAt(object: KubernetesObject, path: Path): JsonObject[] {
  const items = at(object, path);
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}

function at(object: KubernetesObject, path: Path): JsonValue | undefined {
  let value: unknown = object;
  for (const name of path) {
    value = Array.isArray(value) ? (value[Number(name)] as unknown) : valueAt(value, name);
  }
  return value as JsonValue | undefined;
}

function flagValue({ type }: ValueDeclaration, text: string): JsonValue {
  switch (type) {
    case 'boolean':
      return text === 'true';
    case 'integer':
      return Number(text);
    case 'texts':
      return text === '' ? [] : text.split(',');
    default:
      return text;
  }
}

function emptyOf({ type }: ValueDeclaration): JsonValue {
  return type === 'object' ? {} : type === 'list' || type === 'texts' ? [] : type === 'integer' ? 0 : '';
}

function declarationAt(version: string, path: string): ValueDeclaration {
  const declared = path
    .split('.')
    .reduce<ValueDeclaration | ValueSection | undefined>(
      (section, name) => (section !== undefined && isSection(section) ? section.values[name] : undefined),
      valuesDeclaration(version),
    );
  if (declared === undefined || isSection(declared)) {
    throw new Error(`there is no value ${path}`);
  }
  return declared;
}

/** The value so that it replaces the default, with which it is merged: null removes a key. */
function replacing(value: JsonValue, preset: JsonValue): JsonValue {
  if (!isJsonObject(value) || !isJsonObject(preset)) {
    return value;
  }
  const names = new Set([...Object.keys(preset), ...Object.keys(value)]);
  return Object.fromEntries(
    [...names].map((name) => [name, replacing(value[name] ?? null, preset[name] ?? null)] as const),
  );
}

/** Values over others: sections and mappings are merged; null is the default of this version. */
export function mergedValues(base: JsonObject, over: JsonObject): JsonObject {
  const result: Record<string, JsonValue> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const below = Object.hasOwn(base, name) ? base[name] : undefined;
    result[name] = isJsonObject(value) && isJsonObject(below) ? mergedValues(below, value) : value;
  }
  return result;
}

function withValue(values: JsonObject, [name = '', ...rest]: Path, value: JsonValue): JsonObject {
  const below = Object.hasOwn(values, name) ? values[name] : undefined;
  return {
    ...values,
    [name]: rest.length === 0 ? value : withValue(isJsonObject(below) ? below : {}, rest, value),
  };
}

/** The values by path, for messages: `controller.replicas=3`. */
export function valuesText(values: JsonObject, prefix = ''): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    isJsonObject(value) && Object.keys(value).length > 0
      ? valuesText(value, `${prefix}${name}.`)
      : [`${prefix}${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
}

/**
 * The Deployment or PolicyServer with the image that it has, where somebody changed it after the last installation: one image
 * was set by hand, and the others were not.
 */
export function withImageSetByHand(
  object: KubernetesObject,
  live: KubernetesObject | undefined,
  record: ValuesRecord | undefined,
): KubernetesObject {
  const field = object.kind === 'Deployment' ? IMAGE : ['spec', 'image'];
  const image = live === undefined || record === undefined ? undefined : at(live, field);
  return typeof image !== 'string' || image === valueAt(record?.all, 'image')
    ? object
    : (replaced(object as unknown as JsonValue, field, image) as unknown as KubernetesObject);
}

function replaced(value: JsonValue | undefined, [name, ...rest]: Path, leaf: JsonValue): JsonValue {
  if (name === undefined) {
    return leaf;
  }
  if (Array.isArray(value)) {
    return value.map((one, index) => (index === Number(name) ? replaced(one, rest, leaf) : one));
  }
  const object = isJsonObject(value) ? value : {};
  return { ...object, [name]: replaced(object[name], rest, leaf) };
}
