import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api-error.ts';
import { DiscoveryCache } from './discovery.ts';

const resource = (name: string, kind: string, subresources: string[] = []): object => ({
  resource: name,
  responseKind: { group: '', version: '', kind },
  scope: 'Namespaced',
  singularResource: kind.toLowerCase(),
  verbs: ['get', 'list'],
  shortNames: [name.slice(0, 2)],
  subresources: subresources.map((subresource) => ({ subresource })),
});

const aggregated = (group: string, version: string, resources: object[]): object => ({
  kind: 'APIGroupDiscoveryList',
  items: [{ metadata: { name: group }, versions: [{ version, resources }] }],
});

/** Documents by path, with the number of requests for each. */
function documents(byPath: Record<string, unknown>): { fetch: (path: string) => Promise<unknown>; requests: string[] } {
  const requests: string[] = [];
  return {
    requests,
    fetch: (path) => {
      requests.push(path);
      const found = byPath[path];
      return found === undefined
        ? Promise.reject(new ApiError(404, 'NotFound', 'the server could not find the requested resource'))
        : Promise.resolve(found);
    },
  };
}

describe('DiscoveryCache', () => {
  it('reads aggregated documents once', async () => {
    const { fetch, requests } = documents({
      '/api': aggregated('', 'v1', [resource('pods', 'Pod', ['status', 'log'])]),
      '/apis': aggregated('apps', 'v1', [resource('deployments', 'Deployment')]),
    });
    const discovery = new DiscoveryCache(fetch);
    const pods = await discovery.find('v1', 'Pod');
    assert.deepEqual(pods, {
      group: '',
      version: 'v1',
      resource: 'pods',
      kind: 'Pod',
      namespaced: true,
      singular: 'pod',
      shortNames: ['po'],
      categories: [],
      verbs: ['get', 'list'],
      subresources: ['status', 'log'],
    });
    assert.equal((await discovery.find('apps/v1', 'Deployment'))?.resource, 'deployments');
    assert.equal((await discovery.resources()).length, 2);
    assert.deepEqual(requests, ['/api', '/apis']);
  });

  it('falls back to one document per group and version, without unavailable ones', async () => {
    const list = (groupVersion: string, name: string, kind: string): object => ({
      kind: 'APIResourceList',
      groupVersion,
      resources: [
        { name, singularName: '', namespaced: true, kind, verbs: ['get'] },
        { name: `${name}/status`, singularName: '', namespaced: true, kind, verbs: ['get'] },
      ],
    });
    const { fetch } = documents({
      '/api': { kind: 'APIVersions', versions: ['v1'] },
      '/apis': {
        kind: 'APIGroupList',
        groups: [
          {
            name: 'apps',
            versions: [{ groupVersion: 'apps/v1beta1' }, { groupVersion: 'apps/v1' }],
            preferredVersion: { groupVersion: 'apps/v1' },
          },
          {
            name: 'metrics',
            versions: [{ groupVersion: 'metrics/v1' }],
            preferredVersion: { groupVersion: 'metrics/v1' },
          },
        ],
      },
      '/api/v1': list('v1', 'pods', 'Pod'),
      '/apis/apps/v1': list('apps/v1', 'deployments', 'Deployment'),
      '/apis/apps/v1beta1': list('apps/v1beta1', 'deployments', 'Deployment'),
    });
    const resources = await new DiscoveryCache(fetch).resources();
    assert.deepEqual(
      resources.map(({ group, version, resource: name, subresources }) => [group, version, name, subresources]),
      [
        ['', 'v1', 'pods', ['status']],
        ['apps', 'v1', 'deployments', ['status']],
        ['apps', 'v1beta1', 'deployments', ['status']],
      ],
    );
  });

  it('says which APIs do not answer: of aggregated documents, and of one per version', async () => {
    const down = { metadata: { name: 'metrics' }, versions: [{ version: 'v1', freshness: 'Stale' }] };
    const known = { version: 'v1', freshness: 'Stale', resources: [resource('widgets', 'Widget')] };
    const { fetch } = documents({
      '/api': aggregated('', 'v1', [resource('pods', 'Pod')]),
      '/apis': { kind: 'APIGroupDiscoveryList', items: [down, { metadata: { name: 'shop' }, versions: [known] }] },
    });
    const discovery = new DiscoveryCache(fetch);
    assert.deepEqual(await discovery.unavailable(), ['metrics/v1']);
    assert.equal((await discovery.find('shop/v1', 'Widget'))?.resource, 'widgets');
    const legacy = documents({
      '/api': { kind: 'APIVersions', versions: [] },
      '/apis': {
        kind: 'APIGroupList',
        groups: ['metrics', 'gone'].map((name) => ({ name, versions: [{ groupVersion: `${name}/v1` }] })),
      },
    });
    const failing = new DiscoveryCache((path) =>
      path === '/apis/metrics/v1'
        ? Promise.reject(new ApiError(503, 'ServiceUnavailable', 'no endpoints'))
        : legacy.fetch(path),
    );
    assert.deepEqual(await failing.unavailable(), ['metrics/v1']);
  });

  it('refreshes for unknown kinds, within a limit', async () => {
    const byPath: Record<string, unknown> = { '/api': aggregated('', 'v1', []), '/apis': aggregated('', 'v1', []) };
    const { fetch, requests } = documents(byPath);
    let now = 0;
    const discovery = new DiscoveryCache(fetch, () => now);
    for (let attempt = 0; attempt < 50; attempt += 1) {
      assert.equal(await discovery.find('v1', 'Pod'), undefined);
    }
    const before = requests.length;
    assert.ok(before <= 12, `expected a few looks, got ${before}`);
    byPath['/api'] = aggregated('', 'v1', [resource('pods', 'Pod')]);
    now += 6_000;
    assert.equal((await discovery.find('v1', 'Pod'))?.resource, 'pods');
    assert.equal(requests.length, before + 2);
  });

  it('refreshes after invalidate, and after a while', async () => {
    const { fetch, requests } = documents({ '/api': aggregated('', 'v1', []), '/apis': aggregated('', 'v1', []) });
    let now = 0;
    const discovery = new DiscoveryCache(fetch, () => now);
    await discovery.resources();
    discovery.invalidate();
    await discovery.resources();
    now += 3_600_000;
    await discovery.resources();
    assert.equal(requests.length, 6);
  });

  it('shares one refresh among concurrent callers, each of which may stop waiting', async () => {
    const { fetch, requests } = documents({ '/api': aggregated('', 'v1', []), '/apis': aggregated('', 'v1', []) });
    const discovery = new DiscoveryCache(fetch);
    const controller = new AbortController();
    const waiting = discovery.resources({ signal: controller.signal });
    const other = discovery.resources();
    controller.abort(new Error('not wanted any more'));
    await assert.rejects(waiting, /not wanted any more/);
    assert.deepEqual(await other, []);
    assert.equal(requests.length, 2);
  });

  it('does not cache a failure', async () => {
    let isUp = false;
    const discovery = new DiscoveryCache(() =>
      isUp ? Promise.resolve(aggregated('', 'v1', [])) : Promise.reject(new Error('down')),
    );
    await assert.rejects(discovery.resources(), /down/);
    isUp = true;
    assert.deepEqual(await discovery.resources(), []);
  });
});
