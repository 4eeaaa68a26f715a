import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ResourceType } from '../../resources/index.ts';
import { REASONS } from './compliance-reasons.ts';
import { mergedRelatedObjects, relatedObjects } from './related-objects.ts';
import type { RelatedObjectEntry, RelatedObjectProperties } from './related-objects.ts';

const DEPLOYMENTS: ResourceType = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};

function related(name: string, properties?: RelatedObjectProperties, isCompliant = true): RelatedObjectEntry {
  const result = { namespace: 'ns', names: [name], isCompliant, reason: REASONS.found };
  return relatedObjects(DEPLOYMENTS, result, properties)[0]!;
}

describe('related objects', () => {
  it('name the kind, the place, and what became of the object', () => {
    assert.deepEqual(related('x', { uid: '1' }), {
      object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x', namespace: 'ns' } },
      compliant: 'Compliant',
      reason: 'Resource found as expected',
      properties: { uid: '1' },
    });
  });

  it('are condensed for a template that no object matches', () => {
    const result = { namespace: '', names: [], isCompliant: false, reason: REASONS.notFound };
    const [condensed] = relatedObjects({ ...DEPLOYMENTS, namespaced: false }, result);
    assert.deepEqual([condensed?.object.metadata, condensed?.compliant], [{ name: '-' }, 'NonCompliant']);
  });

  it('are sorted, each once; of two that disagree the later one counts', () => {
    const merged = mergedRelatedObjects([related('b'), related('a'), related('b', {}, false)], []);
    assert.deepEqual(
      merged.map(({ object, compliant }) => [object.metadata.name, compliant]),
      [
        ['a', 'Compliant'],
        ['b', 'NonCompliant'],
      ],
    );
  });

  it('remember who created an object', () => {
    const before = [related('x', { createdByPolicy: true, uid: '1' })];
    const properties = (now: RelatedObjectProperties): unknown =>
      mergedRelatedObjects([related('x', now)], before)[0]?.properties;
    assert.deepEqual(properties({ createdByPolicy: false, uid: '1', diff: 'd' }), {
      createdByPolicy: true,
      uid: '1',
      diff: 'd',
    });
    // Another object has the name since.
    assert.deepEqual(properties({ createdByPolicy: false, uid: '2' }), { createdByPolicy: false, uid: '2' });
    assert.deepEqual(properties({ createdByPolicy: true, uid: '3' }), { createdByPolicy: true, uid: '3' });
  });
});
