// Containerfile. test/cli/install-image.full.test.ts builds it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { run } from './command.ts';
import { STEPS, VARIABLES } from './containerfile.ts';

describe('the image', () => {
  it('runs as a user other than root, by a numeric id that Kubernetes can check', () => {
    assert.deepEqual(
      STEPS.filter(({ instruction }) => instruction === 'USER').map(({ text }) => text),
      ['65532:65532'],
    );
  });

  it('limits the space for new objects, which a running program cannot for its main thread', async () => {
    const program = `
      const kept = [];
      for (let round = 0; round < 100; round += 1) {
        kept[round % 20] = JSON.parse('[' + '{"a":[1,2,3]},'.repeat(20_000) + '1]');
      }
      console.log(v8.getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').physical_space_size);`;
    const { stdout, stderr } = await run(process.execPath, ['-e', program], { env: VARIABLES });
    assert.ok(Number(stdout) > 0 && Number(stdout) <= 8 * 2 ** 20, `${stdout} bytes; ${stderr}`);
  });

  it('has no base image but Node', () => {
    const bases = STEPS.filter(({ instruction }) => instruction === 'FROM').map(({ text }) => text.split(' ')[0] ?? '');
    assert.ok(bases.every((base) => /^node:24(-\w+)?$/.test(base)));
  });
});
