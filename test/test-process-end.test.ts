// tools/test-process-end.ts, as test runs use it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { eventually } from './cluster/eventually.ts';
import { type CommandResult, ROOT, run } from './cli/command.ts';

const LOADED = pathToFileURL(join(ROOT, 'tools/test-process-end.ts'));
const WITHOUT_GRACE = `${LOADED.href}?graceMs=1`;

/** Runs a test that starts a process, and has these statements then. */
async function runOf(statements: string, loaded: string): Promise<CommandResult & { readonly child: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-test-process-'));
  try {
    const [file, pidFile] = [join(folder, 'one.test.ts'), join(folder, 'pid')];
    await writeFile(
      file,
      `import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { it } from 'node:test';
it('one', async () => {
  const child = spawn('sleep', ['600']);
  writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));
  ${statements}
});
`,
    );
    const flags = ['--import', loaded, '--test', '--test-isolation=none', '--test-timeout=2000'];
    // A process of the test runner does not start another one.
    const result = await run(process.execPath, [...flags, file], { env: { NODE_TEST_CONTEXT: '' } });
    return { ...result, child: Number(await readFile(pidFile, 'utf8')) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function isRunning(id: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${id}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a process of tests', () => {
  for (const [what, statements] of [
    ['leaves a process', ''],
    ['never ends', 'await new Promise(() => {});'],
  ] as const) {
    it(`fails and ends, with what it started, when a test ${what}`, async () => {
      const { code, stderr, child } = await runOf(statements, WITHOUT_GRACE);
      assert.equal(code, 1);
      assert.match(stderr, /one\.test\.ts goes on after its tests, and is ended: .*sleep 600/);
      await eventually(async () => assert.equal(isRunning(child), false));
    });
  }

  it('ends by itself otherwise', async () => {
    const { code, stderr } = await runOf('child.kill();', LOADED.href);
    assert.deepEqual([code, stderr], [0, '']);
  });
});
