import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { customResourceDefinition, OWN_KINDS } from '../../resources/index.ts';
import { SERVED_KINDS } from '../builtin-kinds/served-kinds.ts';
import { definitionsOfCustomResource } from '../custom-resources/custom-resource.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { OpenApiDocuments } from './openapi.ts';

const custom = OWN_KINDS.flatMap((kind) => definitionsOfCustomResource(customResourceDefinition(kind)));
const definitions: readonly ResourceDefinition[] = [...SERVED_KINDS, ...custom];

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly parameters?: readonly { name: string }[] }>>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties?: object }>> };
}

function read(documents: OpenApiDocuments, path: string): Document {
  return JSON.parse(documents.groupVersion(definitions, path)?.text ?? '') as Document;
}

describe('OpenAPI documents', () => {
  const documents = new OpenApiDocuments();
  const index = JSON.parse(documents.index(definitions).text) as {
    readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
  };

  it('are there for every group and version, and refer to nothing that is not in them', () => {
    const versions = new Set(
      definitions.map(({ group, version }) => (group === '' ? `api/${version}` : `apis/${group}/${version}`)),
    );
    assert.deepEqual(new Set(Object.keys(index.paths)), versions);
    for (const path of versions) {
      const text = documents.groupVersion(definitions, path)?.text ?? '';
      const { schemas } = (JSON.parse(text) as Document).components;
      for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
        assert.ok(Object.hasOwn(schemas, name), `${path} refers to ${name}`);
      }
    }
  });

  it('say which parameters writes have, as kubectl looks them up', () => {
    const patch = read(documents, 'apis/apps/v1').paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']?.[
      'patch'
    ];
    assert.deepEqual(
      patch?.parameters?.map(({ name }) => name),
      ['dryRun', 'fieldManager', 'fieldValidation', 'force'],
    );
    const review = read(documents, 'apis/authorization.k8s.io/v1').paths[
      '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    ];
    assert.deepEqual(Object.keys(review ?? {}), ['post', 'parameters']);
  });

  it('have the kinds of CustomResourceDefinitions, with metadata as all kinds have it', () => {
    const { schemas } = read(documents, 'apis/policies.kubewarden.io/v1').components;
    const properties = schemas['io.kubewarden.policies.v1.ClusterAdmissionPolicy']?.properties ?? {};
    assert.ok('spec' in properties && 'apiVersion' in properties);
    assert.match(JSON.stringify(properties), /apis\.meta\.v1\.ObjectMeta/);
  });

  it('stay the same as long as their kinds do', () => {
    const more = definitions.filter(({ group }) => group !== 'portcullis.dev');
    assert.equal(documents.index(definitions), documents.index(definitions));
    assert.equal(documents.groupVersion(more, 'api/v1'), documents.groupVersion(definitions, 'api/v1'));
    assert.notEqual(documents.index(more).hash, documents.index(definitions).hash);
    assert.equal(documents.groupVersion(more, 'apis/portcullis.dev/v1'), undefined);
  });
});
