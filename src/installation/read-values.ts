// Reads the values of an installation: YAML or JSON with the differences from the defaults.
import { isJsonObject, type JsonObject, type JsonValue } from '../resources/index.ts';
import {
  type InstallValues,
  isSection,
  type ValueDeclaration,
  valuesDeclaration,
  type ValueSection,
} from './objects/install-values.ts';

/** Values that no installation can have. */
export class ValuesError extends Error {
  override readonly name = 'ValuesError';
  /** What to do; absent where the message says what is expected. */
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/**
 * The defaults, replaced by the given values. As in Helm, values of type object are merged with the default, and null removes
 * a key.
 * @param source the name for messages
 * @param options `isPart`: values of an earlier installation are not there yet, which may be what one of these needs
 * @throws ValuesError when a value does not exist, has another type, or contradicts another one
 */
export function installValues(
  given: unknown,
  version: string,
  source: string,
  { isPart = false }: { readonly isPart?: boolean } = {},
): InstallValues {
  const mapping = valuesMapping(given, source);
  const values = merged(valuesDeclaration(version), mapping, source, '') as unknown as InstallValues;
  const { certManager, mode } = values.certificates;
  if (!isPart && certManager.enabled && mode !== 'external') {
    const action = 'Set certificates.mode to external as well: with own, the controller would write the same Secrets.';
    throw new ValuesError(
      `${source}: certificates.certManager.enabled is set, and certificates.mode is ${mode}`,
      action,
    );
  }
  return values;
}

/** The given values, or none. @throws ValuesError when they are no mapping */
export function valuesMapping(given: unknown, source: string): JsonObject {
  if (given !== undefined && given !== null && !isJsonObject(given)) {
    throw new ValuesError(`${source}: expected a mapping of values`);
  }
  return given ?? {};
}

export function defaultValues(version: string): InstallValues {
  return installValues(undefined, version, '');
}

function merged({ values }: ValueSection, given: JsonObject, source: string, path: string): JsonObject {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(values, name)) {
      const known = Object.keys(values).join(', ');
      throw new ValuesError(`${source}: there is no value ${path}${name}; expected one of ${known}`);
    }
  }
  return Object.fromEntries(
    Object.entries(values).map(([name, declared]) => {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      const at = `${path}${name}`;
      if (!isSection(declared)) {
        return [name, checked(declared, value, source, at)];
      }
      if (value !== undefined && value !== null && !isJsonObject(value)) {
        throw new ValuesError(`${source}: ${at}: expected a mapping, got ${JSON.stringify(value)}`);
      }
      return [name, merged(declared, value ?? {}, source, `${at}.`)];
    }),
  );
}

function checked(declared: ValueDeclaration, given: JsonValue | undefined, source: string, path: string): JsonValue {
  if (given === undefined || given === null) {
    return structuredClone(declared.default);
  }
  const problem = problemOf(declared, given);
  if (problem !== undefined) {
    throw new ValuesError(`${source}: ${path}: expected ${problem}, got ${JSON.stringify(given)}`);
  }
  return declared.type === 'object' && isJsonObject(declared.default) && isJsonObject(given)
    ? mergedObjects(declared.default, given)
    : given;
}

/** The expected value; undefined when the value is valid. */
function problemOf(declared: ValueDeclaration, value: JsonValue): string | undefined {
  const { type, minimum = 0 } = declared;
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'integer':
      return Number.isInteger(value) && Number(value) >= minimum ? undefined : `a whole number from ${minimum}`;
    case 'list':
      return Array.isArray(value) && value.every(isJsonObject) ? undefined : 'a list of mappings';
    case 'object':
      return isJsonObject(value) ? undefined : 'a mapping';
    case 'texts':
      return Array.isArray(value) && value.every((one) => typeof one === 'string') ? undefined : 'a list of texts';
    case 'text':
      return textProblem(declared, value);
    default:
      return undefined;
  }
}

function textProblem({ choices, pattern }: ValueDeclaration, value: JsonValue): string | undefined {
  if (typeof value !== 'string') {
    return 'a text';
  }
  if (choices !== undefined && !choices.includes(value)) {
    return `one of ${choices.join(', ')}`;
  }
  // Safe from slow matching: the patterns are those of our declaration.
  return pattern === undefined || new RegExp(pattern).test(value) ? undefined : `a text that matches ${pattern}`;
}

/** Merges recursively, as Helm does; null removes a key. */
function mergedObjects(base: JsonObject, over: JsonObject): JsonObject {
  const result: JsonObject = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const below = Object.hasOwn(result, name) ? result[name] : undefined;
    if (value === null) {
      delete result[name];
    } else {
      result[name] = isJsonObject(below) && isJsonObject(value) ? mergedObjects(below, value) : value;
    }
  }
  return result;
}
