import { GoFloat, isGoList, isGoObject, JsonNumber } from '../../../go/index.ts';
import { chargeValue, failTemplate, TemplateError } from '../../../go/templates/index.ts';
import type { GoObject, GoValue } from '../../../go/index.ts';
import type { TemplateMeter } from '../../../go/templates/index.ts';
import { isJsonObject, setOwn } from '../../../values/index.ts';
import type { JsonObject, JsonValue } from '../../../values/index.ts';

/** Deepest value from outside. YAML is parsed to 100 levels, but aliases may repeat them. */
const MAX_DEPTH = 200;

/** Values that are copied in the time of a step. A rendering may copy all nodes of the largest cluster. */
const VALUES_PER_STEP = 2;

/** An empty map that functions may change. It has no prototype. */
export function newObject(): Record<string, GoValue> {
  return Object.create(null) as Record<string, GoValue>;
}

/** A map with these entries; later ones replace earlier ones of the same key. */
export function objectOf(entries: Iterable<readonly [string, GoValue]>): GoObject {
  const object = newObject();
  for (const [key, value] of entries) {
    setOwn(object, key, value);
  }
  return object;
}

/**
 * A copy for a template, which may change it. Charged by its size, so that aliases of YAML cannot make it large.
 * @param numberOf the Go value of a number
 * @throws TemplateError `template-limit`
 */
export function goValueOf(
  value: unknown,
  meter: Pick<TemplateMeter, 'steps'>,
  numberOf: (value: number) => GoValue = (number) => number,
  depth = 0,
): GoValue {
  if (depth > MAX_DEPTH) {
    throw new TemplateError('template-limit', `a value is nested deeper than ${MAX_DEPTH} levels`);
  }
  if (Array.isArray(value)) {
    meter.steps(value.length / VALUES_PER_STEP);
    return value.map((item) => goValueOf(item, meter, numberOf, depth + 1));
  }
  if (isJsonObject(value)) {
    const entries = Object.entries(value);
    meter.steps(entries.length / VALUES_PER_STEP);
    return objectOf(entries.map(([key, item]) => [key, goValueOf(item, meter, numberOf, depth + 1)]));
  }
  return typeof value === 'number' ? numberOf(value) : scalarOf(value);
}

function scalarOf(value: unknown): GoValue {
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint' ? value : null;
}

/**
 * A value as JSON, charged by its size.
 * @throws TemplateError `template-failed` for numbers that JSON does not have; `template-limit`
 */
export function jsonOf(value: GoValue, meter: TemplateMeter): JsonValue {
  chargeTexts(value, meter);
  return plainJson(value);
}

function plainJson(value: GoValue): JsonValue {
  if (isGoList(value)) {
    return value.map(plainJson);
  }
  if (isGoObject(value)) {
    const object: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      setOwn(object, key, plainJson(item));
    }
    return object;
  }
  return typeof value === 'string' || typeof value === 'boolean' ? value : jsonNumber(value);
}

function jsonNumber(value: undefined | null | number | bigint | GoFloat | JsonNumber): JsonValue {
  if (value === undefined || value === null) {
    return null;
  }
  const number = value instanceof GoFloat ? value.float : Number(value instanceof JsonNumber ? value.text : value);
  return Number.isFinite(number) ? number : failTemplate('JSON has no infinite numbers');
}

/**
 * Charges for writing all of a value as text, before it is written: a list may contain a long text many times.
 * @throws TemplateError `template-limit`
 */
export function chargeTexts(value: GoValue, meter: TemplateMeter): void {
  chargeValue(value, meter);
  addTexts(value, meter);
}

function addTexts(value: GoValue, meter: TemplateMeter): void {
  if (typeof value === 'string') {
    meter.chars(value.length);
  } else if (isGoList(value)) {
    value.forEach((item) => addTexts(item, meter));
  } else if (isGoObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      meter.chars(key.length);
      addTexts(item, meter);
    }
  }
}
