// Generated arguments of functions: values that take as much work as their kind can.

/** Numbers that look random, the same in each run. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    // Mulberry32: neighbouring seeds have nothing in common.
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  }

  of<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) {
      throw new RangeError('there are no items');
    }
    return item;
  }
}

/** A set, which only Rego has. */
export class HostileSet {
  readonly items: readonly Hostile[];

  constructor(items: readonly Hostile[]) {
    this.items = items;
  }
}

/** A value of any language. Integers are bigint. */
export type Hostile =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Hostile[]
  | HostileSet
  | { readonly [key: string]: Hostile };

/** Texts that are repeated up to a length. Each is what some reader of texts takes longest for. */
const REPEATED: readonly string[] = [
  'a',
  'ab',
  'aab',
  '1',
  '0',
  ' ',
  '\n',
  '\t ',
  '.',
  ',',
  '-',
  '/',
  ':',
  '"',
  "'",
  '\\',
  '%',
  '%41',
  '%d',
  '%v ',
  '$',
  '$1',
  '[',
  '{"a":',
  '[],',
  '(',
  '&',
  '<',
  '\0',
  '=',
  'é',
  'ß',
  'İ',
  '\u0301',
  '😀',
  '\ud800',
  '1.',
  '1.0 ',
  'a.',
  'a b ',
  'a\n',
  'a: 1\n',
  '- a\n',
  '# a\n',
  '- &a [*a]\n',
  '1h',
  '1_',
  '::',
  '||',
  '>=1 ',
  'Monday',
  '2006-01-02',
  '+/A=',
];

/** What stands before and behind the repeated text. */
const ENDS: readonly (readonly [before: string, behind: string])[] = [
  ['', ''],
  ['', 'x'],
  ['x', ''],
  ['', '!'],
  ['"', '"'],
  ['"', ''],
  ['a: "', '"\n'],
  ['a: |\n  ', ''],
  ['-', ''],
  ['1', 'x'],
  ['.', 'x'],
  ['1.2.3-', ''],
  ['>= ', ''],
  ['http://', ''],
  ['10.0.0.', ''],
  ['1', 'Gi'],
  ['1e', ''],
  ['[', ']'],
];

/** How large the values are. */
export interface Sizes {
  /** Characters of a text. */
  readonly text: number;
  /** Items of a list, entries of a map. */
  readonly items: number;
}

/** What all values of a call have in common, so that their texts nearly match. */
export interface Family {
  readonly random: Random;
  readonly sizes: Sizes;
  readonly unit: string;
  readonly ends: readonly [before: string, behind: string];
  /** Chooses what two arguments of a call must have in common, such as a date and its layout. */
  readonly common: number;
}

/** Families by number: first each repeated text plainly, then mixtures. */
export function familyOf(round: number, sizes: Sizes): Family {
  const random = new Random(round + 1);
  const unit = REPEATED[round] ?? random.of(REPEATED);
  return { random, sizes, unit, ends: round < REPEATED.length ? ['', ''] : random.of(ENDS), common: round };
}

/** A text as one piece: that of `repeat` is put together by the first who reads it. */
function flat(text: string): string {
  return text.isWellFormed() ? Buffer.from(text).toString() : Array.from(text).join('');
}

const repeated = (unit: string, length: number): string => unit.repeat(Math.ceil(Math.max(length, 0) / unit.length));

/** A long text. */
export function longText({ unit, ends: [before, behind], sizes }: Family): string {
  return flat(before + repeated(unit, sizes.text) + behind);
}

/** A text that long ones nearly have. */
export function nearlyPart({ unit, sizes, random }: Family): string {
  const half = repeated(unit, sizes.text / 16);
  return flat(random.of([`${half}#${half}`, `#${half}`, `${half}#`, unit, '', half]));
}

function integer({ random, sizes }: Family): bigint {
  return random.of([0n, 1n, 2n, -1n, BigInt(sizes.items), BigInt(sizes.text), 10_000n, -10_000n, 2n ** 31n, 2n ** 62n]);
}

/** Items that nearly match, or that are all alike. */
function itemsOf(family: Family, from = 0): readonly Hostile[] {
  const { random, sizes, unit } = family;
  const start = repeated(unit, sizes.text / sizes.items);
  const long = longText(family);
  const numbers = Array.from({ length: sizes.items }, (_, index) => index + from);
  return random.of<() => readonly Hostile[]>([
    () => numbers.map((number) => `${start}${number}`),
    () => numbers.map(() => long),
    () => numbers.map((number) => BigInt(number)),
    () => numbers.map((number) => [[`${number}`]]),
    () => numbers.map((number) => ({ [`${start}${number}`]: unit })),
    () => numbers.map((number) => (number % 2 === 0 ? null : number % 3 === 0)),
  ])();
}

function list(family: Family): readonly Hostile[] {
  return itemsOf(family, family.random.below(2));
}

/** A list of texts. */
export function texts({ random, sizes, unit, ...family }: Family): readonly string[] {
  const start = repeated(unit, sizes.text / sizes.items);
  const long = longText({ random, sizes, unit, ...family });
  const isLong = random.below(2) === 0;
  return Array.from({ length: sizes.items }, (_, index) => (isLong ? long : `${start}${index}`));
}

/** A map with many keys, with a deep value, or with a long text. */
export function map(family: Family): { readonly [key: string]: Hostile } {
  const { random, sizes, unit } = family;
  const start = repeated(unit, sizes.text / sizes.items);
  return random.of<() => { readonly [key: string]: Hostile }>([
    () =>
      Object.fromEntries(Array.from({ length: sizes.items }, (_, index) => [`${start}${index}`, `${unit}${index}`])),
    () => Object.fromEntries(Array.from({ length: sizes.items }, (_, index) => [`k${index}`, { a: [BigInt(index)] }])),
    () => ({ a: longText(family) }),
    () => ({ [longText(family)]: true }),
    () => ({ a: deep(50) }),
  ])();
}

function deep(levels: number): Hostile {
  return levels === 0 ? 1n : levels % 2 === 0 ? [deep(levels - 1)] : { a: deep(levels - 1) };
}

function anything(family: Family): Hostile {
  return family.random.of<(one: Family) => Hostile>([
    longText,
    nearlyPart,
    integer,
    list,
    texts,
    map,
    () => null,
    () => 1.5,
  ])(family);
}

/** Items of which a list is about as long as a long text. */
const inParts = (family: Family): Family => ({
  ...family,
  sizes: { ...family.sizes, text: family.sizes.text / family.sizes.items },
});

const json = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? Number(item) : item));

/** Elements of layouts of dates, each of which is also a date in it. */
const LAYOUTS = [
  'Jan',
  '1',
  '2006',
  'Monday',
  'January',
  '.000000000',
  'Jan_2',
  '-07:00:00',
  'Z07',
  'PM',
  'a',
  '05.9',
  '%Y%m',
];

/** Texts in some notation, of about the length of a long text, by the name of the notation. */
const NOTATIONS: Readonly<Record<string, (family: Family) => string>> = {
  base64: (family) => Buffer.from(longText(family)).toString('base64'),
  base64url: (family) => Buffer.from(longText(family)).toString('base64url'),
  hex: ({ sizes }) => repeated('0aF', sizes.text),
  json: (family) =>
    family.random.of([
      () => json(list(inParts(family))),
      () => json(map(family)),
      () => json(longText(family)),
      () => repeated('9', family.sizes.text),
      () => `1e${repeated('9', family.sizes.text)}`,
      () => repeated('[', family.sizes.text),
      () => `[${repeated('1,', family.sizes.text)}1]`,
    ])(),
  yaml: (family) =>
    family.random.of([
      () => json(map(family)),
      () => `a: ${repeated(family.unit, family.sizes.text)}`,
      () => repeated('a: 1\n', family.sizes.text),
      () => repeated('- a\n', family.sizes.text),
      () => repeated('- - ', 100) + repeated(' - a\n', family.sizes.text),
      () => `a: |\n${repeated('  b\n', family.sizes.text)}`,
      () => `a: "${repeated('b\n  ', family.sizes.text)}"`,
      () => repeated('&a a\n', family.sizes.text),
      () => `- &a [1]\n${repeated('- *a\n', family.sizes.text)}`,
      () => repeated('? a\n', family.sizes.text),
      () => repeated('--- a\n', family.sizes.text),
      () => repeated('{a: [', Math.min(family.sizes.text, 5000)),
      () => repeated('9', family.sizes.text),
      () => Array.from({ length: family.sizes.items }, (_, index) => `k${index}: ${index}`).join('\n'),
    ])(),
  layout: ({ common, sizes }) => repeated(LAYOUTS[common % LAYOUTS.length] ?? '', sizes.text),
  zone: ({ random }) => random.of(['UTC', 'Europe/Berlin', 'America/New_York', '+01:00', '']),
  time: ({ random, sizes }) =>
    random.of(['2026-11-28T22:36:46Z', `2026-11-28T22:36:46.${repeated('1', sizes.text)}Z`, repeated('1', sizes.text)]),
  duration: ({ random, sizes }) =>
    random.of(['1h', repeated('1h', sizes.text), `${repeated('9', sizes.text)}ns`, `.${repeated('0', sizes.text)}1s`]),
  version: ({ random, sizes }) =>
    `${random.of(['', 'v'])}1.2.3${random.of(['', `-${repeated('a.', sizes.text)}a`, `-${repeated('1.', sizes.text)}1`, `+${repeated('a', sizes.text)}`, repeated('9', sizes.text)])}`,
  constraint: ({ random, sizes }) =>
    repeated(random.of(['>=1.0.0, ', '>=1.0.0 || ', '^1.2 ', '1.x - 2.x ', '~1', '1.']), sizes.text),
  pattern: ({ random, sizes, unit }) =>
    random.of([
      'a*',
      '(a|b)*c',
      '(a*)*b',
      '[^x]*y',
      '.*.*.*x',
      '(?i)ab+',
      '\\pL+',
      '',
      'a{1000}',
      '(a{0,30}){30}',
      '(x+x+)+y',
      'a$',
      repeated('a', Math.min(sizes.text, 900)),
      repeated('(a)', Math.min(sizes.text, 900)),
      repeated(unit, 20),
    ]),
  replacement: ({ random, sizes }) =>
    random.of(['', '$1', repeated('$1', sizes.text / 100), repeated('${a}', sizes.text / 100)]),
  format: ({ random, sizes }) =>
    random.of([
      '%s',
      '%q',
      '%v %d',
      '%1000000d',
      '%.1000000f',
      '%099999999d',
      '%*d',
      '%e',
      '%x',
      '%U',
      repeated('%v', sizes.items),
      repeated('%[1]v', sizes.text),
      repeated('%[1]q', sizes.items),
      repeated('%9999d', sizes.text),
      repeated('%b', 10),
    ]),
  quantity: ({ random, sizes }) =>
    random.of([
      '1',
      '10Gi',
      repeated('9', sizes.text),
      `0.${repeated('0', sizes.text)}1`,
      `1e${random.of(['18', '999', repeated('9', sizes.text)])}`,
      `${repeated('0', sizes.text)}1Ki`,
    ]),
  number: ({ random, sizes }) =>
    random.of([
      repeated('9', sizes.text),
      `${repeated('1', sizes.text)}x`,
      `0.${repeated('0', sizes.text)}1`,
      `1e${repeated('9', 8)}`,
      `1e-${repeated('9', sizes.text)}`,
      `0x${repeated('f', sizes.text)}`,
      '1',
    ]),
  url: ({ random, sizes }) =>
    `http://${random.of(['a', '[::1]', repeated('a.', sizes.text)])}/${random.of(['', repeated('%41/', sizes.text), `?${repeated('a=b&', sizes.text)}`, `?${repeated('a', sizes.text)}`, `#${repeated('a', sizes.text)}`, repeated('../', sizes.text)])}`,
  address: ({ random, sizes }) =>
    random.of([
      '10.0.0.1',
      '::1',
      '2001:db8::',
      repeated('1:', sizes.text),
      repeated('1.', sizes.text),
      `fe80::1%${repeated('a', sizes.text)}`,
    ]),
  range: ({ random, sizes }) =>
    random.of([
      '10.0.0.0/8',
      '10.0.0.0/16',
      '::/0',
      '::/64',
      `10.0.0.0/${repeated('1', sizes.text)}`,
      repeated('1', sizes.text),
    ]),
  uuid: ({ random, sizes }) => random.of(['00000000-0000-1000-8000-000000000000', repeated('0', sizes.text)]),
  jwt: ({ random, sizes }) => {
    const part = Buffer.from(json({ alg: 'HS256', a: repeated('a', sizes.text) })).toString('base64url');
    return random.of([`${part}.${part}.${part}`, repeated('a.', sizes.text), repeated('.', sizes.text)]);
  },
  template: ({ random, sizes }) =>
    random.of([
      '{{ .a }}',
      repeated('{{ .a }}', sizes.text),
      '{{ range .a }}{{ . }}{{ end }}',
      `{{ ${repeated('(', sizes.text)}`,
      '{{ printf "%1000000d" 1 }}',
      repeated('{{ if .a }}', sizes.items),
      '{{ index "aaa" 1 }}',
    ]),
  selector: ({ random, sizes }) => repeated(random.of(['a=b,', 'a in (b,c),', '!a,']), sizes.text).slice(0, -1),
  key: ({ random }) => random.of(['a', 'k1', 'data']),
};

/** A text of a kind. */
export function textOf(kind: string, family: Family): string {
  const value = valueOf(kind, family);
  return typeof value === 'string' ? value : '';
}

/** A value of a kind: of a notation in every other family, and any long text otherwise. */
export function valueOf(kind: string, family: Family): Hostile {
  const make = KINDS[kind];
  if (make !== undefined) {
    return make(family);
  }
  const notation = NOTATIONS[kind];
  if (notation === undefined) {
    throw new RangeError(`there is no kind of values ${kind}`);
  }
  return family.random.below(3) === 0 ? longText(family) : notation(family);
}

const KINDS: Readonly<Record<string, (family: Family) => Hostile>> = {
  text: longText,
  part: nearlyPart,
  int: integer,
  list,
  texts,
  map,
  any: anything,
  set: (family) => new HostileSet(list(family)),
  textset: (family) => new HostileSet(texts(family)),
  bool: ({ random }) => random.below(2) === 0,
  patch: ({ random, sizes }) =>
    Array.from({ length: Math.min(sizes.items, 1000) }, (_, index) => ({
      op: random.of(['add', 'replace', 'remove', 'test', 'copy', 'move']),
      path: random.of([`/k${index}`, '/a', '', repeated('/a', sizes.text / sizes.items)]),
      from: '/a',
      value: `${index}`,
    })),
  graph: ({ sizes, random }) =>
    Object.fromEntries(
      Array.from({ length: Math.min(sizes.items, 200) }, (_, index) => [
        `${index}`,
        Array.from({ length: 1 + random.below(3) }, (_unused, step) => `${index + step + 1}`),
      ]),
    ),
  pairs: ({ sizes, unit, random }) =>
    Object.fromEntries(
      Array.from({ length: random.of([1, 10, sizes.items]) }, (_, index) => [
        `${repeated(unit, sizes.text / 100)}${index}`,
        `${index}`,
      ]),
    ),
  ranges: ({ sizes, random }) =>
    Array.from(
      { length: sizes.items },
      (_, index) => `10.${index % 256}.${(index >> 8) % 256}.0/${random.of([8, 16, 24])}`,
    ),
};
