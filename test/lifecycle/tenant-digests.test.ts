// A tenant who knows the digest of another's private module, on a policy server that has the module.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_SOURCES } from '../../src/modules/sources/index.ts';
import { TestServer } from '../../src/modules/testing/test-server.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { sizedModule } from '../server/sized-module.ts';
import { PolicyLab } from './policy-lab.ts';

const PASSWORD = `Basic ${Buffer.from('shop:s3cr3t').toString('base64')}`;

function policy(namespace: string, name: string, module: string, settings: object = {}): KubernetesObject {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'AdmissionPolicy',
    metadata: { name, namespace },
    spec: { mutating: false, rules, module, settings },
  };
}

describe('a tenant who names the digest of a module', () => {
  it('gets none that its own reference does not bring, and its owner keeps it while the source is down', async () => {
    const module = sizedModule({ seed: 1, filledPages: 0, dataBytes: 1000 });
    await using source = await TestServer.start((request, response) =>
      request.headers.authorization === PASSWORD ? response.end(module) : response.writeHead(401).end(),
    );
    await using lab = await PolicyLab.start({
      sources: { ...DEFAULT_SOURCES, tenantHosts: [source.host], tenantModules: ['*'] },
    });
    for (const name of ['shop', 'thief']) {
      await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const owned = policy('shop', 'owner', `http://shop:s3cr3t@${source.host}/private.wasm`);
    await lab.create(owned);
    const { status } = await lab.reaches(owned, 'Active');
    const digest = status?.serving?.modules[0]?.digest ?? '';
    assert.match(digest, /^sha256:/);

    for (const [name, reference] of Object.entries({
      location: `${source.origin}/private.wasm@${digest}`,
      elsewhere: `${source.origin}/other.wasm@${digest}`,
      guess: `http://shop:guess@${source.host}/private.wasm@${digest}`,
    })) {
      const stolen = policy('thief', name, reference);
      await lab.create(stolen);
      assert.match((await lab.reaches(stolen, 'Error')).status?.message ?? '', /credentials/, name);
    }

    // The owner names the digest, too, and changes settings without the source.
    await source[Symbol.asyncDispose]();
    const pinned = policy('shop', 'pinned', `http://shop:s3cr3t@${source.host}/private.wasm@${digest}`, { mode: 2 });
    await lab.create(pinned);
    await lab.reaches(pinned, 'Active');
  });
});
