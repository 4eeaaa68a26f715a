import { type Expression, expressionsOf } from '../../../cel/index.ts';

/** The values of a type, such as `Object`, and of those below it, such as `Object.spec`. */
export function structsOf(root: Expression, typeName: string): readonly Extract<Expression, { kind: 'struct' }>[] {
  return [...expressionsOf(root)].flatMap((node) =>
    node.kind === 'struct' && (node.typeName === typeName || node.typeName.startsWith(`${typeName}.`)) ? [node] : [],
  );
}
