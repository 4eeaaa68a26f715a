import { describeValue } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import type { MountRules } from './check-container.ts';
import { goesUp, hostPathAccess } from './host-path.ts';
import { isSet } from '../values/is-set.ts';
import type { Pod, Volume } from '../pods/pod.ts';
import type { Violations } from './violations.ts';
import type { VolumeRule } from './volume-rule.ts';

/** Checks the volumes of a pod. Returns the rules for their mounts. */
export function checkVolumes(pod: Pod, rule: VolumeRule, violations: Violations): MountRules {
  const readOnly = new Set<string>();
  const hostPath = new Set<string>();
  for (const [index, volume] of (pod.spec.volumes ?? []).entries()) {
    const path = `spec.volumes[${index}]`;
    for (const type of typesOf(volume)) {
      checkType(volume, type, path, rule, violations);
    }
    if (isSet(volume.hostPath)) {
      hostPath.add(volume.name ?? '');
      if (checkHostPath(volume.hostPath?.path ?? '', path, rule, pod.isWindows, violations)) {
        readOnly.add(volume.name ?? '');
      }
    }
    checkDrivers(volume, path, rule, violations);
  }
  return { readOnly, hostPath };
}

/** The sources of a volume: a valid one has one. API servers read a volume without a source as emptyDir. */
function typesOf(volume: Volume): readonly string[] {
  const types = Object.entries(volume).flatMap(([key, value]) => (key !== 'name' && isSet(value) ? [key] : []));
  return types.length === 0 ? ['emptyDir'] : types;
}

function checkType(volume: Volume, type: string, path: string, { types }: VolumeRule, violations: Violations): void {
  // PodSecurityPolicy allows the token of the service account, which every pod gets, wherever it allows Secrets.
  const isToken = type === 'projected' && types?.has('secret') === true && isServiceAccountToken(volume);
  if (types !== undefined && !types.has(type) && !isToken) {
    const expected = [...types].toSorted().join(', ') || 'no volumes';
    violations.add(path, `expected a volume of an allowed type: ${expected}; got ${describeValue(type)}`);
  }
}

/** Whether every source of the projected volume is one of those that API servers add for the service account. */
function isServiceAccountToken({ projected }: Volume): boolean {
  return (projected?.sources ?? []).every((source) => {
    const [[kind, value] = ['', undefined], ...others] = Object.entries(source);
    return others.length === 0 && isJsonObject(value) && isTokenSource(kind, value);
  });
}

function isTokenSource(kind: string, source: JsonObject): boolean {
  switch (kind) {
    case 'serviceAccountToken':
      return source.path === 'token' && (source.audience ?? '') === '';
    case 'configMap':
      return source.name === 'kube-root-ca.crt';
    case 'downwardAPI':
      return Array.isArray(source.items) && source.items.every(isNamespaceItem);
    default:
      return false;
  }
}

function isNamespaceItem(item: unknown): boolean {
  return (
    isJsonObject(item) &&
    item.path === 'namespace' &&
    isJsonObject(item.fieldRef) &&
    item.fieldRef.fieldPath === 'metadata.namespace'
  );
}

/** Whether containers may only read the path. */
function checkHostPath(
  hostPath: string,
  path: string,
  { hostPaths }: VolumeRule,
  isWindows: boolean,
  violations: Violations,
): boolean {
  const at = `${path}.hostPath.path`;
  if (goesUp(hostPath, isWindows)) {
    violations.add(at, `expected a path without "..", got ${describeValue(hostPath)}`);
    return false;
  }
  const access = hostPathAccess(hostPath, hostPaths, isWindows);
  if (access === 'none') {
    violations.add(at, `expected an allowed path, got ${describeValue(hostPath)}`);
  }
  return access === 'read';
}

function checkDrivers(volume: Volume, path: string, rule: VolumeRule, violations: Violations): void {
  for (const [type, allowed] of [
    ['flexVolume', rule.flexDrivers],
    ['csi', rule.csiDrivers],
  ] as const) {
    const source = volume[type];
    const driver = source?.driver ?? '';
    if (isSet(source) && allowed !== undefined && !allowed.has(driver)) {
      violations.add(`${path}.${type}.driver`, `expected an allowed driver, got ${describeValue(driver)}`);
    }
  }
}
