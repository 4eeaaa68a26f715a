import { isJsonObject } from './json-value.ts';

/** A parsed JSONPath. */
export interface JsonPath {
  /** The matching values, in order. Missing fields are not an error. */
  find(root: unknown): readonly unknown[];
}

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'all' }
  | { readonly kind: 'descend' }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly by: number }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'filter'; readonly left: Operand; readonly operator: Operator; readonly right: Operand };

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'exists';
type Operand = { readonly path: readonly Step[] } | { readonly value: unknown };

/** Maximum number of values of a step. It bounds `..*` in large objects. */
const MAX_FOUND = 100_000;

/** Longest path; paths of Kubernetes' fields have fewer than a hundred characters. */
const MAX_PATH_LENGTH = 4_096;

const FIELD = /^\.((?:\\.|[^.[\]\\\s])+)/su;
const QUOTED = /^\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]/su;
const INDEX = /^\[\s*(-?\d{1,9})\s*\]/u;
const SLICE = /^\[\s*(-?\d{0,9})\s*:\s*(-?\d{0,9})\s*(?::\s*(\d{1,9})\s*)?\]/u;
const ALL = /^(?:\[\s*\*\s*\]|\.\*)/u;
const FILTER = /^\[\s*\?\s*\(((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"()])*)\)\s*\]/su;
const COMPARISON = /^(.*?)(==|!=|<=|>=|<|>)(.*)$/su;

/**
 * Parses a path in the JSONPath dialect of printer columns (https://kubernetes.io/docs/reference/kubectl/jsonpath/): `.a.b`,
 * `\.` in names, `['a']`, `[0]`, `[-1]`, `[0:2]`, `[*]`, `..name`, `[?(@.type=="Ready")]`.
 *
 * @returns undefined when it is malformed.
 */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (text.length > MAX_PATH_LENGTH) {
    return undefined;
  }
  const steps = parseSteps(text.trim().replace(/^[$@]/u, ''));
  return steps === undefined ? undefined : { find: (root) => evaluate([root], steps) };
}

function parseSteps(text: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  let rest = text.startsWith('.') || text.startsWith('[') || text === '' ? text : `.${text}`;
  if (rest === '.') {
    return steps;
  }
  while (rest !== '') {
    if (rest.startsWith('..')) {
      steps.push({ kind: 'descend' });
      rest = rest.startsWith('..[') ? rest.slice(2) : rest.slice(1);
      continue;
    }
    const next = parseStep(rest);
    if (next === undefined) {
      return undefined;
    }
    steps.push(next.step);
    rest = rest.slice(next.length);
  }
  return steps;
}

function parseStep(text: string): { readonly step: Step; readonly length: number } | undefined {
  const all = ALL.exec(text);
  if (all !== null) {
    return { step: { kind: 'all' }, length: all[0].length };
  }
  const field = FIELD.exec(text) ?? QUOTED.exec(text);
  if (field !== null) {
    const name = (field[1] ?? field[2] ?? '').replaceAll(/\\(.)/gsu, '$1');
    return { step: { kind: 'field', name }, length: field[0].length };
  }
  const index = INDEX.exec(text);
  if (index !== null) {
    return { step: { kind: 'index', index: Number(index[1]) }, length: index[0].length };
  }
  const slice = SLICE.exec(text);
  if (slice !== null) {
    const bound = (part: string | undefined): number | undefined => (/\d/u.test(part ?? '') ? Number(part) : undefined);
    const step: Step = { kind: 'slice', from: bound(slice[1]), to: bound(slice[2]), by: bound(slice[3]) ?? 1 };
    return step.by === 0 ? undefined : { step, length: slice[0].length };
  }
  const filter = FILTER.exec(text);
  const step = filter === null ? undefined : parseFilter(filter[1] ?? '');
  return filter === null || step === undefined ? undefined : { step, length: filter[0].length };
}

function parseFilter(text: string): Step | undefined {
  const [, leftText = text, operator, rightText] = COMPARISON.exec(text) ?? [];
  const left = parseOperand(leftText);
  const right = rightText === undefined ? { value: null } : parseOperand(rightText);
  return left === undefined || right === undefined
    ? undefined
    : { kind: 'filter', left, operator: (operator as Operator | undefined) ?? 'exists', right };
}

function parseOperand(given: string): Operand | undefined {
  const text = given.trim();
  if (text.startsWith('@') || text.startsWith('$')) {
    const path = parseSteps(text.slice(1));
    return path === undefined ? undefined : { path };
  }
  const quoted = /^(['"])(.*)\1$/su.exec(text)?.[2];
  if (quoted !== undefined) {
    return { value: quoted.replaceAll(/\\(.)/gsu, '$1') };
  }
  if (text === 'true' || text === 'false') {
    return { value: text === 'true' };
  }
  return /^-?\d+(?:\.\d+)?$/u.test(text) ? { value: Number(text) } : undefined;
}

function evaluate(roots: readonly unknown[], steps: readonly Step[]): readonly unknown[] {
  return steps.reduce<readonly unknown[]>((values, step) => {
    const found: unknown[] = [];
    for (const value of values) {
      for (const one of evaluateStep(value, step)) {
        if (found.length >= MAX_FOUND) {
          return found;
        }
        found.push(one);
      }
    }
    return found;
  }, roots);
}

function evaluateStep(value: unknown, step: Step): Iterable<unknown> {
  switch (step.kind) {
    case 'field':
      return isJsonObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'all':
      return childrenOf(value);
    case 'descend':
      return descendants(value);
    case 'index': {
      const list: readonly unknown[] = Array.isArray(value) ? value : [];
      return list.slice(step.index, step.index === -1 ? undefined : step.index + 1);
    }
    case 'slice': {
      const list: readonly unknown[] = Array.isArray(value) ? value : [];
      return list.slice(step.from, step.to).filter((_element, index) => index % step.by === 0);
    }
    case 'filter':
      return childrenOf(value).filter((child) => matchesFilter(child, step));
    default:
      return step satisfies never;
  }
}

function childrenOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) {
    return value;
  }
  return isJsonObject(value) ? Object.values(value) : [];
}

/** A value and all its descendants. */
function* descendants(root: unknown): Iterable<unknown> {
  const queue = [root];
  for (let at = 0; at < queue.length && at < MAX_FOUND; at += 1) {
    yield queue[at];
    queue.push(...childrenOf(queue[at]));
  }
}

function matchesFilter(value: unknown, { left, operator, right }: Step & { kind: 'filter' }): boolean {
  const [a] = valuesOf(left, value);
  const [b] = valuesOf(right, value);
  switch (operator) {
    case 'exists':
      return a !== undefined;
    case '==':
      return a !== undefined && a === b;
    case '!=':
      return a !== undefined && a !== b;
    default:
      return isOrdered(a, b, operator);
  }
}

function isOrdered(a: unknown, b: unknown, operator: '<' | '<=' | '>' | '>='): boolean {
  if (!(typeof a === 'number' && typeof b === 'number') && !(typeof a === 'string' && typeof b === 'string')) {
    return false;
  }
  const isEqual = a === b;
  const isLess = a < b;
  switch (operator) {
    case '<':
      return isLess;
    case '<=':
      return isLess || isEqual;
    case '>':
      return !isLess && !isEqual;
    default:
      return !isLess;
  }
}

function valuesOf(operand: Operand, value: unknown): readonly unknown[] {
  return 'path' in operand ? evaluate([value], operand.path) : [operand.value];
}
