// docs/cli.md: every command in it works, and prints what it says.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COMMAND, portcullis, ROOT, run } from './command.ts';

interface Example {
  readonly line: number;
  readonly commands: string;
  readonly output: string | undefined;
}

const page = await readFile(join(ROOT, 'docs', 'cli.md'), 'utf8');

/** The blocks of shell commands, each with the block of output that may follow it. */
const examples: readonly Example[] = [...page.matchAll(/^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(
  (match) => ({
    line: page.slice(0, match.index).split('\n').length + 1,
    commands: match[1] ?? '',
    output: match[2],
  }),
);

/** An ellipsis in expected output stands for anything on its line. */
function pattern(output: string): RegExp {
  const literals = output.split('…').map((text) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`));
  return new RegExp(`^${literals.join('[^\\n]*')}$`);
}

describe('docs/cli.md', { concurrency: 2 }, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-docs-'));
    // npx would look for the same file, and take three times as long.
    await writeFile(join(folder, 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${COMMAND}" "$@"\n`, {
      mode: 0o755,
    });
  });
  after(() => rm(folder, { recursive: true }));

  it('has examples', () => assert.ok(examples.length >= 10));

  for (const { line, commands, output } of examples) {
    it(`line ${line} works: ${commands.split('\n', 1)[0]}`, async () => {
      const env = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
      const { code, stdout } = await run('sh', ['-e', '-c', `exec 2>&1\n${commands}`], { env });
      assert.equal(code, 0, stdout);
      if (output !== undefined) {
        assert.match(stdout, pattern(output));
      }
    });
  }

  it('names every command and flag', async () => {
    const { stdout: script } = await portcullis(['completion', 'fish']);
    const flags = [...script.matchAll(/seen_subcommand_from (run|inspect|annotate|bench|start)'.* -l ([\w-]+)/g)];
    assert.ok(flags.length > 30);
    for (const [, command, flag = ''] of flags) {
      assert.ok(flag === 'help' || page.includes(`--${flag}`), `${command} --${flag} is not in docs/cli.md`);
    }
  });
});
