import { quote } from '../../go/index.ts';
import { isLevel, isPolicyVersion, isStricter, LEVELS } from './level.ts';
import type { Level, LevelVersion, StandardsVersion } from './level.ts';
import type { PodSecuritySettings } from './settings.ts';

const PREFIX = 'pod-security.kubernetes.io/';

/** The levels that apply in a namespace. */
export interface NamespacePolicy {
  readonly enforce: LevelVersion;
  readonly audit: LevelVersion;
  readonly warn: LevelVersion;
  /** Mistakes in the labels, with the message of Kubernetes' admission plugin. */
  readonly labelError: string | undefined;
}

/**
 * The levels that apply in a namespace: those of the settings, overridden by its labels if given. As in Kubernetes, an
 * invalid label enforces restricted but neither audits nor warns, and a stricter `enforce` label also raises the level
 * of warnings.
 */
export function policyOf(settings: PodSecuritySettings, labels?: Readonly<Record<string, string>>): NamespacePolicy {
  const { enforce, audit, warn = enforce } = settings;
  return labels === undefined ? { enforce, audit, warn, labelError: undefined } : labelledPolicy(settings, labels);
}

function labelledPolicy(settings: PodSecuritySettings, labels: Readonly<Record<string, string>>): NamespacePolicy {
  const errors: string[] = [];
  const read = <Value extends string>(
    name: string,
    isValue: (value: unknown) => value is Value,
    fallback: Value,
    expected: string,
  ): Value | undefined => {
    const key = `${PREFIX}${name}`;
    const text = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (text === undefined || isValue(text)) {
      return text;
    }
    errors.push(`metadata.labels[${key}]: Invalid value: ${quote(text)}: ${expected}`);
    return fallback;
  };
  const level = (name: string, fallback: Level): Level | undefined =>
    read(name, isLevel, fallback, `must be one of ${LEVELS.join(', ')}`);
  const version = (name: string): StandardsVersion | undefined =>
    read(name, isPolicyVersion, 'latest', 'must be "latest" or "v1.x"');

  const enforceLabel = level('enforce', 'restricted');
  const isEnforceReadable = errors.length === 0;
  const enforce = {
    level: enforceLabel ?? settings.enforce.level,
    version: version('enforce-version') ?? settings.enforce.version,
  };
  const audit = {
    level: level('audit', 'privileged') ?? settings.audit.level,
    version: version('audit-version') ?? settings.audit.version,
  };
  const warnLabel = level('warn', 'privileged');
  const warnVersion = version('warn-version');
  const base = settings.warn ?? enforce;
  const follows =
    warnLabel === undefined && enforceLabel !== undefined && isEnforceReadable && isStricter(enforce.level, base.level);
  const warn = {
    level: follows ? enforce.level : (warnLabel ?? base.level),
    version: warnVersion ?? (follows ? enforce.version : base.version),
  };
  return { enforce, audit, warn, labelError: joined(errors) };
}

/** Several errors in one, formatted like Go's aggregate errors. */
function joined(errors: readonly string[]): string | undefined {
  return errors.length > 1 ? `[${errors.join(', ')}]` : errors[0];
}
