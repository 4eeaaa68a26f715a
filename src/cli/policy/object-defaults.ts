// Objects of files as API servers pass them to policies: with the defaults of their kinds.
import {
  builtinKind,
  groupVersionOf,
  kubernetesSchema,
  type MutableObject,
  productKind,
  type Schema,
  withObjectMeta,
} from '../../resources/index.ts';
import { applyBuiltinDefaults, decodeError } from '../../resources/decoding/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import {
  asJson,
  exactJson,
  isJsonObject,
  type JsonObject,
  listed,
  own,
  parseJson,
  textOf,
  valueAt,
} from '../../values/index.ts';
import { definedKinds } from '../custom-kinds.ts';
import { objectText } from '../manifest-objects.ts';

/** Unknown fields that a note lists. */
const MAX_LISTED = 5;

/** An object with defaults. */
export interface DefaultedObject {
  readonly object: JsonObject;
  /** For the user: how it differs from what an API server would make of it. */
  readonly note?: string;
}

/**
 * Sets the defaults of Kubernetes' kinds, of ours, and of CustomResourceDefinitions. What API servers decide when they store an
 * object is not set: addresses, ports, identifiers, and the initial status.
 */
export class ObjectDefaults {
  /** Schemas of custom kinds, by API version and kind. */
  readonly #custom = new Map<string, ObjectSchema>();

  /** @param objects among which are CustomResourceDefinitions */
  constructor(objects: Iterable<JsonObject> = []) {
    for (const object of objects) {
      if (own(object, 'kind') === 'CustomResourceDefinition') {
        this.#define(rounded(object));
      }
    }
  }

  /** A copy with defaults. */
  defaulted(object: JsonObject): DefaultedObject {
    const [apiVersion, kind] = [textOf(own(object, 'apiVersion')), textOf(own(object, 'kind'))];
    const schema = kubernetesSchema(apiVersion, kind);
    if (schema !== undefined) {
      return builtinDefaults(object, schema);
    }
    const custom = this.#schemaOf(apiVersion, kind);
    if (custom !== undefined) {
      return customDefaults(object, custom);
    }
    return builtinKind(groupVersionOf(apiVersion).group, kind) === undefined
      ? { object }
      : { object, note: `the defaults of ${kind} of ${apiVersion} are not known: ${objectText(object)} has none` };
  }

  #schemaOf(apiVersion: string, kind: string): ObjectSchema | undefined {
    const id = idOf(apiVersion, kind);
    const known = this.#custom.get(id);
    const ours = known === undefined ? productKind(apiVersion, kind) : undefined;
    if (ours === undefined) {
      return known;
    }
    const schema = new ObjectSchema(ours.schema());
    this.#custom.set(id, schema);
    return schema;
  }

  /** Versions without a schema, and definitions that API servers cannot read, give no defaults. */
  #define(definition: JsonObject): void {
    const { object, note } = this.defaulted(definition);
    const versions = valueAt(object, 'spec', 'versions');
    if (note !== undefined || !Array.isArray(versions)) {
      return;
    }
    for (const { group, version, kind } of definedKinds(object)) {
      const declared = versions.find((one) => valueAt(one, 'name') === version);
      const schema = valueAt(declared, 'schema', 'openAPIV3Schema');
      if (isJsonObject(schema)) {
        this.#custom.set(idOf(`${group}/${version}`, kind), new ObjectSchema(withObjectMeta(schema)));
      }
    }
  }
}

function idOf(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}

/** API servers refuse objects that they cannot read; such an object is left as it is. */
function builtinDefaults(object: JsonObject, schema: Schema): DefaultedObject {
  const kind = textOf(own(object, 'kind'));
  const { version } = groupVersionOf(textOf(own(object, 'apiVersion')));
  const problem = decodeError({ kind, version, schema: () => schema }, object);
  if (problem !== undefined) {
    return { object, note: `${objectText(object)} would be refused by API servers: ${problem}` };
  }
  const copy = structuredClone(object) as MutableObject;
  applyBuiltinDefaults(copy, schema);
  hideInitialState(copy, object);
  return { object: copy as unknown as JsonObject };
}

/** Removes what API servers set after policies were asked: the initial status, and the finalizer of a Namespace. */
function hideInitialState(defaulted: MutableObject, given: JsonObject): void {
  if (own(given, 'status') === undefined) {
    delete defaulted['status'];
  }
  const spec = defaulted['spec'];
  const isNamespace = defaulted.apiVersion === 'v1' && defaulted.kind === 'Namespace';
  if (isNamespace && isJsonObject(spec) && valueAt(given, 'spec', 'finalizers') === undefined) {
    delete spec['finalizers'];
  }
}

function customDefaults(object: JsonObject, schema: ObjectSchema): DefaultedObject {
  const copy = structuredClone(object) as MutableObject;
  const unknown = schema.prune(copy);
  schema.applyDefaults(copy);
  const defaulted = copy as unknown as JsonObject;
  return unknown.length === 0
    ? { object: defaulted }
    : {
        object: defaulted,
        note: `${objectText(object)} has unknown fields, which API servers drop: ${listed(unknown, MAX_LISTED)}`,
      };
}

/** Without bigints, which schemas and objects that are looked up cannot have. */
export function rounded(object: JsonObject): JsonObject {
  return asJson(parseJson(exactJson(object)) as object);
}
