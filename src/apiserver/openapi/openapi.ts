// The OpenAPI documents of a server: one of version 3 for each group and version (KEP-2896), and one of version 2. kubectl
// reads them for `explain`, for strategic merge patches, and to find out whether field validation and dry run are supported.
import { createHash } from 'node:crypto';
import { apiVersionOf, componentNameOf, isJsonObject, kubernetesOpenApi, own } from '../../resources/index.ts';
import type { GroupVersionKind, OpenApiSchema } from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { subresourcesOf, verbsOf } from '../subresources.ts';
import { parseJson } from '../../values/index.ts';

/** A serialized document. */
export interface OpenApiDocument {
  readonly text: string;
  /** Hash of the text. URLs contain it, so that clients may cache their document forever. */
  readonly hash: string;
}

const REFERENCE = '#/components/schemas/';
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const GROUP_VERSION_KIND = 'x-kubernetes-group-version-kind';

const API_VERSION_DESCRIPTION =
  'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources';
const KIND_DESCRIPTION =
  'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds';
const METADATA_DESCRIPTION =
  "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/** The documents of a set of definitions, created on demand and cached until the definitions change. */
export class OpenApiDocuments {
  #kept = new Map<
    string,
    { readonly definitions: readonly ResourceDefinition[]; readonly document: OpenApiDocument }
  >();
  #index: { readonly definitions: readonly ResourceDefinition[]; readonly document: OpenApiDocument } | undefined;

  /** `/openapi/v3` */
  index(definitions: readonly ResourceDefinition[]): OpenApiDocument {
    if (this.#index?.definitions !== definitions) {
      const paths = [...byPath(definitions)].map(([path, served]) => {
        const { hash } = this.#document(path, served);
        return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const;
      });
      this.#index = { definitions, document: documentOf({ paths: Object.fromEntries(paths) }) };
    }
    return this.#index.document;
  }

  /** `/openapi/v3/apis/apps/v1` for the path `apis/apps/v1`. */
  groupVersion(definitions: readonly ResourceDefinition[], path: string): OpenApiDocument | undefined {
    const served = byPath(definitions).get(path);
    return served === undefined ? undefined : this.#document(path, served);
  }

  /** `/openapi/v2`, for old clients. Not cached. */
  swagger(definitions: readonly ResourceDefinition[], gitVersion: string): OpenApiDocument {
    const paths = definitions.flatMap((definition) => pathsOf(definition));
    const swagger = {
      swagger: '2.0',
      info: { title: 'Kubernetes', version: gitVersion },
      paths: Object.fromEntries(paths),
      definitions: componentsOf(definitions),
    };
    return documentOf(parseJson(JSON.stringify(swagger).replaceAll(REFERENCE, '#/definitions/')) as object);
  }

  /**
   * `/openapi/v2` in protobuf (gnostic's openapi.v2.Document), without kinds. kubectl requests it only for kinds that it does
   * not find in version 3, and finds no more of them here.
   */
  emptySwagger(gitVersion: string): Buffer {
    const info = Buffer.concat([textField(1, 'Kubernetes'), textField(2, gitVersion)]);
    const [paths, definitions] = [bytesField(8, Buffer.alloc(0)), bytesField(9, Buffer.alloc(0))];
    return Buffer.concat([textField(1, '2.0'), bytesField(2, info), paths, definitions]);
  }

  #document(path: string, definitions: readonly ResourceDefinition[]): OpenApiDocument {
    const cached = this.#kept.get(path);
    if (cached !== undefined && isSame(cached.definitions, definitions)) {
      return cached.document;
    }
    const document = documentOf({
      openapi: '3.0.0',
      info: { title: 'Kubernetes', version: 'unversioned' },
      paths: Object.fromEntries(definitions.flatMap((definition) => pathsOf(definition))),
      components: { schemas: componentsOf(definitions) },
    });
    this.#kept.set(path, { definitions, document });
    return document;
  }
}

/** A field of a protobuf message with fewer than 128 bytes. */
function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

function textField(number: number, text: string): Buffer {
  return bytesField(number, Buffer.from(text));
}

function isSame(a: readonly ResourceDefinition[], b: readonly ResourceDefinition[]): boolean {
  return a.length === b.length && a.every((definition, index) => definition === b[index]);
}

function documentOf(content: object): OpenApiDocument {
  const text = JSON.stringify(content);
  return { text, hash: createHash('sha512').update(text).digest('hex').toUpperCase() };
}

/** Definitions by path of group and version: `api/v1`, `apis/apps/v1`. */
function byPath(definitions: readonly ResourceDefinition[]): ReadonlyMap<string, readonly ResourceDefinition[]> {
  return Map.groupBy(definitions, (definition) => rootOf(definition));
}

function rootOf({ group, version }: Pick<ResourceDefinition, 'group' | 'version'>): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** The schemas of kinds, and all schemas that they refer to. */
function componentsOf(definitions: readonly ResourceDefinition[]): Readonly<Record<string, OpenApiSchema>> {
  const published = kubernetesOpenApi();
  const versions = new Set(definitions.map((definition) => apiVersionOf(definition)));
  const components = new Map<string, OpenApiSchema>();
  const pending: string[] = [];
  for (const [name, schema] of Object.entries(published)) {
    if (typesOf(schema).some((type) => versions.has(apiVersionOf(type)))) {
      pending.push(name);
    }
  }
  for (const definition of definitions) {
    if (definition.origin === 'custom') {
      components.set(componentName(definition), customComponent(definition));
      pending.push(OBJECT_META);
    }
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const schema = Object.hasOwn(published, name) ? published[name] : undefined;
    if (schema !== undefined && !components.has(name)) {
      components.set(name, schema);
      pending.push(...referencesOf(schema));
    }
  }
  for (const definition of definitions.filter(({ origin }) => origin === 'builtin')) {
    addStatus(components, definition);
  }
  return Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Adds the status of a builtin kind that Kubernetes publishes without one, so that kubectl accepts it. */
function addStatus(components: Map<string, OpenApiSchema>, definition: ResourceDefinition): void {
  const name = componentNameOf(definition);
  const published = components.get(name);
  const properties = published?.['properties'];
  if (!definition.hasStatus || published === undefined || !isJsonObject(properties) || own(properties, 'status')) {
    return;
  }
  const status = definition.schema().properties?.['status'];
  if (status !== undefined) {
    components.set(name, { ...published, properties: { ...properties, status: status as OpenApiSchema } });
  }
}

function typesOf(schema: OpenApiSchema): readonly GroupVersionKind[] {
  const types = schema[GROUP_VERSION_KIND];
  return Array.isArray(types) ? (types as unknown as GroupVersionKind[]) : [];
}

/** The components that a schema refers to. */
function referencesOf(value: unknown): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => referencesOf(item));
  }
  if (!isJsonObject(value)) {
    return [];
  }
  return Object.entries(value).flatMap(([key, child]) =>
    key === '$ref' && typeof child === 'string' && child.startsWith(REFERENCE)
      ? [child.slice(REFERENCE.length)]
      : referencesOf(child),
  );
}

/** `dev.portcullis.v1.PolicyRevision` */
function componentName({ group, version, kind }: ResourceDefinition): string {
  return [...group.split('.').toReversed(), version, kind].join('.');
}

/** The schema of a custom kind, as an API server publishes it. */
function customComponent(definition: ResourceDefinition): OpenApiSchema {
  const { group, version, kind } = definition;
  const { properties, ...schema } = definition.schema();
  return {
    ...(schema as OpenApiSchema),
    type: 'object',
    properties: {
      ...properties,
      apiVersion: { description: API_VERSION_DESCRIPTION, type: 'string' },
      kind: { description: KIND_DESCRIPTION, type: 'string' },
      metadata: { description: METADATA_DESCRIPTION, allOf: [{ $ref: `${REFERENCE}${OBJECT_META}` }] },
    },
    [GROUP_VERSION_KIND]: [{ group, version, kind }],
  };
}

/** The paths of a kind with their operations and parameters. */
function pathsOf(definition: ResourceDefinition): readonly (readonly [string, object])[] {
  const verbs = new Set(verbsOf(definition));
  const { namespaced, resource } = definition;
  const root = `/${rootOf(definition)}`;
  const collection = namespaced ? `${root}/namespaces/{namespace}/${resource}` : `${root}/${resource}`;
  const item = `${collection}/{name}`;
  const own = { group: definition.group, version: definition.version, kind: definition.kind };
  const paths: [string, object][] = [[collection, pathItem(collectionMethods(verbs), own, namespaced, false)]];
  if (verbs.has('get')) {
    paths.push([item, pathItem(itemMethods(verbs), own, namespaced, true)]);
  }
  if (namespaced && verbs.has('list')) {
    paths.push([`${root}/${resource}`, pathItem([['get', 'list']], own, false, false)]);
  }
  for (const { name, verbs: allowed, kind = own } of subresourcesOf(definition)) {
    const methods = itemMethods(new Set(allowed));
    const created: Methods = allowed.includes('create') ? [['post', 'connect']] : [];
    paths.push([`${item}/${name}`, pathItem([...methods, ...created], kind, namespaced, true)]);
  }
  return paths;
}

type Methods = readonly (readonly [method: string, action: string])[];

function collectionMethods(verbs: ReadonlySet<string>): Methods {
  const methods: Methods = [
    ['get', 'list'],
    ['post', 'create'],
    ['delete', 'deletecollection'],
  ];
  return methods
    .filter(([, verb]) => verbs.has(verb))
    .map(([method, verb]) => [method, verb === 'create' ? 'post' : verb] as const);
}

function itemMethods(verbs: ReadonlySet<string>): Methods {
  const methods: Methods = [
    ['get', 'get'],
    ['put', 'update'],
    ['patch', 'patch'],
    ['delete', 'delete'],
  ];
  return methods
    .filter(([, verb]) => verbs.has(verb))
    .map(([method, verb]) => [method, verb === 'update' ? 'put' : verb] as const);
}

const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation'] as const;

function pathItem(methods: Methods, type: GroupVersionKind, namespaced: boolean, isItem: boolean): object {
  const operations = methods.map(([method, action]) => [method, operation(method, action, type)] as const);
  const inPath = [...(isItem ? ['name'] : []), ...(namespaced ? ['namespace'] : [])];
  return {
    ...Object.fromEntries(operations),
    parameters: inPath.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
  };
}

function operation(method: string, action: string, type: GroupVersionKind): object {
  const isWrite = method === 'post' || method === 'put' || method === 'patch';
  const names = isWrite ? WRITE_PARAMETERS : method === 'delete' ? ['dryRun'] : [];
  const more = method === 'patch' ? [{ name: 'force', in: 'query', schema: { type: 'boolean' } }] : [];
  return {
    parameters: [...names.map((name) => ({ name, in: 'query', schema: { type: 'string' } })), ...more],
    responses: { '200': { description: 'OK' } },
    'x-kubernetes-action': action,
    [GROUP_VERSION_KIND]: type,
  };
}
