// What API servers answer: values, error texts and costs of golden.json, which a program over Kubernetes' own packages
// printed (see its `source`).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CelError,
  createEnvironment,
  DOUBLE,
  DYN,
  formatIssue,
  INT,
  listOf,
  mapOf,
  STRING,
} from '../../../src/cel/index.ts';
import { Cancellation, parseCelJson } from '../../../src/cel/evaluate/index.ts';
import type { Bindings } from '../../../src/cel/evaluate/index.ts';
import { EvaluationFailure } from '../../../src/cel/model/value.ts';
import { showValue } from './show-value.ts';

interface GoldenCase {
  readonly expression: string;
  readonly input: string;
  readonly budget?: number;
  readonly value?: string;
  readonly error?: string;
  readonly cost?: number;
  /** Where it failed: when checking, when making the program, when evaluating. */
  readonly stage?: 'check' | 'program' | 'evaluate';
}

interface Golden {
  readonly kubernetes: number;
  readonly inputs: Readonly<Record<string, Bindings>>;
  readonly cases: readonly GoldenCase[];
}

/** What an expression may cost in an API server. */
const DEFAULT_BUDGET = 1_000_000;
const CANCELLED = 'operation cancelled: actual cost limit exceeded';

const golden = parseCelJson(readFileSync(join(import.meta.dirname, 'golden.json'), 'utf8')) as unknown as Golden;
const environment = createEnvironment({
  kubernetesVersion: golden.kubernetes,
  variables: {
    object: DYN,
    oldObject: DYN,
    params: DYN,
    i: INT,
    s: STRING,
    l: listOf(STRING),
    m: mapOf(STRING, INT),
    d: DOUBLE,
  },
});

type Answer = Pick<GoldenCase, 'value' | 'error' | 'cost'>;

function answer({ expression, input, budget }: GoldenCase): Answer {
  try {
    const program = environment.compile(expression);
    const { value, cost } = program.run(golden.inputs[input] ?? {}, { budget: budget ?? DEFAULT_BUDGET });
    return value instanceof EvaluationFailure || value instanceof Cancellation
      ? { error: value.message, ...(value instanceof Cancellation ? {} : { cost }) }
      : { value: showValue(value), cost };
  } catch (error) {
    assert.ok(error instanceof CelError, `${expression}: ${String(error)}`);
    return { error: error.issues.length === 0 ? error.message : error.issues.map(formatIssue).join('\n') };
  }
}

function expected({ value, error, cost, stage }: GoldenCase): Answer {
  if (error === undefined) {
    return { value: value ?? '', cost: cost ?? 0 };
  }
  if (stage === 'program') {
    return { error: `program instantiation failed: ${error}` };
  }
  // Where exactly counting stopped is not said.
  return stage === 'check' || error === CANCELLED ? { error } : { error, cost: cost ?? 0 };
}

/** How many expressions there are. */
export const goldenCount = golden.cases.length;

/** Expressions that come out different, to the letter and to the unit. */
export function goldenDifferences(): readonly string[] {
  const differences: string[] = [];
  for (const test of golden.cases) {
    const got = JSON.stringify(answer(test));
    const wanted = JSON.stringify(expected(test));
    if (got !== wanted) {
      differences.push(`${test.expression} (${test.input}): expected ${wanted}, got ${got}`);
    }
  }
  return differences;
}
