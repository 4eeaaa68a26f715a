import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readReview } from '../evaluate.ts';
import type { LookupResult } from '../review/object-lookup.ts';
import { UnknownObject } from '../review/object-lookup.ts';
import type { JsonObject } from '../../values/index.ts';
import { bytes, podReview } from '../testing/reviews.ts';
import { endsWithNamespace } from './ending-object.ts';

const LIVING: LookupResult = { state: 'found', object: { metadata: { labels: {} } } };
const ENDING: LookupResult = {
  state: 'found',
  object: { metadata: { labels: {}, deletionTimestamp: '2026-01-01T00:00:00Z' } },
};

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'a',
    labels: { app: 'a' },
    finalizers: ['example.com/backup'],
    deletionTimestamp: '2026-01-01T00:00:00Z',
    resourceVersion: '7',
    managedFields: [{ manager: 'kubectl' }],
  },
  spec: { containers: [{ name: 'a', image: 'a' }] },
};

function updated(metadata: JsonObject, rest: JsonObject = {}): JsonObject {
  const object = { ...POD, ...rest, metadata: { ...POD.metadata, ...metadata } };
  return { operation: 'UPDATE', object, oldObject: POD };
}

function ends(request: JsonObject, namespace: LookupResult = ENDING): boolean {
  const review = readReview('validate', bytes(podReview(request)));
  return endsWithNamespace(review, { find: () => namespace });
}

describe('a request that only ends an object of a namespace that is being deleted', () => {
  const removal = updated({ finalizers: null, managedFields: [], resourceVersion: '8', generation: 2 });
  const deletion = { operation: 'DELETE', object: null, oldObject: POD };

  it('is a deletion, or an update of finalizers', () => {
    assert.equal(ends(deletion), true);
    assert.equal(ends(removal), true);
    const { finalizers: _, ...metadata } = POD.metadata;
    assert.equal(ends({ ...removal, object: { ...POD, metadata } }), true);
  });

  it('is none while the namespace lives, does not exist, or cannot be read', () => {
    for (const namespace of [LIVING, { state: 'absent' }, { state: 'unreadable', reason: 'no' }] as const) {
      assert.equal(ends(deletion, namespace), false);
      assert.equal(ends(removal, namespace), false);
    }
  });

  it('has to wait for the namespace', () => {
    assert.throws(() => ends(removal, { state: 'unknown' }), UnknownObject);
  });

  it('changes nothing else, also not beside the finalizers', () => {
    const others: readonly JsonObject[] = [
      updated({ finalizers: [], labels: { app: 'b' } }),
      updated({ finalizers: [], annotations: { a: 'b' } }),
      updated({ finalizers: [], ownerReferences: [] }),
      updated({ finalizers: [], deletionTimestamp: null }),
      updated({ finalizers: [] }, { spec: { containers: [{ name: 'a', image: 'b' }] } }),
      updated({ finalizers: [] }, { status: { phase: 'Running' } }),
      { ...removal, oldObject: null },
      { ...removal, object: null },
      { operation: 'CREATE', object: POD, oldObject: null },
      { operation: 'CONNECT', object: POD, oldObject: null },
    ];
    for (const request of others) {
      assert.equal(ends(request), false, JSON.stringify(request));
    }
  });

  it('is for no subresource, and for no object without a namespace', () => {
    for (const rest of [{ subResource: 'status' }, { requestSubResource: 'ephemeralcontainers' }, { namespace: '' }]) {
      assert.equal(ends({ ...removal, ...rest }), false);
      assert.equal(ends({ ...deletion, ...rest }), false);
    }
  });
});
