import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ParameterObjects } from './parameter-objects.ts';

const configMap = (data: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'limits', namespace: 'shop', labels: { a: 'b' }, annotations: { c: 'd' }, uid: '1' },
  data: { most: data },
});
const REFERENCE = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'limits' };
const found = (object: object, reference: object = REFERENCE): unknown =>
  new ParameterObjects([object as Record<string, never>]).find(reference as typeof REFERENCE);

describe('parameters in files', () => {
  it('have the fields that they have in a cluster', () => {
    assert.deepEqual(found(configMap('3')), {
      state: 'found',
      object: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'limits', namespace: 'shop', labels: { a: 'b' } },
        data: { most: '3' },
      },
    });
  });

  it('have the limit of a cluster', () => {
    const length = JSON.stringify(configMap('')).length - '"annotations":{"c":"d"},"uid":"1",'.length;
    assert.deepEqual(found(configMap('x'.repeat(32_769 - length))), {
      state: 'unreadable',
      reason: 'the object is too large: expected at most 32768 characters, got 32769',
    });
    assert.ok(!JSON.stringify(found(configMap('x'.repeat(32_768 - length)))).includes('unreadable'));
  });

  it('are annotations of a namespace, of which too long ones are not passed on', () => {
    const annotations = { long: 'x'.repeat(32_769), short: 'x', other: 'y' };
    const namespace = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop', labels: { a: 'b' }, annotations },
    };
    const reference = { apiVersion: 'v1', kind: 'Namespace', name: 'shop', annotations: ['long', 'short', 'none'] };
    assert.deepEqual(found(namespace, reference), {
      state: 'found',
      object: { metadata: { labels: { a: 'b' }, annotations: { long: 32_769, short: 'x', none: null } } },
    });
  });
});
