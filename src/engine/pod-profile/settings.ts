import type { FieldProblem } from '../values/field-problem.ts';
import { readFields } from '../values/field-problem.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { readCapabilityRule } from './capability-rule.ts';
import type { CapabilityRule } from './capability-rule.ts';
import { readIdRule } from './id-rule.ts';
import type { IdRule } from './id-rule.ts';
import { readRanges } from './number-range.ts';
import type { NumberRange } from './number-range.ts';
import { readAppArmorRule, readSeccompRule } from './profile-rule.ts';
import type { ProfileRule } from './profile-rule.ts';
import { readTexts } from './read-list.ts';
import { readRuntimeClassRule } from './runtime-class-rule.ts';
import type { RuntimeClassRule } from './runtime-class-rule.ts';
import { readSelinux } from './selinux-rule.ts';
import type { SelinuxOptions } from './selinux-rule.ts';
import { readSysctls } from './sysctl-rule.ts';
import type { SysctlRule } from './sysctl-rule.ts';
import { readVolumeRule } from './volume-rule.ts';
import type { VolumeRule } from './volume-rule.ts';

/** Settings of `builtin:pod-profile`: the fields of a PodSecurityPolicy's spec, and profiles. */
export interface PodProfileSettings {
  readonly privileged: boolean;
  readonly hostNetwork: boolean;
  readonly hostPID: boolean;
  readonly hostIPC: boolean;
  readonly hostPorts: readonly NumberRange[];
  readonly runAsUser: IdRule;
  readonly runAsGroup: IdRule;
  readonly fsGroup: IdRule;
  readonly supplementalGroups: IdRule;
  readonly readOnlyRootFilesystem: boolean;
  readonly allowPrivilegeEscalation: boolean;
  /** For containers that do not say. */
  readonly defaultAllowPrivilegeEscalation: boolean | undefined;
  readonly capabilities: CapabilityRule;
  readonly seccomp: ProfileRule;
  readonly appArmor: ProfileRule;
  /** Undefined: any options. */
  readonly seLinux: SelinuxOptions | undefined;
  readonly procMountTypes: ReadonlySet<string>;
  readonly sysctls: SysctlRule;
  readonly volumes: VolumeRule;
  readonly runtimeClasses: RuntimeClassRule;
}

export type ParsedPodProfileSettings =
  | { readonly settings: PodProfileSettings; readonly problems?: undefined }
  | { readonly settings?: undefined; readonly problems: readonly FieldProblem[] };

const MAX_PORT = 65_535;

/** All keys; each can be overridden by itself. */
export const POD_PROFILE_KEYS = [
  'runAsUser',
  'runAsGroup',
  'fsGroup',
  'supplementalGroups',
  'seLinux',
  'privileged',
  'allowPrivilegeEscalation',
  'defaultAllowPrivilegeEscalation',
  'allowedCapabilities',
  'defaultAddCapabilities',
  'requiredDropCapabilities',
  'readOnlyRootFilesystem',
  'allowedSeccompProfiles',
  'defaultSeccompProfile',
  'allowedAppArmorProfiles',
  'defaultAppArmorProfile',
  'allowedProcMountTypes',
  'hostNetwork',
  'hostPID',
  'hostIPC',
  'hostPorts',
  'allowedUnsafeSysctls',
  'forbiddenSysctls',
  'volumes',
  'allowedHostPaths',
  'allowedFlexVolumes',
  'allowedCSIDrivers',
  'runtimeClass',
];

/** Parses settings. Returns either settings, or at least one mistake. Never throws. */
export function parsePodProfileSettings(json: unknown): ParsedPodProfileSettings {
  const problems: FieldProblem[] = [];
  const fields = readFields(json, problems);
  fields.knownKeys(POD_PROFILE_KEYS);
  const settings = readSettings(fields);
  return problems.length > 0 ? { problems } : { settings };
}

function readSettings(fields: FieldReader): PodProfileSettings {
  const isTrue = (key: string): boolean => fields.boolean(key) ?? false;
  return {
    runAsUser: readIdRule(fields, 'runAsUser', ['MustRunAs', 'MustRunAsNonRoot', 'RunAsAny']),
    runAsGroup: readIdRule(fields, 'runAsGroup', ['MustRunAs', 'MayRunAs', 'RunAsAny'], 'RunAsAny'),
    fsGroup: readIdRule(fields, 'fsGroup', ['MustRunAs', 'MayRunAs', 'RunAsAny']),
    supplementalGroups: readIdRule(fields, 'supplementalGroups', ['MustRunAs', 'MayRunAs', 'RunAsAny']),
    seLinux: readSelinux(fields),
    privileged: isTrue('privileged'),
    ...readEscalation(fields),
    capabilities: readCapabilityRule(fields),
    readOnlyRootFilesystem: isTrue('readOnlyRootFilesystem'),
    seccomp: readSeccompRule(fields),
    appArmor: readAppArmorRule(fields),
    procMountTypes: readProcMountTypes(fields),
    hostNetwork: isTrue('hostNetwork'),
    hostPID: isTrue('hostPID'),
    hostIPC: isTrue('hostIPC'),
    hostPorts: readRanges(fields, 'hostPorts', MAX_PORT),
    sysctls: readSysctls(fields),
    volumes: readVolumeRule(fields),
    runtimeClasses: readRuntimeClassRule(fields),
  };
}

function readEscalation(
  fields: FieldReader,
): Pick<PodProfileSettings, 'allowPrivilegeEscalation' | 'defaultAllowPrivilegeEscalation'> {
  const allowPrivilegeEscalation = fields.boolean('allowPrivilegeEscalation') ?? true;
  const byDefault = fields.boolean('defaultAllowPrivilegeEscalation');
  if (byDefault === true && !allowPrivilegeEscalation) {
    fields.fault('defaultAllowPrivilegeEscalation', 'expected false, as allowPrivilegeEscalation is, got true');
  }
  return {
    allowPrivilegeEscalation,
    defaultAllowPrivilegeEscalation: allowPrivilegeEscalation ? byDefault : false,
  };
}

const PROC_MOUNT_TYPES: readonly string[] = ['Default', 'Unmasked'];

function readProcMountTypes(fields: FieldReader): ReadonlySet<string> {
  const types = readTexts(fields, 'allowedProcMountTypes', (text) =>
    PROC_MOUNT_TYPES.includes(text) ? undefined : `expected Default or Unmasked, got ${describeValue(text)}`,
  );
  return new Set(types === undefined || types.length === 0 ? ['Default'] : types);
}
