// Finds comparisons of the request with texts that it never has: `request.operation == 'create'`.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import { allBuiltinKinds } from '../../../resources/index.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'];
/** Verbs of requests whose operation has another name. */
const VERBS: ReadonlyMap<string, string> = new Map([
  ['PATCH', 'UPDATE'],
  ['PUT', 'UPDATE'],
  ['POST', 'CREATE'],
  ['REPLACE', 'UPDATE'],
  ['DELETECOLLECTION', 'DELETE'],
  ['REMOVE', 'DELETE'],
]);
const KIND_NAMES: ReadonlyMap<string, string> = new Map(
  allBuiltinKinds().flatMap(({ kind, singular, resource }) => [
    [singular, kind],
    [resource, kind],
  ]),
);

/** Says what is wrong with a text; undefined for one that the value may have. @param others texts beside it in a list */
type Judge = (text: string, others: readonly string[]) => string | undefined;

/** By the path of what is compared. */
const JUDGES: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ['request.operation', judgeOperation],
  ['object.kind', judgeKind],
  ['oldObject.kind', judgeKind],
  ['request.kind.kind', judgeKind],
  ['request.requestKind.kind', judgeKind],
  ['request.resource.resource', judgeResource],
  ['request.requestResource.resource', judgeResource],
]);

/** Comparisons with texts that the request never has. */
export function requestValueLint(programs: Programs, variables: Variables): readonly LintFinding[] {
  return [...programs].flatMap(([field, program]) =>
    [...expressionsOf(program.checked.expression)].flatMap((node) => {
      const problem = problemOf(node, variables);
      return problem === undefined ? [] : [findingAt('request-value', field, program, node.start, problem)];
    }),
  );
}

function problemOf(node: Expression, variables: Variables): string | undefined {
  if (node.kind !== 'call' || !['_==_', '_!=_', '@in'].includes(node.function)) {
    return undefined;
  }
  const [left, right] = node.args;
  if (left === undefined || right === undefined) {
    return undefined;
  }
  const sides = node.function === '@in' ? [[left, right] as const] : [[left, right] as const, [right, left] as const];
  for (const [value, text] of sides) {
    const path = pathOf(value, variables);
    const judge = path === undefined ? undefined : JUDGES.get(path);
    const texts = literalTexts(text);
    const problem = judge && texts.map((one) => judge(one, texts)).find((found) => found !== undefined);
    if (problem !== undefined) {
      const what = node.function === '@in' ? 'this entry never matches' : 'they are never equal';
      return `${path} ${problem}: ${what}`;
    }
  }
  return undefined;
}

function pathOf(node: Expression, variables: Variables): string | undefined {
  const chain = fieldChain(node, variables);
  return chain?.root === undefined ? undefined : [chain.root, ...chain.fields].join('.');
}

function literalTexts(node: Expression): readonly string[] {
  if (node.kind === 'literal') {
    return typeof node.value === 'string' ? [node.value] : [];
  }
  return node.kind === 'list' ? node.elements.flatMap(literalTexts) : [];
}

function judgeOperation(text: string, others: readonly string[]): string | undefined {
  const upper = text.toUpperCase();
  if (OPERATIONS.includes(text) || text === '' || (upper !== text && others.includes(upper))) {
    return undefined;
  }
  const meant = OPERATIONS.includes(upper) ? upper : VERBS.get(upper);
  const hint = meant === undefined ? '' : `; write "${meant}"`;
  return `is ${OPERATIONS.join(', ')}, never "${text}"${hint}`;
}

/** Kinds of others may have any name, so only those of Kubernetes in other spellings are wrong. */
function judgeKind(text: string, others: readonly string[]): string | undefined {
  const kind = KIND_NAMES.get(text.toLowerCase());
  return kind === undefined || kind === text || others.includes(kind) ? undefined : `is "${kind}", never "${text}"`;
}

function judgeResource(text: string): string | undefined {
  return /[A-Z]/u.test(text) ? `is in lower case and plural, such as "pods", never "${text}"` : undefined;
}
