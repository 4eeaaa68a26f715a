import { isJsonObject } from '../../values/index.ts';
import type { MutableObject } from '../kubernetes-object.ts';
import { componentOf, QUANTITY_FORMAT } from '../kubernetes/component-schemas.ts';
import { goFactsOf } from '../kubernetes/openapi-data.ts';
import type { Schema } from '../schema.ts';
import type { Fields, TypeDefaults } from './fields.ts';
import { KIND_DEFAULTS } from './kind-defaults.ts';
import { POD_DEFAULTS } from './pod-defaults.ts';
import { canonicalQuantity } from './quantities.ts';

const PREFIX = 'io.k8s.api.';

const DEFAULTS: ReadonlyMap<string, TypeDefaults> = new Map(
  [...Object.entries(POD_DEFAULTS), ...Object.entries(KIND_DEFAULTS)].map(([name, defaults]) => [
    name.startsWith('io.k8s.') ? name : `${PREFIX}${name}`,
    defaults,
  ]),
);

/** How the fields of a struct are normalized, computed once per schema. */
interface StructPlan {
  readonly properties: ReadonlyMap<string, Schema>;
  readonly defaults: readonly (readonly [name: string, value: unknown])[];
  /** Fields with `omitempty`, which are dropped when empty. */
  readonly drop: ReadonlySet<string>;
  /** Fields that are null when absent. */
  readonly null: readonly string[];
  readonly fill: TypeDefaults | undefined;
}

/** Cached plans; schemas are shared and live as long as the process. */
const PLANS = new WeakMap<Schema, StructPlan>();

function planOf(schema: Schema): StructPlan {
  let plan = PLANS.get(schema);
  if (plan === undefined) {
    plan = makePlan(schema);
    PLANS.set(schema, plan);
  }
  return plan;
}

function makePlan(schema: Schema): StructPlan {
  const component = componentOf(schema);
  const facts = component === undefined ? undefined : goFactsOf(component);
  const properties = new Map(Object.entries(schema.properties ?? {}));
  const drop = new Set(facts?.drop.filter((name) => !isStruct(properties.get(name))));
  const defaults = Array.from(properties, ([name, { default: value }]) => [name, value] as const).filter(
    ([name, value]) => value !== undefined && !(drop.has(name) && isZero(value)),
  );
  return {
    properties,
    defaults,
    drop,
    null: facts?.null ?? [],
    fill: component === undefined ? undefined : DEFAULTS.get(component),
  };
}

/** Whether a field is a Go struct. `omitempty` has no effect on structs. */
function isStruct(schema: Schema | undefined): boolean {
  return (
    schema?.properties !== undefined ||
    schema?.format === QUANTITY_FORMAT ||
    schema?.['x-kubernetes-int-or-string'] === true
  );
}

/**
 * Normalizes an object as API servers do when they decode it: sets the defaults of its types, converts quantities and times to
 * their canonical form, and drops or adds empty fields as Go does. Changes the object.
 */
export function applyBuiltinDefaults(object: MutableObject, schema: Schema): void {
  // Two passes, because defaults of a struct may depend on decoded values of nested ones.
  walk(object, schema, readStruct);
  walk(object, schema, fillStruct);
}

/** Called for each struct, before the structs in it. */
type VisitStruct = (fields: Fields, plan: StructPlan) => void;

/** Not recursive, because schemas in CustomResourceDefinitions may nest deeply. */
function walk(object: unknown, schema: Schema, visitStruct: VisitStruct): void {
  const queue: [value: unknown, schema: Schema][] = [[object, schema]];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [value, { properties, items, additionalProperties }] = next;
    if (Array.isArray(value)) {
      if (items !== undefined) {
        visitEntries(value as unknown as Fields, () => items, queue);
      }
    } else if (isJsonObject(value)) {
      if (properties !== undefined) {
        const plan = planOf(next[1]);
        visitStruct(value, plan);
        visitEntries(value, (name) => plan.properties.get(name), queue);
      } else if (typeof additionalProperties === 'object') {
        visitEntries(value, () => additionalProperties, queue);
      }
    }
  }
}

/** Normalizes scalars, and queues lists, maps and structs. */
function visitEntries(
  container: Fields,
  schemaOf: (name: string) => Schema | undefined,
  queue: [value: unknown, schema: Schema][],
): void {
  for (const name of Object.keys(container)) {
    const schema = schemaOf(name);
    const value = container[name];
    if (schema === undefined) {
      continue;
    }
    if (schema.format === QUANTITY_FORMAT) {
      container[name] = canonicalQuantity(value);
    } else if (schema.format === 'date-time' && typeof value === 'string') {
      container[name] = canonicalTime(value, schema);
    } else if (typeof value === 'object' && value !== null) {
      queue.push([value, schema]);
    }
  }
}

/** Drops null and empty fields; null entries of lists and maps become empty values. */
function readStruct(fields: Fields, { drop, properties }: StructPlan): void {
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value === null || (drop.has(name) && isZero(value))) {
      delete fields[name];
    } else if (typeof value === 'object') {
      const { items, additionalProperties } = properties.get(name) ?? {};
      const inner = items ?? additionalProperties;
      if (typeof inner === 'object') {
        replaceNulls(value as Fields, inner);
      }
    }
  }
}

function replaceNulls(container: Fields, schema: Schema): void {
  // No time is written as null.
  const isText = schema.type === 'string' && schema.format !== 'date-time';
  for (const name of Object.keys(container)) {
    if (container[name] === null && (schema.properties !== undefined || isText)) {
      container[name] = schema.properties === undefined ? '' : {};
    }
  }
}

function fillStruct(fields: Fields, { defaults, drop, fill, null: nulls }: StructPlan): void {
  for (const [name, value] of defaults) {
    if (!Object.hasOwn(fields, name)) {
      fields[name] = typeof value === 'object' ? structuredClone(value) : value;
    }
  }
  if (fill !== undefined) {
    fill(fields);
    for (const name of Object.keys(fields)) {
      if (drop.has(name) && isZero(fields[name])) {
        delete fields[name];
      }
    }
  }
  for (const name of nulls) {
    if (!Object.hasOwn(fields, name)) {
      fields[name] = null;
    }
  }
}

const MICRO_TIME = 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime';

/** A time in UTC, with whole seconds or six decimal places. Malformed times are unchanged. */
function canonicalTime(text: string, schema: Schema): string {
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds)) {
    return text;
  }
  const seconds = new Date(milliseconds).toISOString().slice(0, 19);
  if (componentOf(schema) !== MICRO_TIME) {
    return `${seconds}Z`;
  }
  const fraction = /\.(?<digits>\d+)/.exec(text)?.groups?.['digits'] ?? '';
  return `${seconds}.${fraction.slice(0, 6).padEnd(6, '0')}Z`;
}

/** Whether `omitempty` drops a value: null, false, 0, an empty string, list or map. */
function isZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) {
    return Object.keys(value).length === 0;
  }
  return value === null || value === '' || value === 0 || value === false;
}
