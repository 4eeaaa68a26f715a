import type { Expression } from '../../../cel/index.ts';
import type { MergeType } from '../../../resources/structured-merge/index.ts';
import { constantText } from './constant-text.ts';
import type { Variables } from './field-chain.ts';
import type { MatchedSchema } from './matched-schemas.ts';
import type { MutationProblem } from './mutation-problem.ts';
import { meantHint, pointedField } from './pointer-problem.ts';
import { structsOf } from './structs-of.ts';

type Struct = Extract<Expression, { kind: 'struct' }>;

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'];
/** Operations that are for the whole object, too. */
const ON_ROOT: ReadonlySet<string> = new Set(['replace', 'test']);
const WITH_FROM: ReadonlySet<string> = new Set(['move', 'copy']);
/** Names of operations elsewhere. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ['append', 'add'],
  ['create', 'add'],
  ['delete', 'remove'],
  ['insert', 'add'],
  ['put', 'add'],
  ['rename', 'move'],
  ['set', 'add'],
  ['update', 'replace'],
]);
const WITH_VALUE: ReadonlySet<string> = new Set(['add', 'replace']);

/** Operations of a JSON patch that fail for objects of a kind. */
export function patchProblems(root: Expression, variables: Variables, kind: MatchedSchema): readonly MutationProblem[] {
  return structsOf(root, 'JSONPatch').flatMap((patch) => {
    const problem = problemOf(patch, variables, kind);
    return problem === undefined ? [] : [{ node: patch, ...problem }];
  });
}

type Problem = Omit<MutationProblem, 'node'>;

function problemOf(patch: Struct, variables: Variables, { kind, type }: MatchedSchema): Problem | undefined {
  const op = constantText(fieldOf(patch, 'op'), variables);
  if (hasNone(patch, 'op')) {
    return fatal(`JSONPatch has no op: expected one of ${OPERATIONS.join(', ')}`);
  }
  if (!op.isWhole) {
    return undefined;
  }
  if (!OPERATIONS.includes(op.text)) {
    const meant = MEANT.get(op.text.toLowerCase());
    const hint = meant === undefined ? meantHint(op.text, OPERATIONS) : `. Did you mean ${meant}?`;
    return fatal(`JSONPatch has no operation "${op.text}"${hint}`);
  }
  if (hasNone(patch, 'path')) {
    return fatal('JSONPatch has no path');
  }
  if (WITH_FROM.has(op.text) && hasNone(patch, 'from')) {
    return fatal(`the operation "${op.text}" has no from`);
  }
  if (WITH_VALUE.has(op.text) && hasNone(patch, 'value')) {
    return { message: `the operation "${op.text}" has no value: it takes null`, isFatal: false };
  }
  const from = pointedField(constantText(fieldOf(patch, 'from'), variables), 'test', kind, type);
  if (WITH_FROM.has(op.text) && from.problem !== undefined) {
    return from.problem;
  }
  const path = constantText(fieldOf(patch, 'path'), variables);
  if (path.isWhole && path.text === '' && !ON_ROOT.has(op.text)) {
    return fatal(`the path is empty, which stands for the whole object: "${op.text}" is for a field of it`);
  }
  const target = pointedField(path, op.text, kind, type);
  return target.problem ?? (target.type === undefined ? undefined : valueProblem(patch, op.text, target.type));
}

/** A literal of another type than the field, which API servers cannot decode. */
function valueProblem(patch: Struct, op: string, type: MergeType): Problem | undefined {
  const value = fieldOf(patch, 'value');
  const mismatch = value === undefined || !WITH_VALUE.has(op) ? undefined : mismatchOf(value, type);
  return mismatch === undefined ? undefined : fatal(mismatch);
}

function mismatchOf(value: Expression, type: MergeType): string | undefined {
  if (type.scalar === 'untyped') {
    return undefined;
  }
  const expected =
    type.map !== undefined ? 'an object' : type.list !== undefined ? 'a list' : EXPECTED[type.scalar ?? 'string'];
  const got = kindOfLiteral(value);
  if (got === undefined || got === expected) {
    return value.kind === 'map' && type.map !== undefined ? mismatchInMap(value, type) : undefined;
  }
  return `the value is ${got}, where the field has ${expected}`;
}

function mismatchInMap(value: Extract<Expression, { kind: 'map' }>, { map }: MergeType): string | undefined {
  for (const { key, value: one } of value.entries) {
    const name = key.kind === 'literal' && typeof key.value === 'string' ? key.value : undefined;
    const type = name === undefined ? undefined : map?.field(name);
    const mismatch = type === undefined ? undefined : mismatchOf(one, type);
    if (mismatch !== undefined) {
      return `${mismatch}, in "${name}"`;
    }
  }
  return undefined;
}

const EXPECTED: Readonly<Record<'numeric' | 'string' | 'boolean', string>> = {
  numeric: 'a number',
  string: 'a text',
  boolean: 'true or false',
};

/** Undefined for null and what is computed. */
function kindOfLiteral(node: Expression): string | undefined {
  if (node.kind === 'map') {
    return 'an object';
  }
  if (node.kind === 'list') {
    return 'a list';
  }
  if (node.kind !== 'literal' || node.value === null) {
    return undefined;
  }
  switch (typeof node.value) {
    case 'string':
      return EXPECTED.string;
    case 'boolean':
      return EXPECTED.boolean;
    default:
      return typeof node.value === 'number' || typeof node.value === 'bigint' ? EXPECTED.numeric : undefined;
  }
}

function fieldOf(patch: Struct, name: string): Expression | undefined {
  return patch.fields.find((field) => field.name === name && !field.isOptional)?.value;
}

function hasNone(patch: Struct, name: string): boolean {
  return !patch.fields.some((field) => field.name === name);
}

function fatal(message: string): Problem {
  return { message, isFatal: true };
}
