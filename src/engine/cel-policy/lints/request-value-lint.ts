// Finds comparisons of the request with texts that it never has: `request.operation == 'create'`.
import { literalTexts } from './constant-text.ts';
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

/** Resources by their names in other spellings. */
const RESOURCES: ReadonlyMap<string, string> = new Map(
  allBuiltinKinds().flatMap(({ kind, singular, resource }) =>
    [singular, kind.toLowerCase(), resource].map((name) => [name, resource] as const),
  ),
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
  ['request.subResource', judgeSubresource],
  ['request.requestSubResource', judgeSubresource],
  ['request.kind.group', judgeGroup],
  ['request.resource.group', judgeGroup],
  ['request.kind.version', judgeVersion],
  ['request.resource.version', judgeVersion],
  ['object.apiVersion', judgeApiVersion],
  ['oldObject.apiVersion', judgeApiVersion],
  ['request.userInfo.username', judgeUser],
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
  if (node.kind !== 'call') {
    return undefined;
  }
  if (node.target !== undefined) {
    return partProblem(node.function, node.target, node.args[0], variables);
  }
  if (!['_==_', '_!=_', '@in'].includes(node.function)) {
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

/** Tests of a part of the operation that are false for every operation: `request.operation.startsWith('cre')`. */
const PART_TESTS: ReadonlyMap<string, (text: string, part: string) => boolean> = new Map([
  ['contains', (text: string, part: string) => text.includes(part)],
  ['endsWith', (text: string, part: string) => text.endsWith(part)],
  ['startsWith', (text: string, part: string) => text.startsWith(part)],
]);

function partProblem(
  name: string,
  target: Expression,
  arg: Expression | undefined,
  variables: Variables,
): string | undefined {
  const test = PART_TESTS.get(name);
  const [part] = arg === undefined ? [] : literalTexts(arg);
  const isWrong =
    test !== undefined &&
    part !== undefined &&
    pathOf(target, variables) === 'request.operation' &&
    !OPERATIONS.some((operation) => test(operation, part));
  return isWrong ? `request.operation is ${OPERATIONS.join(', ')}: ${name}("${part}") is never true` : undefined;
}

function pathOf(node: Expression, variables: Variables): string | undefined {
  const chain = fieldChain(node, variables);
  return chain?.root === undefined ? undefined : [chain.root, ...chain.fields].join('.');
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

function judgeResource(text: string, others: readonly string[]): string | undefined {
  const resource = RESOURCES.get(text.toLowerCase());
  if (resource !== undefined) {
    return text === resource || others.includes(resource) ? undefined : `is "${resource}", never "${text}"`;
  }
  if (text.includes('/')) {
    return `has no subresource, which is in request.subResource: never "${text}"`;
  }
  return /[A-Z]/u.test(text) ? `is in lower case and plural, such as "pods", never "${text}"` : undefined;
}

function judgeSubresource(text: string): string | undefined {
  return text === text.toLowerCase() && !text.includes('/')
    ? undefined
    : `is a name in lower case, such as "status", never "${text}"`;
}

function judgeGroup(text: string): string | undefined {
  const hint =
    text === 'core' || text === 'v1' ? ' for kinds such as Pod, write ""' : ' the version is in another field';
  return text === 'core' || text === 'v1' || text.includes('/') ? `is never "${text}":${hint}` : undefined;
}

function judgeVersion(text: string): string | undefined {
  return text.includes('/') ? `is never "${text}": the group is in another field` : undefined;
}

function judgeApiVersion(text: string): string | undefined {
  return text.startsWith('core/') ? `is "${text.slice('core/'.length)}", never "${text}"` : undefined;
}

/** The group of all service accounts of a namespace has a similar name. */
function judgeUser(text: string): string | undefined {
  return text.startsWith('system:serviceaccounts:')
    ? `is "${text.replace('accounts:', 'account:')}", never "${text}", which is a group`
    : undefined;
}
