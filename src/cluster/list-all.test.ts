import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import type { Cluster, ListOptions } from './cluster.ts';
import { listAll } from './list-all.ts';

const PODS: ResourceType = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
const OBJECTS = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name } }));

/** Pages of five objects; the first `expire` requests for later pages fail as expired. */
function pages(expire = 0): { cluster: Pick<Cluster, 'list'>; requests: ListOptions[] } {
  const requests: ListOptions[] = [];
  let expired = 0;
  const list = async (_type: unknown, options: ListOptions = {}): Promise<unknown> => {
    requests.push(options);
    const start = Number(options.continue ?? 0);
    if (start > 0 && expired < expire) {
      expired += 1;
      return await Promise.reject(ApiError.expired('The provided continue parameter is too old'));
    }
    const end = start + (options.limit ?? OBJECTS.length);
    const metadata = { resourceVersion: '9', ...(end < OBJECTS.length ? { continue: String(end) } : {}) };
    return { metadata, items: OBJECTS.slice(start, end) };
  };
  return { cluster: { list: list as Cluster['list'] }, requests };
}

const names = (items: readonly KubernetesObject[]): string => items.map(({ metadata }) => metadata.name).join('');

describe('listAll', () => {
  it('requests page after page', async () => {
    const { cluster, requests } = pages();
    const all = await listAll(cluster, PODS, {
      limit: 2,
      namespace: 'shop',
      resourceVersion: '3',
      resourceVersionMatch: 'Exact',
    });
    assert.equal(names(all.items), 'abcde');
    assert.deepEqual(all.metadata, { resourceVersion: '9' });
    assert.deepEqual(requests, [
      { limit: 2, namespace: 'shop', resourceVersion: '3', resourceVersionMatch: 'Exact' },
      { limit: 2, namespace: 'shop', continue: '2' },
      { limit: 2, namespace: 'shop', continue: '4' },
    ]);
  });

  it('restarts when a page expired, and finally requests everything at once', async () => {
    assert.equal(names((await listAll(pages(1).cluster, PODS, { limit: 2 })).items), 'abcde');
    const { cluster, requests } = pages(99);
    assert.equal(names((await listAll(cluster, PODS, { limit: 2 })).items), 'abcde');
    assert.deepEqual(requests.at(-1), {});
    assert.equal(requests.length, 5);
  });
});
