import { CliError } from './errors.ts';
import type { FieldFault, FieldPath, JsonObject, JsonValue } from '../engine/index.ts';

/** An error in a file. */
export type Fault = Omit<FieldFault, 'code'>;

/** Most values after aliases are expanded: enough for megabytes of YAML, and a bound for a "billion laughs" file. */
const MAX_VALUES = 1_000_000;
/** Deepest nesting after aliases are expanded, which a value that contains itself exceeds. YAML texts nest 100 deep. */
const MAX_DEPTH = 1_000;

/**
 * A copy as plain JSON without shared or cyclic values; `__proto__` is an ordinary key. Values that JSON does not have
 * become faults. A bigint, for an integer that a number would round, stays one; {@link exactJson} writes it.
 */
export function plainJson(value: unknown, faults: Fault[]): JsonValue {
  let left = MAX_VALUES;
  const path: (string | number)[] = [];
  const copy = (member: unknown, key: FieldPath[number]): JsonValue => {
    path.push(key);
    const result = walk(member);
    path.pop();
    return result;
  };
  const walk = (at: unknown): JsonValue => {
    left -= 1;
    if (path.length > MAX_DEPTH && left > 0) {
      left = -1;
      faults.push({
        message: `expected values nested at most ${MAX_DEPTH} deep, got deeper ones or a cycle`,
        path: [],
      });
    }
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
