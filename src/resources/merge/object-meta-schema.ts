import type { Schema } from '../schema.ts';

const text: Schema = { type: 'string' };
const time: Schema = { type: 'string', format: 'date-time' };
const texts: Schema = { type: 'object', additionalProperties: text };

/** How `metadata` is merged (`metav1.ObjectMeta`): what CustomResourceDefinitions need not say. */
export const OBJECT_META_SCHEMA: Schema = {
  type: 'object',
  properties: {
    annotations: texts,
    creationTimestamp: time,
    deletionGracePeriodSeconds: { type: 'integer' },
    deletionTimestamp: time,
    finalizers: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    generateName: text,
    generation: { type: 'integer' },
    labels: texts,
    managedFields: {
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        properties: {
          apiVersion: text,
          fieldsType: text,
          fieldsV1: { type: 'object' },
          manager: text,
          operation: text,
          subresource: text,
          time,
        },
      },
    },
    name: text,
    namespace: text,
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: text,
          blockOwnerDeletion: { type: 'boolean' },
          controller: { type: 'boolean' },
          kind: text,
          name: text,
          uid: text,
        },
        required: ['apiVersion', 'kind', 'name', 'uid'],
      },
    },
    resourceVersion: text,
    selfLink: text,
    uid: text,
  },
};
