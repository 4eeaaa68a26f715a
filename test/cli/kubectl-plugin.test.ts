// `kubectl portcullis`: the plugin and its completions, found by kubectl on PATH as npm installs them.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { findBinary } from '../cluster/binaries.ts';
import { type CommandResult, ROOT, run } from './command.ts';

const kubectl = findBinary('kubectl');

describe('kubectl portcullis', { skip: kubectl === undefined ? 'there is no kubectl' : false }, () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-plugin-'));
    const { bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { bin: Record<string, string> };
    for (const [name, file] of Object.entries(bin)) {
      symlinkSync(join(ROOT, file), join(folder, name));
    }
  });
  after(() => rmSync(folder, { recursive: true }));

  function plugin(args: readonly string[]): Promise<CommandResult> {
    const env = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}`, KUBECONFIG: join(folder, 'none') };
    return run(kubectl ?? '', args, { env });
  }

  /** What kubectl offers to a shell, and its directive. */
  async function completions(...line: readonly string[]): Promise<readonly string[]> {
    const { code, stdout, stderr } = await plugin(['__complete', 'portcullis', ...line]);
    assert.equal(code, 0, stderr);
    return stdout
      .trimEnd()
      .split('\n')
      .map((text) => text.split('\t', 1)[0] ?? '');
  }

  it('runs commands, and shows them as they are typed', async () => {
    const help = await plugin(['portcullis', 'rollout', 'undo', '--help']);
    assert.equal(help.code, 0, help.stderr);
    assert.match(help.stdout, /^Usage: kubectl portcullis rollout undo \[options\]/);
    assert.match(help.stdout, /^ {2}kubectl portcullis rollout undo cap/m);
    assert.doesNotMatch(help.stdout, /(?<!kubectl )portcullis rollout/);
    const unknown = await plugin(['portcullis', 'rollot']);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /Did you mean rollout\?\)\n\(kubectl portcullis --help lists/);
  });

  it('completes commands, flags and their values', async () => {
    assert.deepEqual(await completions('roll'), ['rollout', ':4']);
    assert.deepEqual(await completions('rollout', 'p'), ['preview', 'pin', ':4']);
    assert.deepEqual(await completions('rollout', 'undo', '--to'), ['--to-revision', ':4']);
    assert.deepEqual(await completions('apply', '-f', ''), [':0']);
    assert.deepEqual(await completions('scaffold', 'policy', '--language', ''), ['cel', 'rego', 'gatekeeper', ':4']);
    assert.deepEqual(await completions('nothing', ''), [':4']);
  });
});
