/**
 * A CEL type. `dyn` is any type, known only at run time; `parameter` is a type variable of a generic function; `struct`
 * has named fields, known to a type provider; `wrapper` is a value or null, which messages of protobuf make; `opaque` is a
 * type of a library (`net.IP`, `kubernetes.Quantity`,
 * `optional_type`).
 */
export type CelType =
  | { readonly kind: PrimitiveKind }
  | { readonly kind: 'list'; readonly element: CelType }
  | { readonly kind: 'map'; readonly key: CelType; readonly value: CelType }
  | { readonly kind: 'opaque'; readonly name: string; readonly parameters: readonly CelType[] }
  | { readonly kind: 'struct'; readonly name: string }
  | { readonly kind: 'wrapper'; readonly of: CelType }
  | { readonly kind: 'type'; readonly of: CelType }
  | { readonly kind: 'parameter'; readonly name: string };

type PrimitiveKind =
  | 'dyn'
  | 'error'
  | 'null'
  | 'bool'
  | 'int'
  | 'uint'
  | 'double'
  | 'string'
  | 'bytes'
  | 'timestamp'
  | 'duration';

export const DYN: CelType = { kind: 'dyn' };
export const NULL: CelType = { kind: 'null' };
export const BOOL: CelType = { kind: 'bool' };
export const INT: CelType = { kind: 'int' };
export const UINT: CelType = { kind: 'uint' };
export const DOUBLE: CelType = { kind: 'double' };
export const STRING: CelType = { kind: 'string' };
export const BYTES: CelType = { kind: 'bytes' };
export const TIMESTAMP: CelType = { kind: 'timestamp' };
export const DURATION: CelType = { kind: 'duration' };

export function listOf(element: CelType): CelType {
  return { kind: 'list', element };
}

export function mapOf(key: CelType, value: CelType): CelType {
  return { kind: 'map', key, value };
}

export function optionalOf(value: CelType): CelType {
  return { kind: 'opaque', name: 'optional_type', parameters: [value] };
}

export function opaque(name: string, ...parameters: readonly CelType[]): CelType {
  return { kind: 'opaque', name, parameters };
}

export function struct(name: string): CelType {
  return { kind: 'struct', name };
}

export function wrapperOf(of: CelType): CelType {
  return { kind: 'wrapper', of };
}

/** The type of a value that is not null. */
export function unwrapped(type: CelType): CelType {
  return type.kind === 'wrapper' ? type.of : type;
}

export function typeOf(of: CelType): CelType {
  return { kind: 'type', of };
}

export function parameter(name: string): CelType {
  return { kind: 'parameter', name };
}
