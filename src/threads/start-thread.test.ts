import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { it } from 'node:test';

/** As bin/find-node.mjs starts Node. */
const FLAGS = ['--single-threaded-gc', '--max-semi-space-size=16'];

/** Prints how many MiB new objects can have at most, while many of them live. */
const FILL = `
  const { getHeapSpaceStatistics } = require('node:v8');
  let largest = 0;
  for (let round = 0, kept = []; round < 2_000; round += 1) {
    kept[round % 400] = JSON.parse('[' + '{"a":[1,2,3]},'.repeat(500) + '1]');
    largest = Math.max(largest, getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_available_size);
  }
  console.log(Math.ceil(largest / 2 ** 20));
`;

it('gives threads less space for new objects than the main thread has', () => {
  const program = `
    import { once } from 'node:events';
    import { createRequire } from 'node:module';
    import { startThread } from '${new URL('start-thread.ts', import.meta.url).href}';
    const fill = ${JSON.stringify(FILL)};
    const thread = 'import { createRequire } from "node:module"; const require = createRequire("/"); ' + fill;
    await once(startThread(new URL('data:text/javascript,' + encodeURIComponent(thread)), { name: 'filled' }), 'exit');
    new Function('require', fill)(createRequire('/'));
  `;
  const { stdout, stderr } = spawnSync(process.execPath, [...FLAGS, '--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  assert.deepEqual(stdout.trim().split('\n'), ['4', '16'], stderr);
});
