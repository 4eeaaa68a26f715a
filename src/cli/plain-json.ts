import { CliError } from './errors.ts';
import type { FieldFault, KeyPath, JsonObject, JsonValue } from '../engine/index.ts';

/** An error in a file. */
export type Fault = Omit<FieldFault, 'code'>;

/** Most values when aliases are written out: enough for megabytes of YAML. */
const MAX_VALUES = 1_000_000;

/**
 * A copy as plain JSON without shared values, of a document whose nesting is bounded; `__proto__` is an ordinary key. Values that JSON does not have
 * become faults. A bigint, for an integer that a number would round, stays one; {@link exactJson} writes it.
 */
export function plainJson(value: unknown, faults: Fault[]): JsonValue {
  let left = MAX_VALUES;
  const path: (string | number)[] = [];
  const copy = (member: unknown, key: KeyPath[number]): JsonValue => {
    path.push(key);
    const result = walk(member);
    path.pop();
    return result;
  };
  const walk = (at: unknown): JsonValue => {
    left -= 1;
    if (left === 0) {
      faults.push({ message: `expected at most ${MAX_VALUES} values after aliases are expanded, got more`, path: [] });
    }
    if (left <= 0) {
      return null;
    }
    if (typeof at === 'number' && !Number.isFinite(at)) {
      faults.push({ message: `expected a finite number, got ${at}`, path: [...path] });
      return null;
    }
    if (Array.isArray(at)) {
      return at.map((element, index) => copy(element, index));
    }
    if (typeof at === 'object' && at !== null) {
      const object: JsonObject = {};
      for (const [key, member] of Object.entries(at)) {
        const entry = { value: copy(member, key), enumerable: true, configurable: true, writable: true };
        Object.defineProperty(object, key, entry);
      }
      return object;
    }
    return at === undefined ? null : (at as JsonValue);
  };
  return walk(value);
}

/**
 * As {@link plainJson}.
 * @param name of the file for messages
 * @throws CliError with the first fault
 */
export function plainValue(value: unknown, name: string): JsonValue {
  const faults: Fault[] = [];
  const copy = plainJson(value, faults);
  const [fault] = faults;
  if (fault !== undefined) {
    throw new CliError(`${name}: ${[...fault.path, fault.message].join(': ')}`);
  }
  return copy;
}
