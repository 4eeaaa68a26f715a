import type { CallExpression } from '../model/ast.ts';
import { allowedSince } from '../model/library.ts';
import type { CelType } from '../model/type.ts';
import type { DeclaredFunction, Declarations, TypeProvider } from './declarations.ts';
import { MAX_LISTED_CANDIDATES } from './limits.ts';
import { didYouMean } from './suggestion.ts';
import { formatSignature, formatType, isOperator } from '../syntax/type-text.ts';
import { listed } from '../../values/index.ts';

/** Suggestions for an undeclared identifier. */
export function hintsForIdentifier(
  name: string,
  declarations: Declarations,
  locals: readonly { readonly name: string }[],
): readonly string[] {
  if (declarations.functions.has(name)) {
    return [`'${name}' is a function: call it`];
  }
  const visible = locals.map((local) => local.name).filter(isSpellable);
  const names = [...visible, ...declarations.variables.keys(), ...declarations.namedTypes.keys()];
  const hints = didYouMean(name, names);
  const variables = [...visible, ...declarations.variables.keys()];
  return hints.length > 0 || variables.length === 0 || variables.length > MAX_LISTED_CANDIDATES
    ? hints
    : [`variables are: ${variables.join(', ')}`];
}

/** Suggestions for an undeclared function. */
export function hintsForFunction(name: string, declarations: Declarations, call: CallExpression): readonly string[] {
  const since = declarations.laterFunctions.get(name);
  if (since !== undefined) {
    return [`Kubernetes allows '${name}' in new expressions since 1.${allowedSince(since)}`];
  }
  const counts = declarations.macros?.argumentCounts(call.function) ?? [];
  if (counts.length > 0) {
    return [`macro '${call.function}' takes ${counts.join(' or ')} arguments`];
  }
  const isMember = call.target !== undefined;
  const names = [...declarations.functions.values()]
    .filter((declared) => declared.overloads.some(({ overload }) => overload.isMember === isMember))
    .map((declared) => declared.name)
    .filter(isSpellable);
  return didYouMean(name, isMember ? [...names, ...declarations.functions.keys()].filter(isSpellable) : names);
}

/** Suggestions for an undefined field of a struct. */
export function hintsForField(field: string, struct: string, types: TypeProvider): readonly string[] {
  const names = types.fieldNames?.(struct) ?? [];
  const hints = didYouMean(field, names);
  return hints.length > 0 || names.length === 0 || names.length > MAX_LISTED_CANDIDATES
    ? hints
    : [`fields are: ${names.join(', ')}`];
}

/** What to write in place of an index into an object with known fields. */
export function hintsForIndex(key: string, struct: string, types: TypeProvider): readonly string[] {
  if (types.fieldType(struct, key) !== undefined) {
    return [isSpellable(key) ? `select the field with .${key}` : 'select the field with a dot, and its name in `…`'];
  }
  const [hint] = hintsForField(key, struct, types);
  return [`there is no field '${key}'${hint === undefined ? '' : `: ${hint}`}`];
}

/** What to write instead of operators, by type. */
const COMPARED_BY_CALLS: ReadonlyMap<string, string> = new Map([
  [
    'kubernetes.Quantity',
    'quantities have no operators: a.compareTo(b) <= 0, a.isGreaterThan(b), a.isLessThan(b), a.add(b), a.sub(b)',
  ],
  ['kubernetes.Semver', 'versions have no operators: a.compareTo(b) <= 0, a.isGreaterThan(b), a.isLessThan(b)'],
]);

/** The signatures that a function has. */
export function hintsForCall(
  declared: DeclaredFunction,
  isMember: boolean,
  types: readonly CelType[],
): readonly string[] {
  const sameStyle = declared.overloads.filter(({ overload }) => overload.isMember === isMember);
  if (sameStyle.length === 0) {
    const style = isMember ? `${declared.name}(...)` : `value.${declared.name}(...)`;
    return [`it is called as ${style}`, ...candidateHints(declared.name, declared.overloads)];
  }
  const calls = isOperator(declared.name)
    ? types.map(formatType).find((name) => COMPARED_BY_CALLS.has(name))
    : undefined;
  if (calls !== undefined) {
    return [COMPARED_BY_CALLS.get(calls) ?? ''];
  }
  const kinds = new Set(types.map(({ kind }) => kind));
  const isMixed = isOperator(declared.name) && kinds.size > 1 && [...kinds].every(isNumericKind);
  return [
    ...(isMixed ? ['numbers of different types do not mix: convert one with int(...), uint(...) or double(...)'] : []),
    ...candidateHints(declared.name, sameStyle),
  ];
}

function candidateHints(name: string, overloads: DeclaredFunction['overloads']): readonly string[] {
  const signatures = overloads.map(({ overload }) => formatSignature(name, overload));
  return [`candidates: ${listed(signatures, MAX_LISTED_CANDIDATES)}`];
}

function isNumericKind(kind: CelType['kind']): boolean {
  return kind === 'int' || kind === 'uint' || kind === 'double';
}

/** Whether expressions can spell a name. Names of operators and internal variables cannot be spelled. */
function isSpellable(name: string): boolean {
  return /^[a-zA-Z_][a-zA-Z0-9_.]*$/u.test(name) && !name.startsWith('_');
}
