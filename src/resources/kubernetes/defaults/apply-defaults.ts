import { isJsonObject } from '../../json.ts';
import type { MutableObject } from '../../resource-definition.ts';
import type { Schema } from '../../schema.ts';
import { componentOf, QUANTITY_FORMAT } from '../component-schemas.ts';
import { zeroValuesOf } from '../openapi-data.ts';
import { canonicalQuantity } from '../quantities.ts';
import type { Fields, TypeDefaults } from './fields.ts';
import { KIND_DEFAULTS } from './kind-defaults.ts';
import { POD_DEFAULTS } from './pod-defaults.ts';

const PREFIX = 'io.k8s.api.';

const DEFAULTS: ReadonlyMap<string, TypeDefaults> = new Map(
  [...Object.entries(POD_DEFAULTS), ...Object.entries(KIND_DEFAULTS)].map(([name, defaults]) => [
    name.startsWith('io.k8s.') ? name : `${PREFIX}${name}`,
    defaults,
  ]),
);

/** What is to be done with the fields of a struct: worked out once per schema. */
interface StructPlan {
  readonly properties: ReadonlyMap<string, Schema>;
  readonly defaults: readonly (readonly [name: string, value: unknown])[];
  /** Fields that vanish when they are empty. */
  readonly drop: ReadonlySet<string>;
  /** Fields that are null when they are absent. */
  readonly null: readonly string[];
  readonly fill: TypeDefaults | undefined;
}

/** Memory of the plans: schemas are shared and live as long as the program. */
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
  const zero = component === undefined ? undefined : zeroValuesOf(component);
  const properties = new Map(Object.entries(schema.properties ?? {}));
  // A struct stays when it is empty.
  const drop = new Set(zero?.drop.filter((name) => properties.get(name)?.properties === undefined));
  const defaults = Array.from(properties, ([name, { default: value }]) => [name, value] as const).filter(
    ([name, value]) => value !== undefined && !(drop.has(name) && isZero(value)),
  );
  return {
    properties,
    defaults,
    drop,
    null: zero?.null ?? [],
    fill: component === undefined ? undefined : DEFAULTS.get(component),
  };
}

/**
 * Makes of an object what an API server stores when it reads it: fills in the defaults of its types, writes quantities in
 * their shortest form, and lets empty fields vanish or appear as the types of Kubernetes have it.
 */
export function applyBuiltinDefaults(object: MutableObject, schema: Schema): void {
  const queue: [value: unknown, schema: Schema][] = [[object, schema]];
  // A list of its own rather than recursion: schemas of custom resources nest as deep as their author likes.
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [value, schema] = next;
    if (Array.isArray(value)) {
      visitItems(value, schema.items, queue);
    } else if (isJsonObject(value)) {
      if (schema.properties === undefined) {
        visitMap(value, schema.additionalProperties, queue);
      } else {
        visitStruct(value, planOf(schema), queue);
      }
    }
  }
}

type Queue = [value: unknown, schema: Schema][];

function visitStruct(fields: Fields, plan: StructPlan, queue: Queue): void {
  for (const name of Object.keys(fields)) {
    if (fields[name] === null || (plan.drop.has(name) && isZero(fields[name]))) {
      delete fields[name];
    }
  }
  for (const [name, value] of plan.defaults) {
    if (!Object.hasOwn(fields, name)) {
      fields[name] = typeof value === 'object' ? structuredClone(value) : value;
    }
  }
  plan.fill?.(fields);
  for (const name of plan.null) {
    if (!Object.hasOwn(fields, name)) {
      fields[name] = null;
    }
  }
  for (const [name, value] of Object.entries(fields)) {
    const schema = plan.properties.get(name);
    if (schema !== undefined) {
      fields[name] = visited(value, schema, queue);
    }
  }
}

function visitMap(fields: Fields, schema: Schema | boolean | undefined, queue: Queue): void {
  if (typeof schema === 'object') {
    for (const [name, value] of Object.entries(fields)) {
      fields[name] = value === null && schema.type === 'string' ? '' : visited(value, schema, queue);
    }
  }
}

function visitItems(items: unknown[], schema: Schema | undefined, queue: Queue): void {
  if (schema !== undefined) {
    for (const [index, item] of items.entries()) {
      items[index] = visited(item, schema, queue);
    }
  }
}

/** A scalar as it is stored; containers are put into the queue. */
function visited(value: unknown, schema: Schema, queue: Queue): unknown {
  if (schema.format === QUANTITY_FORMAT) {
    return canonicalQuantity(value);
  }
  if (typeof value === 'object' && value !== null) {
    queue.push([value, schema]);
  } else if (schema.format === 'date-time' && typeof value === 'string') {
    return canonicalTime(value, schema);
  }
  return value;
}

const MICRO_TIME = 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime';

/** A time in UTC, of whole seconds or with six digits behind the point; what is no time stays as it is. */
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

/** Whether Go takes a value for none: false, 0, an empty text, list or map. */
function isZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) {
    return Object.keys(value).length === 0;
  }
  return value === null || value === '' || value === 0 || value === false;
}
