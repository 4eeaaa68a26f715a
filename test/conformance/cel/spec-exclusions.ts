import type { SpecCase } from './spec-case.ts';

/** Cases of the CEL specification that are not run, and why: a suite, a section of it, or cases by name. */
export interface Exclusion {
  readonly suite: string;
  readonly section?: string;
  readonly names?: readonly string[];
  readonly reason: string;
}

const PROTOBUF = 'needs messages of protobuf, which objects of Kubernetes are not';
const NO_LIBRARY = 'API servers do not have this library';
const UNCHECKED = 'API servers evaluate only what their checker accepts';
const CONTAINER = 'expressions of API servers are in no namespace';
const AT_COMPILATION = 'API servers refuse it before they evaluate it';
const LENIENT = 'API servers accept it';

/** Everything that is not run, but for cases that need messages of protobuf in other suites. */
export const EXCLUSIONS: readonly Exclusion[] = [
  ...['enums', 'proto2', 'proto2_ext', 'proto3'].map((suite) => ({ suite, reason: PROTOBUF })),
  ...['encoders_ext', 'math_ext'].map((suite) => ({ suite, reason: NO_LIBRARY })),
  { suite: 'string_ext', section: 'format', reason: 'API servers print numbers as in American English' },
  {
    suite: 'string_ext',
    section: 'format_errors',
    reason: 'the messages of API servers are those of an earlier version',
  },
  {
    suite: 'basic',
    names: ['unbound_is_runtime_error'],
    reason: UNCHECKED,
  },
  {
    suite: 'comparisons',
    names: ['not_eq_list_length', 'eq_mixed_types', 'eq_list_elem_mixed_types', 'ne_mixed_types'],
    reason: UNCHECKED,
  },
  { suite: 'dynamic', section: 'value_null', names: ['literal'], reason: CONTAINER },
  {
    suite: 'fields',
    section: 'map_fields',
    names: ['map_bad_key_type_or_true', 'map_bad_key_type_and_false'],
    reason: AT_COMPILATION,
  },
  {
    suite: 'fields',
    section: 'qualified_identifier_resolution',
    names: ['map_value_repeat_key', 'map_value_repeat_key_heterogeneous'],
    reason: LENIENT,
  },
  {
    suite: 'logic',
    names: ['mixed_type', 'short_circuit_type_left', 'short_circuit_type_right'],
    reason: UNCHECKED,
  },
  {
    suite: 'namespace',
    names: ['self_eval_container_lookup', 'self_eval_container_lookup_unchecked'],
    reason: CONTAINER,
  },
  {
    suite: 'optionals',
    names: ['map_null_entry_no_such_key', 'map_present_key_invalid_field'],
    reason: LENIENT,
  },
  { suite: 'parse', section: 'receiver_function_names', reason: UNCHECKED },
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
  return exclusionOf(test)?.reason ?? (test.needsProtobuf ? PROTOBUF : undefined);
}

/** The first exclusion that a case is part of. */
export function exclusionOf(test: SpecCase): Exclusion | undefined {
  return EXCLUSIONS.find(
    ({ suite, section, names }) =>
      suite === test.suite &&
      (section === undefined || section === test.section) &&
      (names === undefined || names.includes(test.name)),
  );
}
