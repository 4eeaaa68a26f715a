import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { catalogueLoader } from './network-policy-flags.ts';

const { signal } = new AbortController();

describe('the catalogue of a controller', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-catalogue-'));
    await writeFile(join(folder, 'a.yaml'), 'name: my-cilium\ninherits: cilium\n');
  });
  after(() => rm(folder, { recursive: true }));

  const loader = (networkPolicyCatalogue?: string) =>
    catalogueLoader(networkPolicyCatalogue === undefined ? {} : { networkPolicyCatalogue }, {
      sources: () => assert.fail('only registries have sources'),
      verification: () => assert.fail('only registries have signatures'),
      log: pino({ level: 'silent' }),
    });

  it('is none without a name, and with the empty one of a chart', () => {
    assert.deepEqual([loader(), loader('')], [undefined, undefined]);
  });

  it('extends the builtin one by a folder', async () => {
    const catalogue = await loader(folder)?.(signal);
    assert.deepEqual(
      ['my-cilium', 'calico'].map((name) => catalogue?.find(name)?.name),
      ['my-cilium', 'calico'],
    );
  });

  it('fails with the place of a mistake, a missing file, or a wrong reference', async () => {
    const file = join(folder, 'wrong.txt');
    await writeFile(file, 'name: cilium\nlatests: 1.0.0\n');
    for (const [name, message] of [
      [file, /wrong\.txt: latests: unknown key/],
      [join(folder, 'missing.yaml'), /missing\.yaml/],
      ['registry://', /registry:/],
    ] as const) {
      await assert.rejects(async () => await loader(name)?.(signal), message);
    }
  });
});
