import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, describe, it } from 'node:test';
import { absoluteModule, moduleReference } from './policy-code.ts';

const folder = mkdtempSync(join(tmpdir(), 'policy-code-'));
const below = join(folder, 'a', 'b');
mkdirSync(below, { recursive: true });
writeFileSync(join(folder, 'a', 'near.wasm'), '');
writeFileSync(join(folder, 'near.wasm'), '');
writeFileSync(join(folder, 'far.wasm'), '');
after(() => rmSync(folder, { recursive: true }));

const path = async (reference: string): Promise<string> => {
  const found = await moduleReference(reference, below);
  return found.kind === 'file' ? found.path : found.shown;
};

describe('moduleReference', () => {
  it('finds a relative file below the folder of the manifest, or the nearest one above', async () => {
    assert.equal(await path('file://./near.wasm'), join(folder, 'a', 'near.wasm'));
    assert.equal(await path('file://./far.wasm'), join(folder, 'far.wasm'));
    writeFileSync(join(below, 'near.wasm'), '');
    assert.equal(await path('file://./near.wasm'), join(below, 'near.wasm'));
  });

  it('names the folder of the manifest for a file that is nowhere', async () => {
    assert.equal(await path('file://./none.wasm'), join(below, 'none.wasm'));
  });

  it('changes no other reference', async () => {
    assert.equal(await path('registry://registry.example/x:1'), 'registry://registry.example/x:1');
    assert.equal(await path('file:///none.wasm'), '/none.wasm');
  });
});

describe('absoluteModule', () => {
  it('keeps pins, builtin modules and registries', async () => {
    const pin = `sha256:${'0'.repeat(64)}`;
    const far = pathToFileURL(join(folder, 'far.wasm')).href;
    assert.equal(await absoluteModule(`file://./far.wasm@${pin}`, below), `${far}@${pin}`);
    assert.equal(await absoluteModule('builtin:cel', below), 'builtin:cel');
    assert.equal(await absoluteModule('registry.example/x:1', below), 'registry.example/x:1');
  });
});
