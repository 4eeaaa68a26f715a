import type { Schema } from './schema.ts';

const TEXT: Schema = { type: 'string' };
const TIME: Schema = { type: 'string', format: 'date-time' };
const TEXTS: Schema = { type: 'object', additionalProperties: TEXT };

/** The metadata of every object (`metav1.ObjectMeta`), with extensions for server-side apply. */
export const OBJECT_META_SCHEMA: Schema = {
  type: 'object',
  description: 'What every object has: its name, labels, annotations and owners, and what the server says of it.',
  properties: {
    name: { ...TEXT, description: 'The name, unique among objects of a kind in a namespace.' },
    generateName: { ...TEXT, description: 'What the server begins a name with that it makes up.' },
    namespace: { ...TEXT, description: 'The namespace of the object.' },
    selfLink: TEXT,
    uid: { ...TEXT, description: 'Unlike the name never used again.' },
    resourceVersion: { ...TEXT, description: 'Changes with every write.' },
    generation: { type: 'integer', format: 'int64', description: 'Counts changes of what is desired.' },
    creationTimestamp: TIME,
    deletionTimestamp: { ...TIME, description: 'When the deletion was requested.' },
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64' },
    labels: { ...TEXTS, description: 'What selectors look at.' },
    annotations: { ...TEXTS, description: 'Data that nothing selects by.' },
    ownerReferences: {
      type: 'array',
      description: 'The objects that this one belongs to; it is deleted with the last of them.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'uid',
      items: {
        type: 'object',
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: TEXT,
          kind: TEXT,
          name: TEXT,
          uid: TEXT,
          controller: { type: 'boolean' },
          blockOwnerDeletion: { type: 'boolean' },
        },
      },
    },
    finalizers: {
      type: 'array',
      description: 'The object is not removed before this list is empty.',
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
      items: TEXT,
    },
    managedFields: {
      type: 'array',
      description: 'Who set which fields.',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        properties: {
          manager: TEXT,
          operation: TEXT,
          apiVersion: TEXT,
          time: TIME,
          fieldsType: TEXT,
          fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          subresource: TEXT,
        },
      },
    },
  },
};

/** Adds `apiVersion`, `kind` and `metadata`, which schemas of custom kinds may omit. */
export function withObjectMeta(schema: Schema): Schema {
  const properties = schema.properties ?? {};
  const own = properties['metadata'];
  return {
    ...schema,
    properties: {
      ...properties,
      apiVersion: { ...TEXT, ...properties['apiVersion'] },
      kind: { ...TEXT, ...properties['kind'] },
      metadata: {
        ...OBJECT_META_SCHEMA,
        ...own,
        // A custom kind may restrict its names, nothing else (apiextensions).
        properties: { ...OBJECT_META_SCHEMA.properties, ...own?.properties },
      },
    },
  };
}
