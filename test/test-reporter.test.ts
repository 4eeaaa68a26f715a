// tools/test-reporter.ts, as test runs use it.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ROOT, run } from './cli/command.ts';

/** The report of a test that throws. */
async function reportOf(statements: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-reporter-'));
  try {
    const file = join(folder, 'one.test.mjs');
    await writeFile(file, `import { it } from 'node:test';\nit('one', () => { ${statements} });\n`);
    const flags = ['--test', '--test-isolation=none', `--test-reporter=${join(ROOT, 'tools/test-reporter.ts')}`];
    // A process of the test runner does not start another one.
    const { stdout, code } = await run(process.execPath, [...flags, file], { env: { NODE_TEST_CONTEXT: '' } });
    assert.equal(code, 1);
    return stdout;
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('the test reporter', () => {
  it('shows the causes of an error', async () => {
    const report = await reportOf("throw new Error('first', { cause: new Error('second', { cause: 'third' }) });");
    assert.match(report, /Error: first\n[^]*caused by: Error: second\n[^]*caused by: 'third'/);
  });

  for (const [what, statements] of [
    ['an error that is its own cause', "const error = new Error('first'); error.cause = error; throw error;"],
    [
      'errors that are each other’s causes',
      "const error = new Error('first', { cause: new Error('second') }); error.cause.cause = error; throw error;",
    ],
  ] as const) {
    it(`shows ${what} once`, async () => {
      const report = await reportOf(statements);
      assert.equal(report.match(/Error: first\n/g)?.length, 1, report);
      assert.match(report, /0 passed, 1 failed, 0 skipped/);
    });
  }

  it('shows the first ten causes', async () => {
    const report = await reportOf(
      'let error = new Error(); for (let n = 0; n < 20000; n++) error = new Error(`n${n}`, { cause: error }); throw error;',
    );
    assert.equal(report.match(/Error: n\d+\n/g)?.length, 10);
  });
});
