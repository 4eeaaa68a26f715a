import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { digestOf } from '../reference/digest.ts';
import { ModulesInUse } from './modules-in-use.ts';

describe('the modules in use', () => {
  it('are written when they change, not with each change of a policy', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-in-use-'));
    try {
      const inUse = new ModulesInUse(dir);
      const digests = ['a', 'b'].map((text) => digestOf(Buffer.from(text)));
      /** Each write makes another file. */
      const fileAfter = async (serving: readonly string[]): Promise<number> => {
        inUse.set(serving);
        await inUse.stop();
        const [name = ''] = readdirSync(join(dir, 'serving'));
        return statSync(join(dir, 'serving', name)).mtimeMs;
      };
      const first = await fileAfter(digests);
      assert.equal(await fileAfter([...digests, 'builtin']), first);
      assert.notEqual(await fileAfter(digests.slice(1)), first);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
