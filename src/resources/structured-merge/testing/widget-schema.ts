import type { Schema } from '../../schema.ts';

const text: Schema = { type: 'string' };

/** A schema with every case of merging. */
export const WIDGET_SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer', default: 1 },
        mode: text,
        isOn: { type: 'boolean' },
        ratio: { type: 'number' },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
          items: {
            type: 'object',
            required: ['port'],
            properties: {
              port: { type: 'integer' },
              protocol: { type: 'string', default: 'TCP' },
              name: text,
              tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
            },
          },
        },
        tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        numbers: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-list-type': 'set' },
        steps: { type: 'array', items: text },
        rules: {
          type: 'array',
          'x-kubernetes-list-type': 'atomic',
          items: { type: 'object', properties: { a: text } },
        },
        selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { a: text, b: text } },
        options: { type: 'object', additionalProperties: text },
        groups: {
          type: 'object',
          additionalProperties: {
            type: 'object',
            properties: { a: text, b: text, list: { type: 'array', items: text } },
          },
        },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        either: { 'x-kubernetes-int-or-string': true },
        template: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
        maybe: { type: 'string', nullable: true },
      },
    },
    status: {
      type: 'object',
      properties: {
        phase: text,
        conditions: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
          items: {
            type: 'object',
            required: ['type'],
            properties: { type: text, status: text, reason: text, message: text, lastTransitionTime: text },
          },
        },
      },
    },
  },
};
