import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startSources } from './start-sources.ts';

describe('the sources of start', () => {
  it('have a mirror with the example policies, and no credentials of the user', async () => {
    const { mirrors, dockerConfig } = await startSources({});
    const [mirror] = mirrors.get('registry.example') ?? [];
    assert.match(mirror?.shown ?? '', /^file:.*\/examples\/registry$/);
    assert.equal(dockerConfig, undefined);
  });

  it('are those of the flags, whose mirrors come first', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-start-sources-'));
    try {
      const sourcesPath = join(folder, 'sources.yml');
      const mirrors = { 'ghcr.io': ['https://mirror.example.com'] };
      await writeFile(sourcesPath, JSON.stringify({ mirrors, tenant_hosts: ['modules.internal'] }));
      const sources = await startSources({ sourcesPath, dockerConfigJsonPath: 'config.json' });
      assert.deepEqual([...sources.mirrors.keys()].toSorted(), ['ghcr.io', 'registry.example']);
      assert.deepEqual([sources.tenantHosts, sources.dockerConfig], [['modules.internal'], 'config.json']);
      await writeFile(sourcesPath, JSON.stringify({ mirrors: { 'registry.example': ['https://other.example.com'] } }));
      const replaced = (await startSources({ sourcesPath })).mirrors.get('registry.example');
      assert.deepEqual(
        replaced?.map(({ shown }) => shown),
        ['https://other.example.com'],
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
