import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sprintf } from './sprintf.ts';
import type { FormatArgument } from './sprintf.ts';

const ARGUMENTS: readonly FormatArgument[] = [
  { type: 'int64', value: 65n },
  { type: 'int64', value: -233n },
  { type: 'string', value: 'é"' },
  { type: 'float64', value: 1.5 },
  { type: 'float64', value: Infinity },
  { type: 'bool', value: true },
  { type: '*big.Int', value: 12345678901234567890123n },
];

/** A directive, and the text that Go 1.26 makes of each argument by it. */
const TEXTS: readonly (readonly [string, string])[] = [
  ['%v', '65  -233  é"  1.5  +Inf  true  12345678901234567890123'],
  ['%d', '65  -233  %!d(string=é")  %!d(float64=1.5)  %!d(float64=+Inf)  %!d(bool=true)  12345678901234567890123'],
  [
    '%-5d|',
    '65   |  -233 |  %!d(string=é"   )|  %!d(float64=1.5  )|  %!d(float64=+Inf )|  %!d(bool=true )|  12345678901234567890123|',
  ],
  [
    '%05d',
    '00065  -0233  %!d(string=000é")  %!d(float64=001.5)  %!d(float64= +Inf)  %!d(bool=0true)  12345678901234567890123',
  ],
  ['%+d', '+65  -233  %!d(string=é")  %!d(float64=+1.5)  %!d(float64=+Inf)  %!d(bool=true)  +12345678901234567890123'],
  ['% d', ' 65  -233  %!d(string=é")  %!d(float64= 1.5)  %!d(float64= Inf)  %!d(bool=true)   12345678901234567890123'],
  ['%x', '41  -e9  c3a922  0x1.8p+00  +Inf  %!x(bool=true)  29d42b64e76714244cb'],
  ['%#x', '0x41  -0xe9  0xc3a922  0x1.8000p+00  +Inf  %!x(bool=true)  0x29d42b64e76714244cb'],
  [
    '%b',
    '1000001  -11101001  %!b(string=é")  6755399441055744p-52  +Inf  %!b(bool=true)  10100111010100001010110110010011100111011001110001010000100100010011001011',
  ],
  ['%o', '101  -351  %!o(string=é")  %!o(float64=1.5)  %!o(float64=+Inf)  %!o(bool=true)  2472412662347316120442313'],
  [
    '%#o',
    '0101  -0351  %!o(string=é")  %!o(float64=1.50000)  %!o(float64=+Inf)  %!o(bool=true)  02472412662347316120442313',
  ],
  [
    '%O',
    '0o101  -0o351  %!O(string=é")  %!O(float64=1.5)  %!O(float64=+Inf)  %!O(bool=true)  0o2472412662347316120442313',
  ],
  [
    '%c',
    'A  �  %!c(string=é")  %!c(float64=1.5)  %!c(float64=+Inf)  %!c(bool=true)  %!c(big.Int=12345678901234567890123)',
  ],
  [
    '%q',
    "'A'  '�'  \"é\\\"\"  %!q(float64=1.5)  %!q(float64=+Inf)  %!q(bool=true)  %!q(big.Int=12345678901234567890123)",
  ],
  [
    '%+q',
    "'A'  '\\ufffd'  \"\\u00e9\\\"\"  %!q(float64=+1.5)  %!q(float64=+Inf)  %!q(bool=true)  %!q(big.Int=12345678901234567890123)",
  ],
  [
    '%#U',
    "U+0041 'A'  U+FFFFFFFFFFFFFF17  %!U(string=é\")  %!U(float64=1.50000)  %!U(float64=+Inf)  %!U(bool=true)  %!U(big.Int=12345678901234567890123)",
  ],
  [
    '%s',
    '%!s(int64=65)  %!s(int64=-233)  é"  %!s(float64=1.5)  %!s(float64=+Inf)  %!s(bool=true)  12345678901234567890123',
  ],
  ['%.3d', '065  -233  %!d(string=é")  %!d(float64=1.5)  %!d(float64=+Inf)  %!d(bool=true)  12345678901234567890123'],
  [
    '%8.3d|',
    '     065|      -233|  %!d(string=      é")|  %!d(float64=     1.5)|  %!d(float64=    +Inf)|  %!d(bool=    true)|  12345678901234567890123|',
  ],
  [
    '%08.3d|',
    '     065|      -233|  %!d(string=000000é")|  %!d(float64=000001.5)|  %!d(float64=    +Inf)|  %!d(bool=0000true)|  12345678901234567890123|',
  ],
  [
    '%e',
    '%!e(int64=65)  %!e(int64=-233)  %!e(string=é")  1.500000e+00  +Inf  %!e(bool=true)  %!e(big.Int=12345678901234567890123)',
  ],
  ['%T', 'int64  int64  string  float64  float64  bool  *big.Int'],
  [
    '%f',
    '%!f(int64=65)  %!f(int64=-233)  %!f(string=é")  1.500000  +Inf  %!f(bool=true)  %!f(big.Int=12345678901234567890123)',
  ],
  [
    '%8.2f|',
    '%!f(int64=      65)|  %!f(int64=    -233)|  %!f(string=      é")|      1.50|      +Inf|  %!f(bool=    true)|  %!f(big.Int=12345678901234567890123)|',
  ],
  [
    '%#g',
    '%!g(int64=65)  %!g(int64=-233)  %!g(string=é")  1.50000  +Inf  %!g(bool=true)  %!g(big.Int=12345678901234567890123)',
  ],
  [
    '%g',
    '%!g(int64=65)  %!g(int64=-233)  %!g(string=é")  1.5  +Inf  %!g(bool=true)  %!g(big.Int=12345678901234567890123)',
  ],
  [
    '%.3g',
    '%!g(int64=065)  %!g(int64=-233)  %!g(string=é")  1.5  +Inf  %!g(bool=true)  %!g(big.Int=12345678901234567890123)',
  ],
  [
    '%#.0f',
    '%!f(int64=65)  %!f(int64=-233)  %!f(string=)  2.  +Inf  %!f(bool=true)  %!f(big.Int=12345678901234567890123)',
  ],
  [
    '%+08.1f',
    '%!f(int64=     +65)  %!f(int64=    -233)  %!f(string=0000000é)  +00001.5      +Inf  %!f(bool=0000true)  %!f(big.Int=12345678901234567890123)',
  ],
  [
    '%10s|',
    '%!s(int64=        65)|  %!s(int64=      -233)|          é"|  %!s(float64=       1.5)|  %!s(float64=      +Inf)|  %!s(bool=      true)|  12345678901234567890123|',
  ],
  [
    '%-10s|',
    '%!s(int64=65        )|  %!s(int64=-233      )|  é"        |  %!s(float64=1.5       )|  %!s(float64=+Inf      )|  %!s(bool=true      )|  12345678901234567890123|',
  ],
  [
    '%.1s',
    '%!s(int64=65)  %!s(int64=-233)  é  %!s(float64=2)  %!s(float64=+Inf)  %!s(bool=true)  12345678901234567890123',
  ],
  ['% x', ' 41  -e9  c3 a9 22   0x1.8p+00   Inf  %!x(bool=true)   29d42b64e76714244cb'],
  ['%# X', ' 0X41  -0XE9  0XC3 0XA9 0X22   0X1.8P+00   Inf  %!X(bool=true)   0X29D42B64E76714244CB'],
  [
    '%#q',
    "'A'  '�'  `é\"`  %!q(float64=1.50000)  %!q(float64=+Inf)  %!q(bool=true)  %!q(big.Int=12345678901234567890123)",
  ],
  [
    '%10q|',
    "       'A'|         '�'|       \"é\\\"\"|  %!q(float64=       1.5)|  %!q(float64=      +Inf)|  %!q(bool=      true)|  %!q(big.Int=12345678901234567890123)|",
  ],
];

for (const [format, texts] of TEXTS) {
  test(`${format} formats as in Go`, () => {
    assert.equal(ARGUMENTS.map((argument) => sprintf(format, [argument], () => {})).join('  '), texts);
  });
}

test('arguments are chosen by index, given to *, and reported when there are too many or too few', () => {
  const one: FormatArgument = { type: 'int64', value: 1n };
  const two: FormatArgument = { type: 'int64', value: 2n };
  assert.equal(
    sprintf('%[2]d %[1]d %[3]d', [one, two], () => {}),
    '2 1 %!d(BADINDEX)',
  );
  assert.equal(
    sprintf('%*d|%-*d|', [two, one, two, one], () => {}),
    ' 1|1 |',
  );
  assert.equal(
    sprintf('%d %d', [one], () => {}),
    '1 %!d(MISSING)',
  );
  assert.equal(
    sprintf('%d', [one, two, { type: '<nil>' }], () => {}),
    '1%!(EXTRA int64=2, <nil>)',
  );
  assert.equal(
    sprintf('%', [], () => {}),
    '%!(NOVERB)',
  );
});

test('no piece is made before its size is reported', () => {
  let largest = 0;
  const guard = (chars: number): void => {
    largest = Math.max(largest, chars);
    if (chars > 1000) {
      throw new Error('too long');
    }
  };
  for (const format of ['%999999d', '%.999999d', '%-999999s', '%.999999f']) {
    assert.throws(() => sprintf(format, [{ type: 'float64', value: 1 }], guard), /too long/);
  }
  assert.ok(largest < 1_100_000);
});
