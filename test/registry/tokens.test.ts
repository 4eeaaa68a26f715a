// Docker's registry with a token service of the test: what the client asks for, and what it does with wrong tokens.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../src/modules/sources/index.ts';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { example, guest, moduleBytes, review, startServer } from '../server/harness.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Registry } from './registry-lab.ts';
import { PASSWORD, USER } from './registry-user.ts';
import { REFRESH_TOKEN, type TokenChange, TokenService } from './token-service.ts';

const accept = await moduleBytes(guest('accept'));
const basic = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');

describe('a registry with a token service', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let tokens: TokenService;
  let registry: Registry;
  let folder: string;

  before(async () => {
    tokens = await TokenService.start();
    registry = await Registry.start({ tokens });
    folder = await mkdtemp(join(tmpdir(), 'portcullis-tokens-'));
    await registry.push('policies/accept', 'v1', accept);
    const authority = (data: string): object[] => [{ type: 'Data', data }];
    const authorities = { [registry.host]: authority(registry.ca), [tokens.host]: authority(tokens.ca) };
    await writeFile(join(folder, 'sources.yml'), JSON.stringify({ source_authorities: authorities }));
    await credentials({ auth: basic });
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await tokens?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    tokens.requests.length = 0;
    tokens.change = {};
    tokens.answer = undefined;
  });

  /** Writes the Docker config file. */
  const credentials = (entry: object, host = registry.host): Promise<void> =>
    writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: entry } }));
  const reference = (repository = 'policies/accept'): string => `registry://${registry.host}/${repository}:v1`;
  const run = (...args: readonly string[]): Promise<CommandResult> => {
    const sources = ['--sources-path', join(folder, 'sources.yml')];
    const config = ['--docker-config-json-path', join(folder, 'config.json')];
    return portcullis([...args, ...sources, ...config], { env: { XDG_CACHE_HOME: join(folder, 'cache') } });
  };
  const sourcesOf = (host: string, ca: string): SourcesConfig => ({
    ...DEFAULT_SOURCES,
    sourceAuthorities: { [host]: [{ type: 'Data', data: ca }], [tokens.host]: [{ type: 'Data', data: tokens.ca }] },
    dockerConfig: join(folder, 'config.json'),
  });

  it('gives one token for a pull, for this repository and to pull only', async () => {
    const pulled = await run('pull', reference());
    assert.equal(pulled.code, 0, pulled.stderr);
    const scope = 'repository:policies/accept:pull';
    assert.deepEqual(tokens.requests, [{ method: 'GET', scope, service: tokens.service, credentials: 'password' }]);
  });

  it('gives a token for a refresh token', async () => {
    await credentials({ identitytoken: REFRESH_TOKEN });
    try {
      const pulled = await run('pull', reference());
      assert.equal(pulled.code, 0, pulled.stderr);
      const [request] = tokens.requests;
      assert.partialDeepStrictEqual(request, { method: 'POST', credentials: 'refresh-token' });
    } finally {
      await credentials({ auth: basic });
    }
  });

  it('gives a token to push, with which a module is stored', async () => {
    const file = join(folder, 'policy.wasm');
    await writeFile(file, await moduleBytes(example('required-labels')));
    const pushed = await run('push', file, reference('pushed/required-labels'));
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.deepEqual(
      [...new Set(tokens.requests.map(({ scope }) => scope))],
      ['repository:pushed/required-labels:pull,push'],
    );
    const copy = join(folder, 'copy.wasm');
    assert.equal((await run('pull', reference('pushed/required-labels'), '-o', copy)).code, 0);
    assert.deepEqual(await readFile(copy), await readFile(file));
  });

  it('gives another token when one expires between manifest and module', async () => {
    await using proxy = await FaultProxy.start(registry);
    await credentials({ auth: basic }, proxy.host);
    try {
      const challenge = `Bearer realm="${tokens.realm}",service="${tokens.service}",scope="repository:policies/accept:pull",error="invalid_token"`;
      proxy.faults.set('/blobs/', (_request, response) => {
        proxy.faults.clear();
        response.writeHead(401, { 'www-authenticate': challenge }).end();
      });
      const module = `registry://${proxy.host}/policies/accept:v1`;
      await using server = await startServer({ policies: { p: { module } }, sources: sourcesOf(proxy.host, proxy.ca) });
      assert.equal((await server.status('p')).phase, 'Active');
      assert.equal(tokens.requests.length, 2);
    } finally {
      await credentials({ auth: basic });
    }
  });

  const lies: readonly (readonly [what: string, change: TokenChange, answer?: string])[] = [
    ['an expired token', { lifetime: -600 }],
    ['a token for another service', { audience: 'another registry' }],
    ['a token of another issuer', { issuer: 'somebody else' }],
    ['a token for another repository', { repository: 'policies/other' }],
    ['a token that another key signed', { isForged: true }],
    ['no token', {}, '{}'],
    ['HTML', {}, '<html>'],
    ['a token with a line break', {}, JSON.stringify({ token: 'a\r\nx-evil: 1' })],
  ];

  it('that lies leaves the last good version, with a reason, and the next pull gets a new token', async () => {
    const name = (i: number, tag: string): Record<string, unknown> => ({
      module: `registry://${registry.host}/lies/${i}:${tag}`,
    });
    for (const i of lies.keys()) {
      await registry.push(`lies/${i}`, 'v1', accept);
      await registry.push(`lies/${i}`, 'v2', Buffer.concat([accept, Buffer.from([0, 2, 1, i])]));
    }
    const entries = (tag: string, until: number): Record<string, unknown> =>
      Object.fromEntries([...lies.keys()].map((i) => [`p${i}`, name(i, i <= until ? tag : 'v1')]));
    await using server = await startServer({
      policies: entries('v1', lies.length),
      sources: sourcesOf(registry.host, registry.ca),
    });
    for (const [i, [what, change, answer]] of lies.entries()) {
      tokens.change = change;
      tokens.answer = answer === undefined ? undefined : (response) => void response.end(answer);
      await server.write(entries('v2', i));
      const { reason, message } = await server.reaches(`p${i}`, { phase: 'Degraded' });
      assert.equal(reason, 'Unauthorized', `${what}: ${message}`);
      assert.doesNotMatch(message, new RegExp(`${PASSWORD}|${basic}|x-evil|eyJ`), what);
      assert.equal((await server.review(`p${i}`, review())).allowed, true, what);
    }
    tokens.change = {};
    tokens.answer = undefined;
    await server.server.reload();
    for (const i of lies.keys()) {
      const { serving } = await server.reaches(`p${i}`, { phase: 'Active' });
      assert.notDeepEqual(Object.values(serving?.modules ?? {}), [digestOf(accept)]);
    }
  });

  it('gives a user without credentials nothing but a reason', async () => {
    const config = join(folder, 'none.json');
    await writeFile(config, '{}');
    const { dockerConfig: _, ...sources } = sourcesOf(registry.host, registry.ca);
    await using server = await startServer({ policies: { p: { module: reference() } }, sources });
    const { reason, message } = await server.status('p');
    assert.equal(reason, 'Unauthorized', message);
    assert.equal(tokens.requests[0]?.credentials, 'none');
    await credentials({ auth: Buffer.from(`${USER}:wrong`).toString('base64') });
    try {
      const { code, stderr } = await run('pull', reference());
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`the token service ${tokens.host} of ${registry.host}, for .* answered 401`));
    } finally {
      await credentials({ auth: basic });
    }
  });
});
