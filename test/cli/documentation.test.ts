// docs/cli.md, docs/testing.md, docs/builtin-cel.md, docs/pod-profile.md,
// docs/network-policy.md, docs/audit.md, docs/preview.md: every command works and prints the documented output.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { COMMAND, portcullis, ROOT, run } from './command.ts';
import { examplesOf, outputPattern } from './page-examples.ts';

const readPage = (name: string): Promise<string> => readFile(join(ROOT, 'docs', name), 'utf8');
const page = await readPage('cli.md');
const testingPage = await readPage('testing.md');
const celPage = await readPage('builtin-cel.md');
const profilePage = await readPage('pod-profile.md');
const netpolPage = await readPage('network-policy.md');
const auditPage = await readPage('audit.md');
const previewPage = await readPage('preview.md');

describe('the pages', { concurrency: 2 }, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-docs-'));
    // npx would run the same file and take three times as long.
    await writeFile(join(folder, 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${COMMAND}" "$@"\n`, {
      mode: 0o755,
    });
  });
  after(() => rm(folder, { recursive: true }));

  const pages = [
    ['docs/cli.md', examplesOf(page)],
    ['docs/testing.md', examplesOf(testingPage)],
    ['docs/builtin-cel.md', examplesOf(celPage)],
    ['docs/network-policy.md', examplesOf(netpolPage)],
    ['docs/audit.md', examplesOf(auditPage)],
    ['docs/preview.md', examplesOf(previewPage)],
    ['docs/pod-profile.md', examplesOf(profilePage)],
  ] as const;

  it('have examples', () => {
    assert.ok(pages.every(([, examples]) => examples.length >= 1));
  });

  for (const { name, line, commands, output } of pages.flatMap(([name, examples]) =>
    examples.map((example) => ({ name, ...example })),
  )) {
    it(`${name} line ${line} works: ${commands.split('\n', 1)[0]}`, async () => {
      const env = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
      const { code, stdout } = await run('sh', ['-e', '-c', `exec 2>&1\n${commands}`], { env });
      assert.equal(code, 0, stdout);
      if (output !== undefined) {
        assert.match(stdout, outputPattern(output));
      }
    });
  }

  it('names every command and flag in docs/cli.md', async () => {
    const { stdout: script } = await portcullis(['completion', 'fish']);
    const flags = [
      ...script.matchAll(
        /seen_subcommand_from (run|test|audit|scaffold|export|inspect|pull|push|save|load|policies|rm|verify|digest|annotate|bench|start|get|describe|events|version|patch|apply|delete|wait|rollout|dryrun|explain|governance|netpol|controller|auditor|install|uninstall|doctor)'.* -l ([\w-]+)/g,
      ),
    ];
    assert.ok(flags.length > 30);
    for (const [, command, flag = ''] of flags) {
      assert.ok(flag === 'help' || page.includes(`--${flag}`), `${command} --${flag} is not in docs/cli.md`);
    }
  });
});
