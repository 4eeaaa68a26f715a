import { dnsLabelProblems, dnsSubdomainProblems } from '../../names/index.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { readFields } from '../values/field-problem.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import { isLevel, isPolicyVersion, LEVELS, PRIVILEGED } from './level.ts';
import type { LevelVersion } from './level.ts';

/** Settings of `builtin:pod-security`. */
export interface PodSecuritySettings {
  /** Pods that violate it are rejected. */
  readonly enforce: LevelVersion;
  /** Pods that violate it are allowed with an audit annotation. */
  readonly audit: LevelVersion;
  /** Pods that violate it are allowed with a warning. Default: as `enforce`. */
  readonly warn: LevelVersion | undefined;
  readonly exemptions: Exemptions;
  /**
   * Whether workloads whose template violates `enforce` are rejected, or only get audit annotations and warnings, as in
   * Kubernetes.
   */
  readonly workloads: 'warn' | 'enforce';
}

/** Requests that are allowed without a check. */
interface Exemptions {
  readonly usernames: ReadonlySet<string>;
  readonly runtimeClasses: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
}

export type ParsedPodSecuritySettings =
  | { readonly settings: PodSecuritySettings; readonly problems?: undefined }
  | { readonly settings?: undefined; readonly problems: readonly FieldProblem[] };

type Mode = 'enforce' | 'audit' | 'warn';
const MODES: readonly Mode[] = ['enforce', 'audit', 'warn'];
const MODE_KEYS = MODES.flatMap((mode) => [mode, `${mode}-version`]);
const EXEMPTION_KEYS = ['usernames', 'runtimeClasses', 'namespaces'] as const;
/** `apiVersion`, `kind` and `defaults` are those of PodSecurityConfiguration, which is accepted unchanged. */
const KEYS = [...MODE_KEYS, 'exemptions', 'workloads', 'defaults', 'apiVersion', 'kind'];

const CONFIGURATION_VERSIONS = ['v1', 'v1beta1', 'v1alpha1'].map(
  (version) => `pod-security.admission.config.k8s.io/${version}`,
);

/**
 * Parses settings: the modes `enforce`, `audit` and `warn`, each a level beside `enforce-version` and the like or
 * `{level, version}`, at the top or, as in Kubernetes' PodSecurityConfiguration, in `defaults`; `exemptions`;
 * `workloads`. Returns either settings, or at least one mistake. Never throws.
 */
export function parsePodSecuritySettings(json: unknown): ParsedPodSecuritySettings {
  const problems: FieldProblem[] = [];
  const settings = readSettings(readFields(json, problems), problems);
  return problems.length > 0 ? { problems } : { settings };
}

function readSettings(root: FieldReader, problems: readonly FieldProblem[]): PodSecuritySettings {
  root.knownKeys(KEYS);
  root.oneOf('apiVersion', CONFIGURATION_VERSIONS);
  root.oneOf('kind', ['PodSecurityConfiguration']);
  const modes = readModes(root);
  if (problems.length === 0 && Object.keys(modes).length === 0) {
    root.faultHere('expected at least one of enforce, audit and warn: without them nothing is checked');
  }
  return {
    enforce: modes.enforce ?? PRIVILEGED,
    audit: modes.audit ?? PRIVILEGED,
    warn: modes.warn,
    exemptions: readExemptions(root.inside('exemptions')),
    workloads: root.oneOf('workloads', ['warn', 'enforce']) ?? 'warn',
  };
}

function readModes(root: FieldReader): Partial<Record<Mode, LevelVersion>> {
  const isApart = root.has('defaults');
  for (const key of isApart ? MODE_KEYS.filter((name) => root.has(name)) : []) {
    root.fault(key, 'expected the modes either in "defaults" or at the top, got both: remove one');
  }
  const defaults = root.inside('defaults');
  defaults?.knownKeys(MODE_KEYS);
  const modes: Partial<Record<Mode, LevelVersion>> = {};
  for (const mode of MODES) {
    const level = readMode(defaults ?? root, mode);
    if (level !== undefined) {
      modes[mode] = level;
    }
  }
  return modes;
}

function readMode(fields: FieldReader, mode: Mode): LevelVersion | undefined {
  const versionKey = `${mode}-version`;
  if (isJsonObject(fields.value(mode))) {
    if (fields.has(versionKey)) {
      fields.fault(versionKey, `expected the version once, got it in "${mode}" as well: remove one`);
    }
    const inner = fields.inside(mode);
    inner?.knownKeys(['level', 'version']);
    return inner && readLevel(inner, 'level', 'version');
  }
  if (fields.has(mode)) {
    return readLevel(fields, mode, versionKey);
  }
  if (fields.has(versionKey)) {
    fields.fault(versionKey, `expected the level "${mode}" beside it, which is missing`);
  }
  return undefined;
}

function readLevel(fields: FieldReader, levelKey: string, versionKey: string): LevelVersion | undefined {
  const level = fields.value(levelKey);
  const version = fields.value(versionKey) ?? 'latest';
  if (!isLevel(level)) {
    fields.fault(levelKey, `expected one of ${LEVELS.join(', ')}, got ${describeValue(level)}`);
  }
  if (!isPolicyVersion(version)) {
    fields.fault(versionKey, `expected "latest" or a version such as "v1.30", got ${describeValue(version)}`);
  }
  return isLevel(level) && isPolicyVersion(version) ? { level, version } : undefined;
}

function readExemptions(fields: FieldReader | undefined): Exemptions {
  fields?.knownKeys(EXEMPTION_KEYS);
  return {
    usernames: readNames(fields, 'usernames', 'a username', (name) => name !== ''),
    runtimeClasses: readNames(fields, 'runtimeClasses', 'the name of a runtime class', isSubdomain),
    namespaces: readNames(fields, 'namespaces', 'the name of a namespace', isDnsLabel),
  };
}

function readNames(
  fields: FieldReader | undefined,
  key: (typeof EXEMPTION_KEYS)[number],
  expected: string,
  isName: (name: string) => boolean,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, name] of (fields?.list(key) ?? []).entries()) {
    if (typeof name !== 'string' || !isName(name)) {
      fields?.fault(key, `expected ${expected}, got ${describeValue(name)}`, index);
    } else if (names.has(name)) {
      fields?.fault(key, `expected every name once, got ${describeValue(name)} again`, index);
    } else {
      names.add(name);
    }
  }
  return names;
}

function isDnsLabel(name: string): boolean {
  return dnsLabelProblems(name).length === 0;
}

function isSubdomain(name: string): boolean {
  return dnsSubdomainProblems(name).length === 0;
}
