import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OpenApiCache } from './open-api.ts';

/** A server whose documents have these texts, by path of group and version. */
interface Server {
  readonly cache: OpenApiCache;
  readonly requests: string[];
  now: number;
}

function server(documents: Record<string, string>): Server {
  const requests: string[] = [];
  const urlOf = (path: string): string => `/openapi/v3/${path}?hash=${documents[path]?.length}`;
  const state: Server = {
    now: 0,
    requests,
    cache: new OpenApiCache(
      async (path) => {
        requests.push(path);
        if (path === '/openapi/v3') {
          const paths = Object.keys(documents).map((one) => [one, { serverRelativeURL: urlOf(one) }]);
          return JSON.stringify({ paths: Object.fromEntries(paths) });
        }
        return documents[/^\/openapi\/v3\/(.*)\?/.exec(path)?.[1] ?? ''] ?? '';
      },
      () => state.now,
    ),
  };
  return state;
}

describe('OpenAPI documents of an API server', () => {
  it('are those of a group and version', async () => {
    const { cache } = server({ 'api/v1': 'core', 'apis/apps/v1': 'apps' });
    assert.equal((await cache.document('v1'))?.text, 'core');
    assert.equal((await cache.document('apps/v1'))?.text, 'apps');
    assert.equal(await cache.document('apps/v2'), undefined);
  });

  it('are fetched again only after they have changed', async () => {
    const documents = { 'api/v1': 'core' };
    const state = server(documents);
    await state.cache.document('v1');
    await state.cache.document('v1');
    assert.deepEqual(state.requests, ['/openapi/v3', '/openapi/v3/api/v1?hash=4']);
    const revision = await state.cache.revision();
    state.now += 10_000;
    await state.cache.document('v1');
    assert.equal(state.requests.length, 3);
    assert.equal(await state.cache.revision(), revision);
    documents['api/v1'] = 'another';
    state.now += 10_000;
    assert.equal((await state.cache.document('v1'))?.text, 'another');
    assert.notEqual(await state.cache.revision(), revision);
  });

  it('are kept up to a size', async () => {
    const large = 'x'.repeat(5 * 1024 ** 2);
    const { cache, requests } = server({ 'api/v1': large, 'apis/apps/v1': `${large}.` });
    for (const version of ['v1', 'apps/v1', 'apps/v1', 'v1']) {
      await cache.document(version);
    }
    assert.equal(requests.filter((path) => path.includes('hash')).length, 3);
  });

  it('are on the server itself', async () => {
    const index = { paths: { 'api/v1': { serverRelativeURL: 'https://elsewhere/openapi/v3/api/v1' }, 'apis/a/v1': 1 } };
    const cache = new OpenApiCache(async () => JSON.stringify(index));
    assert.equal(await cache.document('v1'), undefined);
    assert.equal(await cache.document('a/v1'), undefined);
  });
});
