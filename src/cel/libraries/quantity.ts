import { doubleOf, toInt } from '../evaluate/index.ts';
import type { Library } from '../model/library.ts';
import { BOOL, DOUBLE, INT, STRING, struct } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import { NOMINAL, scan } from './costs.ts';
import { describe, fail, global, member } from './declare.ts';
import type { Int } from './declare.ts';
import { parseQuantity, Quantity } from '../quantity/index.ts';

/** The type of quantities. */
const QUANTITY: ReturnType<typeof struct> = struct('kubernetes.Quantity');

/** Amounts with units, such as `100m` and `1.5Gi`, as in resource requests and limits. */
export const QUANTITY_LIBRARY: Library = {
  name: 'Quantities',
  since: 28,
  types: [QUANTITY],
  functions: [
    describe(
      'quantity',
      'Parses a quantity.',
      ["quantity('1.5Gi').isInteger()", 'false'],
      [global('string_to_quantity', [STRING], QUANTITY, parseQuantity, scan())],
    ),
    describe(
      'isQuantity',
      'Whether a string is a quantity.',
      ["isQuantity('1.5Gb')", 'false'],
      [
        global(
          'is_quantity_string',
          [STRING],
          BOOL,
          (text: string) => !(parseQuantity(text) instanceof EvaluationFailure),
          scan(),
        ),
      ],
    ),
    describe(
      'sign',
      '1, 0 or -1 if the quantity is positive, zero or negative.',
      ["sign(quantity('-50k'))", '-1'],
      [global('quantity_sign', [QUANTITY], INT, (quantity: Quantity) => quantity.sign, NOMINAL)],
    ),
    describe(
      'isGreaterThan',
      'Whether the quantity is greater than the argument.',
      ["quantity('1Gi').isGreaterThan(quantity('1G'))", 'true'],
      [
        member(
          'quantity_is_greater_than',
          [QUANTITY, QUANTITY],
          BOOL,
          (quantity: Quantity, other: Quantity) => quantity.compareTo(other) > 0,
          NOMINAL,
        ),
      ],
    ),
    describe(
      'isLessThan',
      'Whether the quantity is less than the argument.',
      ["quantity('500m').isLessThan(quantity('1'))", 'true'],
      [
        member(
          'quantity_is_less_than',
          [QUANTITY, QUANTITY],
          BOOL,
          (quantity: Quantity, other: Quantity) => quantity.compareTo(other) < 0,
          NOMINAL,
        ),
      ],
    ),
    describe(
      'compareTo',
      '-1, 0 or 1 if the quantity is less than, equal to or greater than the argument.',
      ["quantity('200M').compareTo(quantity('0.2G'))", '0'],
      [
        member(
          'quantity_compare_to',
          [QUANTITY, QUANTITY],
          INT,
          (quantity: Quantity, other: Quantity) => quantity.compareTo(other),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'asApproximateFloat',
      'The value as a double, which may be rounded.',
      ["quantity('500m').asApproximateFloat()", '0.5'],
      [
        member(
          'quantity_get_float',
          [QUANTITY],
          DOUBLE,
          (quantity: Quantity) => doubleOf(quantity.approximation),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'asInteger',
      'The value as an int; an error if it is not an int.',
      ["quantity('50k').asInteger()", '50000'],
      [
        member(
          'quantity_get_int',
          [QUANTITY],
          INT,
          ({ integer }: Quantity) => (integer === undefined ? fail('cannot convert value to integer') : toInt(integer)),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'isInteger',
      'Whether `asInteger` succeeds.',
      ["quantity('50m').isInteger()", 'false'],
      [member('quantity_is_integer', [QUANTITY], BOOL, ({ integer }: Quantity) => integer !== undefined, NOMINAL)],
    ),
    describe(
      'add',
      'The sum of the quantity and a quantity or an int.',
      ["quantity('50k').add(20) == quantity('50020')", 'true'],
      [
        member(
          'quantity_add',
          [QUANTITY, QUANTITY],
          QUANTITY,
          (quantity: Quantity, other: Quantity) => quantity.add(other),
          NOMINAL,
        ),
        member(
          'quantity_add_int',
          [QUANTITY, INT],
          QUANTITY,
          (quantity: Quantity, other: Int) => quantity.add(Quantity.of(other)),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'sub',
      'The quantity minus a quantity or an int.',
      ["quantity('50k').sub(quantity('20k')) == quantity('30k')", 'true'],
      [
        member(
          'quantity_sub',
          [QUANTITY, QUANTITY],
          QUANTITY,
          (quantity: Quantity, other: Quantity) => quantity.subtract(other),
          NOMINAL,
        ),
        member(
          'quantity_sub_int',
          [QUANTITY, INT],
          QUANTITY,
          (quantity: Quantity, other: Int) => quantity.subtract(Quantity.of(other)),
          NOMINAL,
        ),
      ],
    ),
  ],
};
