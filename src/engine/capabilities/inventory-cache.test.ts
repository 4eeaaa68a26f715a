import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InventoryCache, MAX_KEPT_INVENTORIES } from './inventory-cache.ts';

const PODS = [{ apiVersion: 'v1', kind: 'Pod' }];

/** A port with one pod, whose name changes with its revision. */
function changing() {
  const state = { revision: '1' as string | undefined, lists: 0 };
  const cache = new InventoryCache({
    revisionOf: () => state.revision,
    request(capability) {
      if (capability === 'kubernetes/get_resource_plural_name') {
        return '"pods"';
      }
      state.lists += 1;
      return JSON.stringify({ items: [{ metadata: { name: `pod-${state.revision}` } }] });
    },
  });
  return { state, cache };
}

describe('InventoryCache', () => {
  it('lists objects again only when one of them changed', () => {
    const { state, cache } = changing();
    const first = cache.get('opa', PODS);
    assert.equal(first, '{"pods":{"pod-1":{"metadata":{"name":"pod-1"}}}}');
    assert.equal(cache.get('opa', PODS), first);
    assert.equal(state.lists, 1);
    state.revision = '2';
    assert.match(cache.get('opa', PODS), /pod-2/);
    assert.match(cache.get('gatekeeper', PODS), /"cluster"/);
    assert.equal(state.lists, 3);
  });

  it('lists them every time without a revision', () => {
    const { state, cache } = changing();
    state.revision = undefined;
    cache.get('opa', PODS);
    cache.get('opa', PODS);
    assert.equal(state.lists, 2);
  });

  it('is limited in size', () => {
    const { state, cache } = changing();
    const kinds = Array.from({ length: MAX_KEPT_INVENTORIES + 1 }, (_, index) => [
      { apiVersion: 'v1', kind: `Kind${index}` },
    ]);
    kinds.forEach((resources) => cache.get('opa', resources));
    cache.get('opa', kinds.at(-1)!);
    assert.equal(state.lists, kinds.length);
    cache.get('opa', kinds[0]!);
    assert.equal(state.lists, kinds.length + 1);
  });
});
