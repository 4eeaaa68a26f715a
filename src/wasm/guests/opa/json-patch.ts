import { arrayOperand, FUEL_PER_CHAR, operand, undefinedBecause } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { FUEL_PER_VALUE } from './objects.ts';
import { int64Of, RegoNumber } from './number.ts';
import { identityOf, isArray, RegoObject, RegoSet, valuesEqual } from './value.ts';
import type { RegoValue } from './value.ts';

/** Segments of the longest path: values are not nested deeper. */
const MAX_PATH_LENGTH = 1000;

/** Path segments. Segments can be values of any type, because they also address elements of sets. */
type Path = readonly RegoValue[];

/**
 * JSON Patch as in OPA, which differs from RFC 6902: it supports sets (whose elements are their own keys), paths can be
 * strings or arrays, and leading slashes are optional. An operation that fails makes the whole call undefined.
 */
const patch: OpaBuiltin = (operands, context) => {
  let document: RegoValue | undefined = operand(operands, 0);
  for (const operation of arrayOperand(operands, 1)) {
    if (!(operation instanceof RegoObject)) {
      undefinedBecause('json.patch: an operation must be an object');
    }
    const path = parsePath(field(operation, 'path'));
    if (path.length > MAX_PATH_LENGTH) {
      undefinedBecause('json.patch: no such path');
    }
    document = apply(document, operation, path, {
      copied: (size) => context.charge(size * FUEL_PER_VALUE),
      compared: (chars) => context.charge(chars * FUEL_PER_CHAR),
    });
  }
  return document;
};

interface PatchMeter {
  /** Called with the size of every collection before it is copied. */
  readonly copied: (size: number) => void;
  /** Called with the length of every value that was compared. */
  readonly compared: (chars: number) => void;
}

function apply(
  document: RegoValue | undefined,
  operation: RegoObject,
  path: Path,
  meter: PatchMeter,
): RegoValue | undefined {
  switch (field(operation, 'op')) {
    case 'add':
      return insert(document, path, field(operation, 'value'), meter);
    case 'remove':
      return remove(document, path, meter);
    case 'replace':
      return insert(remove(document, path, meter), path, field(operation, 'value'), meter);
    case 'move': {
      const from = parsePath(field(operation, 'from'));
      const moved = lookUp(document, from);
      return insert(remove(document, from, meter), path, moved, meter);
    }
    case 'copy':
      return insert(document, path, lookUp(document, parsePath(field(operation, 'from'))), meter);
    case 'test':
      return isEqual(lookUp(document, path), field(operation, 'value'), meter)
        ? document
        : undefinedBecause('json.patch: test failed');
    default:
      return undefinedBecause('json.patch: unknown operation');
  }
}

function isEqual(a: RegoValue, b: RegoValue, meter: PatchMeter): boolean {
  const [one, other] = [identityOf(a), identityOf(b)];
  meter.compared(one.length + other.length);
  return one === other;
}

function field(operation: RegoObject, name: string): RegoValue {
  return (
    operation.get(name) ?? (operation.get(name) === null ? null : undefinedBecause(`json.patch: "${name}" is missing`))
  );
}

function parsePath(path: RegoValue): Path {
  if (isArray(path)) {
    return path;
  }
  if (typeof path !== 'string') {
    return undefinedBecause('json.patch: a path must be a string or an array');
  }
  if (path === '') {
    return [];
  }
  const steps = path.replace(/^\/+/, '').split('/');
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function lookUp(document: RegoValue | undefined, path: Path): RegoValue {
  if (document === undefined) {
    return undefinedBecause('json.patch: the path does not exist');
  }
  const [step, ...rest] = path;
  return step === undefined ? document : lookUp(child(document, step), rest);
}

function child(parent: RegoValue, step: RegoValue): RegoValue {
  let found: RegoValue | undefined;
  if (parent instanceof RegoObject) {
    found = parent.get(step);
  } else if (parent instanceof RegoSet) {
    found = parent.has(step) ? step : undefined;
  } else if (isArray(parent)) {
    found = parent[arrayIndex(parent, step)];
  }
  return found === undefined ? undefinedBecause('json.patch: no such path') : found;
}

/** Changes the collection that contains the path's last segment, and copies those above it. */
function edit(
  document: RegoValue | undefined,
  path: Path,
  meter: PatchMeter,
  change: (parent: RegoValue, step: RegoValue) => RegoValue,
): RegoValue {
  const [step, ...rest] = path;
  if (document === undefined || step === undefined) {
    return undefinedBecause('json.patch: the path does not exist');
  }
  countCopy(document, meter);
  if (rest.length === 0) {
    return change(document, step);
  }
  const edited = edit(child(document, step), rest, meter, change);
  if (document instanceof RegoObject) {
    return new RegoObject([...document, [step, edited]]);
  }
  if (document instanceof RegoSet) {
    return new RegoSet([...[...document].filter((item) => !valuesEqual(item, step)), edited]);
  }
  return isArray(document)
    ? document.with(arrayIndex(document, step), edited)
    : undefinedBecause('json.patch: not a collection');
}

function countCopy(collection: RegoValue, meter: PatchMeter): void {
  if (collection instanceof RegoObject || collection instanceof RegoSet) {
    meter.copied(collection.size);
    // The copy identifies keys and items again.
    for (const item of collection) {
      meter.compared(identityOf(collection instanceof RegoObject && isArray(item) ? (item[0] ?? null) : item).length);
    }
  } else {
    meter.copied(isArray(collection) ? collection.length : 1);
  }
}

function insert(document: RegoValue | undefined, path: Path, value: RegoValue, meter: PatchMeter): RegoValue {
  if (path.length === 0) {
    return value;
  }
  return edit(document, path, meter, (parent, step) => {
    if (parent instanceof RegoObject) {
      return new RegoObject([...parent, [step, value]]);
    }
    if (parent instanceof RegoSet) {
      return valuesEqual(step, value)
        ? new RegoSet([...parent, value])
        : undefinedBecause('json.patch: a set element is its own key');
    }
    if (!isArray(parent)) {
      return undefinedBecause('json.patch: not a collection');
    }
    const index = arrayIndex(parent, step);
    return index <= parent.length
      ? parent.toSpliced(index, 0, value)
      : undefinedBecause('json.patch: index out of bounds');
  });
}

function remove(document: RegoValue | undefined, path: Path, meter: PatchMeter): RegoValue | undefined {
  if (path.length === 0) {
    return document === undefined ? undefinedBecause('json.patch: the path does not exist') : undefined;
  }
  return edit(document, path, meter, (parent, step) => {
    child(parent, step);
    if (parent instanceof RegoObject) {
      return new RegoObject([...parent].filter(([key]) => !valuesEqual(key, step)));
    }
    if (parent instanceof RegoSet) {
      return new RegoSet([...parent].filter((item) => !valuesEqual(item, step)));
    }
    return isArray(parent)
      ? parent.toSpliced(arrayIndex(parent, step), 1)
      : undefinedBecause('json.patch: not a collection');
  });
}

/** An array index; `-` is the end of the array. */
function arrayIndex(array: readonly RegoValue[], step: RegoValue): number {
  if (step === '-') {
    return array.length;
  }
  const isPadded = typeof step === 'string' && step !== '0' && step.startsWith('0');
  const text = step instanceof RegoNumber ? step.text : typeof step === 'string' && !isPadded ? step : '';
  const index = int64Of(text);
  return index !== undefined && index >= 0n ? Number(index) : undefinedBecause('json.patch: not an index');
}

export const jsonPatchBuiltins: readonly (readonly [string, OpaBuiltin])[] = [['json.patch', patch]];
