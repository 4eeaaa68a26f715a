import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { failTemplate, TemplateError } from './errors.ts';
import { Template } from './template.ts';
import type { TemplateFunctions } from './template.ts';
import type { TemplateFunction } from './template-functions.ts';
import { limitedMeter } from './template-meter.ts';
import { JsonNumber } from '../value.ts';
import type { GoValue } from '../value.ts';

const DATA: GoValue = {
  a: 'A',
  nul: null,
  map: { b: 2, a: 'x' },
  int: 3,
  float: 1.5,
  big: 1e30,
  neg: -4,
  zero: 0,
  empty: '',
  str: 'stré',
  list: ['a', 'b', 'c'],
  t: true,
  lm: [{ k: 1 }],
  nums: [1, 2.5, 3],
  deep: { a: { b: { c: 'd' } } },
  one: 1,
  mill: 1000000,
  nl: [null, 1],
};

/** Templates, and the text that text/template of Go 1.26 makes of them with DATA, in which integers are int64. */
const TEXTS: readonly (readonly [string, string])[] = [
  ['{{.a}} {{.missing}} {{.missing.x}}', 'A <no value> <no value>'],
  ['{{.nul}}', '<no value>'],
  ['{{index .map "zz"}}', '<no value>'],
  ['{{.int}} {{.float}} {{.big}} {{.neg}}', '3 1.5 1e+30 -4'],
  ['{{len .str}} {{len .list}} {{len .map}}', '5 3 2'],
  ['{{range .list}}[{{.}}]{{end}}', '[a][b][c]'],
  ['{{range $i, $e := .list}}{{$i}}={{$e}};{{else}}none{{end}}', '0=a;1=b;2=c;'],
  ['{{range $k, $v := .map}}{{$k}}={{$v}};{{end}}', 'a=x;b=2;'],
  ['{{range 3}}{{.}}{{end}}', '012'],
  ['{{range .int}}{{.}}{{end}}', '012'],
  ['{{range .nul}}x{{else}}none{{end}}', 'none'],
  ['{{range $i := 3}}{{$i}}{{end}}', '012'],
  ['{{if .zero}}y{{else}}n{{end}}{{if .empty}}y{{else}}n{{end}}{{if .map}}y{{end}}{{if .float}}f{{end}}', 'nnyf'],
  ['{{with .map}}{{.b}}{{end}}', '2'],
  ['{{with .nul}}x{{else with .str}}{{.}}{{end}}', 'stré'],
  ['{{if .nul}}a{{else if .zero}}b{{else}}c{{end}}', 'c'],
  ['{{eq 1 1}} {{eq .int 3}} {{eq .float 1.5}} {{eq .str "x" "str"}}', 'true true true false'],
  ['{{eq .nul nil}}', 'true'],
  ['{{eq .missing nil}}', 'true'],
  ['{{eq true .t}}', 'true'],
  ['{{lt 1 2}} {{le 2 2}} {{gt 1 2}} {{ge "b" "a"}}', 'true true false true'],
  [
    '{{printf "%d %s %v %q %t %5d|%-5d|%05d %x" .int .str .map .str .t 3 4 5 255}}',
    '3 stré map[a:x b:2] "stré" true     3|4    |00005 ff',
  ],
  [
    '{{printf "%s" 5}} {{printf "%s" .int}} {{printf "%d" .str}} {{printf "%v" .nul}} {{printf "%s" .nul}} {{printf "%d" 1 2}}',
    '%!s(int=5) %!s(int64=3) %!d(string=stré) <nil> %!s(<nil>) 1%!(EXTRA int=2)',
  ],
  ['{{printf "%v %v" nil 1}}', '<nil> 1'],
  ['{{printf "%T %T %T %T %T" 1 .int .float .str .t}}', 'int int64 float64 string bool'],
  ['{{printf "%6.2f|%g|%e" .float 1e21 .float}}', '  1.50|1e+21|1.500000e+00'],
  ['{{printf "%t" 1}}', '%!t(int=1)'],
  ['{{print 1 2 "a" 3 true nil}}', '1 2a3 true <nil>'],
  ['{{println .a .int}}', 'A 3\n'],
  ['{{print .map .list}}', 'map[a:x b:2] [a b c]'],
  [
    '{{html "<a&\'\\">"}} {{js "a\'b<\\n"}} {{urlquery "a b&c"}}',
    "&lt;a&amp;&#39;&#34;&gt; a\\'b\\u003C\\u000A a+b%26c",
  ],
  ['{{- " a " -}}   x {{- /* c */ -}} y', ' a xy'],
  ['{{/* c */}}z', 'z'],
  ['a {{- 3}}', 'a3'],
  ['{{3 -}} a', '3a'],
  ['{{-3}}', '-3'],
  ['{{- -3}}', '-3'],
  ['{{$x := 1}}{{$x = 2}}{{$x}}', '2'],
  ['{{$x := .int}}{{if true}}{{$x := 5}}{{end}}{{$x}}', '3'],
  ['{{$x := .int}}{{if true}}{{$x = 5}}{{end}}{{$x}}', '5'],
  ['{{.str | printf "%s-%s" "a"}}', 'a-stré'],
  ['{{1 | print 2}}', '2 1'],
  ['{{(index .list 0)}} {{(.map).b}} {{(index .lm 0).k}}', 'a 2 1'],
  ['{{.map.b}}{{$.map.b}}', '22'],
  ['{{and 1 0 2}} {{or 0 "" 3}} {{and true .str}} {{not 0}} {{not .str}}', '0 3 stré true false'],
  ['{{or 1 .nul.x}}', '1'],
  ['{{slice .str 1}} {{slice .str 1 2}} {{slice .list 1}}', 'tré t [b c]'],
  ['{{index .str 0}}', '115'],
  ['{{index .list}}', '[a b c]'],
  ['{{range .list}}{{if eq . "b"}}{{break}}{{end}}{{.}}{{end}}', 'a'],
  ['{{range .list}}{{if eq . "b"}}{{continue}}{{end}}{{.}}{{end}}', 'ac'],
  [
    '{{.}}',
    'map[a:A big:1e+30 deep:map[a:map[b:map[c:d]]] empty: float:1.5 int:3 list:[a b c] lm:[map[k:1]] map:map[a:x b:2] mill:1000000 neg:-4 nl:[<nil> 1] nul:<nil> nums:[1 2.5 3] one:1 str:stré t:true zero:0]',
  ],
  ["{{'\\''}}", '39'],
  ['{{"\\x41\\u00e9\\101"}}', 'AéA'],
  ['{{1_000}} {{0b11}} {{0o17}}', '1000 3 15'],
  ['{{true}} {{false}}', 'true false'],
  ['{{print 1|print}}', '1'],
  ['{{print (1)}}', '1'],
  ['{{(1)}}', '1'],
  ['{{`a\nb`}}', 'a\nb'],
  ['{{\n print\n 1\n}}', '1'],
  ['{{with $x := 3}}{{$x}}{{end}}', '3'],
  ['{{if $x := .int}}{{$x}}{{end}}', '3'],
  ['{{range $i, $e := .map}}{{break}}{{end}}', ''],
  ['{{$i := 0}}{{range $i = .list}}{{end}}{{$i}}', 'c'],
  [
    '{{printf "%v" .list}} {{printf "%s" .list}} {{printf "%d" .nums}} {{printf "%q" .list}}',
    '[a b c] [a b c] [1 %!d(float64=2.5) 3] ["a" "b" "c"]',
  ],
  [
    '{{printf "%[2]d %[1]d" 1 2}} {{printf "%*d" 5 1}} {{printf "%!"}} {{printf "%z" 1}}',
    '2 1     1 %!!(MISSING) %!z(int=1)',
  ],
  ['{{printf "%#v %+v %#x %#q %U %#U %c" .str .int 255 .str 65 65 65}}', '"stré" 3 0xff `stré` U+0041 U+0041 \'A\' A'],
  ['{{.nums}} {{.lm}} {{.deep.a.b.c}}', '[1 2.5 3] [map[k:1]] d'],
  ['{{js .nul}} {{html .nul}}', '\\u003Cno value\\u003E &lt;no value&gt;'],
  ['{{print .missing}} {{printf "%v" .missing}}', '<nil> <nil>'],
  ['{{eq .missing .a}}', 'false'],
  ['{{if .missing.x}}a{{else}}b{{end}}', 'b'],
  ['{{.a | len}}', '1'],
  ['{{html}}{{print}}|{{println}}', '|\n'],
  ['{{range .list -}} {{.}} {{- end}}', 'abc'],
  ['{{.a -}}', 'A'],
  [
    '{{$}}',
    'map[a:A big:1e+30 deep:map[a:map[b:map[c:d]]] empty: float:1.5 int:3 list:[a b c] lm:[map[k:1]] map:map[a:x b:2] mill:1000000 neg:-4 nl:[<nil> 1] nul:<nil> nums:[1 2.5 3] one:1 str:stré t:true zero:0]',
  ],
  ['{{$.a}}', 'A'],
  ['{{print | print}}', ''],
  ['{{eq .float 1.5 | not}}', 'false'],
  ['{{not (eq 1 2)}}', 'true'],
  ['{{lt .str .str}}', 'false'],
  ['{{eq .big 1e30}}', 'true'],
  ['{{eq .one 1}}', 'true'],
  ['{{printf "%v" 1e6}} {{1e6}} {{.mill}}', '1e+06 1e+06 1000000'],
  ['{{printf "%08v|%+d|% d|%+.2e" -5 5 5 12345.678}}', '-0000005|+5| 5|+1.23e+04'],
  ['{{printf "%x|%X|% x|%#x" .str .str .str .str}}', '737472c3a9|737472C3A9|73 74 72 c3 a9|0x737472c3a9'],
  ['{{printf "%c|%q|%+q" 233 233 233}}', "é|'é'|'\\u00e9'"],
  [
    '{{printf "%5v|%-5s|%q|%d|%x|%T|%t" .list .list .list .list .list .list .list}}',
    '[    a     b     c]|[a     b     c    ]|["a" "b" "c"]|[%!d(string=a) %!d(string=b) %!d(string=c)]|[61 62 63]|[]interface {}|[%!t(string=a) %!t(string=b) %!t(string=c)]',
  ],
  [
    '{{printf "%v|%s|%q|%d|%5d" .map .map .map .map .nums}}',
    'map[a:x b:2]|map[a:x b:%!s(int64=2)]|map["a":"x" "b":\'\\x02\']|map[%!d(string=a):%!d(string=x) %!d(string=b):2]|[    1 %!d(float64=  2.5)     3]',
  ],
  ['{{printf "%v %d %s" .lm .lm .deep}}', '[map[k:1]] [map[%!d(string=k):1]] map[a:map[b:map[c:d]]]'],
  ['{{printf "%v" .nl}} {{printf "%d" .nl}} {{.nl}}', '[<nil> 1] [<nil> 1] [<nil> 1]'],
  ['{{printf "%T %T" .nul .map}}', '<nil> map[string]interface {}'],
  ['{{printf "%v" .map .list}}', 'map[a:x b:2]%!(EXTRA []interface {}=[a b c])'],
  ['{{printf "a" nil 1}}', 'a%!(EXTRA <nil>, int=1)'],
  ['{{1_000.5}}', '1000.5'],
  ['{{define "t"}}<{{.}}>{{end}}{{template "t" .a}}{{template "t" 1}}', '<A><1>'],
  ['{{template "t" .int}}{{define "t"}}{{$}}{{end}}', '3'],
  ['{{define "t"}}[{{.}}{{.x}}]{{end}}{{template "t"}}', '[<no value><no value>]'],
  ['{{block "b" .map}}{{.a}}{{end}}{{template "b" .map}}', 'xx'],
  ['{{if true}}{{block "b" .a}}({{.}}){{end}}{{end}}', '(A)'],
  ['{{define "a"}}1{{template "b" .}}{{end}}{{define "b"}}2{{end}}{{template "a"}}', '12'],
  ['{{define "t"}}{{end}}{{define "t"}}x{{end}}{{define "t"}} {{end}}{{template "t"}}', 'x'],
  ['a {{- define `t` -}} x {{- end -}} b{{template `t`}}', 'abx'],
  ['{{$x := 1}}{{define "t"}}{{$x := 2}}{{$x}}{{end}}{{template "t"}}{{$x}}', '21'],
  ['{{range .list}}{{template "t" .}}{{end}}{{define "t"}}{{range 2}}{{break}}{{end}}{{.}}{{end}}', 'abc'],
];

/** Templates that Go does not parse. */
const INVALID: readonly string[] = [
  '{{ /* c */ }}',
  '{{$y}}',
  '{{break}}',
  '{{end}}',
  '{{if}}',
  '{{if true}}',
  '{{else}}',
  '{{nofunc 1}}',
  "{{`raw\\n`}} {{'a'}} {{'\\n'}} {{'ab'}}",
  '{{"a\\\'b"}}',
  '{{0x1F}} {{010}} {{1e3}} {{.5}} {{1.}} {{+3}} {{08}}',
  '{{99999999999999999999}}',
  '{{print(1)}}',
  '{{(print 1}}',
  '{{print 1)}}',
  '{{.a.}}',
  '{{..a}}',
  '{{.1a}}',
  '{{"a\nb"}}',
  '{{range $x := .list}}{{$x}}{{end}}{{$x}}',
  '{{range .list}}{{else}}{{break}}{{end}}',
  '{{"\\u00g"}}',
  '{{if .nul}}{{else}}{{else}}{{end}}',
  '{{.a-}}',
  '{{ .a- }}',
  'a{{',
  '{{`abc}}',
  '{{"abc}}',
  '{{/*',
  '{{/* a }}',
  '{{$a.b := 1}}',
  '{{$a, $b := .list}}',
  '{{range $a, $b, $c := .list}}{{end}}',
  '{{| print}}',
  '{{1|2}}',
  '{{define}}{{end}}',
  '{{define t}}{{end}}',
  "{{define 't'}}{{end}}",
  '{{define "t"}}',
  '{{define "t"}}{{else}}{{end}}',
  '{{define "t" .}}{{end}}',
  '{{if true}}{{define "t"}}{{end}}{{end}}',
  '{{define "t"}}x{{end}}{{define "t"}}y{{end}}',
  '{{$x := 1}}{{define "t"}}{{$x}}{{end}}',
  '{{range .list}}{{block "t" .}}{{break}}{{end}}{{end}}',
  '{{block "t"}}{{end}}',
  '{{template t}}',
];

/** Templates that Go cannot execute with DATA; some mistakes are found earlier here, when the template is parsed. */
const FAILING: readonly string[] = [
  '{{.nul.x}}',
  '{{index .map "zz" "y"}}',
  '{{index .nul "a"}}',
  '{{range .str}}{{.}}{{end}}',
  '{{range $i, $j := 3}}{{$i}}{{end}}',
  '{{eq 1 1.0}}',
  '{{eq .str .int}}',
  '{{eq .list .list}}',
  '{{eq .map .map}}',
  '{{ne .a 1}}',
  '{{lt true false}}',
  '{{lt 1 1.5}}',
  '{{printf}}',
  '{{printf 1}}',
  '{{$x = 1}}',
  '{{.str.x}}',
  '{{.int.x}}',
  '{{and}}',
  '{{not}}',
  '{{not 1 2}}',
  '{{slice .str 1 9}}',
  '{{index .list 9}}',
  '{{index .list -1}}',
  '{{index .list "a"}}',
  '{{index .map 1}}',
  '{{len 3}}',
  '{{len .nul}}',
  '{{nil}}',
  '{{nil | print}}',
  '{{.list.x}}',
  '{{.a .b}}',
  '{{1 2}}',
  '{{range $i = .list}}{{end}}',
  '{{len .missing}}',
  '{{eq 1}}',
  '{{eq}}',
  '{{ne 1 2 3}}',
  '{{index}}',
  '{{len}}',
  '{{slice}}',
  '{{slice .int}}',
  '{{.a|.b}}',
  '{{ge .nul 1}}',
  '{{gt .big 1}}',
  '{{lt .one 1.5}}',
];

function execute(text: string, data: GoValue = DATA, functions?: TemplateFunctions): string {
  return new Template(text, functions).execute(data, limitedMeter(10_000, 10_000));
}

function isCode(code: TemplateError['code']): (error: unknown) => boolean {
  return (error) => error instanceof TemplateError && error.code === code;
}

describe('templates', () => {
  for (const [template, text] of TEXTS) {
    test(`${JSON.stringify(template)} has the text that Go makes`, () => {
      assert.equal(execute(template), text);
    });
  }

  for (const template of INVALID) {
    test(`${JSON.stringify(template)} does not parse`, () => {
      assert.throws(() => new Template(template), isCode('template-invalid'));
    });
  }

  for (const template of FAILING) {
    test(`${JSON.stringify(template)} fails`, () => {
      assert.throws(() => execute(template), TemplateError);
    });
  }

  test('numbers that were decoded as json.Number are strings', () => {
    const data = { zero: new JsonNumber('0'), precise: new JsonNumber('1.50') };
    assert.equal(
      execute('{{if .zero}}yes{{end}} {{.precise}} {{len .precise}} {{eq .zero "0"}} {{printf "%T" .zero}}', data),
      'yes 1.50 4 true json.Number',
    );
  });

  test('properties of Object.prototype are no keys', () => {
    assert.equal(execute('{{.constructor}}{{index . "toString"}}'), '<no value><no value>');
  });

  test('functions of the caller are called with the piped value last, and may replace the own ones', () => {
    const functions: TemplateFunctions = new Map<string, TemplateFunction>([
      ['join', (values) => values.map(String).join('+')],
      ['len', () => 'long'],
      ['refuse', () => failTemplate('refused')],
    ]);
    assert.equal(execute('{{"c" | join "a" "b"}} {{len 1}}', {}, functions), 'a+b+c long');
    assert.throws(() => execute('{{refuse}}', {}, functions), isCode('template-failed'));
  });

  test('other delimiters leave the usual ones as text', () => {
    const template = new Template('{{hub- /* c */ -hub}} {{hub .a hub}}{{hub- "}}" -hub}} {{ .a }}', new Map(), {
      left: '{{hub',
      right: 'hub}}',
    });
    assert.equal(template.execute(DATA, limitedMeter(100, 100)), 'A}}{{ .a }}');
  });

  test('errors name the line of the action', () => {
    assert.throws(() => new Template('\n{{/*\n*/}}\n{{.a\n}}{{nofunc}}'), {
      functionName: 'nofunc',
      line: 5,
      message: 'not a valid template: line 5: there is no function nofunc',
    });
    assert.throws(() => new Template('\n{{if}}'), /line 2: a command is missing/);
    assert.throws(() => execute('{{with .a}}\n\n{{.x}}{{end}}'), /execute the template: line 3: there is no field x/);
    assert.throws(
      () => execute('\n{{template "t" .}}\n{{define "t"}}\n{{index .list 9}}{{end}}'),
      /: line 4: index out/,
    );
    assert.throws(() => execute('\n{{template "t" .}}'), /line 2: there is no template t/);
  });

  test('a template that executes itself without end is stopped, also where each level is deep', () => {
    const deep = `${'{{if true}}'.repeat(49)}{{template "t" ${'(print '.repeat(49)}.${')'.repeat(49)}}}${'{{end}}'.repeat(49)}`;
    for (const body of ['{{template "t" .}}', deep, '{{template "t" .}}{{template "t" .}}']) {
      assert.throws(() => execute(`{{define "t"}}${body}{{end}}{{template "t" 1}}`), isCode('template-limit'));
    }
  });

  test('values that contain themselves, or one value many times, are not read without end', () => {
    const self: Record<string, GoValue> = {};
    self['self'] = self;
    let doubled: GoValue = 'x';
    for (let level = 0; level < 60; level++) {
      doubled = [doubled, doubled];
    }
    for (const value of [self, doubled]) {
      for (const template of ['{{.}}', '{{print .}}', '{{printf "%v" .}}', '{{html .}}', '{{println .}}']) {
        assert.throws(() => execute(template, value), isCode('template-limit'), template);
      }
    }
  });

  test('parts tell the text of the template from what actions wrote', () => {
    const parts = new Template('a{{.int}}{{"x" | print}}{{if true}}{{len .a}}{{end}}').parts(
      DATA,
      limitedMeter(99, 99),
    );
    assert.deepEqual(
      parts.filter(({ text }) => text !== ''),
      [
        { text: 'a' },
        { text: '3', action: { value: 3, functionName: undefined } },
        { text: 'x', action: { value: 'x', functionName: 'print' } },
        { text: '1', action: { value: 1n, functionName: 'len' } },
      ],
    );
  });

  test('the execution is bounded, whatever makes it long', () => {
    const long = 'x'.repeat(1000);
    const hostile: readonly (readonly [string, GoValue])[] = [
      ['{{range 100000}}{{end}}', {}],
      ['{{range 1000}}{{range 1000}}x{{end}}{{end}}', {}],
      ['{{range 1000}}{{len $.long}}{{end}}', { long }],
      ['{{range 1000}}{{len $}}{{end}}', Object.fromEntries(Array.from(long, (_, index) => [`k${index}`, index]))],
      [`{{range 1000}}{{and ${'1 '.repeat(100)}}}{{end}}`, {}],
      ['{{$x := .long}}{{range 100}}{{$x = print $x $x}}{{end}}', { long }],
      ['{{$x := .long}}{{range 100}}{{$x = html $x "<>"}}{{end}}', { long }],
      ['{{printf "%99999d" 1}}', {}],
      ['{{.long}}'.repeat(20), { long }],
    ];
    for (const [template, data] of hostile) {
      assert.throws(() => execute(template, data), isCode('template-limit'), template);
    }
  });

  test('any template has a text or a TemplateError', () => {
    const part = fc.constantFrom(
      '{{',
      '}}',
      '{{- ',
      ' -}}',
      'if ',
      'else',
      'end',
      'range ',
      'with ',
      '.',
      '.a',
      '$',
      '$x',
      ':=',
      '=',
      '|',
      '(',
      ')',
      ',',
      '1',
      '"',
      '`',
      "'",
      ' ',
      'print ',
      'define ',
      'template ',
      'block ',
      'a',
      '/*',
      '*/',
      '\\',
      '\n',
      '😀',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        try {
          execute(parts.join(''));
        } catch (error) {
          assert.ok(error instanceof TemplateError, String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('long templates are parsed, and deep ones refused', () => {
    const long = 'x'.repeat(1_000_000);
    assert.equal(
      new Template(`{{"${long}\\n"}}{{/*${long}*/}}{{- \`${long}\` }}`).execute({}, limitedMeter(1e6, 1e7)).length,
      2_000_001,
    );
    assert.throws(() => new Template('{{if 1}}'.repeat(1000)), isCode('template-invalid'));
    assert.throws(() => new Template(`{{${'('.repeat(1000)}`), isCode('template-invalid'));
    assert.throws(
      () => new Template(Array.from({ length: 2000 }, (_, index) => `{{$v${index} := 1}}`).join('')),
      isCode('template-invalid'),
    );
    assert.throws(() => new Template(`{{${'9'.repeat(1_000_000)}}}`), isCode('template-invalid'));
  });
});
