import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  BOOL,
  BYTES,
  CelError,
  createEnvironment,
  DOUBLE,
  DURATION,
  DYN,
  formatIssue,
  formatType,
  INT,
  listOf,
  mapOf,
  optionalOf,
  SchemaTypes,
  STRING,
  TIMESTAMP,
} from '../../../src/cel/index.ts';
import type { Environment, StructuralSchema } from '../../../src/cel/index.ts';

/** What an API server's compiler says of an expression. */
interface Case {
  readonly expression: string;
  /** Default: {@link DEFAULT_VERSION}. */
  readonly kubernetesVersion?: number;
  readonly error?: string;
  readonly type?: string;
  /** Bounds of the estimated cost; null: not bounded (or beyond any limit). */
  readonly cost?: readonly [min: number | null, max: number | null];
}

const DEFAULT_VERSION = 34;

/** Estimates above are as good as not bounded: upstream they stem from the largest 64-bit number. */
const UNBOUNDED = 1e15;

/** What is not compared, by expression, and why. */
const EXCLUDED: ReadonlyMap<string, string> = new Map([
  [
    '[1].all(q, q.r == 1)',
    "a macro's variable hides qualified names since cel-go v0.27 (Kubernetes 1.37), here always",
  ],
  ["s.find('a(')", 'refused here; API servers refuse it one step later, when they make a program of it'],
  ["matches('b', 'a(')", 'likewise'],
  ["duration('x')", 'likewise, before Kubernetes 1.29'],
  ['optional_type', 'the type is written with its parameter: optional_type(dyn)'],
]);

const variables = {
  object: DYN,
  oldObject: DYN,
  request: DYN,
  s: STRING,
  i: INT,
  d: DOUBLE,
  b: BOOL,
  ls: listOf(STRING),
  li: listOf(INT),
  m: mapOf(STRING, STRING),
  os: optionalOf(STRING),
  t: TIMESTAMP,
  du: DURATION,
  by: BYTES,
  'q.r': INT,
};

describe('expressions compile as in an API server', () => {
  const { cases } = readData('kubernetes-check.json');
  const versions = new Set(cases.map(versionOf));
  const environments = new Map(
    Array.from(versions, (kubernetesVersion) => [
      kubernetesVersion,
      createEnvironment({ kubernetesVersion, variables }),
    ]),
  );
  for (const one of cases) {
    const environment = environments.get(versionOf(one));
    assert.ok(environment !== undefined);
    expectSame(one, environment);
  }
});

describe('rules of a schema compile as in an API server', () => {
  const { schema = {}, cases } = readData('kubernetes-schema-check.json');
  const types = new SchemaTypes();
  const self = types.declare('selfType', schema, true);
  assert.ok(self !== undefined);
  const environment = createEnvironment({
    kubernetesVersion: DEFAULT_VERSION,
    variables: { self },
    types,
    sizes: types.sizesOf('selfType'),
  });
  for (const one of cases) {
    expectSame(one, environment);
  }
});

function readData(name: string): { readonly cases: readonly Case[]; readonly schema?: StructuralSchema } {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as ReturnType<typeof readData>;
}

function versionOf({ kubernetesVersion }: Case): number {
  return kubernetesVersion ?? DEFAULT_VERSION;
}

function expectSame(one: Case, environment: Environment): void {
  const name = `${one.expression} (1.${versionOf(one)})`;
  const reason = EXCLUDED.get(one.expression);
  const isExcluded = reason !== undefined && one.error === undefined;
  it(isExcluded ? `${name} (${reason})` : name, { skip: isExcluded }, () => {
    if (one.error === undefined) {
      const program = environment.compile(one.expression);
      assert.equal(formatType(program.resultType), one.type);
      assert.deepEqual([program.estimate.min, program.estimate.max].map(bounded), one.cost);
    } else {
      expectError(one, one.error, environment);
    }
  });
}

function bounded(cost: number): number | null {
  return cost > UNBOUNDED ? null : cost;
}

/** Errors of types and names are the same in every character; of errors of syntax the place of the first one is. */
function expectError({ expression }: Case, expected: string, environment: Environment): void {
  assert.throws(
    () => environment.compile(expression),
    (thrown) => {
      assert.ok(thrown instanceof CelError);
      const actual = thrown.issues.map(formatIssue).join('\n');
      if (!expected.includes('Syntax error')) {
        assert.equal(actual, expected);
      } else {
        assert.equal(placeOf(actual), placeOf(expected));
      }
      return true;
    },
  );
}

function placeOf(error: string): string | undefined {
  return /^ERROR: <input>:(\d+:\d+): /u.exec(error)?.[1];
}
