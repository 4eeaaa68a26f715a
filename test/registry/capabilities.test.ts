// Policies that read images in a real registry, called as an API server calls them: on a policy server, over HTTPS.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { hostPlatform } from '../../src/modules/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { guest, requiredLabel, requires, review, startServer, type TestServer } from '../server/harness.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Registry } from './registry-lab.ts';

const { architecture } = hostPlatform();
const CONFIG = { architecture, os: 'linux', config: { User: '65533', Env: ['TOKEN=secret'] }, rootfs: {} };

/** The id of an AdmissionPolicy in the namespace `team`. */
const TENANT = 'kw.ap.team.asking';
const asking = { module: guest('echo-host-call'), hostCapabilities: ['oci/*'], timeoutEvalSeconds: 5 };
const policies = { asking, [TENANT]: asking, good: requires('app') };

interface Reply {
  readonly isError: boolean;
  /** What the guest got: JSON text, or an error. */
  readonly text: string;
}

/** Has a policy call a capability. */
async function ask(server: TestServer, operation: string, payload: unknown, policy = 'asking'): Promise<Reply> {
  const object = { binding: 'kubewarden', ns: 'oci', op: operation, payload };
  const { allowed, status, warnings } = await server.review(policy, review({ object }));
  return { isError: !allowed, text: status?.message ?? JSON.stringify(warnings) };
}

describe('policies that read images in a registry', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  let registry: Registry;
  let proxy: FaultProxy;
  let sources: SourcesConfig;
  let image: string;
  let digests: Awaited<ReturnType<Registry['pushImage']>>;

  before(async () => {
    registry = await Registry.start();
    proxy = await FaultProxy.start(registry);
    sources = await registry.sources(proxy);
    digests = await registry.pushImage('team/app', 'v1', { [architecture]: CONFIG, mips: {} });
    image = `${proxy.host}/team/app:v1`;
  });
  after(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  it('get digest, index and configuration as Kubewarden gives them, with the credentials of the policy server', async () => {
    await using server = await startServer({ policies, sources });
    const digest = await ask(server, 'v1/manifest_digest', image);
    assert.deepEqual(JSON.parse(digest.text), { digest: digests.index });
    const index = JSON.parse((await ask(server, 'v1/oci_manifest', image)).text) as Record<string, unknown>;
    assert.deepEqual(Object.keys(index), ['schemaVersion', 'mediaType', 'manifests']);
    const read = JSON.parse((await ask(server, 'v1/oci_manifest_config', image)).text) as Record<string, unknown>;
    assert.deepEqual([read['digest'], read['config']], [digests.images[architecture], CONFIG]);
    const before = proxy.paths.length;
    for (const operation of ['v1/manifest_digest', 'v1/oci_manifest', 'v1/oci_manifest_config']) {
      assert.equal((await ask(server, operation, image)).isError, false);
    }
    assert.equal(proxy.paths.length, before, 'answers are kept for a minute');
  });

  it('get an error for an image that is not there, and for one that has no name', async () => {
    await using server = await startServer({ policies, sources });
    const missing = await ask(server, 'v1/manifest_digest', `${proxy.host}/team/none:v1`);
    assert.ok(missing.isError);
    assert.match(missing.text, /cannot read the image .*answered 404 \(MANIFEST_UNKNOWN\)/);
    assert.match((await ask(server, 'v1/manifest_digest', { image })).text, /expected the name of an image/);
    assert.match((await ask(server, 'v9/other', image)).text, /unknown operation: oci\/v9\/other/);
  });

  it('that wait for a registry which hangs get an error in time for their verdict, and delay no others', async () => {
    await using server = await startServer({
      policies: { ...policies, asking: { ...asking, timeoutEvalSeconds: 1 } },
      sources,
    });
    proxy.faults.set('/team/slow/', () => undefined);
    try {
      const waiting = ask(server, 'v1/manifest_digest', `${proxy.host}/team/slow:v1`);
      assert.equal(requiredLabel(await server.review('good', review())), 'app');
      const { isError, text } = await waiting;
      assert.ok(isError);
      assert.match(text, /the registry has not answered in the time that the policy has left|did not answer within/);
      assert.equal((await ask(server, 'v1/manifest_digest', image)).isError, false, 'other images are read');
      assert.equal(await server.metric('portcullis_worker_restarts_total', { reason: 'timeout' }), 0);
    } finally {
      proxy.faults.delete('/team/slow/');
    }
  });

  describe('as policies of a namespace', () => {
    it('do not reach private addresses, whatever the name looks like', async () => {
      await using server = await startServer({ policies, sources });
      const { port } = new URL(`https://${proxy.host}`);
      const before = proxy.paths.length;
      for (const host of [
        proxy.host,
        `127.0.0.1:${port}`,
        `127.1:${port}`,
        `[::1]:${port}`,
        '169.254.169.254',
        'localhost',
      ]) {
        for (const operation of ['v1/manifest_digest', 'v1/oci_manifest', 'v1/oci_manifest_config']) {
          const { isError, text } = await ask(server, operation, `${host}/team/app:v1`, TENANT);
          assert.ok(isError, host);
          assert.match(text, /private or special address/, host);
        }
      }
      assert.equal(proxy.paths.length, before);
    });

    it('do not read with the credentials of the policy server, nor what it has read for others', async () => {
      const shared = { ...sources, tenantHosts: [proxy.host], tenantModules: ['*'] };
      await using server = await startServer({ policies, sources: shared });
      assert.equal((await ask(server, 'v1/oci_manifest_config', image)).isError, false);
      const before = proxy.paths.length;
      for (const operation of ['v1/manifest_digest', 'v1/oci_manifest', 'v1/oci_manifest_config']) {
        const { isError, text } = await ask(server, operation, image, TENANT);
        assert.ok(isError);
        assert.match(text, /the source answered 401/);
        assert.doesNotMatch(text, /secret/);
      }
      // These have credentials.
      assert.equal(proxy.paths.length, before);
    });

    it('may call only what the PolicyServer grants', async () => {
      const granted = { ...asking, hostCapabilities: ['oci/v1/manifest_digest'] };
      await using server = await startServer({ policies: { [TENANT]: granted }, sources });
      const { isError, text } = await ask(server, 'v1/oci_manifest', image, TENANT);
      assert.ok(isError);
      assert.match(text, /add "oci\/v1\/oci_manifest" to spec.namespacedPoliciesCapabilities/);
    });
  });
});
