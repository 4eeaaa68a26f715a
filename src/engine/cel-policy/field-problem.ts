import { quote } from '../../go/index.ts';

/** A mistake in a field of a policy, a binding or settings, with the message of API servers where they have one. */
export interface FieldProblem {
  /** As API servers write it: `spec.validations[0].expression`; empty for the whole. */
  readonly path: string;
  readonly message: string;
  /** Position in the expression, counted from 1; absent for other fields, and when the whole expression is wrong. */
  readonly position?: { readonly line: number; readonly column: number; readonly excerpt: string };
}

/** Maximum length of a quoted value. */
const MAX_SHOWN = 200;

/** Collects all mistakes in a document, so that they are reported together. */
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

/** A mistake as text. */
export function problemText({ path, message }: FieldProblem): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** All mistakes as one text, as API servers list them. */
export function problemsText(problems: readonly FieldProblem[]): string {
  const [first] = problems;
  return problems.length === 1 && first !== undefined
    ? problemText(first)
    : `[${problems.map(problemText).join(', ')}]`;
}

/** The type of a value, for messages. */
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
