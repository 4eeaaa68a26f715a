import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { objectText } from '../../manifest-objects.ts';
import { readResources } from './read-resources.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-resources-'));
  await mkdir(join(folder, 'app', 'base'), { recursive: true });
  await Promise.all(
    Object.entries({
      'app/base/pod.yaml': '{apiVersion: v1, kind: Pod, metadata: {name: a}}',
      'app/kustomization.yaml': 'resources: [base/pod.yaml]',
      'app/portcullis-test.yml': 'cases: []',
      'app/service.json': '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}',
      'empty.yaml': '---\n',
    }).map(([name, text]) => writeFile(join(folder, name), text)),
  );
});
after(() => rm(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);

describe('readResources', () => {
  it('reads the objects of folders, and tells of other documents beside them', async () => {
    const { resources, others } = await readResources([at('app')]);
    assert.deepEqual(
      resources.map(({ object }) => objectText(object)),
      ['Pod a', 'Service b'],
    );
    assert.deepEqual(others, [`${at('app/kustomization.yaml')}:1`]);
  });

  it('reads each file once', async () => {
    const { resources } = await readResources([at('app/service.json'), at('app'), at('app/../app/base/pod.yaml')]);
    assert.equal(resources.length, 2);
  });

  for (const [name, message] of [
    ['app/kustomization.yaml', /kustomization\.yaml:1: not a Kubernetes object$/],
    ['empty.yaml', /empty\.yaml has no objects$/],
    ['gone.yaml', /gone\.yaml cannot be read: there is no such file/],
  ] as const) {
    it(`refuses ${name} where it is named itself`, async () => {
      await assert.rejects(readResources([at(name)]), { name: 'CliError', message });
    });
  }

  it('reads no more objects than it has room for', async () => {
    await writeFile(at('many.yaml'), '---\n{apiVersion: v1, kind: Pod}\n'.repeat(50_001));
    await assert.rejects(readResources([at('many.yaml')]), { message: /at most 50000 objects/ });
  });
});
