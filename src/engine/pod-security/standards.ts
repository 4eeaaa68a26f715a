import type { PodSecurityCheck, PodSecurityFinding, Revision } from './checks/check.ts';
import { HOST_CHECKS } from './checks/host.ts';
import { PRIVILEGE_CHECKS } from './checks/privileges.ts';
import { PROFILE_CHECKS } from './checks/profiles.ts';
import { minorOf } from './level.ts';
import type { Level, LevelVersion, StandardsVersion } from './level.ts';
import { Pod } from '../pods/pod.ts';
import type { ShapeFault } from '../values/json-shape.ts';

/** A violation of a level. */
export interface StandardsViolation extends PodSecurityFinding {
  /** Id of the check in Kubernetes' admission plugin, or {@link MALFORMED}. */
  readonly check: string;
  /** The version since which the check has this form. */
  readonly since: StandardsVersion;
}

/** The check for values that are not pods. Not in Kubernetes, which never sees such values. */
export const MALFORMED = 'malformed';

interface Rule extends Revision {
  readonly id: string;
}

/** The checks in the order of Kubernetes' messages: baseline before restricted, and by id. */
const CHECKS: readonly PodSecurityCheck[] = [...HOST_CHECKS, ...PRIVILEGE_CHECKS, ...PROFILE_CHECKS].sort((a, b) =>
  a.level === b.level ? (a.id < b.id ? -1 : 1) : a.level === 'baseline' ? -1 : 1,
);

const NEWEST_MINOR = Math.max(...CHECKS.flatMap(({ revisions }) => revisions.map(({ since }) => since)));

/** The newest version with a changed standard; `latest` equals it. */
export const NEWEST_VERSION: StandardsVersion = `v1.${NEWEST_MINOR}`;

/** The rules of each minor version. */
const RULES: Readonly<Record<Exclude<Level, 'privileged'>, readonly (readonly Rule[])[]>> = {
  baseline: everyMinor((minor) => rulesOf(minor, 'baseline')),
  restricted: everyMinor((minor) => {
    const restricted = rulesOf(minor, 'restricted');
    const overridden = new Set(restricted.flatMap(({ overrides = [] }) => overrides));
    return [...rulesOf(minor, 'baseline').filter(({ id }) => !overridden.has(id)), ...restricted];
  }),
};

function everyMinor(rules: (minor: number) => readonly Rule[]): readonly (readonly Rule[])[] {
  return Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => rules(minor));
}

function rulesOf(minor: number, level: PodSecurityCheck['level']): readonly Rule[] {
  return CHECKS.filter((check) => check.level === level).flatMap(({ id, revisions }) => {
    const revision = revisions.findLast(({ since }) => since <= minor);
    return revision === undefined ? [] : [{ id, ...revision }];
  });
}

const NO_VIOLATIONS: readonly StandardsViolation[] = Object.freeze([]);

/**
 * Violations of a level of the Pod Security Standards, with the order and messages of Kubernetes. A mistake in the shape of what
 * the standards read violates every level above privileged, by the check {@link MALFORMED}.
 */
export function violationsOf({ level, version }: LevelVersion, pod: Pod | ShapeFault): readonly StandardsViolation[] {
  if (level === 'privileged') {
    return NO_VIOLATIONS;
  }
  if (!(pod instanceof Pod)) {
    return [malformed(pod)];
  }
  const violations: StandardsViolation[] = [];
  for (const { id, since, check } of RULES[level][Math.min(minorOf(version), NEWEST_MINOR)] ?? []) {
    const finding = check(pod);
    if (finding !== undefined) {
      violations.push({ check: id, since: `v1.${since}`, ...finding });
    }
  }
  return violations;
}

function malformed({ path, problem }: ShapeFault): StandardsViolation {
  return {
    check: MALFORMED,
    since: 'v1.0',
    reason: 'malformed pod',
    detail: `${path}: ${problem}`,
    containers: [],
    fields: [path],
  };
}

/** All violations as one text, as in Kubernetes after `violates PodSecurity "restricted:latest": `. */
export function describeViolations(violations: readonly StandardsViolation[]): string {
  return violations.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ');
}
