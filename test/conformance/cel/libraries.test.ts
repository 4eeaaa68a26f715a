import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { CelError, createEnvironment, DYN, EvaluationFailure, INT, listOf, STRING } from '../../../src/cel/index.ts';
import type { CelType, CelValue, Environment, Program } from '../../../src/cel/index.ts';
import {
  AUTHORIZER,
  AuthorizerValue,
  checkFormat,
  MUTATION_LIBRARIES,
  RESOURCE_CHECK,
} from '../../../src/cel/libraries/index.ts';
import type { AuthorizationAnswer, AuthorizationRequest } from '../../../src/cel/libraries/index.ts';
import { encodeValue } from './encode-value.ts';

/** What an API server's evaluator gives: see README.md. */
interface Golden {
  readonly library: string;
  readonly expression: string;
  /** Kubernetes minor version; the newest without it. */
  readonly minor?: number;
  readonly variables?: Readonly<Record<string, Variable>>;
  readonly compileError?: readonly string[];
  readonly programError?: string;
  readonly error?: string;
  readonly value?: unknown;
  readonly cost?: number;
  /** Bounds; null where they are 10^18 or more. */
  readonly estimate?: readonly (number | null)[];
}

interface Variable {
  readonly type: string;
  readonly value?: CelValue;
}

const NEWEST = 37;
/** The library whose calls are checked when they compile, in an API server's words. */
const FORMATS = 'strings.format';
/** Estimates from here on are as good as infinite. */
const UNBOUNDED = 1e18;
/** What an API server grants the expressions of a policy together. */
const BUDGET = 10_000_000;

const rows = JSON.parse(readFileSync(new URL('libraries.json', import.meta.url), 'utf8')) as readonly Golden[];

const TYPES: ReadonlyMap<string, CelType> = new Map([
  ['string', STRING],
  ['int', INT],
  ['list(string)', listOf(STRING)],
  ['list(int)', listOf(INT)],
  ['authorizer', AUTHORIZER],
  ['resourcecheck', RESOURCE_CHECK],
]);

/** The same answers as the oracle's authorizer gives. */
function authorize(request: AuthorizationRequest): AuthorizationAnswer {
  if (request.kind === 'path') {
    const isAllowed = request.path === '/healthz';
    return { isAllowed, reason: isAllowed ? 'path' : '' };
  }
  const { verb, group, resource, namespace, name, subresource, user } = request;
  const reason = `${verb} ${group} ${resource} ns=${namespace} name=${name} sub=${subresource} user=${user.username}`;
  return { isAllowed: verb === 'get', reason, ...(verb === 'fail' ? { error: 'authorizer failed' } : {}) };
}

const authorizer = new AuthorizerValue({ username: 'alice' }, { authorize });
const requestResource = authorizer.requestResource({
  group: 'apps',
  resource: 'deployments',
  subresource: 'status',
  namespace: 'ns-1',
  name: 'pod-1',
});

function bindingOf({ type, value }: Variable): CelValue {
  if (type === 'authorizer') {
    return authorizer;
  }
  return type === 'resourcecheck' ? requestResource : (value ?? null);
}

const environments = new Map<string, Environment>();

/** Environments are made once for all expressions of a version with the same variables. */
function environmentOf({ minor = NEWEST, variables = {} }: Golden): Environment {
  const types = Object.entries(variables).map(([name, { type }]): [string, CelType] => [name, TYPES.get(type) ?? DYN]);
  const key = JSON.stringify([minor, types]);
  const known = environments.get(key);
  if (known !== undefined) {
    return known;
  }
  const made = createEnvironment({
    kubernetesVersion: minor,
    variables: Object.fromEntries(types),
    libraries: MUTATION_LIBRARIES,
  });
  environments.set(key, made);
  return made;
}

function compile(row: Golden): Program | CelError {
  try {
    return environmentOf(row).compile(row.expression);
  } catch (error) {
    if (error instanceof CelError && error.code !== 'environment-invalid') {
      return error;
    }
    throw error;
  }
}

/** What API servers find wrong with a call of `format` when they compile it. */
function formatProblemOf({ checked }: Program): string | undefined {
  const { expression } = checked;
  const isFormat = expression.kind === 'call' && expression.function === 'format';
  return isFormat ? checkFormat(expression, (node) => checked.types[node.id] ?? DYN)?.message : undefined;
}

/** What this evaluator gives, in the form of the golden data. */
function evaluate(row: Golden): Partial<Golden> {
  const program = compile(row);
  if (program instanceof CelError) {
    return { compileError: program.issues.map((issue) => issue.message) };
  }
  const problem = formatProblemOf(program);
  if (problem !== undefined) {
    return { compileError: [problem] };
  }
  const variables = Object.entries(row.variables ?? {});
  const bindings = Object.fromEntries(variables.map(([name, variable]) => [name, bindingOf(variable)]));
  const { value, cost } = program.run(bindings, { budget: BUDGET });
  const outcome =
    value instanceof EvaluationFailure ? { error: value.message } : { value: encodeValue(value as CelValue) };
  if (row.cost === undefined) {
    return outcome;
  }
  const { min, max } = program.estimate;
  return { ...outcome, cost, estimate: [min, max].map((bound) => (bound >= UNBOUNDED ? null : bound)) };
}

/** What it has to give. How the checker words what does not compile is its own, but for formats. */
function expectationOf(row: Golden): Partial<Golden> {
  if (row.compileError !== undefined || row.programError !== undefined) {
    return { compileError: row.library === FORMATS ? (row.compileError ?? []) : [] };
  }
  const { value, error, cost, estimate } = row;
  return {
    ...(error === undefined ? { value } : { error }),
    ...(cost === undefined ? {} : { cost, estimate: estimate ?? [] }),
  };
}

for (const [library, cases] of Map.groupBy(rows, (row) => row.library)) {
  describe(`CEL library ${library}`, () => {
    test(`${cases.length} expressions give the values, errors, costs and estimates of an API server`, () => {
      for (const row of cases) {
        const got = evaluate(row);
        const isWorded = got.compileError === undefined || row.library === FORMATS;
        assert.deepEqual(isWorded ? got : { compileError: [] }, expectationOf(row), row.expression);
      }
    });
  });
}
