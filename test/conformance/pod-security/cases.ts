// Upstream's test files for the Pod Security Standards, judged here (README.md).
import { readFileSync } from 'node:fs';
import { evaluatePodSecurity } from '../../../src/engine/pod-security/testing/evaluate-pod-security.ts';
import type { StandardsVersion, StandardsViolation } from '../../../src/engine/pod-security/index.ts';
import type { FixtureLevel, Fixtures } from './fixtures.ts';

export const fixtures = JSON.parse(readFileSync(new URL('fixtures.json', import.meta.url), 'utf8')) as Fixtures;

/** A pod that is judged at a level of a version. */
export interface Case {
  readonly level: FixtureLevel;
  readonly version: StandardsVersion;
  readonly number: number;
}

export function violationsOf({ level, version, number }: Case): readonly StandardsViolation[] {
  const pod = fixtures.pods[number] as { metadata: unknown; spec: unknown };
  return evaluatePodSecurity(level, version, pod.metadata, pod.spec);
}

/** The cases of one level and outcome, with the name of their file. */
export function filesOf(level: FixtureLevel, outcome: 'pass' | 'fail'): readonly (Case & { readonly name: string })[] {
  return Object.entries(fixtures.files[level][outcome]).flatMap(([name, ranges]) =>
    ranges.flatMap(([from, to, number]) =>
      Array.from({ length: to - from + 1 }, (_, index) => ({
        level,
        version: `v1.${from + index}` as const,
        name,
        number,
      })),
    ),
  );
}

/** Files of these checks are also at the level and versions at which another check stands for theirs. */
const STAND_INS: Readonly<Record<string, string>> = {
  capabilities_baseline: 'capabilities_restricted',
  hostpathvolumes: 'restrictedvolumes',
  procmount: 'procmount_restricted',
  seccompprofile_baseline: 'seccompprofile_restricted',
};

/** Whether a file passes, or fails by the check in its name. */
export function isJudgedRight(file: Case & { readonly name: string }, outcome: 'pass' | 'fail'): boolean {
  const checks = violationsOf(file).map(({ check }) => check.toLowerCase());
  if (outcome === 'pass') {
    return checks.length === 0;
  }
  const check = file.name.replace(/\d+$/, '');
  return checks.includes(check) || checks.includes(STAND_INS[check] ?? check);
}
