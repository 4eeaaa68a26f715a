// Reads of images for policies, from registries that a test decides about.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ImageRequest } from '../../src/engine/capabilities/index.ts';
import { hostPlatform } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES, type SourcesConfig } from '../../src/modules/sources/index.ts';
import { TestRegistry } from '../../src/modules/testing/test-registry.ts';
import { RegistryImages } from '../../src/evaluation/capabilities/registry-images.ts';

const CALL = { timeoutMs: 10_000 };

/** Reads over HTTP: insecure sources need no certificates. */
function insecure(...registries: TestRegistry[]): SourcesConfig {
  return { ...DEFAULT_SOURCES, insecureSources: registries.map(({ host }) => host) };
}

/** A registry with the image `a` for this machine. */
async function startRegistry() {
  const registry = await TestRegistry.start();
  const config = registry.blob('a', Buffer.from('{"architecture":"x"}'), 'application/vnd.oci.image.config.v1+json');
  const descriptor = registry.manifest('a', 'latest', { schemaVersion: 2, config, layers: [] });
  return { registry, descriptor, image: `${registry.host}/a` };
}

describe('RegistryImages', () => {
  it('answers what policies ask, and asks the registry once', async () => {
    const { registry, descriptor, image } = await startRegistry();
    await using _ = registry;
    const images = new RegistryImages({ sources: insecure(registry) });
    const ask = async (kind: Exclude<ImageRequest['kind'], 'verify'>): Promise<unknown> =>
      JSON.parse(await images.answer({ kind, image }, CALL));
    const { digest } = descriptor;
    assert.deepEqual(await ask('digest'), { digest });
    const manifest = await ask('manifest');
    assert.equal((manifest as { mediaType: string }).mediaType, 'application/vnd.oci.image.manifest.v1+json');
    assert.deepEqual(await ask('configuration'), { manifest, digest, config: { architecture: 'x' } });
    const before = registry.paths.length;
    await Promise.all([ask('digest'), ask('manifest'), ask('configuration')]);
    assert.equal(registry.paths.length, before);
    assert.notEqual(hostPlatform().architecture, 'x64');
  });

  it('reports why an image cannot be read', async () => {
    const { registry } = await startRegistry();
    await using _ = registry;
    const images = new RegistryImages({ sources: insecure(registry) });
    const image = `${registry.host}/none`;
    await assert.rejects(images.answer({ kind: 'digest', image }, CALL), {
      code: 'capability-failed',
      message: new RegExp(`^cannot read the image ${image}: .*answered 404 \\(MANIFEST_UNKNOWN\\)`),
    });
    await assert.rejects(
      images.answer({ kind: 'digest', image: 'no image' }, CALL),
      /cannot read the image no image: /,
    );
  });

  it('stops waiting when the policy has no time left, and keeps the answer for the next request', async () => {
    const { registry, image, descriptor } = await startRegistry();
    await using _ = registry;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    registry.intercept = (request, response) => {
      registry.intercept = () => false;
      registry.paths.pop();
      void gate.then(() => registry.answer(request, response));
      return true;
    };
    const images = new RegistryImages({ sources: { ...insecure(registry) } });
    await assert.rejects(images.answer({ kind: 'digest', image }, { timeoutMs: 100 }), /the next request may have/);
    open();
    const answer = await images.answer({ kind: 'digest', image }, CALL);
    assert.deepEqual(JSON.parse(answer), { digest: descriptor.digest });
  });

  it('answers others while a registry hangs, and ends its transfers', async () => {
    const { registry: hanging } = await startRegistry();
    await using _ = hanging;
    hanging.intercept = () => true;
    const { registry, image } = await startRegistry();
    await using __ = registry;
    const sources = insecure(hanging, registry);
    const images = new RegistryImages({ sources, timeouts: { totalMs: 300 } });
    const stuck = Array.from({ length: 30 }, (___, i) =>
      images.answer({ kind: 'digest', image: `${hanging.host}/a:v${i}` }, { timeoutMs: 1_000 }),
    );
    const ended = Promise.allSettled(stuck);
    assert.match(await images.answer({ kind: 'digest', image }, CALL), /sha256/);
    const results = await ended;
    assert.ok(results.every(({ status }) => status === 'rejected'));
    assert.ok(hanging.server.requests < 30, 'what nobody waits for is not begun');
  });

  describe('for a policy of a namespace', () => {
    it('reads from public addresses only, or from hosts that an administrator names', async () => {
      const { registry, image } = await startRegistry();
      await using _ = registry;
      const call = { ...CALL, tenant: 'team' };
      const sources = insecure(registry);
      await assert.rejects(
        new RegistryImages({ sources }).answer({ kind: 'manifest', image }, call),
        /private or special address/,
      );
      assert.equal(registry.paths.length, 0);
      const named = new RegistryImages({ sources: { ...sources, tenantHosts: [registry.host] } });
      assert.match(await named.answer({ kind: 'manifest', image }, call), /schemaVersion/);
    });

    it('follows no redirect to a private address', async () => {
      const { registry, image } = await startRegistry();
      await using _ = registry;
      const { registry: internal } = await startRegistry();
      await using __ = internal;
      registry.intercept = ({ url }, response) => {
        response.writeHead(307, { location: `${internal.server.origin}${url}` }).end();
        return true;
      };
      const sources = insecure(registry, internal);
      const cluster = new RegistryImages({ sources });
      assert.match(await cluster.answer({ kind: 'manifest', image }, CALL), /schemaVersion/);
      const seen = internal.paths.length;
      const tenants = new RegistryImages({ sources: { ...sources, tenantHosts: [registry.host] } });
      await assert.rejects(tenants.answer({ kind: 'manifest', image }, { ...CALL, tenant: 'team' }), (error: Error) => {
        assert.match(error.message, /private or special address/);
        assert.ok(!error.message.includes(internal.host));
        return true;
      });
      assert.equal(internal.paths.length, seen);
    });

    it('gets no answer of another party, and no text of a server', async () => {
      const { registry, image } = await startRegistry();
      await using _ = registry;
      const images = new RegistryImages({ sources: insecure(registry) });
      await images.answer({ kind: 'digest', image }, CALL);
      await assert.rejects(images.answer({ kind: 'digest', image }, { ...CALL, tenant: 'team' }), /private or special/);

      const sources = { ...insecure(registry), tenantHosts: [registry.host] };
      registry.intercept = (_request, response) => {
        response.end('{"secret":"of an internal server"}');
        return true;
      };
      const internal = new RegistryImages({ sources }).answer({ kind: 'manifest', image }, { ...CALL, tenant: 'team' });
      await assert.rejects(internal, (error: Error) => {
        assert.match(error.message, /the manifest of the artifact is not valid/);
        assert.doesNotMatch(error.message, /secret|internal/);
        return true;
      });
    });
  });
});
