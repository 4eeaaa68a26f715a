import type { KubernetesObject } from '../kubernetes-object.ts';
import { withObjectMeta } from '../object-meta-schema.ts';
import type { ResourceType } from '../resource-type.ts';
import type { TypedSchema } from '../schema-builder.ts';
import type { Schema } from '../schema.ts';
import type { CustomColumn } from '../table-column.ts';

/** The declaration of one of our kinds. */
export interface KindDeclaration<Spec = unknown, Status = unknown> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** Labels of the CustomResourceDefinition. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly scope: 'Cluster' | 'Namespaced';
  /** Description of the kind in a sentence or two. */
  readonly description: string;
  readonly spec: TypedSchema<Spec>;
  readonly status: TypedSchema<Status>;
  readonly columns: readonly CustomColumn[];
  /** Restrictions of names beyond those of Kubernetes. */
  readonly name?: Pick<Schema, 'maxLength' | 'pattern'>;
  /** An example for the kind's reference page. */
  readonly example: Readonly<Record<string, unknown>>;
}

type ObjectOf<Spec, Status> = KubernetesObject & { readonly spec: Spec; readonly status?: Status };

/** The type of a kind's objects. */
export type ObjectOfKind<D> = D extends KindDeclaration<infer Spec, infer Status> ? ObjectOf<Spec, Status> : never;

/** One of our kinds: its names, its schema, and its declaration. */
export interface OwnKind<T extends KubernetesObject = KubernetesObject> extends ResourceType<T> {
  /**
   * Schema of the whole object including `metadata`, as an API server with our CustomResourceDefinition validates it.
   */
  readonly schema: () => Schema;
  readonly declaration: KindDeclaration;
}

/** The kind of a declaration. */
export function ownKind<Spec, Status>(declaration: KindDeclaration<Spec, Status>): OwnKind<ObjectOf<Spec, Status>> {
  const { group, version, kind, plural, scope } = declaration;
  let schema: Schema | undefined;
  return {
    group,
    version,
    kind,
    resource: plural,
    namespaced: scope === 'Namespaced',
    schema: () => (schema ??= withObjectMeta(schemaOf(declaration))),
    declaration,
  };
}

/** The CustomResourceDefinition of one of our kinds, as applied to a cluster. */
export function customResourceDefinition(kind: OwnKind): KubernetesObject {
  return definitionObject(kind.declaration);
}

function definitionObject(declaration: KindDeclaration): KubernetesObject {
  const { group, version, kind, plural, categories, labels, scope, columns } = declaration;
  // API servers leave out an empty list of short names.
  const shortNames = declaration.shortNames.length === 0 ? {} : { shortNames: declaration.shortNames };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, ...(labels === undefined ? {} : { labels }) },
    spec: {
      group,
      scope,
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List`, ...shortNames, categories },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schemaOf(declaration) },
          subresources: { status: {} },
          additionalPrinterColumns: columns,
        },
      ],
    },
  };
}

function schemaOf({ description, spec, status, name }: KindDeclaration): Schema {
  const metadata: Schema =
    name === undefined ? { type: 'object' } : { type: 'object', properties: { name: { type: 'string', ...name } } };
  return {
    description,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata,
      spec,
      status,
    },
  };
}

/** A column of `kubectl get`. */
export function column(
  name: string,
  jsonPath: string,
  { type = 'string', isWide = false }: { readonly type?: CustomColumn['type']; readonly isWide?: boolean } = {},
): CustomColumn {
  return { name, type, jsonPath, ...(isWide ? { priority: 1 } : {}) };
}

export const AGE_COLUMN: CustomColumn = column('Age', '.metadata.creationTimestamp', { type: 'date' });
