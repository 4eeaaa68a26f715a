import { dnsLabelProblems, dnsSubdomainProblems } from '../../resources/index.ts';
import { isJsonObject } from '../json-text.ts';
import type { JsonObject } from '../json-text.ts';
import { isLevel, isPolicyVersion, LEVELS, PRIVILEGED } from './level.ts';
import type { LevelVersion } from './level.ts';
import { unknownKeyHint } from '../nearest-key.ts';
import { nameOf } from './shape.ts';

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
export interface Exemptions {
  readonly usernames: ReadonlySet<string>;
  readonly runtimeClasses: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
}

/** A mistake in settings, with its path: `exemptions.namespaces[0]`; empty for the whole. */
export interface SettingsProblem {
  readonly path: string;
  readonly message: string;
}

export type ParsedPodSecuritySettings =
  | { readonly settings: PodSecuritySettings; readonly problems?: undefined }
  | { readonly settings?: undefined; readonly problems: readonly SettingsProblem[] };

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
  const reader = new SettingsReader();
  const settings = reader.read(json);
  return reader.problems.length > 0 ? { problems: reader.problems } : { settings };
}

class SettingsReader {
  readonly problems: SettingsProblem[] = [];

  read(json: unknown): PodSecuritySettings {
    const root = this.#object(json, '', KEYS);
    this.#oneOf(root, 'apiVersion', CONFIGURATION_VERSIONS);
    this.#oneOf(root, 'kind', ['PodSecurityConfiguration']);
    const modes = this.#modes(root);
    return {
      enforce: modes.enforce ?? PRIVILEGED,
      audit: modes.audit ?? PRIVILEGED,
      warn: modes.warn,
      exemptions: this.#exemptions(valueOf(root, 'exemptions')),
      workloads: this.#oneOf(root, 'workloads', ['warn', 'enforce']) ?? 'warn',
    };
  }

  #modes(root: JsonObject): Partial<Record<Mode, LevelVersion>> {
    const defaults = valueOf(root, 'defaults');
    const isApart = defaults !== undefined;
    for (const key of isApart ? MODE_KEYS.filter((name) => valueOf(root, name) !== undefined) : []) {
      this.#problem(key, 'expected the modes either in "defaults" or at the top, got both: remove one');
    }
    const found = isApart ? this.#object(defaults, 'defaults', MODE_KEYS) : root;
    const modes = Object.fromEntries(
      MODES.flatMap((mode) => {
        const level = this.#mode(found, mode, isApart ? `defaults.${mode}` : mode);
        return level === undefined ? [] : [[mode, level]];
      }),
    ) as Partial<Record<Mode, LevelVersion>>;
    if (this.problems.length === 0 && Object.keys(modes).length === 0) {
      this.#problem('', 'expected at least one of enforce, audit and warn: without them nothing is checked');
    }
    return modes;
  }

  #mode(object: JsonObject, mode: Mode, path: string): LevelVersion | undefined {
    const value = valueOf(object, mode);
    const version = valueOf(object, `${mode}-version`);
    if (isJsonObject(value)) {
      if (version !== undefined) {
        this.#problem(`${path}-version`, `expected the version once, got it in "${mode}" as well: remove one`);
      }
      const { level, version: inner } = this.#object(value, path, ['level', 'version']);
      return this.#levelVersion(level, `${path}.level`, inner, `${path}.version`);
    }
    if (value === undefined) {
      if (version !== undefined) {
        this.#problem(`${path}-version`, `expected the level "${mode}" beside it, which is missing`);
      }
      return undefined;
    }
    return this.#levelVersion(value, path, version, `${path}-version`);
  }

  #levelVersion(level: unknown, levelPath: string, version: unknown, versionPath: string): LevelVersion | undefined {
    if (!isLevel(level)) {
      this.#problem(levelPath, `expected one of ${LEVELS.join(', ')}, got ${show(level)}`);
    }
    const known = version ?? 'latest';
    if (!isPolicyVersion(known)) {
      this.#problem(versionPath, `expected "latest" or a version such as "v1.30", got ${show(known)}`);
    }
    return isLevel(level) && isPolicyVersion(known) ? { level, version: known } : undefined;
  }

  #exemptions(value: unknown): Exemptions {
    const lists = value === undefined ? {} : this.#object(value, 'exemptions', EXEMPTION_KEYS);
    return {
      usernames: this.#names(lists, 'usernames', 'a username', (name) => name !== ''),
      runtimeClasses: this.#names(lists, 'runtimeClasses', 'the name of a runtime class', isSubdomain),
      namespaces: this.#names(lists, 'namespaces', 'the name of a namespace', isDnsLabel),
    };
  }

  #names(
    lists: JsonObject,
    key: (typeof EXEMPTION_KEYS)[number],
    expected: string,
    isName: (name: string) => boolean,
  ): ReadonlySet<string> {
    const names = new Set<string>();
    const value = valueOf(lists, key) ?? [];
    if (!Array.isArray(value)) {
      this.#problem(`exemptions.${key}`, `expected a list, got ${nameOf(value)}`);
      return names;
    }
    for (const [index, name] of value.entries()) {
      const path = `exemptions.${key}[${index}]`;
      if (typeof name !== 'string' || !isName(name)) {
        this.#problem(path, `expected ${expected}, got ${show(name)}`);
      } else if (names.has(name)) {
        this.#problem(path, `expected every name once, got ${show(name)} again`);
      } else {
        names.add(name);
      }
    }
    return names;
  }

  #oneOf<Value extends string>(object: JsonObject, key: string, allowed: readonly Value[]): Value | undefined {
    const value = valueOf(object, key);
    const found = allowed.find((candidate) => candidate === value);
    if (value !== undefined && found === undefined) {
      this.#problem(key, `expected ${allowed.map((one) => `"${one}"`).join(' or ')}, got ${show(value)}`);
    }
    return found;
  }

  /** The value if it is an object, otherwise an empty one. Mistakes are recorded. */
  #object(value: unknown, path: string, known: readonly string[]): JsonObject {
    if (!isJsonObject(value)) {
      this.#problem(path, `expected a mapping, got ${nameOf(value)}`);
      return {};
    }
    for (const key of Object.keys(value).filter((name) => !known.includes(name))) {
      this.#problem(path === '' ? key : `${path}.${key}`, `unknown key ${show(key)}: ${unknownKeyHint(key, known)}`);
    }
    return value;
  }

  #problem(path: string, message: string): void {
    this.problems.push({ path, message });
  }
}

/** Null counts as missing. */
function valueOf(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

/** Maximum length of a quoted value. */
const MAX_SHOWN = 80;

function show(value: unknown): string {
  const shown = typeof value === 'string' ? JSON.stringify(value) : nameOf(value);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN - 1)}…` : shown;
}

function isDnsLabel(name: string): boolean {
  return dnsLabelProblems(name).length === 0;
}

function isSubdomain(name: string): boolean {
  return dnsSubdomainProblems(name).length === 0;
}
