import fc from 'fast-check';

// Expressions made by a grammar of types, so that most of them check, and many of them fail when they are evaluated.

export type ExpressionType = 'int' | 'uint' | 'double' | 'string' | 'bool' | 'list' | 'map' | 'optional' | 'dyn';

export interface GrammarOptions {
  /** The whole language; otherwise only what other implementations have, and get right. */
  readonly isWhole: boolean;
}

const LITERALS: Readonly<Record<ExpressionType, readonly string[]>> = {
  int: ['0', '1', '-1', '7', '9007199254740993', 'i'],
  uint: ['0u', '3u', '4294967296u'],
  double: ['0.0', '1.5', '-2.0', '1e300', 'd'],
  string: ["''", "'a'", "'hello, world'", "'höhe 🚀'", 's'],
  bool: ['true', 'false', 'i == 7'],
  list: ['[]', '[1, 2, 3]', '[i]', 'l'],
  map: ['{}', "{'a': 1}", 'm'],
  optional: ['optional.none()', 'optional.of(i)', "m[?'k']"],
  dyn: ['object', 'object.name', 'object.list', 'object.absent', 'dyn(1)', "dyn('a')", 'dyn(null)', 'dyn([1])'],
};

type Expressions = Readonly<Record<ExpressionType, fc.Arbitrary<string>>>;

/** Expressions of a type, with what they may be made of. `depth` bounds how deep they are nested. */
export function expressionArbitrary(
  type: ExpressionType,
  depth: number,
  options: GrammarOptions,
): fc.Arbitrary<string> {
  return expressions(depth, options)[type];
}

function expressions(depth: number, options: GrammarOptions): Expressions {
  const literals = mapTypes((type) => fc.constantFrom(...LITERALS[type]));
  let made = literals;
  for (let level = 0; level < depth; level++) {
    made = nest(made, literals, level, options);
  }
  return made;
}

function mapTypes(make: (type: ExpressionType) => fc.Arbitrary<string>): Expressions {
  return {
    int: make('int'),
    uint: make('uint'),
    double: make('double'),
    string: make('string'),
    bool: make('bool'),
    list: make('list'),
    map: make('map'),
    optional: make('optional'),
    dyn: make('dyn'),
  };
}

/** Fills in a form: every `<type>` with an expression of that type. */
function form(parts: Expressions, text: string): fc.Arbitrary<string> {
  const holes = [...text.matchAll(/<(\w+)>/g)].map(([, type]) => parts[type as ExpressionType]);
  const fixed = text.split(/<\w+>/);
  return fc.tuple(...holes).map((filled) => fixed.map((piece, index) => piece + (filled[index] ?? '')).join(''));
}

function nest(inner: Expressions, literals: Expressions, level: number, { isWhole }: GrammarOptions): Expressions {
  const v = `v${level}`;
  const withVariable: Expressions = { ...inner, int: fc.oneof(inner.int, fc.constant(v)) };
  const of = (...forms: readonly string[]): fc.Arbitrary<string> =>
    fc.oneof(...forms.map((text) => form(inner, text)), form(literals, forms[0] ?? ''));
  const loop = (text: string): fc.Arbitrary<string> => form(withVariable, text.replaceAll('@', v));
  const more = isWhole
    ? {
        int: [
          fc.constantFrom('9223372036854775807', '-9223372036854775808'),
          form(inner, 'int(<string>)'),
          form(inner, '<optional>.orValue(<int>)'),
          form(inner, '<optional>.value()'),
        ],
        bool: [form(inner, '<optional>.hasValue()'), form(inner, '<optional> == <optional>')],
        dyn: [form(inner, 'object.?name.?x.orValue(<dyn>)')],
        list: [form(inner, '[?<optional>, <int>]'), loop('<list>.transformList(i@, @, <int>)')],
        map: [form(inner, "{?'a': <optional>, 'b': <int>}")],
      }
    : { int: [], bool: [], dyn: [], list: [], map: [] };
  return {
    int: fc.oneof(
      of('(<int> + <int>)', '(<int> - <int>)', '(<int> * <int>)', '(<int> / <int>)', '(<int> % <int>)', '-(<int>)'),
      of('size(<string>)', 'size(<list>)', 'size(<map>)', 'int(<uint>)', 'int(<double>)'),
      of('<list>[<int>]', "<map>['k']", '(<bool> ? <int> : <int>)'),
      ...more.int,
    ),
    uint: of('(<uint> + <uint>)', '(<uint> * <uint>)', '(<uint> - <uint>)', '(<uint> / <uint>)', 'uint(<int>)'),
    double: of('(<double> + <double>)', '(<double> * <double>)', '(<double> / <double>)', 'double(<int>)'),
    string: of(
      '(<string> + <string>)',
      'string(<int>)',
      'string(<bool>)',
      'string(<uint>)',
      '(<bool> ? <string> : <string>)',
    ),
    bool: fc.oneof(
      of('(<bool> && <bool>)', '(<bool> || <bool>)', '!(<bool>)', '(<bool> ? <bool> : <bool>)'),
      of(
        '(<int> < <int>)',
        '(<int> == <int>)',
        '(<string> <= <string>)',
        '(<double> != <double>)',
        '(<list> == <list>)',
      ),
      of('(<dyn> == <dyn>)', '(<int> in <list>)', '(<string> in <map>)', 'has(object.name)', 'has(object.absent.x)'),
      of('<string>.startsWith(<string>)', '<string>.contains(<string>)', "<string>.matches('^(h|a)+.*o')"),
      loop('<list>.all(@, <bool>)'),
      loop('<list>.exists(@, <bool>)'),
      loop('<list>.exists_one(@, @ > <int>)'),
      loop('<list>.all(@, @ / <int> < <int>)'),
      ...more.bool,
    ),
    list: fc.oneof(
      of('(<list> + <list>)', '[<int>, <int>]'),
      loop('<list>.map(@, <int>)'),
      loop('<list>.filter(@, <bool>)'),
      loop('<list>.map(@, <bool>, @ * <int>)'),
      ...more.list,
    ),
    map: fc.oneof(of("{'a': <int>}", "{'k': <int>, 'b': <int>}"), ...more.map),
    optional: of(
      'optional.of(<int>)',
      '<optional>.or(<optional>)',
      '<list>[?<int>]',
      '<map>.?k',
      'optional.ofNonZeroValue(<int>)',
    ),
    dyn: fc.oneof(
      of('dyn(<int>)', 'dyn(<string>)', 'dyn(<list>)', 'dyn(<map>)', '(<dyn> + <dyn>)', '<dyn>.name', '<dyn>[<int>]'),
      ...more.dyn,
    ),
  };
}
