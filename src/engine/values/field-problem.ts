import { type FieldError, notSupported } from '../../resources/index.ts';
import { FieldReader, fieldPathText } from './field-reader.ts';

/** A mistake in a field of a policy, a binding or settings, with the message of API servers where they have one. */
export interface FieldProblem extends Pick<FieldError, 'field' | 'message'> {
  /** Position in the expression, counted from 1; absent for other fields, and when the whole expression is wrong. */
  readonly position?: { readonly line: number; readonly column: number; readonly excerpt: string } | undefined;
}

/** The fields of a manifest or of settings; what has the wrong type is added to `problems`. */
export function readFields(value: unknown, problems: FieldProblem[]): FieldReader {
  return new FieldReader(value, ({ path, message }) => problems.push({ field: fieldPathText(path), message }));
}

/** One of the choices; `fallback` when it is missing or empty. */
export function readChoice<Choice extends string>(
  fields: FieldReader,
  key: string,
  choices: readonly Choice[],
  fallback: Choice,
  problems: FieldProblem[],
): Choice {
  const text = fields.text(key) ?? '';
  const found = choices.find((choice) => choice === text);
  if (found === undefined && text !== '') {
    problems.push(notSupported(fields.at(key), text, choices));
  }
  return found ?? fallback;
}

/** A mistake as text. */
export function problemText({ field, message }: FieldProblem): string {
  return field === '' ? message : `${field}: ${message}`;
}

/** All mistakes as one text, as API servers list them. */
export function problemsText(problems: readonly FieldProblem[]): string {
  const [first] = problems;
  return problems.length === 1 && first !== undefined
    ? problemText(first)
    : `[${problems.map(problemText).join(', ')}]`;
}

/** All problems, as messages of builtin modules have them. */
export function joinedProblems(problems: readonly FieldProblem[]): string {
  return problems.map(problemText).join('; ');
}
