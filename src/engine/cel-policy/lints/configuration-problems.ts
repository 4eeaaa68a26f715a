import type { Expression } from '../../../cel/index.ts';
import type { MergeType } from '../../../resources/structured-merge/index.ts';
import type { Variables } from './field-chain.ts';
import type { MatchedSchema } from './matched-schemas.ts';
import type { MutationProblem } from './mutation-problem.ts';
import { structsOf } from './structs-of.ts';

const ROOT = 'Object';

/** Fields of an ApplyConfiguration that API servers refuse for objects of a kind: those that are merged as a whole. */
export function configurationProblems(
  root: Expression,
  _variables: Variables,
  { kind, type }: MatchedSchema,
): readonly MutationProblem[] {
  return structsOf(root, ROOT).flatMap((struct) => {
    const path = struct.typeName.split('.').slice(1);
    const own = path.reduce<MergeType | undefined>((above, name) => above && elementOf(above).map?.field(name), type);
    const atomic =
      own === undefined ? [] : atomicFields(struct, elementOf(own), path.map((name) => `.${name}`).join(''));
    return atomic.map((field) => ({
      node: struct,
      message: `${field} of ${kind ?? 'the object'} is merged as a whole (atomic), and ApplyConfiguration may not mutate atomic arrays, maps or structs: write a mutation with patchType JSONPatch`,
      isFatal: true,
    }));
  });
}

/** The type of an object: of the elements, if it is a list of objects. */
function elementOf(type: MergeType): MergeType {
  return type.map === undefined && type.list !== undefined ? type.list.element() : type;
}

/** Paths of atomic fields that a struct, or maps in it, set. Structs in it are looked at by themselves. */
function atomicFields(node: Expression, type: MergeType, path: string): readonly string[] {
  if (isOpen(type)) {
    return [];
  }
  return fieldsOf(node).flatMap(({ name, value }) => {
    const below = type.map?.isNamed(name) === true ? type.map.field(name) : undefined;
    if (below === undefined || isOpen(below) || isNull(value)) {
      return [];
    }
    const at = `${path}.${name}`;
    const isAtomic = below.map?.isAtomic === true || below.list?.isAtomic === true;
    return isAtomic
      ? [at]
      : elementsOf(value).flatMap((one) => (one.kind === 'map' ? atomicFields(one, elementOf(below), at) : []));
  });
}

/** Anything is allowed there, so nothing is known. */
function isOpen({ scalar }: MergeType): boolean {
  return scalar === 'untyped';
}

function isNull(value: Expression): boolean {
  return value.kind === 'literal' && value.value === null;
}

function elementsOf(value: Expression): readonly Expression[] {
  return value.kind === 'list' ? value.elements : [value];
}

function fieldsOf(node: Expression): readonly { readonly name: string; readonly value: Expression }[] {
  if (node.kind === 'struct') {
    return node.fields.filter(({ isOptional }) => !isOptional);
  }
  return node.kind === 'map'
    ? node.entries.flatMap(({ key, value, isOptional }) =>
        key.kind === 'literal' && typeof key.value === 'string' && !isOptional ? [{ name: key.value, value }] : [],
      )
    : [];
}
