import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { RoutedServer } from './routed-server.ts';
import { probeRoutes, sendText } from './routes.ts';

describe('a server with a table of routes', () => {
  let reason: string | undefined;
  const server = new RoutedServer({
    name: 'operations',
    host: '127.0.0.1',
    port: 0,
    routes: {
      ...probeRoutes(() => reason),
      '/things': ({ response }) => sendText(response, 200, 'all'),
      '/things/': ({ response, rest }) => sendText(response, 200, rest),
    },
  });
  let url = '';
  before(async () => {
    url = await server.start();
  });
  after(() => server.stop());

  const ask = async (path: string, method = 'GET'): Promise<string> => {
    const response = await fetch(`${url}${path}`, { method });
    return `${response.status} ${await response.text()}`;
  };

  it('answers exact paths, and all below a path that ends in a slash', async () => {
    assert.equal(await ask('/things?limit=1'), '200 all');
    assert.equal(await ask('/things/shop%2Fone/two'), '200 shop/one/two');
    assert.equal(await ask('/things/%zz'), '200 %zz');
  });

  it('names its paths for any other', async () => {
    const { message } = JSON.parse((await ask('/constructor')).slice('404 '.length)) as { message: string };
    assert.equal(message, 'no such path: expected one of /livez, /readyz, /things, /things/');
    assert.match(await ask('/'), /^404 /);
  });

  it('reads only', async () => {
    assert.match(await ask('/things', 'POST'), /^405 .*expected GET, got POST/);
    assert.equal(await ask('/things', 'HEAD'), '200 ');
  });

  it('says why the process is not ready, and that it lives', async () => {
    assert.equal(await ask('/readyz'), '200 ok\n');
    reason = 'stopping';
    assert.equal(await ask('/readyz'), '503 not ready: stopping\n');
    assert.equal(await ask('/livez'), '200 ok\n');
  });

  it('has closed its port when it has stopped', async () => {
    const other = new RoutedServer({ name: 'operations', host: '127.0.0.1', port: 0, routes: {} });
    const address = await other.start();
    await other.stop();
    await other.stop();
    await assert.rejects(fetch(address));
  });
});
