// All guests of the corpus with all optimizers: what the product makes of modules as compilers and wasm-opt write them.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { cacheFolder } from '../../../src/cli/cache-folder.ts';
import { ROOT, run } from '../../cli/command.ts';
import { GUESTS } from './guests.ts';

/** Builds of large guests take up to ten minutes each, unless they are in the user's cache. */
const isLargeToo = process.env['MODULES'] === 'large';

/** The user's cache, which has the builds of earlier runs. Other tests have one of their own. */
const env = { XDG_CACHE_HOME: dirname(cacheFolder()) };

describe('modules as compilers and optimizers write them', () => {
  for (const { name, isLarge, allowed } of GUESTS) {
    const skip = isLargeToo || (isLarge !== true && allowed === undefined) ? false : 'only with MODULES=large';
    it(`are served, updated and rolled back: ${name}`, { skip }, async () => {
      const script = join(ROOT, 'test', 'conformance', 'main.ts');
      const { code, stdout, stderr } = await run(process.execPath, [script, 'modules', name], { env });
      assert.equal(code, 0, `${stdout}${stderr}`);
    });
  }
});
