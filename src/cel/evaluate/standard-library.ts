import { dayOfYear, weekdayOf } from '../../go/index.ts';
import type { CivilTime } from '../../go/index.ts';
import { hasPart } from '../../values/index.ts';
import type { FunctionDeclaration, Library, Overload } from '../model/library.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  NULL,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  mapOf,
  parameter,
  typeOf,
} from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue, WorkMeter } from '../model/value.ts';
import {
  add,
  divide,
  greater,
  greaterOrEqual,
  less,
  lessOrEqual,
  modulo,
  multiply,
  negate,
  not,
  size,
  subtract,
} from './arithmetic.ts';
import {
  toBoolValue,
  toBytesValue,
  toDoubleValue,
  toDurationValue,
  toIntValue,
  toText,
  toTimestampValue,
  toUintValue,
} from './conversion.ts';
import { equalValues } from './equality.ts';
import { findInMap } from './map.ts';
import { toInt } from './number.ts';
import { compilePattern } from './pattern.ts';
import { STANDARD_COSTS } from './standard-costs.ts';
import { CelDuration, CelTimestamp } from './time.ts';
import { TimeZones } from './time-zone.ts';
import { isList, isMap } from './type-name.ts';
import { CelTypeValue } from './type-value.ts';

const A = parameter('A');
const B = parameter('B');
const LIST_OF_A = listOf(A);
const MAP_OF_A_TO_B = mapOf(A, B);

type Call = Overload['call'];
type Unary = (a: CelValue) => CelResult;
type Binary = (a: CelValue, b: CelValue) => CelResult;
type Signature = readonly [id: string, parameters: readonly CelType[], result: CelType];

function overload([id, parameters, result]: Signature, call: Call, isMember = false): Overload {
  return { id, isMember, parameters, result, call, ...STANDARD_COSTS.get(id) };
}

function operator(name: string, summary: string, call: Call, signatures: readonly Signature[]): FunctionDeclaration {
  return { name, summary, overloads: signatures.map((signature) => overload(signature, call)) };
}

/** The compiler handles these calls, because they do not evaluate all operands or accept failures. */
const handledByCompiler: Call = () => new EvaluationFailure(NO_SUCH_OVERLOAD);

const LOGIC: readonly FunctionDeclaration[] = [
  operator('_?_:_', 'The second operand if the first is true, otherwise the third.', handledByCompiler, [
    ['conditional', [BOOL, A, A], A],
  ]),
  operator('_&&_', 'Whether both operands are true.', handledByCompiler, [['logical_and', [BOOL, BOOL], BOOL]]),
  operator('_||_', 'Whether at least one operand is true.', handledByCompiler, [['logical_or', [BOOL, BOOL], BOOL]]),
  operator('!_', 'The logical negation.', not, [['logical_not', [BOOL], BOOL]]),
  operator(
    '@not_strictly_false',
    'False only if the operand is false; the loop condition of macros.',
    handledByCompiler,
    [['not_strictly_false', [BOOL], BOOL]],
  ),
  operator('_==_', 'Whether two values are equal.', (a, b) => equalValues(a, b), [['equals', [A, A], BOOL]]),
  operator('_!=_', 'Whether two values are unequal.', (a, b) => !equalValues(a, b), [['not_equals', [A, A], BOOL]]),
];

const ARITHMETIC: readonly FunctionDeclaration[] = [
  operator('_+_', 'The sum of numbers or times; the concatenation of strings, bytes or lists.', add, [
    ['add_bytes', [BYTES, BYTES], BYTES],
    ['add_double', [DOUBLE, DOUBLE], DOUBLE],
    ['add_duration_duration', [DURATION, DURATION], DURATION],
    ['add_duration_timestamp', [DURATION, TIMESTAMP], TIMESTAMP],
    ['add_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP],
    ['add_int64', [INT, INT], INT],
    ['add_list', [LIST_OF_A, LIST_OF_A], LIST_OF_A],
    ['add_string', [STRING, STRING], STRING],
    ['add_uint64', [UINT, UINT], UINT],
  ]),
  operator('_/_', 'The quotient; integer division truncates toward zero.', divide, [
    ['divide_double', [DOUBLE, DOUBLE], DOUBLE],
    ['divide_int64', [INT, INT], INT],
    ['divide_uint64', [UINT, UINT], UINT],
  ]),
  operator('_%_', 'The remainder of an integer division.', modulo, [
    ['modulo_int64', [INT, INT], INT],
    ['modulo_uint64', [UINT, UINT], UINT],
  ]),
  operator('_*_', 'The product.', multiply, [
    ['multiply_double', [DOUBLE, DOUBLE], DOUBLE],
    ['multiply_int64', [INT, INT], INT],
    ['multiply_uint64', [UINT, UINT], UINT],
  ]),
  operator('-_', 'The negated number.', negate, [
    ['negate_double', [DOUBLE], DOUBLE],
    ['negate_int64', [INT], INT],
  ]),
  operator('_-_', 'The difference of numbers or times.', subtract, [
    ['subtract_double', [DOUBLE, DOUBLE], DOUBLE],
    ['subtract_duration_duration', [DURATION, DURATION], DURATION],
    ['subtract_int64', [INT, INT], INT],
    ['subtract_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP],
    ['subtract_timestamp_timestamp', [TIMESTAMP, TIMESTAMP], DURATION],
    ['subtract_uint64', [UINT, UINT], UINT],
  ]),
];

const ORDERED_PAIRS: readonly (readonly [suffix: string, left: CelType, right: CelType])[] = [
  ['bool', BOOL, BOOL],
  ['int64', INT, INT],
  ['int64_double', INT, DOUBLE],
  ['int64_uint64', INT, UINT],
  ['uint64', UINT, UINT],
  ['uint64_double', UINT, DOUBLE],
  ['uint64_int64', UINT, INT],
  ['double', DOUBLE, DOUBLE],
  ['double_int64', DOUBLE, INT],
  ['double_uint64', DOUBLE, UINT],
  ['string', STRING, STRING],
  ['bytes', BYTES, BYTES],
  ['timestamp', TIMESTAMP, TIMESTAMP],
  ['duration', DURATION, DURATION],
];

function orderOperator(name: string, id: string, summary: string, call: Binary): FunctionDeclaration {
  const signatures = ORDERED_PAIRS.map(([suffix, left, right]): Signature => [`${id}_${suffix}`, [left, right], BOOL]);
  return operator(name, summary, call, signatures);
}

const ORDER: readonly FunctionDeclaration[] = [
  orderOperator('_<_', 'less', 'Whether the left operand is less than the right one.', less),
  orderOperator('_<=_', 'less_equals', 'Whether the left operand is less than or equal to the right one.', lessOrEqual),
  orderOperator('_>_', 'greater', 'Whether the left operand is greater than the right one.', greater),
  orderOperator(
    '_>=_',
    'greater_equals',
    'Whether the left operand is greater than or equal to the right one.',
    greaterOrEqual,
  ),
];

/** `a in b`. `meter` counts the comparisons. */
export function isIn(a: CelValue, b: CelValue, meter?: WorkMeter): CelResult {
  if (isList(b)) {
    return b.some((element) => equalValues(a, element, meter));
  }
  return isMap(b) ? findInMap(b, a) !== undefined : new EvaluationFailure(NO_SUCH_OVERLOAD);
}

const COLLECTIONS: readonly FunctionDeclaration[] = [
  operator('_[_]', 'The element of a list at an index, or the value of a map for a key.', handledByCompiler, [
    ['index_list', [LIST_OF_A, INT], A],
    ['index_map', [MAP_OF_A_TO_B, A], B],
  ]),
  operator('@in', 'Whether a list contains an element, or a map contains a key.', (a, b) => isIn(a, b), [
    ['in_list', [A, LIST_OF_A], BOOL],
    ['in_map', [A, MAP_OF_A_TO_B], BOOL],
  ]),
  {
    name: 'size',
    summary: 'The number of code points, bytes, elements or entries.',
    overloads: [BYTES, LIST_OF_A, MAP_OF_A_TO_B, STRING].flatMap((type) => [
      overload([`size_${type.kind}`, [type], INT], size),
      overload([`${type.kind}_size`, [type], INT], size, true),
    ]),
  },
];

/** Type names in ids of conversions: `int64_to_string`. */
const CONVERTED: ReadonlyMap<CelType, string> = new Map([
  [INT, 'int64'],
  [UINT, 'uint64'],
  [DOUBLE, 'double'],
  [BOOL, 'bool'],
  [STRING, 'string'],
  [BYTES, 'bytes'],
  [TIMESTAMP, 'timestamp'],
  [DURATION, 'duration'],
]);

function conversion(name: string, to: CelType, call: Unary, from: readonly CelType[]): FunctionDeclaration {
  const signatures = from.map((type): Signature => {
    return [`${CONVERTED.get(type)}_to_${CONVERTED.get(to)}`, [type], to];
  });
  return operator(name, `Converts to ${name}.`, call, signatures);
}

const CONVERSIONS: readonly FunctionDeclaration[] = [
  operator('type', 'The type of a value.', (a) => CelTypeValue.of(a), [['type', [A], typeOf(A)]]),
  operator('dyn', 'The same value with the type `dyn`, which turns off type checking for it.', (a) => a, [
    ['to_dyn', [A], DYN],
  ]),
  conversion('bool', BOOL, toBoolValue, [BOOL, STRING]),
  conversion('bytes', BYTES, toBytesValue, [BYTES, STRING]),
  conversion('double', DOUBLE, toDoubleValue, [DOUBLE, INT, STRING, UINT]),
  conversion('duration', DURATION, toDurationValue, [DURATION, INT, STRING]),
  conversion('int', INT, toIntValue, [INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT]),
  conversion('string', STRING, toText, [STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT]),
  conversion('timestamp', TIMESTAMP, toTimestampValue, [TIMESTAMP, INT, STRING]),
  conversion('uint', UINT, toUintValue, [UINT, DOUBLE, INT, STRING]),
];

function ofStrings(test: (text: string, part: string) => boolean): Binary {
  return (a, b) =>
    typeof a === 'string' && typeof b === 'string' ? test(a, b) : new EvaluationFailure(NO_SUCH_OVERLOAD);
}

function stringTest(name: string, id: string, summary: string, call: Binary): FunctionDeclaration {
  return { name, summary, overloads: [overload([id, [STRING, STRING], BOOL], call, true)] };
}

const matches: Binary = (text, source) => {
  if (typeof text !== 'string') {
    return new EvaluationFailure(`${NO_SUCH_OVERLOAD}: matches`);
  }
  if (typeof source !== 'string') {
    return new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
  const pattern = compilePattern(source);
  return pattern instanceof EvaluationFailure ? pattern : pattern.test(text);
};

const prepareMatches: NonNullable<Overload['prepare']> = ([, source]) => {
  if (typeof source !== 'string') {
    return undefined;
  }
  const pattern = compilePattern(source);
  return pattern instanceof EvaluationFailure
    ? pattern
    : (text) => (typeof text === 'string' ? pattern.test(text) : new EvaluationFailure(NO_SUCH_OVERLOAD));
};

const STRINGS: readonly FunctionDeclaration[] = [
  stringTest('contains', 'contains_string', 'Whether the string contains the argument.', ofStrings(hasPart)),
  stringTest(
    'endsWith',
    'ends_with_string',
    'Whether the string ends with the argument.',
    ofStrings((text, part) => text.endsWith(part)),
  ),
  stringTest(
    'startsWith',
    'starts_with_string',
    'Whether the string starts with the argument.',
    ofStrings((text, part) => text.startsWith(part)),
  ),
  {
    name: 'matches',
    summary: 'Whether an RE2 regular expression matches any part of the string.',
    overloads: [
      { ...overload(['matches', [STRING, STRING], BOOL], matches), prepare: prepareMatches },
      { ...overload(['matches_string', [STRING, STRING], BOOL], matches, true), prepare: prepareMatches },
    ],
  },
];

function timeFunction(
  zones: TimeZones,
  [name, id, idWithZone, summary]: readonly [string, string, string, string],
  part: (time: CivilTime) => number,
  ofDuration?: readonly [id: string, nanosecondsPerUnit: bigint],
): FunctionDeclaration {
  const read = (timestamp: CelValue, zone: CelValue): CelResult => {
    if (!(timestamp instanceof CelTimestamp) || typeof zone !== 'string') {
      return new EvaluationFailure(NO_SUCH_OVERLOAD);
    }
    const time = zones.localTime(timestamp, zone);
    return time instanceof EvaluationFailure ? time : part(time);
  };
  const overloads = [
    overload([id, [TIMESTAMP], INT], (timestamp: CelValue) => read(timestamp, 'UTC'), true),
    overload([idWithZone, [TIMESTAMP, STRING], INT], read, true),
  ];
  if (ofDuration !== undefined) {
    const [durationId, unit] = ofDuration;
    const convert: Unary = (duration) =>
      duration instanceof CelDuration ? toInt(duration.nanoseconds / unit) : new EvaluationFailure(NO_SUCH_OVERLOAD);
    overloads.push(overload([durationId, [DURATION], INT], convert, true));
  }
  return { name, summary, overloads };
}

function timeFunctions(): readonly FunctionDeclaration[] {
  const zones = new TimeZones();
  const of = (
    name: string,
    id: string,
    summary: string,
    part: (time: CivilTime) => number,
    ofDuration?: readonly [string, bigint],
  ): FunctionDeclaration => timeFunction(zones, [name, id, withZone(id), summary], part, ofDuration);
  return [
    of('getFullYear', 'timestamp_to_year', 'The year.', (time) => time.year),
    of('getMonth', 'timestamp_to_month', 'The month; January is 0.', (time) => time.month - 1),
    of('getDayOfYear', 'timestamp_to_day_of_year', 'The day of the year, from 0.', (time) => dayOfYear(time) - 1),
    of('getDayOfMonth', 'timestamp_to_day_of_month', 'The day of the month, from 0.', (time) => time.day - 1),
    of('getDate', 'timestamp_to_day_of_month_1_based', 'The day of the month, from 1.', (time) => time.day),
    of('getDayOfWeek', 'timestamp_to_day_of_week', 'The day of the week; Sunday is 0.', weekdayOf),
    of(
      'getHours',
      'timestamp_to_hours',
      'The hour; for a duration, the whole duration in hours.',
      (time) => time.hour,
      ['duration_to_hours', 3_600_000_000_000n],
    ),
    of(
      'getMinutes',
      'timestamp_to_minutes',
      'The minute; for a duration, the whole duration in minutes.',
      (time) => time.minute,
      ['duration_to_minutes', 60_000_000_000n],
    ),
    of(
      'getSeconds',
      'timestamp_to_seconds',
      'The second; for a duration, the whole duration in seconds.',
      (time) => time.second,
      ['duration_to_seconds', 1_000_000_000n],
    ),
    of(
      'getMilliseconds',
      'timestamp_to_milliseconds',
      'The milliseconds of the second; for a duration, the whole duration in milliseconds.',
      (time) => Math.trunc(time.nanosecond / 1_000_000),
      ['duration_to_milliseconds', 1_000_000n],
    ),
  ];
}

/** The id of an accessor with a time zone. */
function withZone(id: string): string {
  return id === 'timestamp_to_seconds' ? 'timestamp_to_seconds_tz' : `${id}_with_tz`;
}

/** The functions of the language. Each library instance has its own cache of time zones. */
export function standardLibrary(): Library {
  return {
    name: 'standard',
    since: undefined,
    functions: [...LOGIC, ...ARITHMETIC, ...ORDER, ...COLLECTIONS, ...CONVERSIONS, ...STRINGS, ...timeFunctions()],
    types: [BOOL, BYTES, DOUBLE, DURATION, INT, LIST_OF_A, MAP_OF_A_TO_B, NULL, STRING, TIMESTAMP, UINT, typeOf(DYN)],
  };
}
