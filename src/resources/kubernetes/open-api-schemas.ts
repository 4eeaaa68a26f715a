import { isJsonObject, type JsonObject, own, parseJson, textOf } from '../../values/index.ts';
import type { ResourceType } from '../resource-type.ts';
import { componentNameOf } from './component-schemas.ts';
import type { OpenApiSchema } from './openapi-data.ts';

const REFERENCE = '#/components/schemas/';
const GROUP_VERSION_KIND = 'x-kubernetes-group-version-kind';
const OBJECT_META = `${REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`;

/** `components.schemas` of one document, and which of them is the schema of a kind. */
export class OpenApiComponents {
  readonly #components: JsonObject;
  readonly #byKind: ReadonlyMap<string, OpenApiSchema>;

  constructor(components: JsonObject) {
    this.#components = components;
    this.#byKind = schemasByKind(components);
  }

  /** @throws SyntaxError if the text is no JSON */
  static parse(text: string): OpenApiComponents {
    const document = parseJson(text);
    const components = isJsonObject(document) ? own(document, 'components') : undefined;
    const schemas = isJsonObject(components) ? own(components, 'schemas') : undefined;
    return new OpenApiComponents(isJsonObject(schemas) ? schemas : {});
  }

  component(name: string): OpenApiSchema | undefined {
    const schema = own(this.#components, name);
    return isJsonObject(schema) ? schema : undefined;
  }

  schemaOf(kind: Pick<ResourceType, 'group' | 'version' | 'kind'>): OpenApiSchema | undefined {
    return this.#byKind.get(keyOf(kind)) ?? this.component(componentNameOf(kind));
  }
}

/** Schemas from the OpenAPI documents of several groups and versions, as API servers publish them. */
export class OpenApiSchemas {
  readonly #documents: readonly OpenApiComponents[];

  constructor(documents: readonly OpenApiComponents[]) {
    this.#documents = documents;
  }

  /** The schema of a kind's objects; undefined if it is not published. References are not resolved. */
  schemaOf(kind: Pick<ResourceType, 'group' | 'version' | 'kind'>): OpenApiSchema | undefined {
    return firstOf(this.#documents, (document) => document.schemaOf(kind));
  }

  /** The schema to which a `$ref` refers. Components of all documents have distinct names, or are the same. */
  readonly resolve = (reference: string): OpenApiSchema | undefined => {
    const name = reference.startsWith(REFERENCE) ? reference.slice(REFERENCE.length) : undefined;
    return name === undefined ? undefined : firstOf(this.#documents, (document) => document.component(name));
  };

  /** The schema of `metadata`, for kinds that do not declare theirs. */
  get metadata(): OpenApiSchema {
    return this.resolve(OBJECT_META) === undefined ? {} : { $ref: OBJECT_META };
  }
}

function firstOf<T>(
  documents: readonly OpenApiComponents[],
  find: (document: OpenApiComponents) => T | undefined,
): T | undefined {
  for (const document of documents) {
    const found = find(document);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function schemasByKind(components: JsonObject): ReadonlyMap<string, OpenApiSchema> {
  const byKind = new Map<string, OpenApiSchema>();
  for (const schema of Object.values(components)) {
    const kinds = isJsonObject(schema) ? own(schema, GROUP_VERSION_KIND) : undefined;
    // Types of requests, such as DeleteOptions, have all groups. Those of objects have their own.
    if (isJsonObject(schema) && Array.isArray(kinds) && kinds.length === 1 && isJsonObject(kinds[0])) {
      const [type] = kinds;
      const [group, version, kind] = ['group', 'version', 'kind'].map((key) => textOf(own(type, key)));
      byKind.set(`${group}/${version}/${kind}`, schema);
    }
  }
  return byKind;
}

function keyOf({ group, version, kind }: Pick<ResourceType, 'group' | 'version' | 'kind'>): string {
  return `${group}/${version}/${kind}`;
}
