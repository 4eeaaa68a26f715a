import { isJsonObject } from '../json.ts';
import type { ResourceType } from '../resource-type.ts';
import type { Schema } from '../schema.ts';
import { kubernetesKind } from './builtin-kinds.ts';
import { kubernetesOpenApi } from './openapi-data.ts';
import type { OpenApiSchema } from './openapi-data.ts';

/** The prefixes of component names of groups whose folder in the sources of Kubernetes is not called as they are. */
const COMPONENT_PREFIXES: Readonly<Record<string, string>> = {
  '': 'io.k8s.api.core',
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'rbac.authorization.k8s.io': 'io.k8s.api.rbac',
};

const REFERENCE = '#/components/schemas/';

/** Objects of kinds that the API server need not know. Server-side apply takes them as a whole. */
const RAW_EXTENSION = 'io.k8s.apimachinery.pkg.runtime.RawExtension';

/** Types whose content the API server keeps as it is; their published schemas only say so in words. */
const ANY_CONTENT = new Set([
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray',
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1',
  RAW_EXTENSION,
]);

/** `format` of schema nodes that are quantities: `100m`, `2Gi`, `3`. */
export const QUANTITY_FORMAT = 'quantity';

/**
 * Turns published schemas into {@link Schema} nodes: references become the nodes that they name, of which there is one per
 * component, made when a getter first asks for it. Types that refer to themselves thereby do so here.
 */
class ComponentSchemas {
  readonly #nodes = new Map<string, Schema>();
  /** The component that a node is of, also for nodes that add a description or default to it. */
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

  /** A node of its own for what is written at one place; the component's node where that is only a reference. */
  #node(published: OpenApiSchema): Schema {
    const reference = referenceOf(published);
    if (reference !== undefined) {
      const { $ref: _, allOf: __, ...own } = published;
      const target = this.component(reference);
      if (Object.keys(own).length === 0) {
        return target;
      }
      // Copies the getters of what is resolved later, not what they would give.
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

  /** A property that is made when it is first read, once for all copies of the node. */
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

/** The schema of a component with its references resolved: shared, possibly cyclic, not to be changed. */
export function componentSchema(name: string): Schema {
  return COMPONENTS.component(name);
}

/** The name of the component of a kind of Kubernetes: `io.k8s.api.apps.v1.Deployment`. */
export function componentNameOf({ group, version, kind }: Pick<ResourceType, 'group' | 'version' | 'kind'>): string {
  const prefix = COMPONENT_PREFIXES[group] ?? `io.k8s.api.${group.split('.')[0]}`;
  return `${prefix}.${version}.${kind}`;
}

/** The schema of a kind of Kubernetes, where the published schemas have it. Shared, possibly cyclic, not to be changed. */
export function kubernetesSchema(apiVersion: string, kind: string): Schema | undefined {
  const type = kubernetesKind(apiVersion, kind);
  const component = type === undefined ? undefined : componentNameOf(type);
  return component !== undefined && Object.hasOwn(kubernetesOpenApi(), component)
    ? componentSchema(component)
    : undefined;
}

/** The component that a schema node is of; undefined for maps, lists and scalars. */
export function componentOf(schema: Schema): string | undefined {
  return COMPONENTS.nameOf(schema);
}

/** The component that a schema refers to, alone or as `allOf: [{ $ref }]` beside a description and a default. */
function referenceOf({ $ref, allOf }: OpenApiSchema): string | undefined {
  const [first] = Array.isArray(allOf) ? allOf : [];
  const reference = $ref ?? (isJsonObject(first) ? first['$ref'] : undefined);
  return typeof reference === 'string' && reference.startsWith(REFERENCE)
    ? reference.slice(REFERENCE.length)
    : undefined;
}
