import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BUILTIN_FUNCTIONS } from '../../go/templates/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject } from '../../values/index.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';
import { functionTable } from './rendering/rendering.ts';
import { resolveTemplates } from './resolve-templates.ts';
import { NO_TEMPLATE_OBJECTS } from './rendering/template-objects.ts';
import { UNSUPPORTED_FUNCTIONS } from './unknown-function.ts';

/** Templates, and the text that text/template makes of them with the functions of Sprig 3.3.0. */
const TEXTS: readonly (readonly [template: string, text: string])[] = [
  ['{{ trim "  a b \\n" }}|', 'a b|'],
  ['{{ trimAll "$" "$5.00$" }}', '5.00'],
  ['{{ trimPrefix "-" "-a-" }}{{ trimSuffix "-" "-a-" }}', 'a--a'],
  [
    '{{ upper "abc" }}{{ lower "ABC" }}{{ title "hello world-x" }}{{ untitle "Hello World" }}',
    'ABCabcHello World-Xhello world',
  ],
  ['{{ nospace "a b\\tc" }}', 'abc'],
  ['{{ contains "cat" "catch" }} {{ hasPrefix "cat" "catch" }} {{ hasSuffix "ch" "catch" }}', 'true true true'],
  ['{{ "I Am" | replace " " "-" }} {{ replace "" "-" "ab" }}', 'I-Am -a-b-'],
  ['{{ repeat 3 "ab" }}', 'ababab'],
  [
    '{{ trunc 5 "hello world" }}|{{ trunc -5 "hello world" }}|{{ trunc 50 "x" }}|{{ trunc -50 "x" }}|{{ trunc 0 "x" }}',
    'hello|world|x|x|',
  ],
  [
    '{{ substr 0 5 "hello world" }}|{{ substr -1 3 "hello" }}|{{ substr 2 -1 "hello" }}|{{ substr 2 99 "hello" }}',
    'hello|hel|llo|llo',
  ],
  [
    '{{ (split "$" "foo$bar$baz")._0 }} {{ (split "$" "foo$bar$baz")._2 }} {{ splitn "$" 2 "foo$bar$baz" }} {{ split "" "ab" }}',
    'foo baz map[_0:foo _1:bar$baz] map[_0:a _1:b]',
  ],
  ['{{ splitList "," "a,b,c" }} {{ len (splitList "," "") }} {{ splitList "" "añ" }}', '[a b c] 1 [a ñ]'],
  ['{{ list "a" "b" | join "-" }} {{ join "," (list 1 "x" nil true) }} {{ join "," "x" }}', 'a-b 1,x,true x'],
  ['{{ cat "a" 1 nil "b" }} {{ cat }}', 'a 1 b '],
  ['{{ quote "a\\"b" 1 nil }} {{ squote "a\'b" 2 }} {{ "x\\ny" | quote }}', '"a\\"b" "1" \'a\'b\' \'2\' "x\\ny"'],
  [
    '{{ toString 1 }}{{ toString 1.5 }}{{ toString true }}{{ toString (list 1 2) }} {{ toString nil }}',
    '11.5true[1 2] <nil>',
  ],
  ['{{ toStrings (list 1 "a" nil) }} {{ toStrings 5 }}', '[1 a] [5]'],
  ['{{ plural "one" "many" 1 }} {{ plural "one" "many" 2 }} {{ plural "one" "many" 0 }}', 'one many many'],
  ['{{ regexMatch "^[a-z]+$" "abc" }} {{ regexMatch "^[a-z]+$" "ab1" }}', 'true false'],
  [
    '{{ regexFindAll "[2,4,6,8]" "123456789" -1 }} {{ regexFindAll "a" "aaaa" 2 }} {{ regexFindAll "a*" "baaac" -1 | len }} {{ regexFindAll "x" "a" -1 | len }} {{ regexFindAll "a" "aaaa" 0 | len }}',
    '[2 4 6 8] [a a] 3 0 0',
  ],
  ['{{ regexFind "[a-zA-Z][1-9]" "abcd1234" }}|{{ regexFind "z" "a" }}|', 'd1||'],
  [
    '{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W" }} {{ regexReplaceAll "(?P<n>a)" "ab" "$n$$" }} {{ regexReplaceAll "a*" "baac" "X" }} {{ regexReplaceAll "" "ab" "-" }} {{ regexReplaceAll "^" "😀a" "-" }} {{ regexReplaceAll "" "😀a" "-" }}',
    '-W-xxW- --- a$b XbXcX -a-b- -😀a -😀-a-',
  ],
  ['{{ regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}" }}', '-${1}-${1}-'],
  [
    '{{ regexSplit "z+" "pizza" -1 }} {{ regexSplit "z" "pizza" 2 }} {{ regexSplit "" "abc" -1 }} {{ regexSplit "a" "" -1 | len }} {{ regexSplit "a*" "abaabaccadaaae" 5 }} {{ regexSplit "s*" "abc" -1 }} {{ regexSplit "c" "abc" -1 | len }}{{ regexSplit "$" "abc" -1 | len }}',
    '[pi a] [pi za] [a b c] 1 [ b b c cadaaae] [a b c] 21',
  ],
  ['{{ regexQuoteMeta "1.2.3 a-b [x]" }}', '1\\.2\\.3 a-b \\[x\\]'],
  [
    '{{ first (list 1 2) }}{{ last (list 1 2) }}{{ rest (list 1 2 3) }}{{ initial (list 1 2 3) }}{{ first list }}',
    '12[2 3][1 2]<no value>',
  ],
  [
    '{{ append (list 1) 2 }}{{ push (list 1) 2 }}{{ prepend (list 1) 2 }}{{ concat (list 1) (list 2 3) list }}{{ reverse (list 1 2 3) }}',
    '[1 2][1 2][2 1][1 2 3][3 2 1]',
  ],
  [
    '{{ compact (list 0 1 "" "a" nil false) }} {{ uniq (list 1 1 2 "2" 2) }} {{ without (list 1 2 3) 1 3 }} {{ has 4 (list 1 4) }} {{ has "4" (list 1 4) }}',
    '[1 a] [1 2 2] [2] true false',
  ],
  [
    '{{ slice (list 1 2 3) 1 }} {{ slice (list 1 2 3) 1 2 }} {{ slice (list 1 2) }} {{ chunk 2 (list 1 2 3) }}',
    '[2 3] [2] [1 2] [[1 2] [3]]',
  ],
  ['{{ sortAlpha (list "b" "a" "B") }} {{ sortAlpha (list 2 10) }}', '[B a b] [10 2]'],
  [
    '{{ until 3 }} {{ until 0 }} {{ until -2 }} {{ untilStep 3 6 2 }} {{ untilStep 6 3 -1 }} {{ untilStep 0 3 -1 }}',
    '[0 1 2] [] [0 -1] [3 5] [6 5 4] []',
  ],
  [
    '{{ seq 3 }}|{{ seq -1 }}|{{ seq 0 }}|{{ seq 2 4 }}|{{ seq 4 2 }}|{{ seq 0 2 5 }}|{{ seq 5 -2 0 }}|{{ seq 0 -1 5 }}|{{ seq }}|{{ seq 1 }}',
    '1 2 3|1 0 -1|1 0|2 3 4|4 3 2|0 2 4|5 3 1|||1',
  ],
  ['{{ max 1 3 2 }}{{ min 5 3 4 }}{{ max "7" 2 }}', '337'],
  ['{{ dict "a" 1 "b" 2 }} {{ dict "a" }} {{ dict 1 2 }}', 'map[a:1 b:2] map[a:] map[1:2]'],
  ['{{ get (dict "a" 1) "a" }}|{{ get (dict "a" 1) "b" }}|', '1||'],
  [
    '{{ set (dict "a" 1) "b" 2 }} {{ unset (dict "a" 1 "b" 2) "a" }} {{ hasKey (dict "a" 1) "a" }} {{ $d := dict "a" 1 }}{{ $_ := set $d "a" 5 }}{{ $d.a }}',
    'map[a:1 b:2] map[b:2] true 5',
  ],
  [
    '{{ keys (dict "b" 1 "a" 2) | sortAlpha }} {{ values (dict "a" 1) }} {{ pick (dict "a" 1 "b" 2) "a" "z" }} {{ omit (dict "a" 1 "b" 2) "a" }}',
    '[a b] [1] map[a:1] map[b:2]',
  ],
  [
    '{{ dig "a" "b" "def" (dict "a" (dict "b" "x")) }} {{ dig "a" "c" "def" (dict "a" (dict "b" "x")) }} {{ dig "z" "c" "def" (dict "a" 1) }}',
    'x def def',
  ],
  ['{{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) }}', '[1 3]'],
  [
    '{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }} {{ mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3) }} {{ merge (dict "a" (dict "x" 1)) (dict "a" (dict "y" 2)) }} {{ merge (dict "a" 0) (dict "a" 2) }} {{ mergeOverwrite (dict "a" 1) (dict "a" 0) }} {{ mergeOverwrite (dict "a" 1) (dict "a" "") }} {{ merge (dict "a" "") (dict "a" "x") }} {{ merge (dict) (dict "a" "") }} {{ mergeOverwrite (dict) (dict "a" "" "b" nil) }}',
    'map[a:1 b:3] map[a:2 b:3] map[a:map[x:1 y:2]] map[a:2] map[a:0] map[a:] map[a:x] map[a:] map[a: b:<nil>]',
  ],
  [
    '{{ mergeOverwrite (dict "a" 1) (dict "a" nil) }} {{ merge (dict "a" (list 1)) (dict "a" (list 2)) }} {{ merge (dict "a" nil) (dict "a" 1) }} {{ merge (dict "a" (dict "x" 0)) (dict "a" (dict "x" 1)) }} {{ merge (dict "a" 1) (dict "a" (dict "x" 1)) }} {{ mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" 1) }} {{ mergeOverwrite (dict "a" (list 1)) (dict "a" (list 2)) }}',
    'map[a:<nil>] map[a:[1]] map[a:1] map[a:map[x:1]] map[a:1] map[a:1] map[a:[2]]',
  ],
  ['{{ title "a b-c_d é.é 1a" }} {{ int "0_1" }} {{ int "1__0" }}', 'A B-C_d É.É 1a 1 0'],
  ['{{ deepCopy (dict "a" (list 1)) }}', 'map[a:[1]]'],
  [
    '{{ default "x" "" }}{{ default "x" "y" }}{{ default "x" (dict).nope }}{{ default 1 0 }}{{ default "x" false }}',
    'xyx1x',
  ],
  [
    '{{ empty "" }}{{ empty 0 }}{{ empty list }}{{ empty "a" }}{{ empty nil }}{{ empty dict }}',
    'truetruetruefalsetruetrue',
  ],
  ['{{ coalesce 0 "" "x" "y" }}{{ coalesce 0 "" }}', 'x<no value>'],
  ['{{ all 1 "" }}{{ all 1 2 }}{{ any 0 1 }}{{ any 0 }}{{ all }}{{ any }}', 'falsetruetruefalsetruefalse'],
  ['{{ ternary "a" "b" true }}{{ true | ternary "a" "b" }}', 'aa'],
  [
    '{{ kindOf 1 }} {{ kindOf "a" }} {{ kindOf 1.5 }} {{ kindOf true }} {{ kindOf list }} {{ kindOf dict }} {{ kindOf nil }} {{ kindIs "int" 1 }} {{ typeOf 1 }} {{ typeOf "a" }} {{ typeOf list }} {{ typeOf dict }} {{ typeOf nil }} {{ typeIs "string" "a" }}',
    'int string float64 bool slice map invalid true int string []interface {} map[string]interface {} <nil> true',
  ],
  [
    '{{ deepEqual (list 1 2) (list 1 2) }} {{ deepEqual 1 "1" }} {{ deepEqual (dict "a" 1) (dict "a" 2) }}',
    'true false false',
  ],
  [
    '{{ add 1 2 3 }} {{ add1 5 }} {{ sub 5 3 }} {{ mul 2 3 4 }} {{ div 7 2 }} {{ div -7 2 }} {{ mod 7 3 }} {{ mod -7 3 }} {{ add "5" 1 }} {{ add 1.9 1 }} {{ add "x" 1 }} {{ add true 1 }} {{ add nil 1 }}',
    '6 6 2 24 3 -3 1 -1 6 2 1 2 1',
  ],
  ['{{ add 9223372036854775807 1 }}', '-9223372036854775808'],
  [
    '{{ ceil 1.1 }} {{ floor 1.9 }} {{ round 1.2345 2 }} {{ round 1.2355 3 }} {{ round -1.5 0 }} {{ round 1.25 1 0.6 }} {{ ceil "2.1" }} {{ floor 1e20 }}',
    '2 1 1.23 1.236 -2 1.2 3 1e+20',
  ],
  [
    '{{ int "5" }} {{ int "5.9" }} {{ int "0x1f" }} {{ int "010" }} {{ int 3.9 }} {{ int "abc" }} {{ int64 "9" }} {{ float64 "1.50" }} {{ float64 3 }} {{ int nil }} {{ int "" }} {{ int "5.0" }} {{ int "-7" }} {{ int " 7" }} {{ int "08" }} {{ int "1_000" }}',
    '5 0 31 8 3 0 9 1.5 3 0 0 5 -7 0 0 1000',
  ],
  ['{{ atoi "12" }} {{ atoi "x" }} {{ atoi "012" }} {{ atoi "-3" }} {{ atoi "+3" }}', '12 0 12 -3 3'],
  [
    '{{ toJson (dict "b" 1 "a" (list 1 "x" nil true 1.5)) }} {{ toJson "<a&b>" }} {{ toRawJson "<a&b>" }} {{ toJson 1e21 }}',
    '{"a":[1,"x",null,true,1.5],"b":1} "\\u003ca\\u0026b\\u003e" "<a&b>" 1e+21',
  ],
  ['{{ toPrettyJson (dict "a" 1 "b" (list)) }}', '{\n  "a": 1,\n  "b": []\n}'],
  [
    '{{ (fromJson "{\\"a\\": 1, \\"b\\": [1,2]}").b }} {{ fromJson "{" }} {{ (fromJson "{\\"a\\": 1000000}").a }} {{ (fromJson "{\\"a\\": 1e3}").a }}',
    '[1 2] <no value> 1e+06 1000',
  ],
  ['{{ b64enc "hello" }} {{ b64dec "aGVsbG8=" }}', 'aGVsbG8= hello'],
  [
    '{{ sha256sum "a" }} {{ sha1sum "a" }} {{ sha512sum "a" }}',
    'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8 1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74210546f369fbbbce8c12cfc7957b2652fe9a75',
  ],
  [
    '{{ semverCompare "1.2.3" "1.2.3" }} {{ semverCompare ">=1.2.0" "1.2.3" }} {{ semverCompare "^1.2.0" "1.9.9" }} {{ semverCompare "^1.2.0" "2.0.0" }} {{ semverCompare "~1.2.0" "1.3.0" }} {{ semverCompare "~1" "1.9.0" }} {{ semverCompare "^0.2.3" "0.2.9" }} {{ semverCompare "^0.2.3" "0.3.0" }} {{ semverCompare "^0.0.3" "0.0.4" }} {{ semverCompare "^0.0" "0.0.9" }} {{ semverCompare "^0" "0.9.0" }} {{ semverCompare "1.2.x" "1.2.9" }} {{ semverCompare "1.x" "2.0.0" }} {{ semverCompare "*" "3.0.0" }} {{ semverCompare ">1.2" "1.2.5" }} {{ semverCompare ">1.2" "1.3.0" }} {{ semverCompare "<=1.2" "1.2.5" }} {{ semverCompare "<1.2" "1.2.5" }} {{ semverCompare ">=1.2, <1.5" "1.4.0" }} {{ semverCompare ">=1.2 <1.5" "1.6.0" }} {{ semverCompare "<1 || >2" "3.0.0" }} {{ semverCompare "1.2 - 1.5" "1.5.9" }} {{ semverCompare "1.2 - 1.5.0" "1.5.1" }} {{ semverCompare "!=1.2.3" "1.2.3" }} {{ semverCompare "!=1.2" "1.2.9" }} {{ semverCompare "!=1.2" "1.3.9" }} {{ semverCompare "=1.2" "1.2.3" }} {{ semverCompare "1.2" "1.2.3" }}',
    'true true true false false true true false false true true true false true false true true false true false true true false false false true true true',
  ],
  [
    '{{ semverCompare ">=1.2.0" "1.3.0-beta" }} {{ semverCompare ">=1.2.0-0" "1.3.0-beta" }} {{ semverCompare ">1.0.0-alpha.1" "1.0.0-alpha.2" }} {{ semverCompare ">1.0.0-alpha.9" "1.0.0-alpha.10" }} {{ semverCompare ">=1.2" "v1.30.4+k3s1" }} {{ semverCompare "^1.2.0" "v1.2.3" }} {{ semverCompare ">=4.14" "4.14.0-rc.1" }} {{ semverCompare "!=1.2.3" "1.2.4-beta" }}',
    'false true true true true true false true',
  ],
  [
    '{{ (semver "v1.2.3-beta.1+b").Major }}{{ (semver "1.2").Patch }} {{ (semver "1.2.3-beta.1+b").Prerelease }} {{ (semver "1.2.3-beta.1+b").Metadata }} {{ (semver "v1.2.3").Original }}',
    '10 beta.1 b v1.2.3',
  ],
  [
    '{{ date "2006-01-02T15:04:05Z07:00" 0 }} {{ htmlDate 86400 }} {{ dateInZone "15:04 MST" 0 "Europe/Berlin" }} {{ toDate "2006-01-02" "2020-03-04" | date "02.01.2006" }} {{ toDate "2006-01-02" "2020-03-04" | dateModify "-1h" | date "2006-01-02 15:04" }} {{ toDate "2006-01-02" "2020-03-04" | unixEpoch }}',
    '1970-01-01T00:00:00Z 1970-01-02 01:00 CET 04.03.2020 2020-03-03 23:00 1583280000',
  ],
  ['{{ range $i, $x := until 3 }}{{ $i }}{{ $x }}{{ end }}', '001122'],
  ['{{ index (splitList "," "a,b") 1 }} {{ list 1 2 | len }} {{ tuple 1 2 }}', 'b 2 [1 2]'],
];

/** Templates that fail, as they do with Sprig or upstream, and a part of the message. */
const FAILING: readonly (readonly [template: string, message: RegExp])[] = [
  ['{{ upper 1 }}', /operand 1: expected a string, got int/],
  ['{{ upper }}', /expected 1 operands, got 0/],
  ['{{ join "," }}', /expected 2 operands, got 1/],
  ['{{ upper (dict).missing }}', /expected a string, got invalid/],
  ['{{ first "a" }}', /expected a list, got string/],
  ['{{ get (list 1) "a" }}', /expected a map, got slice/],
  ['{{ ternary 1 2 "x" }}', /expected a bool, got string/],
  ['{{ until "3" }}', /expected an integer, got string/],
  ['{{ repeat -1 "a" }}', /the count is negative/],
  ['{{ div 1 0 }}', /division by zero/],
  ['{{ mod 1 0 }}', /division by zero/],
  ['{{ b64dec "a" }}', /not valid Base64/],
  ['{{ mustFromJson "{" }}', /not valid JSON/],
  ['{{ fromYaml "a: b: c" }}', /not valid YAML/],
  ['{{ fail "because" }}', /because/],
  ['{{ regexMatch "(" "a" }}', /not a valid regular expression/],
  ['{{ semver "x" }}', /not a semantic version/],
  ['{{ semverCompare "" "1.0.0" }}', /not a valid constraint/],
  ['{{ toLiteral "a\\nb" }}', /newlines are not allowed/],
  ['{{ dig "a" "b" "c" 0 (dict "a" (dict "b" 1)) }}', /the parent of "c" is no map/],
  ['{{ slice (list 1) 2 }}', /out of range/],
  ['{{ chunk 0 (list 1) }}', /must be positive/],
  ['{{ date "2006" "yesterday" }}', /RFC 3339/],
  ['{{ toDate "2006-01-02" "x" }}', /does not have this layout/],
  ['{{ dateModify "x" 0 }}', /not a Go duration/],
  ['{{ toBool 1 }}', /expected a string, got int/],
];

function render(template: string, context: JsonObject = {}): ReturnType<typeof resolveTemplates> {
  return resolveTemplates(
    { a: [template] },
    {
      objects: NO_TEMPLATE_OBJECTS,
      context,
      now: new Date('2026-01-02T03:04:05Z'),
    },
  );
}

function textOf(template: string, context: JsonObject = {}): unknown {
  const result = render(template, context);
  assert.equal(result.state, 'resolved', result.state === 'failed' ? result.error.message : '');
  const list = result.state === 'resolved' && isJsonObject(result.value) ? own(result.value, 'a') : undefined;
  return Array.isArray(list) ? list[0] : undefined;
}

/** Templates whose work is bounded; each took more than a minute, or more than 700 MB, before it was. */
const NEARLY = '{{ $part := printf "%sb%s" (repeat 300000 "a") (repeat 300000 "a") }}{{ $text := repeat 3000000 "a" }}';
const BOUNDED: readonly (readonly [template: string, text: string | RegExp])[] = [
  [`${NEARLY}{{ contains $part $text }}`, 'false'],
  [`${NEARLY}{{ len (splitList $part $text) }}`, '1'],
  [`${NEARLY}{{ len (replace $part "x" $text) }}`, '3000000'],
  [
    '{{ $t := "." }}{{ range until 27 }}{{ $t = regexQuoteMeta $t }}{{ end }}{{ len $t }}',
    /exceeds 8000000 characters/,
  ],
  ['{{ len (date (repeat 1500000 "1") 0) }}', /exceeds 1000000 steps/],
  ['{{ toDate (repeat 1500000 "1") (repeat 1500000 "1") }}', /exceeds 1000000 steps/],
  ['{{ toDate (repeat 300000 "Jan") (repeat 300000 "Jan") }}', /a date must be in the years 1 to 9999/],
  ['{{ float64 (printf "%sx" (repeat 3000000 "1")) }}', '0'],
  [
    `{{ $a := printf "%sx" (repeat 900000 "a") }}{{ $b := printf "%sy" (repeat 900000 "a") }}{{ $list := list $b }}${'{{ $list = concat $list $list }}'.repeat(13)}{{ range until 90 }}{{ has $a $list }}{{ end }}`,
    /exceeds 1000000 steps/,
  ],
];

describe('functions of templates', () => {
  for (const [template, expected] of BOUNDED) {
    test(`${template} does bounded work`, { timeout: 60_000 }, () => {
      if (typeof expected === 'string') {
        assert.equal(textOf(template), expected);
        return;
      }
      const result = render(template);
      assert.match(result.state === 'failed' ? result.error.message : '', expected);
    });
  }

  test('are refused without a charge for what they return, when they are loaded', () => {
    assert.throws(
      () => functionTable([['double', () => 'a'.repeat(2)]]),
      /functions of templates without a charge: double/,
    );
  });

  for (const [template, text] of TEXTS) {
    test(`${template} has the text that Sprig makes`, () => {
      assert.equal(textOf(template), text);
    });
  }

  for (const [template, message] of FAILING) {
    test(`${template} fails`, () => {
      const result = render(template);
      assert.equal(result.state, 'failed');
      assert.match(result.state === 'failed' ? result.error.message : '', message);
    });
  }

  test('fromYaml reads what toYaml writes', () => {
    const value = {
      yes: 'yes',
      b: '012',
      c: [1, { d: 'a\nb ', e: null, f: '' }],
      g: 1.5,
      h: '0o7',
      i: '2020-01-01',
      j: {},
    };
    assert.equal(textOf('{{ toYaml .v | fromYaml | toJson }}', { v: value }), textOf('{{ toJson .v }}', { v: value }));
    assert.equal(textOf('{{ toYaml (dict "b" (list 1 2) "a" "x") }}'), 'a: x\nb:\n  - 1\n  - 2');
  });

  test('now is the time of the rendering', () => {
    assert.equal(
      textOf('{{ now | date "2006-01-02 15:04" }} {{ now | dateModify "24h" | htmlDate }}'),
      '2026-01-02 03:04 2026-01-03',
    );
  });

  test('values that functions change are copies', () => {
    const context = { map: { a: 1 } };
    assert.equal(
      textOf('{{ $_ := set .map "__proto__" 2 }}{{ $_ := unset .map "a" }}{{ .map | toJson }}', context),
      '{"__proto__":2}',
    );
    assert.deepEqual(context, { map: { a: 1 } });
    assert.equal(({} as Record<string, unknown>)['a'], undefined);
  });

  test('a function of upstream that is not here is told from a typo', () => {
    for (const [template, message] of [
      [
        'a\n{{ genCA "x" 1 }}',
        /line 2: the function genCA of Open Cluster Management is not supported: it has another/,
      ],
      ['{{ env "HOME" }}', /the function env of Open Cluster Management is not supported: it reads the environment/],
      [
        '{{ fromConfigmap "a" "b" "c" }}',
        /a\[0\]: not a valid template: line 1: there is no function fromConfigmap: did you mean fromConfigMap\?/,
      ],
      ['{{ somethingElse }}', /there is no function somethingElse$/],
    ] as const) {
      const result = render(template);
      assert.match(result.state === 'failed' ? result.error.message : '', message);
    }
    for (const name of UNSUPPORTED_FUNCTIONS.keys()) {
      assert.ok(!GOVERNANCE_FUNCTIONS.has(name) && !BUILTIN_FUNCTIONS.has(name), name);
    }
  });
});
