// The functions and operators of CEL: each overload, called as the evaluator calls it.
import {
  AUTHORIZER,
  AuthorizerValue,
  CelDouble,
  CelOptional,
  CelUint,
  createEnvironment,
  EvaluationFailure,
  MUTATION_LIBRARIES,
} from '../../src/cel/index.ts';
import type { CelType, CelValue } from '../../src/cel/index.ts';
import { compileCall } from '../../src/cel/evaluate/call.ts';
import { Cancellation, Frame, MAX_WORK } from '../../src/cel/evaluate/frame.ts';
import type { Overload } from '../../src/cel/model/library.ts';
import { allLibraries } from '../../src/cel/reference.ts';
import { HostileSet, textOf, valueOf } from './hostile-values.ts';
import type { Family, Hostile } from './hostile-values.ts';
import type { Target } from './target.ts';

/** A unit of work takes about 10 ns (MAX_WORK), and so does one of cost: an API server's budget takes a tenth of a second. */
const NS_PER_UNIT = 10;
/** Of one expression. */
const COST_BUDGET = 10_000_000;

/** Operators and macros that the evaluator runs itself, without a call of an overload. The fuzzer of programs has them. */
const NOT_CALLED: ReadonlySet<string> = new Set([
  '_?_:_',
  '_&&_',
  '_||_',
  '!_',
  '@not_strictly_false',
  '_==_',
  '_!=_',
  '_[_]',
  '_?._',
  '_[?_]',
  'cel.@mapInsert',
]);

/** Values of types of libraries, made by these expressions of a text `text`. */
const MADE: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.URL': ["url('http://a/b?c=d')", 'url(text)'],
  'kubernetes.Quantity': ["quantity('1')", 'quantity(text)'],
  'net.IP': ["ip('10.0.0.1')", "ip('::1')"],
  'net.CIDR': ["cidr('10.0.0.0/8')", "cidr('::/0')"],
  'kubernetes.NamedFormat': [
    'format.dns1123Label()',
    'format.dns1123Subdomain()',
    'format.qualifiedName()',
    'format.labelValue()',
    'format.uri()',
    'format.uuid()',
    'format.byte()',
    'format.date()',
    'format.datetime()',
  ],
  'kubernetes.Semver': ["semver('1.2.3')", 'semver(text)'],
  'kubernetes.authorization.Authorizer': ['authorizer'],
  'kubernetes.authorization.PathCheck': ["authorizer.path('/a')"],
  'kubernetes.authorization.GroupCheck': ["authorizer.group('a')"],
  'kubernetes.authorization.ResourceCheck': ["authorizer.group('a').resource('b')"],
  'kubernetes.authorization.Decision': ["authorizer.path('/a').check('get')"],
};

/** What texts functions read, by the beginning of their overloads' ids. */
const NOTATION: Readonly<Record<string, string>> = {
  string_to_ip: 'address',
  is_ip: 'address',
  ip_is: 'address',
  string_to_cidr: 'range',
  is_cidr: 'range',
  cidr_contains: 'range',
  string_to_url: 'url',
  is_url: 'url',
  string_to_quantity: 'quantity',
  is_quantity: 'quantity',
  string_to_semver: 'version',
  is_semver: 'version',
  string_to_duration: 'duration',
  string_to_timestamp: 'time',
  string_to_double: 'number',
  string_to_int: 'number',
  string_to_uint: 'number',
};

const authorizer = new AuthorizerValue({ username: 'a' }, { authorize: () => ({ isAllowed: true, reason: '' }) });
const environment = createEnvironment({
  variables: { authorizer: AUTHORIZER, text: { kind: 'string' } },
  libraries: MUTATION_LIBRARIES,
});

function evaluated(expression: string, text: string): CelValue {
  const { value } = environment.compile(expression).run({ authorizer, text }, { budget: Infinity });
  return value instanceof EvaluationFailure || value instanceof Cancellation ? null : value;
}

/** A value of JSON, which is one of CEL. */
function celValue(value: Hostile): CelValue {
  if (value instanceof HostileSet || Array.isArray(value)) {
    return (value instanceof HostileSet ? value.items : (value as readonly Hostile[])).map(celValue);
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, celValue(item)]));
  }
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function listOf(type: CelType, family: Family, notation: string): CelValue {
  switch (type.kind) {
    case 'string':
      return celValue(valueOf('texts', family));
    case 'bytes':
      return (valueOf('texts', family) as readonly string[]).map((text) => Buffer.from(text));
    case 'parameter':
    case 'dyn':
      return celValue(valueOf('list', family));
    default: {
      const some = Array.from({ length: 10 }, () => ofType(type, family, notation));
      return Array.from({ length: family.sizes.items }, (_, index) => some[index % some.length] ?? null);
    }
  }
}

function opaqueOf(name: string, parameters: readonly CelType[], family: Family, notation: string): CelValue {
  if (name === 'optional_type') {
    return new CelOptional(ofType(parameters[0] ?? { kind: 'dyn' }, family, notation));
  }
  const expressions = MADE[name];
  if (expressions === undefined) {
    throw new RangeError(`there are no values of ${name}`);
  }
  const text = name === 'kubernetes.Quantity' ? 'quantity' : name === 'kubernetes.Semver' ? 'version' : 'url';
  const expression = family.random.of(expressions);
  return evaluated(expression, textOf(text, family)) ?? evaluated(expressions[0] ?? '', '');
}

/** A value of a type. */
function ofType(type: CelType, family: Family, notation: string): CelValue {
  const { random } = family;
  switch (type.kind) {
    case 'string':
      return textOf(notation, family);
    case 'bytes':
      return Buffer.from(textOf('text', family));
    case 'bool':
      return random.below(2) === 0;
    case 'int':
      return celValue(valueOf('int', family));
    case 'uint':
      return new CelUint(BigInt(random.below(1000)));
    case 'double':
      return random.of([1.5, new CelDouble(1e300), Number.NaN]);
    case 'struct':
      return opaqueOf(type.name, [], family, notation);
    case 'duration':
      return evaluated("duration('1h')", '');
    case 'timestamp':
      return evaluated("timestamp('2026-11-28T22:36:46Z')", '');
    case 'list':
      return listOf(type.element, family, notation);
    case 'map':
      return celValue(valueOf('map', family));
    case 'opaque':
      return opaqueOf(type.name, type.parameters, family, notation);
    case 'parameter':
    case 'dyn':
      return celValue(valueOf('any', family));
    default:
      throw new RangeError(`there are no values of ${type.kind}`);
  }
}

/** Kinds of texts: the receiver is long, and what is searched in it nearly is a part of it. */
function notationOf({ id, parameters }: Overload, name: string, index: number): string {
  if (name === 'matches' || name === 'find' || name === 'findAll') {
    return index === 0 ? 'text' : 'pattern';
  }
  if (name === 'format') {
    return 'format';
  }
  if (name.startsWith('get') && index === 1) {
    return 'zone';
  }
  if (name.endsWith('Selector')) {
    return 'selector';
  }
  const notation = Object.entries(NOTATION).find(([start]) => id.startsWith(start))?.[1];
  return notation ?? (index === 1 && parameters[0]?.kind === 'string' ? 'part' : 'text');
}

function targetOf(name: string, overload: Overload, all: readonly Overload[]): Target {
  return {
    name: `${name} (${overload.id})`,
    arguments: (family) =>
      overload.parameters.map((type, index) => ofType(type, family, notationOf(overload, name, index))),
    charge: (args) => {
      const run = compileCall({
        id: 1,
        name,
        args: args.map((value) => () => value as CelValue),
        literals: args.map(() => undefined),
        checkedOverloads: [overload],
        declaredOverloads: all,
      });
      const frame = new Frame(0);
      frame.begin(COST_BUDGET);
      try {
        if (!(run instanceof EvaluationFailure)) {
          run(frame);
        }
      } catch (error) {
        if (!(error instanceof Cancellation || error instanceof RangeError)) {
          throw error;
        }
      }
      return { ns: (Math.min(frame.worked, MAX_WORK) + Math.min(frame.cost, COST_BUDGET)) * NS_PER_UNIT };
    },
  };
}

/** Overloads of all libraries that expressions can call. */
export function celFunctions(): readonly Target[] {
  return allLibraries()
    .flatMap(({ functions }) => functions)
    .filter(({ name }) => !NOT_CALLED.has(name))
    .flatMap(({ name, overloads }) => overloads.map((overload) => targetOf(name, overload, overloads)));
}
