// The functions of templates, Go's own included.
import { GoFloat } from '../../src/go/index.ts';
import type { GoValue } from '../../src/go/index.ts';
import { BUILTIN_FUNCTIONS, limitedMeter, Template, TemplateError } from '../../src/go/templates/index.ts';
import type { TemplateFunctions } from '../../src/go/templates/index.ts';
import { functionsFor, GOVERNANCE_FUNCTIONS } from '../../src/governance/templates/function-table.ts';
import { MAX_CHARACTERS, MAX_STEPS } from '../../src/governance/templates/rendering/limits.ts';
import type { ObjectLookups } from '../../src/governance/templates/rendering/object-lookups.ts';
import { HostileSet, valueOf } from './hostile-values.ts';
import type { Family, Hostile } from './hostile-values.ts';
import type { Charge, Target } from './target.ts';

/** A rendering takes a second at most (MAX_STEPS), and as long for all of its characters. */
const NS_PER_STEP = 1e9 / MAX_STEPS;
const NS_PER_CHAR = 1e9 / MAX_CHARACTERS;

/** Kinds of the operands by function, as hostile-values.ts names them. */
const OPERANDS: Readonly<Record<string, string>> = {
  'key key key key': 'lookup',
  'key key key': 'fromConfigMap fromSecret',
  'key key': 'copyConfigMapData copySecretData',
  key: 'fromClusterClaim lookupClusterClaim',
  text: `getNodesWithExactRoles hasNodesWithExactRoles base64enc b64enc sha1sum sha256sum sha512sum fail toLiteral
    regexQuoteMeta trim upper lower title untitle nospace toBool`,
  bool: 'skipObject',
  '': 'now',
  'layout time': 'date',
  time: 'htmlDate unixEpoch',
  'layout time zone': 'dateInZone date_in_zone',
  'duration time': 'dateModify date_modify mustDateModify',
  'layout layout': 'toDate mustToDate',
  base64: 'base64dec b64dec',
  any: `toJson toJSON mustToJson mustToJSON toRawJson toRawJSON mustToRawJson mustToRawJSON toPrettyJson mustToPrettyJson
    toYaml toYAML empty kindOf typeOf not toString toStrings deepCopy mustDeepCopy`,
  json: 'fromJson fromJSON mustFromJson mustFromJSON',
  yaml: 'fromYaml fromYAML',
  list: `first mustFirst last mustLast rest mustRest initial mustInitial reverse mustReverse compact mustCompact uniq mustUniq
    sortAlpha`,
  'list any': 'append mustAppend push mustPush prepend mustPrepend without mustWithout',
  'any list': 'has mustHas',
  'list int int': 'slice mustSlice',
  'int list': 'chunk mustChunk',
  'any any any': 'list tuple coalesce all any cat quote squote print println html js urlquery',
  'list list': 'concat',
  int: 'until',
  'int int int': 'untilStep seq',
  'number number': 'max min add sub mul div mod',
  'any any': 'default deepEqual eq ne lt le gt ge',
  'any any bool': 'ternary',
  'text any': 'kindIs typeIs',
  'map map': 'merge mustMerge mergeOverwrite mustMergeOverwrite',
  'text any text any': 'dict',
  'map text': 'get unset hasKey pick omit',
  'map text any': 'set',
  'map map map': 'keys',
  map: 'values',
  'text text any map': 'dig',
  'text map map': 'pluck',
  number: 'add1 ceil floor int int64 float64 atoi toInt',
  'number number number': 'round',
  'pattern text': 'regexMatch mustRegexMatch regexFind mustRegexFind',
  'pattern text int': 'regexFindAll mustRegexFindAll regexSplit mustRegexSplit',
  'pattern text replacement': 'regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral',
  'part text': 'trimAll trimPrefix trimSuffix contains hasPrefix hasSuffix split splitList',
  'part text text': 'replace',
  'int text': 'repeat trunc indent nindent autoindent',
  'int int text': 'substr',
  'part int text': 'splitn',
  'text any any': 'join',
  'text text int': 'plural',
  version: 'semver',
  'constraint version': 'semverCompare',
  'any ': 'len',
  'any int': 'index',
  'format any any': 'printf',
};

const KINDS = new Map(
  Object.entries(OPERANDS).flatMap(([kinds, names]) =>
    names.split(/\s+/).map((name) => [name, kinds.split(' ').filter((kind) => kind !== '')] as const),
  ),
);

type TemplateFunction = NonNullable<ReturnType<TemplateFunctions['get']>>;

/** A value of a rendering. */
function goValue(value: Hostile): GoValue {
  if (value instanceof HostileSet || Array.isArray(value)) {
    return (value instanceof HostileSet ? value.items : (value as readonly Hostile[])).map(goValue);
  }
  if (typeof value === 'object' && value !== null) {
    return Object.assign(
      Object.create(null) as object,
      Object.fromEntries(Object.entries(value).map(([key, item]) => [key, goValue(item)])),
    );
  }
  return typeof value === 'number' ? new GoFloat(value) : value;
}

const OBJECT = { metadata: { name: 'a' }, data: { a: 'a'.repeat(10_000), data: 'b' }, spec: { value: 'c' } };
const LOOKUPS = {
  get: () => OBJECT,
  list: () => Array.from({ length: 1000 }, () => OBJECT),
  namespaceOf: () => 'a',
  usedSensitive: false,
} as unknown as ObjectLookups;

/** A meter, and how long the work that it counted may take. */
function metered(): { meter: ReturnType<typeof limitedMeter>; ns: () => number; chars: () => number } {
  const limited = limitedMeter(MAX_STEPS, MAX_CHARACTERS);
  let [steps, chars] = [0, 0];
  const meter = Object.create(limited, {
    steps: { value: (count: number) => ((steps += count), limited.steps(count)) },
    chars: { value: (count: number) => ((chars += count), limited.chars(count)) },
  }) as typeof limited;
  return {
    meter,
    ns: () => Math.min(steps, MAX_STEPS) * NS_PER_STEP + Math.min(chars, MAX_CHARACTERS) * NS_PER_CHAR,
    chars: () => Math.min(chars, MAX_CHARACTERS),
  };
}

/** Kinds of the operands of a function. @throws RangeError if it has no row in OPERANDS */
export function operandsOf(name: string): readonly string[] {
  const kinds = KINDS.get(name);
  if (kinds === undefined) {
    throw new RangeError(`the function ${name} has no row in OPERANDS`);
  }
  return kinds;
}

/** Renders a template with the functions of governance, and adds up by how much their results are longer than their operands. */
export function render(text: string, data: GoValue): Charge {
  const { meter, ns, chars } = metered();
  const rendering = { meter, lookups: LOOKUPS, now: new Date(0), blockIndent: 0, skip: false };
  let returned = 0;
  const functions = Array.from([...BUILTIN_FUNCTIONS, ...functionsFor(rendering)], ([name, call]) => {
    const counted: TemplateFunction = (operands, charge) => {
      const result = call(operands, charge);
      const given = operands.reduce((most: number, operand) => Math.max(most, longestIn(operand)), 0);
      returned += typeof result === 'string' ? Math.max(0, result.length - given) : 0;
      return result;
    };
    return [name, counted] as const;
  });
  try {
    new Template(text, new Map(functions)).execute(data, meter);
  } catch (error) {
    if (!(error instanceof TemplateError)) {
      throw error;
    }
  }
  return { ns: ns(), chars: chars(), returned };
}

/** Characters of a text, or of the longest text directly in a list or map. */
function longestIn(value: GoValue): number {
  const items = typeof value === 'object' && value !== null ? Object.values(value) : [value];
  return items.reduce((most: number, item) => Math.max(most, typeof item === 'string' ? item.length : 0), 0);
}

/** Functions by the operands that they are called with, through a template, as users call them. */
export function templateFunctions(): readonly Target[] {
  return [...new Set([...GOVERNANCE_FUNCTIONS.keys(), ...BUILTIN_FUNCTIONS.keys()])].map(targetOf);
}

function targetOf(name: string): Target {
  const kinds = operandsOf(name);
  // The result goes nowhere, so that only the function is charged.
  const text = `{{ $result := ${name} ${kinds.map((_, index) => `(index $ ${index})`).join(' ')} }}`;
  return {
    name,
    arguments: (family: Family) => kinds.map((kind) => goValue(valueOf(kind, family))),
    charge: (operands) => render(text, operands as GoValue),
  };
}
