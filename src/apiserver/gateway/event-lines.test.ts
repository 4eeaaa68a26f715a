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

  it('are kept for watchers of several changes and formats, within a number of bytes', () => {
    const lines = new EventLines(200);
    let encoded = 0;
    const names = { name: 'names', encode: ({ metadata }: KubernetesObject) => ({ encoded: ++encoded, metadata }) };
    const objects = ['a', 'b', 'c'].map((name) => Object.freeze({ ...OBJECT, metadata: { name } }));
    const [first, second, third] = objects.map((object) => ({ type: 'ADDED', object }) as const);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const [ofFirst, ofSecond] = [lines.lineOf(first, names), lines.lineOf(second, names)];
    assert.equal(lines.lineOf(first, names), ofFirst);
    assert.equal(lines.lineOf(second, names), ofSecond);
    assert.notDeepEqual(lines.lineOf(first), ofFirst);
    lines.lineOf(third, names);
    assert.equal(encoded, 3);
    lines.lineOf(first, names);
    assert.equal(encoded, 4);
  });

  it('are encoded again for an object that may have changed', () => {
    const lines = new EventLines();
    const object = { ...OBJECT };
    lines.lineOf({ type: 'ADDED', object });
    object.metadata = { name: 'other' };
    assert.match(String(lines.lineOf({ type: 'ADDED', object })), /other/);
  });
});
