import { toInt } from '../evaluate/index.ts';
import type { FunctionDeclaration, Library } from '../model/library.ts';
import { BOOL, INT, STRING, struct } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import { NOMINAL, scan } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { parseSemver } from './semver-value.ts';
import type { Semver } from './semver-value.ts';

/** The type of semantic versions. */
const SEMVER: ReturnType<typeof struct> = struct('kubernetes.Semver');

function isSemver(text: string, isNormalized?: boolean): boolean {
  return !(parseSemver(text, isNormalized) instanceof EvaluationFailure);
}

function part(name: 'major' | 'minor' | 'patch', summary: string, result: string): FunctionDeclaration {
  // API servers convert the unsigned 64-bit number to an int without a check.
  const get = (version: Semver) => toInt(BigInt.asIntN(64, version[name]));
  return describe(
    name,
    summary,
    [`semver('1.20.3-rc.1').${name}()`, result],
    [member(`semver_${name}`, [SEMVER], INT, get, NOMINAL)],
  );
}

/** Semantic versions (https://semver.org). */
export const SEMVER_LIBRARY: Library = {
  name: 'Versions',
  since: 33,
  types: [SEMVER],
  functions: [
    describe(
      'semver',
      'Parses a semantic version; with `true`, also one with a leading `v`, leading zeros or missing parts.',
      ["semver('v1.2', true) == semver('1.2.0')", 'true'],
      [
        global('string_to_semver', [STRING], SEMVER, (text: string) => parseSemver(text), scan()),
        global('string_bool_to_semver', [STRING, BOOL], SEMVER, parseSemver, scan()),
      ],
    ),
    describe(
      'isSemver',
      'Whether `semver` accepts the arguments.',
      ["isSemver('v1.2.3')", 'false'],
      [
        global('is_semver_string', [STRING], BOOL, (text: string) => isSemver(text), scan()),
        global('is_semver_string_bool', [STRING, BOOL], BOOL, isSemver, scan()),
      ],
    ),
    describe(
      'isGreaterThan',
      'Whether the version is greater than the argument.',
      ["semver('1.10.0').isGreaterThan(semver('1.9.0'))", 'true'],
      [
        member(
          'semver_is_greater_than',
          [SEMVER, SEMVER],
          BOOL,
          (version: Semver, other: Semver) => version.compareTo(other) > 0,
          NOMINAL,
        ),
      ],
    ),
    describe(
      'isLessThan',
      'Whether the version is less than the argument.',
      ["semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", 'true'],
      [
        member(
          'semver_is_less_than',
          [SEMVER, SEMVER],
          BOOL,
          (version: Semver, other: Semver) => version.compareTo(other) < 0,
          NOMINAL,
        ),
      ],
    ),
    describe(
      'compareTo',
      '-1, 0 or 1 if the version is less than, equal to or greater than the argument.',
      ["semver('1.0.0').compareTo(semver('2.0.0'))", '-1'],
      [
        member(
          'semver_compare_to',
          [SEMVER, SEMVER],
          INT,
          (version: Semver, other: Semver) => version.compareTo(other),
          NOMINAL,
        ),
      ],
    ),
    part('major', 'The major version.', '1'),
    part('minor', 'The minor version.', '20'),
    part('patch', 'The patch version.', '3'),
  ],
};
