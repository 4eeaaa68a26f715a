import { quote } from '../../go/index.ts';

/** What is wrong with a field of a policy, a binding or settings, in the words of API servers where they have any. */
export interface FieldProblem {
  /** As API servers write it: `spec.validations[0].expression`; an empty path for the whole. */
  readonly path: string;
  readonly message: string;
  /** Where in the expression, counted from 1; absent when the field is no expression or is wrong as a whole. */
  readonly position?: { readonly line: number; readonly column: number; readonly excerpt: string };
}

/** A message shows this much of a value that is not an expression. */
const MAX_SHOWN = 200;

/** Collects every problem of a document, so that they can be shown at once. */
export class FieldProblems {
  readonly list: FieldProblem[] = [];

  add(path: string, message: string, position?: FieldProblem['position']): void {
    this.list.push(position === undefined ? { path, message } : { path, message, position });
  }

  required(path: string, detail = ''): void {
    this.add(path, withDetail('Required value', detail));
  }

  invalid(path: string, value: unknown, detail: string, position?: FieldProblem['position']): void {
    this.add(path, withDetail(`Invalid value: ${show(value)}`, detail), position);
  }

  unsupported(path: string, value: string, supported: readonly string[]): void {
    const values = supported.map(quote).join(', ');
    this.add(path, `Unsupported value: ${show(value)}: supported values: ${values}`);
  }

  duplicate(path: string, value: string): void {
    this.add(path, `Duplicate value: ${show(value)}`);
  }

  forbidden(path: string, detail: string): void {
    this.add(path, withDetail('Forbidden', detail));
  }

  tooMany(path: string, count: number, most: number): void {
    this.add(path, `Too many: ${count}: must have at most ${most} items`);
  }
}

/** The problem as one text. */
export function problemText({ path, message }: FieldProblem): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** All problems as one text: as an API server lists them. */
export function problemsText(problems: readonly FieldProblem[]): string {
  const [first] = problems;
  return problems.length === 1 && first !== undefined
    ? problemText(first)
    : `[${problems.map(problemText).join(', ')}]`;
}

/** What kind of thing a value is, for messages. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  if (Array.isArray(value)) {
    return 'a list';
  }
  switch (typeof value) {
    case 'object':
      return 'a mapping';
    case 'string':
      return 'text';
    case 'boolean':
      return `${value}`;
    case 'number':
      return `the number ${value}`;
    default:
      return `a ${typeof value}`;
  }
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`;
}

function show(value: unknown): string {
  if (typeof value === 'string') {
    return quote(value);
  }
  const shown = Array.isArray(value) ? JSON.stringify(value) : kindOf(value);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN - 1)}…` : shown;
}
