import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { NEWEST_SAFE_SYSCTLS } from '../pod-security/index.ts';
import { readTexts } from './read-list.ts';

/** The sysctls that pods may set, beside those that are safe. Each is a name, or a prefix and `*`; separated by dots. */
export interface SysctlRule {
  readonly allowedUnsafe: readonly string[];
  /** Has precedence. */
  readonly forbidden: readonly string[];
}

/** Why the rule forbids a sysctl. */
export function sysctlProblem({ allowedUnsafe, forbidden }: SysctlRule, name: string): string | undefined {
  const dotted = dottedName(name);
  if (isCovered(dotted, forbidden)) {
    return `expected a sysctl that is not forbidden, got ${describeValue(name)}`;
  }
  return NEWEST_SAFE_SYSCTLS.has(dotted) || isCovered(dotted, allowedUnsafe)
    ? undefined
    : `expected a safe or an allowed sysctl, got ${describeValue(name)}`;
}

export function readSysctls(fields: FieldReader): SysctlRule {
  const forbidden = readPatterns(fields, 'forbiddenSysctls');
  const allowedUnsafe = readPatterns(fields, 'allowedUnsafeSysctls');
  for (const [index, pattern] of allowedUnsafe.entries()) {
    if (isCovered(pattern, forbidden)) {
      fields.fault('allowedUnsafeSysctls', `expected a sysctl that forbiddenSysctls does not forbid`, index);
    }
  }
  return { allowedUnsafe, forbidden };
}

function readPatterns(fields: FieldReader, key: string): readonly string[] {
  const texts = readTexts(fields, key, (text) =>
    /^[a-z0-9][-_a-z0-9./]*\*?$|^\*$/.test(text)
      ? undefined
      : `expected a sysctl, or a prefix and "*", got ${describeValue(text)}`,
  );
  return (texts ?? []).map(dottedName);
}

/** Whether a pattern covers the name, or the whole of another pattern. */
function isCovered(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
}

/** The name with dots as separators. Dots and slashes are exchanged when the first separator is a slash, see sysctl.d(5). */
function dottedName(name: string): string {
  return /[./]/.exec(name)?.[0] === '/' ? name.replaceAll(/[./]/g, (one) => (one === '/' ? '.' : '/')) : name;
}
