// Policy servers and replicas whose modules come from a real registry, with TLS, a password, and faults between them.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { guest, moduleBytes, moduleVariant, review, startServer, TestFolder } from '../server/harness.ts';
import { openCluster, pinned, Revisions, startReplica } from '../server/replica-lab.ts';
import { type Fault, FaultProxy } from './fault-proxy.ts';
import { Registry } from './registry-lab.ts';
import { PASSWORD } from './registry-user.ts';

const accept = await moduleBytes(guest('accept'));

/** A module that behaves alike and has other bytes. */
function variant(name: string): Buffer {
  return moduleVariant(accept, name);
}

describe('modules from a registry', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let registry: Registry;
  let proxy: FaultProxy;
  let sources: SourcesConfig;

  before(async () => {
    registry = await Registry.start();
    proxy = await FaultProxy.start(registry);
    sources = await registry.sources(proxy);
  });
  after(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  it('are downloaded once each for 200 policies, and serve after a restart while the registry is down', async () => {
    const names = ['one', 'two', 'three', 'four', 'five'];
    for (const name of names) {
      await registry.push(`policies/${name}`, 'v1', variant(name));
    }
    const policies = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [
        `p${i}`,
        { module: `registry://${proxy.host}/policies/${names[i % 5]}:v1` },
      ]),
    );
    await using folder = await TestFolder.create();
    const before = proxy.downloads;
    {
      await using server = await startServer({ policies, folder, sources });
      assert.ok(server.server.policies().policies.every(({ phase }) => phase === 'Active'));
      assert.equal(proxy.downloads - before, 5);
    }
    await registry.stop();
    try {
      await using server = await startServer({ policies, folder, sources });
      const { policies: all } = server.server.policies();
      assert.ok(
        all.every(({ serving }) => serving !== null),
        JSON.stringify(all.find(({ serving }) => serving === null)),
      );
      assert.equal((await server.review('p199', review())).allowed, true);
    } finally {
      await registry.resume();
    }
  });

  it('that a tag had are those that a revision keeps, on a replica with an empty cache as well', async () => {
    const manifest = await registry.push('policies/moving', 'v1', variant('before'));
    const snapshot = {
      module: `registry://${proxy.host}/policies/moving:v1`,
      settings: {},
      mutating: false,
      rules: [],
    };
    await using cluster = await openCluster();
    await using folder = await TestFolder.create();
    await using first = await startReplica({ cluster: cluster.admin, folder, sources });
    const request = { kind: 'ClusterAdmissionPolicy', metadata: { name: 'moving' }, spec: snapshot as never };
    const modules = pinned(await first.server.prevalidate(request));
    const digest = digestOf(variant('before'));
    assert.deepEqual(modules, [{ name: 'moving', module: snapshot.module, digest, manifest }]);

    const moved = await registry.push('policies/moving', 'v1', variant('after'));
    const status = { state: 'Serving', order: 1, modules } as never;
    await new Revisions(cluster.admin).create('moving', 1, snapshot, status);
    await using emptyFolder = await TestFolder.create();
    // No peer has the module.
    await first.stop();
    await using second = await startReplica({
      cluster: cluster.admin,
      folder: emptyFolder,
      sources,
      name: 'replica-1',
    });
    const served = await second.reaches(Revisions.id('moving'), { phase: 'Active' });
    assert.deepEqual(Object.values(served.serving?.modules ?? {}), [digest]);
    const again = pinned(await second.server.prevalidate(request));
    assert.equal(again[0]?.manifest, moved, 'a new revision takes what the tag has now');
  });

  const respond =
    (status: number, body: string | Uint8Array = '', headers: Record<string, string> = {}): Fault =>
    (_request, response) =>
      void response.writeHead(status, headers).end(body);
  const manifestType = 'application/vnd.oci.image.manifest.v1+json';
  const layerOf = (fields: object): string =>
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      layers: [{ mediaType: 'application/wasm', digest: digestOf(accept), size: accept.length, ...fields }],
    });

  const faults: readonly (readonly [what: string, part: string, fault: Fault, reason: string, message: RegExp])[] = [
    ['missing credentials', '/manifests/', respond(401), 'Unauthorized', /answered 401/],
    ['missing rights', '/manifests/', respond(403), 'AccessDenied', /answered 403/],
    ['a missing artifact', '/manifests/', respond(404), 'ModuleNotFound', /answered 404/],
    ['a missing blob', '/blobs/', respond(404), 'ModuleNotFound', /answered 404/],
    ['a rate limit', '/manifests/', respond(429, '', { 'retry-after': '900' }), 'RateLimited', /in 900 s/],
    ['an error of the registry', '/manifests/', respond(503), 'SourceFailed', /answered 503/],
    ['HTML', '/manifests/', respond(200, '<html>'), 'InvalidManifest', /is this a registry/],
    [
      'a foreign artifact',
      '/manifests/',
      respond(200, layerOf({ mediaType: 'text/plain' })),
      'UnsupportedMediaType',
      /"text\/plain"/,
    ],
    ['a wrong size', '/manifests/', respond(200, layerOf({ size: 7 })), 'SizeMismatch', /expected 7 bytes/],
    ['wrong bytes', '/blobs/', respond(200, Buffer.alloc(variant('f0').length)), 'DigestMismatch', /has other bytes/],
    [
      'half an answer',
      '/blobs/',
      (_request, response) => {
        response.writeHead(200, { 'content-length': variant('f10').length });
        response.write(accept.subarray(0, 100), () => response.destroy());
      },
      'FetchFailed',
      /lost|ended early/,
    ],
    [
      'a redirect to itself',
      '/manifests/',
      ({ url }, response) => void response.writeHead(307, { location: url }).end(),
      'FetchFailed',
      /redirects too often/,
    ],
  ];

  it('that cannot be pulled leave the last good version, each with its own reason', async () => {
    await using server = await startServer({ policies: {}, sources });
    const entries = (tag: string): Record<string, unknown> =>
      Object.fromEntries(faults.map((_, i) => [`f${i}`, { module: `registry://${proxy.host}/faults/f${i}:${tag}` }]));
    for (const i of faults.keys()) {
      await registry.push(`faults/f${i}`, 'v1', accept);
      await registry.push(`faults/f${i}`, 'v2', variant(`f${i}`));
    }
    await server.write(entries('v1'));
    for (const i of faults.keys()) {
      await server.reaches(`f${i}`, { phase: 'Active' });
    }
    for (const [i, [, part, fault]] of faults.entries()) {
      const path = `/v2/faults/f${i}${part}`;
      proxy.faults.set(part === '/manifests/' ? `${path}v2` : `${path}${digestOf(variant(`f${i}`))}`, fault);
    }
    await server.write(entries('v2'));
    for (const [i, [what, , , reason, message]] of faults.entries()) {
      const status = await server.reaches(`f${i}`, { phase: 'Degraded' });
      assert.equal(status.reason, reason, `${what}: ${status.message}`);
      assert.match(status.message, message, what);
      assert.doesNotMatch(status.message, new RegExp(PASSWORD));
      assert.equal((await server.review(`f${i}`, review())).allowed, true, what);
    }
    proxy.faults.clear();
    await server.server.reload();
    for (const i of faults.keys()) {
      await server.reaches(`f${i}`, { phase: 'Active' });
    }
  });

  it('are asked for again when the registry says so', async () => {
    await registry.push('policies/busy', 'v1', variant('busy'));
    const requests = proxy.paths.length;
    const isOfModule = (path: string): boolean => path.includes('policies/busy');
    proxy.faults.set('/v2/policies/busy/', (_request, response) => {
      proxy.faults.delete('/v2/policies/busy/');
      response.writeHead(429, { 'retry-after': '1' }).end();
    });
    const module = `registry://${proxy.host}/policies/busy:v1`;
    await using server = await startServer({ policies: { p: { module } }, sources });
    assert.equal((await server.status('p')).phase, 'Active');
    assert.equal(proxy.paths.slice(requests).filter(isOfModule).length, 3, 'the manifest twice, and the module');
  });

  it('need the password of the registry', async () => {
    await registry.push('policies/secret', 'v1', accept);
    const module = `registry://${proxy.host}/policies/secret:v1`;
    const { dockerConfig: _, ...anonymous } = sources;
    await using server = await startServer({ policies: { p: { module } }, sources: anonymous });
    const { reason, message } = await server.status('p');
    assert.equal(reason, 'Unauthorized', message);
    assert.match(message, /answered 401 \(UNAUTHORIZED\).*needs credentials/);
  });
});
