import { DYN, STRING, unwrapped } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { MAX_TYPE_WORK } from './limits.ts';

/**
 * Relations of structs whose values are JSON objects. Evaluation knows no types of them: such a struct is a map with string
 * keys, structs of several types may be in one list, and a comparison with null is no error.
 */
export interface JsonStructs {
  readonly isJson: (name: string) => boolean;
  /** The type with the fields of both. */
  readonly unite: (left: string, right: string) => CelType;
}

/** A struct of {@link JsonStructs} as a map. */
const JSON_OBJECT: CelType = { kind: 'map', key: STRING, value: DYN };

/** {@link MAX_TYPE_WORK} was exceeded. */
export class TypesTooLarge extends Error {}

/**
 * Infers type variables by the rules of cel-go's checker. `dyn` is compatible with every type; null with structs,
 * opaque types, timestamps, durations and wrappers.
 */
export class Unification {
  /** Number of type parts visited so far. */
  #work = 0;
  readonly #bindings = new Map<string, CelType>();
  /** Previous bindings, to roll back a failed attempt. */
  readonly #journal: (readonly [name: string, before: CelType | undefined])[] = [];
  readonly #json: JsonStructs | undefined;

  constructor(json?: JsonStructs) {
    this.#json = json;
  }

  /** The entries of a struct that is a JSON object; other types stay as they are. */
  asMap(type: CelType): CelType {
    return type.kind === 'struct' && this.#json?.isJson(type.name) === true ? JSON_OBJECT : type;
  }

  /** The more general of two compatible types. */
  mostGeneral(left: CelType, right: CelType): CelType {
    return this.#json === undefined ? mostGeneral(left, right) : unite(left, right, this.#json);
  }

  /** Whether a value of type `from` can be used as `to`. Binds type variables only on success. */
  isAssignable(from: CelType, to: CelType): boolean {
    const mark = this.#journal.length;
    if (this.#fits(from, to)) {
      return true;
    }
    this.#rollBack(mark);
    return false;
  }

  /** Like {@link isAssignable} for several types: all must be assignable, otherwise nothing is bound. */
  areAssignable(from: readonly CelType[], to: readonly CelType[]): boolean {
    const mark = this.#journal.length;
    if (this.#fitAll(from, to)) {
      return true;
    }
    this.#rollBack(mark);
    return false;
  }

  /** Replaces bound type variables; free ones are kept, or replaced by `dyn`. */
  substitute(type: CelType, freeToDyn = false): CelType {
    this.#countWork();
    switch (type.kind) {
      case 'parameter': {
        const bound = this.#bindings.get(type.name);
        if (bound !== undefined) {
          return this.substitute(bound, freeToDyn);
        }
        return freeToDyn ? DYN : type;
      }
      case 'list':
      case 'map':
      case 'opaque':
      case 'type':
        return mapType(type, (part) => this.substitute(part, freeToDyn));
      default:
        return type;
    }
  }

  #countWork(): void {
    this.#work += 1;
    if (this.#work > MAX_TYPE_WORK) {
      throw new TypesTooLarge();
    }
  }

  #rollBack(mark: number): void {
    while (this.#journal.length > mark) {
      const [name, before] = this.#journal.pop() ?? ['', undefined];
      if (before === undefined) {
        this.#bindings.delete(name);
      } else {
        this.#bindings.set(name, before);
      }
    }
  }

  #bind(name: string, type: CelType): void {
    this.#journal.push([name, this.#bindings.get(name)]);
    this.#bindings.set(name, type);
  }

  #fitAll(from: readonly CelType[], to: readonly CelType[]): boolean {
    if (from.length !== to.length) {
      return false;
    }
    for (let index = 0; index < from.length; index += 1) {
      const part = from[index];
      const other = to[index];
      if (part === undefined || other === undefined || !this.#fits(part, other)) {
        return false;
      }
    }
    return true;
  }

  #fits(from: CelType, to: CelType): boolean {
    this.#countWork();
    if (to.kind === 'parameter') {
      const { isValid, isBound } = this.#canBind(from, to);
      if (isValid || isBound) {
        return isValid;
      }
    }
    if (from.kind === 'parameter') {
      return this.#canBind(to, from).isValid;
    }
    if (isDynOrError(from) || isDynOrError(to)) {
      return true;
    }
    if (from.kind === 'null' || to.kind === 'null') {
      return this.#json !== undefined || isNullable(from.kind === 'null' ? to : from);
    }
    return this.#fitsConcrete(unwrapped(from), unwrapped(to));
  }

  #fitsConcrete(from: CelType, to: CelType): boolean {
    switch (from.kind) {
      case 'type':
        return to.kind === 'type';
      case 'struct':
        return (
          (to.kind === 'struct' && (from.name === to.name || this.#areJson(from.name, to.name))) ||
          (to.kind === 'map' && this.#fitsMap(from, to))
        );
      case 'opaque':
        return to.kind === 'opaque' && from.name === to.name && this.#fitAll(from.parameters, to.parameters);
      case 'list':
        return to.kind === 'list' && this.#fits(from.element, to.element);
      case 'map':
        return to.kind === 'struct'
          ? this.#fitsMap(to, from)
          : to.kind === 'map' && this.#fits(from.key, to.key) && this.#fits(from.value, to.value);
      default:
        return from.kind === to.kind;
    }
  }

  #areJson(left: string, right: string): boolean {
    return this.#json !== undefined && this.#json.isJson(left) && this.#json.isJson(right);
  }

  #fitsMap(object: CelType, map: Extract<CelType, { kind: 'map' }>): boolean {
    const entries = this.asMap(object);
    return entries.kind === 'map' && this.#fits(entries.key, map.key) && this.#fits(entries.value, map.value);
  }

  /** Whether a type variable can stand for a type (`isValid`), and whether it was bound before (`isBound`). */
  #canBind(type: CelType, variable: ParameterType): { readonly isValid: boolean; readonly isBound: boolean } {
    if (type.kind === 'parameter' && type.name === variable.name) {
      return { isValid: true, isBound: true };
    }
    const bound = this.#bindings.get(variable.name);
    if (bound !== undefined) {
      return { isValid: this.#widen(type, variable, bound), isBound: true };
    }
    if (!this.#isFreeOf(variable.name, type)) {
      return { isValid: false, isBound: false };
    }
    this.#bind(variable.name, type);
    return { isValid: true, isBound: false };
  }

  #widen(type: CelType, variable: ParameterType, bound: CelType): boolean {
    if (isSameType(type, bound)) {
      return true;
    }
    if (!this.#fits(type, bound)) {
      return false;
    }
    const general = this.mostGeneral(type, bound);
    if (this.#isFreeOf(variable.name, general)) {
      this.#bind(variable.name, general);
    }
    return true;
  }

  /** Whether a variable does not occur in a type, including the types that its variables stand for. */
  #isFreeOf(name: string, type: CelType): boolean {
    this.#countWork();
    switch (type.kind) {
      case 'parameter': {
        if (type.name === name) {
          return false;
        }
        const bound = this.#bindings.get(type.name);
        return bound === undefined || this.#isFreeOf(name, bound);
      }
      case 'list':
        return this.#isFreeOf(name, type.element);
      case 'map':
        return this.#isFreeOf(name, type.key) && this.#isFreeOf(name, type.value);
      case 'opaque':
        return type.parameters.every((part) => this.#isFreeOf(name, part));
      case 'type':
        return this.#isFreeOf(name, type.of);
      default:
        return true;
    }
  }
}

const NULLABLE_KINDS: ReadonlySet<CelType['kind']> = new Set([
  'null',
  'opaque',
  'struct',
  'timestamp',
  'duration',
  'wrapper',
]);

type ParameterType = Extract<CelType, { kind: 'parameter' }>;

/** Maps the parts of a type; returns the same object if none changed. */
export function mapType(type: CelType, change: (part: CelType) => CelType): CelType {
  switch (type.kind) {
    case 'list': {
      const element = change(type.element);
      return element === type.element ? type : { kind: 'list', element };
    }
    case 'map': {
      const key = change(type.key);
      const value = change(type.value);
      return key === type.key && value === type.value ? type : { kind: 'map', key, value };
    }
    case 'opaque': {
      const parameters = type.parameters.map(change);
      const isSame = parameters.every((part, index) => part === type.parameters[index]);
      return isSame ? type : { kind: 'opaque', name: type.name, parameters };
    }
    case 'type': {
      const of = change(type.of);
      return of === type.of ? type : { kind: 'type', of };
    }
    default:
      return type;
  }
}

export function isDyn(type: CelType): boolean {
  return type.kind === 'dyn';
}

export function isDynOrError(type: CelType): boolean {
  return type.kind === 'dyn' || type.kind === 'error';
}

/** The value type of an optional type; undefined for other types. */
export function optionalValueType(type: CelType): CelType | undefined {
  return type.kind === 'opaque' && type.name === 'optional_type' ? (type.parameters[0] ?? DYN) : undefined;
}

function isNullable(type: CelType): boolean {
  return NULLABLE_KINDS.has(type.kind);
}

export function isSameType(left: CelType, right: CelType): boolean {
  if (left === right) {
    return true;
  }
  switch (left.kind) {
    case 'list':
    case 'map':
    case 'opaque':
      return holdsForParts(left, right, isSameType);
    case 'type':
    case 'wrapper':
      return right.kind === left.kind && isSameType(left.of, right.of);
    case 'struct':
    case 'parameter':
      return right.kind === left.kind && left.name === right.name;
    default:
      return left.kind === right.kind;
  }
}

/** Whether two types are the same list, map or opaque type but for their parts, for which `relation` holds. */
function holdsForParts(
  left: Extract<CelType, { readonly kind: 'list' | 'map' | 'opaque' }>,
  right: CelType,
  relation: (left: CelType, right: CelType) => boolean,
): boolean {
  switch (left.kind) {
    case 'list':
      return right.kind === 'list' && relation(left.element, right.element);
    case 'map':
      return right.kind === 'map' && relation(left.key, right.key) && relation(left.value, right.value);
    default:
      return (
        right.kind === 'opaque' &&
        left.name === right.name &&
        left.parameters.length === right.parameters.length &&
        left.parameters.every((part, index) => relation(part, right.parameters[index] ?? DYN))
      );
  }
}

/** Like {@link mostGeneral}; two JSON objects become the type with the fields of both. */
function unite(left: CelType, right: CelType, json: JsonStructs): CelType {
  if (left.kind === 'struct' && right.kind === 'struct' && json.isJson(left.name) && json.isJson(right.name)) {
    return left.name === right.name ? left : json.unite(left.name, right.name);
  }
  if (left.kind === 'list' && right.kind === 'list') {
    return { kind: 'list', element: unite(left.element, right.element, json) };
  }
  if (left.kind === 'map' && right.kind === 'map') {
    return { kind: 'map', key: unite(left.key, right.key, json), value: unite(left.value, right.value, json) };
  }
  if (left.kind === 'opaque' && right.kind === 'opaque' && left.name === right.name) {
    const parameters = left.parameters.map((one, index) => unite(one, right.parameters[index] ?? DYN, json));
    return { kind: 'opaque', name: left.name, parameters };
  }
  if (isUnknown(left) || isUnknown(right)) {
    return isUnknown(left) ? right : left;
  }
  if (left.kind === 'map' || right.kind === 'map') {
    // A struct and a map, or a map and any type.
    return left.kind === 'struct' || right.kind === 'struct' ? DYN : mostGeneral(left, right);
  }
  return mostGeneral(left, right);
}

/** Whether the other branch of a conditional says more. */
function isUnknown({ kind }: CelType): boolean {
  return kind === 'null' || kind === 'error';
}

/** The more general of two compatible types. */
function mostGeneral(left: CelType, right: CelType): CelType {
  return isAtMostAsSpecific(left, right) ? left : right;
}

function isAtMostAsSpecific(left: CelType, right: CelType): boolean {
  if (left.kind === 'dyn' || left.kind === 'parameter') {
    return true;
  }
  if (right.kind === 'dyn' || right.kind === 'parameter' || left.kind !== right.kind) {
    return false;
  }
  switch (left.kind) {
    case 'list':
    case 'map':
    case 'opaque':
      return holdsForParts(left, right, isAtMostAsSpecific);
    case 'type':
      return true;
    default:
      return isSameType(left, right);
  }
}

/** Number of parts of a type; stops counting beyond the limit. */
export function countTypeParts(type: CelType, limit: number): number {
  let count = 0;
  const open = [type];
  for (let next = open.pop(); next !== undefined && count <= limit; next = open.pop()) {
    count += 1;
    switch (next.kind) {
      case 'list':
        open.push(next.element);
        break;
      case 'map':
        open.push(next.key, next.value);
        break;
      case 'opaque':
        open.push(...next.parameters);
        break;
      case 'type':
        open.push(next.of);
        break;
      default:
    }
  }
  return count;
}
