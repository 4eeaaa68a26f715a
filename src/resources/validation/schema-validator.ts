// Validation by an OpenAPI schema like in API servers (kube-openapi, `validation/validate`), with their messages, their
// choice among alternatives, and without unchanged mistakes in updates (KEP-4008).
import { numberText, quote } from '../../go/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { pathOfField } from './field-path.ts';
import type { Correlation } from './correlation.ts';
import { equalJson } from './equality.ts';
import { formatCheck } from './formats.ts';
import { additionalOf, MAX_NESTING, propertyOf } from './schema-fields.ts';
import { compilePattern, type Pattern } from '../../go/patterns/index.ts';
import {
  compositeProblem,
  forbiddenField,
  MAX_CHECKS,
  missingField,
  notInEnum,
  SchemaResult,
  tooDeep,
  tooLongText,
  tooManyItems,
  wrongType,
  wrongValue,
} from './schema-result.ts';
import type { CheckBudget } from './schema-result.ts';

/** Checks values against schemas. Patterns are compiled once. */
export class SchemaValidator {
  readonly #patterns = new Map<string, Pattern | string>();

  /** Allowed values of `enum` lists. */
  readonly #allowed = new WeakMap<readonly unknown[], ReadonlySet<unknown>>();
  #budget: CheckBudget = { left: MAX_CHECKS };

  /** Checks a value. Unchanged mistakes at the same place are ignored. */
  validate(value: JsonValue, schema: Schema, path: string, old: Correlation | undefined): SchemaResult {
    this.#budget = { left: MAX_CHECKS };
    const result = this.#validate(value, schema, path, old, 0);
    if (this.#budget.left < 0) {
      result.addTooMuchWork();
    }
    return result;
  }

  #validate(value: JsonValue, schema: Schema, path: string, old: Correlation | undefined, depth: number): SchemaResult {
    return old?.isUnchanged === true ? new SchemaResult(this.#budget) : this.#check(value, schema, path, old, depth);
  }

  #check(value: JsonValue, schema: Schema, path: string, old: Correlation | undefined, depth: number): SchemaResult {
    const result = new SchemaResult(this.#budget);
    this.#budget.left -= 1;
    if (this.#budget.left < 0) {
      return result;
    }
    if (depth > MAX_NESTING) {
      result.add(tooDeep(path, MAX_NESTING));
      return result;
    }
    const hasType = checkType(value, schema, path, result);
    if (value === null) {
      result.matches += hasType ? 1 : 0;
      this.#checkEnum(value, schema, path, result);
      return result;
    }
    this.#checkAlternatives(value, schema, path, depth, result);
    switch (typeof value) {
      case 'string':
        this.#checkText(value, schema, path, result);
        break;
      case 'number':
        checkNumber(value, schema, path, result);
        result.matches += 2;
        break;
      case 'object':
        if (Array.isArray(value)) {
          this.#checkList(value, schema, path, old, depth, result);
          result.matches += 2;
        } else {
          this.#checkFields(value, schema, path, old, depth, result);
          result.matches += 1;
        }
        break;
      default:
    }
    this.#checkEnum(value, schema, path, result);
    // Counts the type, `enum`, and the whole, like API servers.
    result.matches += (isTyped(schema) ? (hasType ? 2 : 1) : 0) + 2;
    return result;
  }

  #checkText(value: string, schema: Schema, path: string, result: SchemaResult): void {
    const problem = this.#textProblem(value, schema, path);
    if (problem !== undefined) {
      result.add(problem);
    }
    result.matches += 1;
    const isOfFormat = formatCheck(schema.format);
    if (isOfFormat !== undefined) {
      result.matches += 1;
      if (!isOfFormat(value)) {
        result.add(wrongType(path, schema.format ?? '', value));
      }
    }
  }

  /** The first problem with the length or the pattern. */
  #textProblem(
    value: string,
    { maxLength, minLength, pattern }: Schema,
    path: string,
  ): ReturnType<typeof wrongValue> | undefined {
    const length = maxLength === undefined && minLength === undefined ? 0 : codePointsOf(value);
    if (maxLength !== undefined && length > maxLength) {
      return tooLongText(path, maxLength);
    }
    if (minLength !== undefined && length < minLength) {
      return wrongValue(path, value, `should be at least ${minLength} chars long`);
    }
    if (pattern === undefined || pattern === '') {
      return undefined;
    }
    const compiled = this.#pattern(pattern);
    if (typeof compiled === 'string') {
      return wrongValue(path, value, `should match '${pattern}, but pattern is invalid: ${compiled}'`);
    }
    return compiled.test(value) ? undefined : wrongValue(path, value, `should match '${pattern}'`);
  }

  #pattern(pattern: string): Pattern | string {
    const known = this.#patterns.get(pattern) ?? compilePattern(pattern);
    this.#patterns.set(pattern, known);
    return known;
  }

  #checkList(
    list: readonly JsonValue[],
    { items, minItems, maxItems, uniqueItems }: Schema,
    path: string,
    old: Correlation | undefined,
    depth: number,
    result: SchemaResult,
  ): void {
    if (items !== undefined) {
      for (const [index, element] of list.entries()) {
        result.merge(this.#validate(element, items, `${path}[${index}]`, old?.element(index), depth + 1));
      }
    }
    if (minItems !== undefined && list.length < minItems) {
      result.add(wrongValue(path, list.length, `should have at least ${minItems} items`));
    }
    if (maxItems !== undefined && list.length > maxItems) {
      result.add(tooManyItems(path, list.length, maxItems, 'items'));
    }
    if (uniqueItems === true && hasDuplicates(list)) {
      result.add(wrongValue(path, '', "shouldn't contain duplicates"));
    }
  }

  #checkFields(
    object: JsonObject,
    schema: Schema,
    path: string,
    old: Correlation | undefined,
    depth: number,
    result: SchemaResult,
  ): void {
    const { minProperties, maxProperties, additionalProperties, properties = {}, required = [] } = schema;
    const fields = Object.keys(object);
    const named = Object.keys(properties);
    this.#budget.left -= named.length + required.length;
    if (this.#budget.left < 0) {
      return;
    }
    if (minProperties !== undefined && fields.length < minProperties) {
      result.add(wrongValue(path, fields.length, `should have at least ${minProperties} properties`));
    }
    if (maxProperties !== undefined && fields.length > maxProperties) {
      result.add(tooManyItems(path, fields.length, maxProperties, 'properties'));
    }
    const additional = additionalOf(schema);
    for (const name of additional === undefined && additionalProperties !== false ? [] : fields) {
      if (propertyOf(schema, name) !== undefined) {
        continue;
      }
      if (additional === undefined) {
        result.add(forbiddenField(path, name));
      } else {
        const child = own(object, name) ?? null;
        result.merge(this.#validate(child, additional, `${path}.${name}`, fieldBefore(old, path, name), depth + 1));
      }
    }
    for (const name of named) {
      const child = own(object, name);
      const property = properties[name];
      if (child !== undefined && property !== undefined) {
        result.merge(this.#validate(child, property, pathOfField(path, name), fieldBefore(old, path, name), depth + 1));
      }
    }
    for (const name of required) {
      if (!Object.hasOwn(object, name)) {
        result.add(missingField(`${path}.${name}`));
      }
    }
  }

  #checkEnum(value: JsonValue, schema: Schema, path: string, result: SchemaResult): void {
    const allowed = schema.enum ?? [];
    if (allowed.length > 0 && (value === null || !this.#isAllowed(value, allowed))) {
      result.add(notInEnum(path, value, allowed));
    }
  }

  #isAllowed(value: JsonValue, allowed: readonly unknown[]): boolean {
    if (typeof value === 'object') {
      this.#budget.left -= allowed.length;
      return allowed.some((one) => equalJson(one, value));
    }
    let scalars = this.#allowed.get(allowed);
    if (scalars === undefined) {
      scalars = new Set(allowed);
      this.#allowed.set(allowed, scalars);
    }
    return scalars.has(value);
  }

  #checkAlternatives(
    value: JsonValue,
    { anyOf, oneOf, allOf, not }: Schema,
    path: string,
    depth: number,
    result: SchemaResult,
  ): void {
    // As in API servers, unchanged mistakes count within alternatives.
    const check = (schema: Schema): SchemaResult => this.#check(value, schema, path, undefined, depth + 1);
    if (anyOf !== undefined && anyOf.length > 0) {
      checkAnyOf(anyOf, check, path, result);
    }
    if (oneOf !== undefined && oneOf.length > 0) {
      checkOneOf(oneOf, check, path, result);
    }
    if (allOf !== undefined && allOf.length > 0) {
      checkAllOf(allOf, check, path, result);
    }
    if (not !== undefined && check(not).isValid) {
      result.add(compositeProblem(`${quote(path)} must not validate the schema (not)`));
    }
    result.matches += 2;
  }
}

/** As in API servers, `apiVersion` and `kind` of the whole object never count as unchanged. */
function fieldBefore(old: Correlation | undefined, path: string, name: string): Correlation | undefined {
  return path === '' && (name === 'apiVersion' || name === 'kind') ? undefined : old?.field(name);
}

type CheckSchema = (schema: Schema) => SchemaResult;

function checkAnyOf(anyOf: readonly Schema[], check: CheckSchema, path: string, result: SchemaResult): void {
  let best: SchemaResult | undefined;
  for (const schema of anyOf) {
    const one = check(schema);
    if (one.isValid) {
      result.merge(one);
      return;
    }
    best = best === undefined || one.matches > best.matches ? one : best;
  }
  result.add(compositeProblem(`${quote(path)} must validate at least one schema (anyOf)`));
  if (best !== undefined) {
    result.merge(best);
  }
}

function checkOneOf(oneOf: readonly Schema[], check: CheckSchema, path: string, result: SchemaResult): void {
  let best: SchemaResult | undefined;
  let first: SchemaResult | undefined;
  let valid = 0;
  for (const schema of oneOf) {
    const one = check(schema);
    if (one.isValid) {
      valid += 1;
      first ??= one;
      best = undefined;
    } else if (valid === 0) {
      best = best === undefined || one.matches > best.matches ? one : best;
    }
  }
  if (valid === 1 && first !== undefined) {
    result.merge(first);
    return;
  }
  const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
  result.add(compositeProblem(`${quote(path)} must validate one and only one schema (oneOf). ${found}`));
  if (best !== undefined) {
    result.merge(best);
  }
}

function checkAllOf(allOf: readonly Schema[], check: CheckSchema, path: string, result: SchemaResult): void {
  let valid = 0;
  for (const schema of allOf) {
    const one = check(schema);
    valid += one.isValid ? 1 : 0;
    result.merge(one);
  }
  if (valid !== allOf.length) {
    const none = valid === 0 ? '. None validated' : '';
    result.add(compositeProblem(`${quote(path)} must validate all the schemas (allOf)${none}`));
  }
}

/** @returns whether the value has a type of the schema. */
function checkType(value: JsonValue, schema: Schema, path: string, result: SchemaResult): boolean {
  const types = typesOf(schema);
  if (types.length === 0 || (value === null && schema.nullable === true)) {
    return true;
  }
  const actual = typeOf(value);
  // Strings and lists with a known format are checked by the format.
  const isLeftToFormat =
    formatCheck(schema.format) !== undefined &&
    !types.includes('number') &&
    !types.includes('integer') &&
    (actual === 'string' || actual === 'array');
  if (isLeftToFormat || types.includes(actual) || (actual === 'integer' && types.includes('number'))) {
    return true;
  }
  result.add(wrongType(path, types.join(','), actual));
  return false;
}

function typesOf(schema: Schema): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) {
    return ['integer', 'string'];
  }
  return schema.type === undefined ? [] : [schema.type];
}

function isTyped(schema: Schema): boolean {
  return typesOf(schema).length > 0 || formatCheck(schema.format) !== undefined;
}

/** Larger integers are floating point numbers in API servers. */
const INT64_BOUND = 2 ** 63;

function typeOf(value: JsonValue): string {
  switch (typeof value) {
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < INT64_BOUND ? 'integer' : 'number';
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'array' : 'object';
    default:
      return typeof value;
  }
}

function checkNumber(value: number, schema: Schema, path: string, result: SchemaResult): void {
  const { multipleOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  // As in API servers, integers are compared with the bound's integer part.
  const isInteger = typeOf(value) === 'integer';
  const bound = (given: number): number => (isInteger ? Math.trunc(given) : given);
  if (multipleOf !== undefined) {
    checkMultiple(value, bound(multipleOf), path, result);
  }
  if (minimum !== undefined) {
    const least = bound(minimum);
    if (exclusiveMinimum === true ? value <= least : value < least) {
      const than = exclusiveMinimum === true ? 'greater than' : 'greater than or equal to';
      result.add(wrongValue(path, value, `should be ${than} ${numberText(least)}`));
    }
  }
  if (maximum !== undefined) {
    const most = bound(maximum);
    if (exclusiveMaximum === true ? value >= most : value > most) {
      const than = exclusiveMaximum === true ? 'less than' : 'less than or equal to';
      result.add(wrongValue(path, value, `should be ${than} ${numberText(most)}`));
    }
  }
}

function checkMultiple(value: number, factor: number, path: string, result: SchemaResult): void {
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  if (factor <= 0) {
    const text = `factor MultipleOf declared for ${path} must be positive: ${numberText(factor)}`;
    result.add({
      text,
      error: { ...wrongValue(path, factor, '').error, message: `Invalid value: ${numberText(factor)}: ${text}` },
    });
  } else if (!isNearInteger(quotient)) {
    result.add(wrongValue(path, value, `should be a multiple of ${numberText(factor)}`));
  }
}

/** Whether a floating point quotient counts as an integer. */
function isNearInteger(value: number): boolean {
  const EPSILON = 1e-9;
  const difference = Math.abs(value - Math.trunc(value));
  return (
    Number.isFinite(value) &&
    Math.abs(value) <= Number.MAX_SAFE_INTEGER &&
    (difference === 0 || difference < EPSILON * Math.abs(value) || 1 - difference < EPSILON * Math.abs(value))
  );
}

function hasDuplicates(list: readonly JsonValue[]): boolean {
  const seen = new Set(
    list.map((element) => (isJsonObject(element) || Array.isArray(element) ? JSON.stringify(element) : element)),
  );
  return seen.size !== list.length;
}

function codePointsOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    // The second half of a surrogate pair does not count.
    count += code >= 0xdc00 && code <= 0xdfff ? 0 : 1;
  }
  return count;
}
