// The fields of requests and objects that expressions of a policy read.
import { type Expression, type ReadPath, fieldReads, type Program } from '../../cel/index.ts';

/** A field that a policy reads. */
export interface FieldRead {
  /** Path of the expression or setting in the settings, or of a match condition in the spec. */
  readonly field: string;
  readonly path: ReadPath;
}

/** The operations that bring an object to its state. */
const OBJECT_OPERATIONS = ['CREATE', 'UPDATE'];

/**
 * What expressions read. Comparisons of `request.operation` that give the same for creations and updates do not count, such as
 * `request.operation != 'DELETE'`.
 */
export function expressionReads(programs: ReadonlyMap<string, Program>): readonly FieldRead[] {
  return [...programs].flatMap(([field, { checked }]) =>
    fieldReads(checked.expression, ignoresOperation).flatMap((path) =>
      byObjects(path).map((one) => ({ field, path: one })),
    ),
  );
}

/** A request also has its objects: `request.object.spec` is `object.spec`. */
function byObjects(path: ReadPath): readonly ReadPath[] {
  const [variable, first, ...rest] = path;
  if (variable !== 'request') {
    return [path];
  }
  if (first === undefined) {
    return [path, ['object'], ['oldObject']];
  }
  return [first === 'object' || first === 'oldObject' ? [first, ...rest] : path];
}

function ignoresOperation(node: Expression): boolean {
  if (node.kind !== 'call') {
    return false;
  }
  const [left, right] = node.args;
  switch (node.function) {
    case '_==_':
    case '_!=_':
      return isOperation(left) ? ignores([right]) : isOperation(right) && ignores([left]);
    case '@in':
      return isOperation(left) && right?.kind === 'list' && ignores(right.elements);
    default:
      return false;
  }
}

/** Whether the texts contain all operations on objects, or none of them. */
function ignores(texts: readonly (Expression | undefined)[]): boolean {
  const values = texts.map((text) => (text?.kind === 'literal' ? text.value : undefined));
  const found = OBJECT_OPERATIONS.filter((operation) => values.includes(operation));
  return values.every((value) => typeof value === 'string') && [0, OBJECT_OPERATIONS.length].includes(found.length);
}

function isOperation(node: Expression | undefined): boolean {
  return (
    node?.kind === 'select' &&
    node.field === 'operation' &&
    node.operand.kind === 'identifier' &&
    node.operand.name === 'request'
  );
}
