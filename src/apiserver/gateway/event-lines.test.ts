import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import { EventLines } from './event-lines.ts';

const OBJECT: KubernetesObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ü' } };

describe('lines of events', () => {
  it('are encoded once for all watchers', () => {
    const lines = new EventLines();
    const object = Object.freeze({ ...OBJECT });
    const line = lines.lineOf({ type: 'ADDED', object });
    assert.equal(String(line), `${JSON.stringify({ type: 'ADDED', object })}\n`);
    assert.equal(lines.lineOf({ type: 'ADDED', object }), line);
    assert.match(String(lines.lineOf({ type: 'MODIFIED', object })), /^\{"type":"MODIFIED"/);
  });

  it('are encoded again for an object that may have changed', () => {
    const lines = new EventLines();
    const object = { ...OBJECT };
    lines.lineOf({ type: 'ADDED', object });
    object.metadata = { name: 'other' };
    assert.match(String(lines.lineOf({ type: 'ADDED', object })), /other/);
  });
});
