import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { PatchError } from './patch-error.ts';

/** One operation of a JSON patch that a policy computed. `value` is undefined when it is missing. */
export interface PatchStep {
  readonly op: string;
  readonly path: string;
  readonly from: string;
  readonly value: unknown;
}

/**
 * Maximum size of all values that the `copy` operations of one patch add, as JSON, in bytes: the limit of API servers.
 */
export const MAX_COPIED_BYTES = 3 * 1024 * 1024;

/** Maximum number of operations of a patch: the limit of API servers. */
export const MAX_JSON_PATCH_OPERATIONS = 10_000;

/**
 * Maximum number of list positions by which the operations of one patch shift elements, in total: ten thousand
 * insertions at the start of a list of half a million would take seconds; into a list of ten thousand they are
 * accepted.
 */
export const MAX_SHIFTED_ELEMENTS = 200_000_000;

type Container = unknown[] | Record<string, unknown>;

/** Applies an untrusted JSON patch (RFC 6902). See {@link applyPatchSteps}. Throws {@link PatchError}. */
export function applyJsonPatch(object: JsonObject, operations: readonly JsonValue[]): JsonValue {
  if (operations.length > MAX_JSON_PATCH_OPERATIONS) {
    throw new PatchError(
      'too-large',
      `The allowed maximum operations in a JSON patch is ${MAX_JSON_PATCH_OPERATIONS}, got ${operations.length}`,
    );
  }
  for (const operation of operations) {
    if (!isJsonObject(operation)) {
      throw new PatchError(
        'malformed',
        `json: cannot unmarshal ${kindOf(operation)} into Go value of type jsonpatch.Operation`,
      );
    }
  }
  const patcher = new Patcher(object);
  for (const operation of operations as readonly JsonObject[]) {
    patcher.apply(stepOf(operation));
  }
  return patcher.document as JsonValue;
}

/** The name of a JSON type in messages of Go. */
function kindOf(value: JsonValue): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
}

function stepOf(operation: JsonObject): PatchStep {
  const op = textOf(operation, 'op') ?? 'unknown';
  const from = textOf(operation, 'from') ?? '';
  const path = textOf(operation, 'path');
  if (path === undefined && OPERATIONS.has(op) && !(FROM_OPERATIONS.has(op) && from === '')) {
    const text = PLAIN_PATH_OPERATIONS.has(op) ? '' : 'operation missing path field: ';
    throw missing(`${op} operation failed to decode path: ${text}`.replace(/: $/u, ''));
  }
  return { op, from, path: path ?? '', value: Object.hasOwn(operation, 'value') ? operation['value'] : undefined };
}

const FROM_OPERATIONS: ReadonlySet<string> = new Set(['move', 'copy']);
const PLAIN_PATH_OPERATIONS: ReadonlySet<string> = new Set(['add', 'remove', 'copy']);
const OPERATIONS: ReadonlySet<string> = new Set(['add', 'remove', 'replace', 'move', 'test', 'copy']);

function textOf(operation: JsonObject, key: string): string | undefined {
  const value = Object.hasOwn(operation, key) ? operation[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/**
 * Applies a JSON patch like API servers, including deviations from RFC 6902: `replace` sets missing keys, and negative
 * list indices count from the end. Objects and lists are those of `JSON.parse`; everything else is a value. The
 * document is not changed. Throws {@link PatchError}.
 */
export function applyPatchSteps(document: unknown, steps: readonly PatchStep[]): unknown {
  const patcher = new Patcher(document);
  for (const step of steps) {
    patcher.apply(step);
  }
  return patcher.document;
}

class Patcher {
  #root: { document: unknown };
  /** Copies of containers, which may be changed. */
  readonly #own = new Set<unknown>();
  #copied = 0;
  #shifted = 0;

  constructor(document: unknown) {
    this.#root = { document };
  }

  get document(): unknown {
    return this.#root.document;
  }

  apply(step: PatchStep): void {
    switch (step.op) {
      case 'add':
        return this.#add(step);
      case 'remove':
        return this.#remove(step);
      case 'replace':
        return this.#replace(step);
      case 'move':
        return this.#move(step);
      case 'test':
        return this.#test(step);
      case 'copy':
        return this.#copy(step);
      default:
        throw new PatchError('does-not-apply', `Unexpected kind: ${step.op}`);
    }
  }

  #add({ path, value }: PatchStep): void {
    const found = this.#find(path);
    if (found === undefined) {
      throw missing(`add operation does not apply: doc is missing path: "${path}"`);
    }
    prefixed(`error in add for path: '${path}'`, () => this.#insert(found.container, found.key, value ?? null));
  }

  #remove({ path }: PatchStep): void {
    const found = this.#find(path);
    if (found === undefined) {
      throw missing(`remove operation does not apply: doc is missing path: "${path}"`);
    }
    prefixed(`error in remove for path: '${path}'`, () => this.#delete(found.container, found.key));
  }

  #replace({ path, value }: PatchStep): void {
    if (path === '') {
      if (!isContainer(value)) {
        throw new PatchError('does-not-apply', 'replace operation value must be object or array: %!w(<nil>)');
      }
      this.#root.document = value;
      return;
    }
    const found = this.#find(path);
    if (found === undefined) {
      throw missing(`replace operation does not apply: doc is missing path: ${path}`);
    }
    try {
      read(found.container, found.key);
    } catch {
      throw missing(`replace operation does not apply: doc is missing key: ${path}`);
    }
    const { container, key } = found;
    if (Array.isArray(container)) {
      container[indexIn(container, key)] = value ?? null;
    } else {
      setOwn(container, key, value ?? null);
    }
  }

  #move({ path, from }: PatchStep): void {
    requireFrom('move', from);
    const source = this.#find(from);
    if (source === undefined) {
      throw missing(`move operation does not apply: doc is missing from path: ${from}`);
    }
    const value = prefixed(`error in move for path: '${source.key}'`, () => {
      const found = read(source.container, source.key);
      this.#delete(source.container, source.key);
      return found;
    });
    const target = this.#find(path);
    if (target === undefined) {
      throw missing(`move operation does not apply: doc is missing destination path: ${path}`);
    }
    prefixed(`error in move for path: '${path}'`, () => this.#insert(target.container, target.key, value ?? null));
  }

  #test({ path, value }: PatchStep): void {
    let actual: unknown = this.document;
    if (path !== '') {
      const found = this.#find(path);
      if (found === undefined) {
        throw missing(`test operation does not apply: is missing path: ${path}`);
      }
      actual = prefixed(`error in test for path: '${path}'`, () => read(found.container, found.key));
    }
    if (!isSame(actual ?? null, value ?? null)) {
      throw new PatchError('test-failed', `testing value ${path} failed: test failed`);
    }
  }

  #copy({ path, from }: PatchStep): void {
    requireFrom('copy', from);
    const source = this.#find(from);
    if (source === undefined) {
      throw missing(`copy operation does not apply: doc is missing from path: ${from}`);
    }
    const value = prefixed(`error in copy for from: '${from}'`, () => read(source.container, source.key));
    const target = this.#find(path);
    if (target === undefined) {
      throw missing(`copy operation does not apply: doc is missing destination path: ${path}`);
    }
    const { copy, bytes } = deepCopy(value ?? null);
    this.#copied += bytes;
    if (this.#copied > MAX_COPIED_BYTES) {
      throw new PatchError(
        'does-not-apply',
        `Unable to complete the copy, the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${MAX_COPIED_BYTES}`,
      );
    }
    prefixed('error while adding value during copy', () => this.#insert(target.container, target.key, copy));
  }

  #insert(container: Container, key: string, value: unknown): void {
    if (!Array.isArray(container)) {
      setOwn(container, key, value);
    } else if (key === '-') {
      container.push(value);
    } else {
      const at = placeIn(container, key);
      this.#shift(container.length - at);
      container.splice(at, 0, value);
    }
  }

  #delete(container: Container, key: string): void {
    if (Array.isArray(container)) {
      const at = indexIn(container, key);
      this.#shift(container.length - at);
      container.splice(at, 1);
    } else if (Object.hasOwn(container, key)) {
      delete container[key];
    } else {
      throw missing(`Unable to remove nonexistent key: ${key}`);
    }
  }

  #shift(elements: number): void {
    this.#shifted += elements;
    if (this.#shifted > MAX_SHIFTED_ELEMENTS) {
      const text = `The operations shift elements of lists by more than ${MAX_SHIFTED_ELEMENTS} places: replace the lists`;
      throw new PatchError('too-large', text);
    }
  }

  /** A copy of the container at a path, and the last key. Undefined when it does not exist. */
  #find(path: string): { readonly container: Container; readonly key: string } | undefined {
    const [root, ...parts] = path.split('/');
    const key = parts.pop();
    if (root === undefined || key === undefined || !isContainer(this.document)) {
      return undefined;
    }
    let container = this.#ownCopy(this.document);
    this.#root.document = container;
    for (const part of parts) {
      const name = decodeKey(part);
      let next: unknown;
      try {
        next = read(container, name);
      } catch {
        return undefined;
      }
      if (!isContainer(next)) {
        return undefined;
      }
      const copy = this.#ownCopy(next);
      if (copy !== next) {
        if (Array.isArray(container)) {
          container[indexIn(container, name)] = copy;
        } else {
          setOwn(container, name, copy);
        }
      }
      container = copy;
    }
    return { container, key: decodeKey(key) };
  }

  #ownCopy(container: Container): Container {
    if (this.#own.has(container)) {
      return container;
    }
    const copy: Container = Array.isArray(container) ? [...container] : { ...container };
    this.#own.add(copy);
    return copy;
  }
}

/**
 * The value at a key; undefined for a missing key of an object. Throws {@link PatchError} for a missing index of a
 * list.
 */
function read(container: Container, key: string): unknown {
  if (Array.isArray(container)) {
    return container[indexIn(container, key)];
  }
  return Object.hasOwn(container, key) ? container[key] : undefined;
}

/** The index to insert an element at. */
function placeIn({ length }: readonly unknown[], key: string): number {
  const index = prefixed(`value was not a proper array index: '${key}'`, () => parseIndex(key));
  if (index > length || index < -(length + 1)) {
    throw invalidIndex(index);
  }
  return index < 0 ? index + length + 1 : index;
}

/** The index of an existing element. */
function indexIn(list: readonly unknown[], key: string): number {
  const index = parseIndex(key);
  const { length } = list;
  if (index >= length || index < -length) {
    throw invalidIndex(index);
  }
  return index < 0 ? index + length : index;
}

/** Go's strconv.Atoi. */
function parseIndex(text: string): number {
  const shown = JSON.stringify(text);
  if (!/^[+-]?\d+$/u.test(text)) {
    throw new PatchError('does-not-apply', `strconv.Atoi: parsing ${shown}: invalid syntax`);
  }
  const index = Number(text);
  if (Math.abs(index) >= 2 ** 63) {
    throw new PatchError('does-not-apply', `strconv.Atoi: parsing ${shown}: value out of range`);
  }
  return index;
}

function isContainer(value: unknown): value is Container {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

/** Whether two values are equal as JSON. Other values are equal if their JSON is. */
function isSame(left: unknown, right: unknown): boolean {
  const open: [unknown, unknown][] = [[left, right]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [a, b] = pair;
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) {
        return false;
      }
      for (const [index, element] of a.entries()) {
        open.push([element, b[index]]);
      }
    } else if (isContainer(a) && isContainer(b) && !Array.isArray(a) && !Array.isArray(b)) {
      const keys = Object.keys(a);
      if (keys.length !== Object.keys(b).length || !keys.every((key) => Object.hasOwn(b, key))) {
        return false;
      }
      for (const key of keys) {
        open.push([a[key], b[key]]);
      }
    } else if (isContainer(a) || isContainer(b) || scalar(a) !== scalar(b)) {
      return false;
    }
  }
  return true;
}

function scalar(value: unknown): unknown {
  if (typeof value === 'bigint') {
    return Number(value);
  }
  // A double with an integral value.
  return typeof value === 'object' && value !== null && 'value' in value ? value.value : value;
}

/** A deep copy, and its size as JSON. */
function deepCopy(value: unknown): { readonly copy: unknown; readonly bytes: number } {
  const holder: unknown[] = [value];
  const open: { readonly container: Container; readonly key: string | number }[] = [{ container: holder, key: 0 }];
  let bytes = 0;
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { container, key } = item;
    const current = (container as Record<string | number, unknown>)[key];
    if (!isContainer(current)) {
      bytes += Buffer.byteLength(JSON.stringify(scalar(current)) ?? 'null');
      continue;
    }
    const copy: Container = Array.isArray(current) ? [...current] : { ...current };
    const entries = Array.isArray(copy) ? copy.keys() : Object.keys(copy);
    bytes += 2;
    for (const entry of entries) {
      bytes += typeof entry === 'string' ? Buffer.byteLength(JSON.stringify(entry)) + 2 : 1;
      open.push({ container: copy, key: entry });
    }
    setOwn(container, key, copy);
  }
  return { copy: holder[0], bytes };
}

function setOwn(container: Container, key: string | number, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    (container as Record<string | number, unknown>)[key] = value;
  }
}

function decodeKey(key: string): string {
  return key.includes('~') ? key.replaceAll('~1', '/').replaceAll('~0', '~') : key;
}

function requireFrom(op: string, from: string): void {
  if (from === '') {
    throw new PatchError(
      'does-not-apply',
      `${op} operation failed to decode from: operation, missing from field: missing value`,
    );
  }
}

function missing(text: string): PatchError {
  return new PatchError('does-not-apply', `${text}: missing value`);
}

function invalidIndex(index: number): PatchError {
  return new PatchError('does-not-apply', `Unable to access invalid index: ${index}: invalid index referenced`);
}

function prefixed<Result>(prefix: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw error instanceof PatchError
      ? new PatchError(error.code, `${prefix}: ${error.message}`, { cause: error })
      : error;
  }
}
