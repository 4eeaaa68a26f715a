import { Operator } from './index.ts';
import { DYN, typeOf } from '../model/type.ts';
import type { CelType } from '../model/type.ts';

/** The type of types, as the name `type` has it. It is printed without a parameter. */
export const TYPE_OF_TYPES: CelType = typeOf(DYN);

/** A type as API servers print it in errors. */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case 'list':
      return `list(${formatType(type.element)})`;
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case 'opaque':
      return type.parameters.length === 0 ? type.name : `${type.name}(${type.parameters.map(formatType).join(', ')})`;
    case 'type':
      return type === TYPE_OF_TYPES ? 'type' : `type(${formatType(type.of)})`;
    case 'wrapper':
      return `wrapper(${formatType(type.of)})`;
    case 'struct':
    case 'parameter':
      return type.name;
    case 'error':
      return '!error!';
    default:
      return type.kind;
  }
}

/** The argument types of a call: `(int, string)`, or `string.(int)` with a receiver. */
export function formatArguments(types: readonly CelType[], isMember: boolean): string {
  const [receiver, ...rest] = types;
  return isMember && receiver !== undefined
    ? `${formatType(receiver)}.(${rest.map(formatType).join(', ')})`
    : `(${types.map(formatType).join(', ')})`;
}

/** A signature for documentation: `<string>.contains(string) -> bool`, `int + int -> int`. */
export function formatSignature(
  name: string,
  overload: { readonly isMember: boolean; readonly parameters: readonly CelType[]; readonly result: CelType },
): string {
  const types = overload.parameters.map(formatType);
  const [receiver, ...rest] = types;
  const result = formatType(overload.result);
  if (isOperator(name)) {
    return `${formatOperation(name, types)} -> ${result}`;
  }
  return overload.isMember && receiver !== undefined
    ? `<${receiver}>.${name}(${rest.join(', ')}) -> ${result}`
    : `${name}(${types.join(', ')}) -> ${result}`;
}

/** Whether a function name is that of an operator, with a `_` for each operand. */
export function isOperator(name: string): boolean {
  return name === Operator.In || !/[a-z]/u.test(name);
}

function formatOperation(name: string, operands: readonly string[]): string {
  const pattern = name === Operator.In ? '_ in _' : name.replace(/^_([^[\]]+)_$/u, '_ $1 _').replace('?_:', '? _ :');
  let next = 0;
  return pattern.replaceAll('_', () => {
    next += 1;
    return operands[next - 1] ?? '';
  });
}
