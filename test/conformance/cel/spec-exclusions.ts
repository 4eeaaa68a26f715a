import type { SpecCase } from './spec-case.ts';

/** Cases of the CEL specification that are not run, and why: a suite, a section of it, or cases by name. */
export interface Exclusion {
  readonly suite: string;
  readonly section?: string;
  readonly names?: readonly string[];
  readonly reason: string;
}

const PROTOBUF = 'needs messages of protobuf, which objects of Kubernetes are not';

/** Everything that is not run, but for cases that need messages of protobuf in other suites. */
export const EXCLUSIONS: readonly Exclusion[] = [
  ...['enums', 'proto2', 'proto2_ext', 'proto3'].map((suite) => ({ suite, reason: PROTOBUF })),
  {
    suite: 'string_ext',
    section: 'value_errors',
    names: ['indexof_out_of_range', 'lastindexof_out_of_range'],
    reason: 'an offset beyond the end gives -1 in API servers',
  },
  {
    suite: 'timestamps',
    section: 'duration_converters',
    names: ['get_milliseconds'],
    reason: 'API servers give all milliseconds of a duration, not those of its last second',
  },
  {
    suite: 'type_deductions',
    section: 'legacy_nullable_types',
    names: ['null_assignable_to_abstract_parameter_candidate'],
    reason: 'API servers refuse a list that mixes an optional with null',
  },
];

/** Why a case is not run; undefined when it is. */
export function reasonNotToRun(test: SpecCase): string | undefined {
  const exclusion = EXCLUSIONS.find(
    ({ suite, section, names }) =>
      suite === test.suite &&
      (section === undefined || section === test.section) &&
      (names === undefined || names.includes(test.name)),
  );
  return exclusion?.reason ?? (test.needsProtobuf ? PROTOBUF : undefined);
}
