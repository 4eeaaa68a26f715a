import {
  allBuiltinKinds,
  type JsonObject,
  kubernetesOpenApi,
  OpenApiComponents,
  OpenApiSchemas,
  own,
  type ServedResource,
  textOf,
  textsOf,
  valueAt,
  isJsonObject,
} from '../../resources/index.ts';
import type { PolicyKinds } from './check-policy-types.ts';

/** The kinds of Kubernetes, and those that CustomResourceDefinitions among manifests define, for checks without a cluster. */
export function offlineKinds(manifests: readonly JsonObject[] = []): PolicyKinds {
  const custom = manifests
    .filter((one) => textOf(own(one, 'kind')) === 'CustomResourceDefinition')
    .flatMap(customKinds);
  const builtin = allBuiltinKinds().map((kind): ServedResource => ({ ...kind, subresources: [] }));
  const components = Object.fromEntries(
    custom.flatMap(({ served, schema }) =>
      schema === undefined ? [] : [[`${served.group}/${served.version}/${served.kind}`, schemaOf(served, schema)]],
    ),
  );
  return {
    served: [...builtin, ...custom.map(({ served }) => served)],
    schemas: new OpenApiSchemas([new OpenApiComponents(kubernetesOpenApi()), new OpenApiComponents(components)]),
  };
}

function schemaOf({ group, version, kind }: ServedResource, schema: JsonObject): JsonObject {
  return { ...schema, 'x-kubernetes-group-version-kind': [{ group, version, kind }] };
}

interface CustomKind {
  readonly served: ServedResource;
  readonly schema: JsonObject | undefined;
}

function customKinds(definition: JsonObject): readonly CustomKind[] {
  const names = valueAt(definition, 'spec', 'names');
  const versions = valueAt(definition, 'spec', 'versions');
  const text = (key: string): string => textOf(valueAt(names, key));
  const kind = {
    group: textOf(valueAt(definition, 'spec', 'group')),
    resource: text('plural'),
    kind: text('kind'),
    singular: text('singular'),
    shortNames: textsOf(valueAt(names, 'shortNames')),
    namespaced: textOf(valueAt(definition, 'spec', 'scope')) !== 'Cluster',
  };
  return (Array.isArray(versions) ? versions : []).filter(isJsonObject).map((version) => {
    const schema = valueAt(version, 'schema', 'openAPIV3Schema');
    return {
      served: {
        ...kind,
        version: textOf(own(version, 'name')),
        subresources: Object.keys(asObject(own(version, 'subresources'))),
      },
      schema: isJsonObject(schema) ? schema : undefined,
    };
  });
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
