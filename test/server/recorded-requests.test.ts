// Requests that a policy server records: who gets them, and what a preview makes of them.
import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { portcullis } from '../cli/command.ts';
import { review, startServer, type TestServer } from './harness.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop' } };
const FACTS = {
  kind: { group: '', version: 'v1', kind: 'Pod' },
  resource: { group: '', version: 'v1', resource: 'pods' },
  name: 'web',
  namespace: 'shop',
  operation: 'CREATE',
};

function cel(expression: string): object {
  return { module: 'builtin:cel', settings: { validations: [{ expression, message: 'no' }] } };
}

function manifest(expression: string): object {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { ...cel(expression), mutating: false, rules },
  };
}

describe('recorded requests of a policy server', () => {
  let folder = '';
  let socket = '';
  let server: TestServer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-recorded-'));
    socket = join(folder, 'requests', 'socket');
    server = await startServer({ policies: { p: cel('true') }, recording: { most: 3, socket } });
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it('are offered to the user of the server only, and previewed with the users that sent them', async () => {
    for (const username of ['old', 'alice', 'bob', 'alice']) {
      const env = [{ name: 'PASSWORD', value: 'hunter2' }];
      const object = { ...POD, spec: { containers: [{ name: 'main', image: 'i', env }] } };
      const { allowed } = await server.review('p', review({ ...FACTS, userInfo: { username }, object }));
      assert.equal(allowed, true);
    }
    assert.equal((await stat(dirname(socket))).mode & 0o777, 0o700);
    const { stdout, code, stderr } = await portcullis(['requests', '--requests-socket', socket]);
    assert.equal(code, 0, stderr);
    const { items } = JSON.parse(stdout) as { items: readonly { request: { userInfo: { username: string } } }[] };
    assert.deepEqual(
      items.map(({ request }) => request.userInfo.username),
      ['alice', 'bob', 'alice'],
    );
    assert.equal(stdout.includes('hunter2'), false);
    const files = { recorded: stdout, from: manifest('true'), to: manifest("request.userInfo.username != 'alice'") };
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
    }
    await writeFile(join(folder, 'objects'), JSON.stringify(POD));
    const at = (name: string): string => join(folder, name);
    const args = ['rollout', 'preview', '-f', at('to'), '--from', at('from'), '--objects', at('objects')];
    const previewed = await portcullis([...args, '--requests', at('recorded')]);
    assert.match(previewed.stdout, /^3 recorded requests: 2 newly rejected, 1 unchanged$/m, previewed.stderr);
  });

  it('are not offered where there are none, or in a folder that others may open', async () => {
    const missing = await portcullis(['requests', '--requests-socket', join(folder, 'none')]);
    assert.deepEqual([missing.code, /--record-requests/.test(missing.stderr)], [1, true], missing.stderr);
    const open = await mkdtemp(join(folder, 'open-'));
    await chmod(open, 0o755);
    const recording = { most: 1, socket: join(open, 'socket') };
    await assert.rejects(startServer({ policies: { p: cel('true') }, recording }), /is open to other users/);
  });
});
