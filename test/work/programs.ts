// Whole templates and whole expressions, generated: functions in loops, and in each other.
import { createEnvironment, DYN } from '../../src/cel/index.ts';
import { BUILTIN_FUNCTIONS } from '../../src/go/templates/index.ts';
import { GOVERNANCE_FUNCTIONS } from '../../src/governance/templates/function-table.ts';
import { longText, map, nearlyPart, texts } from './hostile-values.ts';
import type { Family } from './hostile-values.ts';
import type { Target } from './target.ts';
import { operandsOf, render } from './template-functions.ts';

/** Of what grows with each turn of a loop: 2²⁷ characters do not fit the memory of a controller. */
const TURNS = 27;

/** What a function of a loop gets besides the text of the turn before, by the kind of its operand. */
const OPERANDS: Readonly<Record<string, string>> = {
  int: '2',
  part: '"."',
  pattern: '"."',
  replacement: '"$0$0"',
  format: '"%s%s"',
  layout: '"2006"',
  time: '0',
  bool: 'true',
  number: '3',
  constraint: '">=1"',
  zone: '"UTC"',
  key: '"a"',
};

/** A call of the function with the value of the turn before wherever it takes any or a text. */
function callOf(name: string): string {
  const kinds = operandsOf(name);
  return `${name} ${kinds.map((kind) => OPERANDS[kind] ?? '$value').join(' ')}`;
}

const SEEDS = ['"."', '"<\\u0301>"', '(list "a" "b")', '(dict "a" "b")', '(printf "%s" "%")'];

const OTHERS = ['$value', '(list $value $value)', '(dict "a" $value "b" $value)', '(toString $value)'];

/** For each function: its result is its operand in the next turn, alone and written as a text. */
export function templatePrograms(): readonly Target[] {
  return [...new Set([...GOVERNANCE_FUNCTIONS.keys(), ...BUILTIN_FUNCTIONS.keys()])].map((name) => ({
    name: `loop of ${name}`,
    arguments: ({ common }: Family) => {
      const seed = SEEDS[common % SEEDS.length] ?? '"."';
      const other = OTHERS[Math.floor(common / SEEDS.length) % OTHERS.length] ?? '$value';
      const call = callOf(name).replace('$value', other);
      return [
        `{{ $value := ${seed} }}{{ range until ${TURNS} }}{{ $value = ${call} }}{{ end }}{{ len (toString $value) }}`,
      ];
    },
    charge: ([text]: readonly unknown[]) => render(String(text), {}),
  }));
}

const environment = createEnvironment({ variables: { object: DYN } });
/** The budget of its cost and the limit of its work: a tenth of a second each. */
const LIMIT_NS = 2e8;

const BODIES = [
  '(x + y).size() > 0',
  'x.contains(y)',
  'x.split(y).size() > 0',
  "x.replace(y, 'z') == x",
  'x.indexOf(y) >= x.lastIndexOf(y)',
  'x.matches(y)',
  'x.findAll(y).size() > 0',
  'x.upperAscii() == y.lowerAscii()',
  'object.texts.join(x) == y',
  'object.texts.indexOf(x) >= 0',
  'object.texts.min() == x',
  'object.texts.sort() == object.texts',
  'sets.contains(object.texts, [x, y])',
  '[x, y].distinct() == object.texts',
  'x in object.texts',
  'object.map == object.map',
  "'%s %s'.format([object.map, object.texts]) == x",
  '[dyn([x]), dyn([y]), dyn(object.texts)].flatten().size() > 0',
  'object.texts.map(z, z + x).size() > 0',
  'x < y',
  'string(bytes(x)) == y',
  'isURL(x) || isIP(y) || isQuantity(x) || isSemver(y)',
  'strings.quote(x) == strings.quote(y)',
  'object.texts + object.texts == [x]',
];

const LOOPS = ['map', 'filter', 'all', 'exists'];

/** Nested loops over texts that nearly match. */
export function celPrograms(): readonly Target[] {
  return BODIES.map((body) => ({
    name: `loop of ${body}`,
    arguments: (family: Family) => {
      const [outer, inner] = [family.random.of(LOOPS), family.random.of(LOOPS.slice(2))];
      return [
        `object.texts.${outer}(x, object.texts.${inner}(y, ${body}))`,
        { texts: [...texts(family), longText(family), nearlyPart(family)], map: map(family) },
      ];
    },
    charge: ([expression, object]: readonly unknown[]) => {
      environment.compile(String(expression)).run({ object: object as never }, { budget: 10_000_000 });
      return { ns: LIMIT_NS };
    },
  }));
}
