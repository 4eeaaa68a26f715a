import { isJsonObject } from '../../values/index.ts';
import type { ResourceType } from '../resource-type.ts';
import type { Schema } from '../schema.ts';
import { kubernetesKind } from './builtin-kinds.ts';
import { kubernetesOpenApi } from './openapi-data.ts';
import type { OpenApiSchema } from './openapi-data.ts';

/** Prefixes of component names for groups whose source folder has another name. */
const COMPONENT_PREFIXES: Readonly<Record<string, string>> = {
  '': 'io.k8s.api.core',
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'rbac.authorization.k8s.io': 'io.k8s.api.rbac',
};

const REFERENCE = '#/components/schemas/';

/** Objects of any kind, which server-side apply treats as atomic. */
const RAW_EXTENSION = 'io.k8s.apimachinery.pkg.runtime.RawExtension';

/** Types with arbitrary content; their published schemas say that only in descriptions. */
const ANY_CONTENT = new Set([
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray',
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1',
  RAW_EXTENSION,
]);

/** `format` of quantities: `100m`, `2Gi`, `3`. */
export const QUANTITY_FORMAT = 'quantity';

/**
 * Converts published schemas to {@link Schema} nodes. A reference becomes the node of its component, created on first
 * access, so that types may refer to themselves.
 */
class ComponentSchemas {
  readonly #nodes = new Map<string, Schema>();
  /** The component of a node, also of nodes that add a description or default. */
  readonly #names = new WeakMap<Schema, string>();

  component(name: string): Schema {
    let node = this.#nodes.get(name);
    if (node === undefined) {
      const published = kubernetesOpenApi()[name];
      if (published === undefined) {
        throw new Error(`no OpenAPI schema named ${name}: run tools/kubernetes-openapi.ts`);
      }
      node = this.#componentNode(name, published);
      this.#nodes.set(name, node);
      this.#names.set(node, name);
    }
    return node;
  }

  nameOf(node: Schema): string | undefined {
    return this.#names.get(node);
  }

  #componentNode(name: string, published: OpenApiSchema): Schema {
    if (name === 'io.k8s.apimachinery.pkg.util.intstr.IntOrString') {
      const { oneOf: _, ...rest } = published;
      return { ...rest, 'x-kubernetes-int-or-string': true };
    }
    if (name === 'io.k8s.apimachinery.pkg.api.resource.Quantity') {
      return { ...published, format: QUANTITY_FORMAT };
    }
    if (ANY_CONTENT.has(name)) {
      const node: Schema = { ...published, 'x-kubernetes-preserve-unknown-fields': true };
      return name === RAW_EXTENSION ? { ...node, 'x-kubernetes-map-type': 'atomic' } : node;
    }
    return this.#node(published);
  }

  /** A new node for a schema with its own content; the component's node for a plain reference. */
  #node(published: OpenApiSchema): Schema {
    const reference = referenceOf(published);
    if (reference !== undefined) {
      const { $ref: _, allOf: __, ...own } = published;
      const target = this.component(reference);
      if (Object.keys(own).length === 0) {
        return target;
      }
      // Copies the getters, not their values, which are resolved later.
      const node = Object.defineProperties({}, Object.getOwnPropertyDescriptors(target));
      Object.assign(node, own);
      this.#names.set(node, reference);
      return node;
    }
    const node = { ...published } as Record<string, unknown>;
    for (const field of ['items', 'additionalProperties'] as const) {
      const child = published[field];
      if (isJsonObject(child)) {
        this.#later(node, field, () => this.#node(child));
      }
    }
    const { properties } = published;
    if (isJsonObject(properties)) {
      this.#later(node, 'properties', () => this.#properties(properties));
    }
    return node;
  }

  #properties(published: Readonly<Record<string, unknown>>): Record<string, Schema> {
    const properties: Record<string, Schema> = {};
    for (const [name, schema] of Object.entries(published)) {
      this.#later(properties, name, () => this.#node(schema as OpenApiSchema));
    }
    return properties;
  }

  /** A property that is created on first access, once for all copies of the node. */
  #later(target: object, name: string, make: () => unknown): void {
    let value: unknown;
    Object.defineProperty(target, name, {
      configurable: true,
      enumerable: true,
      get() {
        value ??= make();
        Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
        return value;
      },
    });
  }
}

const COMPONENTS = new ComponentSchemas();

/** The schema of a component with references resolved: shared, possibly cyclic, and not to be changed. */
export function componentSchema(name: string): Schema {
  return COMPONENTS.component(name);
}

/** The name of a builtin kind's component: `io.k8s.api.apps.v1.Deployment`. */
export function componentNameOf({ group, version, kind }: Pick<ResourceType, 'group' | 'version' | 'kind'>): string {
  const prefix = COMPONENT_PREFIXES[group] ?? `io.k8s.api.${group.split('.')[0]}`;
  return `${prefix}.${version}.${kind}`;
}

/** The schema of a builtin kind, if published. Shared, possibly cyclic, and not to be changed. */
export function kubernetesSchema(apiVersion: string, kind: string): Schema | undefined {
  const type = kubernetesKind(apiVersion, kind);
  const component = type === undefined ? undefined : componentNameOf(type);
  return component !== undefined && Object.hasOwn(kubernetesOpenApi(), component)
    ? componentSchema(component)
    : undefined;
}

/** The component of a schema node; undefined for maps, lists and scalars. */
export function componentOf(schema: Schema): string | undefined {
  return COMPONENTS.nameOf(schema);
}

/** The referenced component, direct or as `allOf: [{ $ref }]` beside a description and a default. */
function referenceOf({ $ref, allOf }: OpenApiSchema): string | undefined {
  const [first] = Array.isArray(allOf) ? allOf : [];
  const reference = $ref ?? (isJsonObject(first) ? first['$ref'] : undefined);
  return typeof reference === 'string' && reference.startsWith(REFERENCE)
    ? reference.slice(REFERENCE.length)
    : undefined;
}
