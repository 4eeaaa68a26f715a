// Messages of commands about wrong input: each says what to do.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EXAMPLES, portcullis, ROOT } from './command.ts';

const POLICY = join(ROOT, EXAMPLES, 'replica-limit/policy.yaml');

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-wrong-input-'));
  for (const [name, text] of Object.entries({
    'empty.yaml': '',
    'open.yaml': 'a: [',
    'open.json': '{"a"',
    'pod.yaml': '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: []}}',
  })) {
    await writeFile(join(folder, name), text);
  }
});
after(() => rm(folder, { recursive: true }));

describe('wrong input', { concurrency: 2 }, () => {
  for (const [args, code, message] of [
    [['test', 'gone'], 2, /^error: gone cannot be read: .*\nName a file with tests, or a folder that has files named/],
    [['test', '-p', 'builtin:cel', 'pod.yaml'], 2, /builtin:cel is a module.*\n.*portcullis run builtin:cel -r FILE/],
    [['test', '-p', 'a.wasm', 'pod.yaml'], 2, /a\.wasm is a module.*\n.*portcullis run a\.wasm -r FILE/],
    [
      ['test', '-p', POLICY, 'pod.yaml', '--output-file', 'junit=gone/a.xml'],
      2,
      /gone\/a\.xml cannot be written: .*\nName a file in a folder that exists/,
    ],
    [['test', '-p', POLICY, 'open.yaml'], 2, /^error: open\.yaml:1:5 is not YAML: .*\n {2}a: \[\n {6}\^$/m],
    [['run', 'open.json', '-r', 'pod.yaml'], 1, /^error: open\.json:1:5 is not JSON: /],
    [['run', 'builtin:cel', '-r', 'pod.yaml'], 1, /settings are not valid: .*\n.*-s FILE or --settings-json JSON/],
    [['run', '--setings', 'a'], 2, /^error: unknown option '--setings'\n\(Did you mean --settings-path\?\)/],
    [['apply', '--filenam=a'], 2, /^error: unknown option '--filenam'\n\(Did you mean --filename\?\)/],
    [['start', '--data', '/gone'], 2, /^error: unknown option '--data'\n\(Did you mean --data-dir\?\)/],
    [['start', '--network-policy', 'x'], 2, /'--network-policy'\n\(Did you mean --network-policy-status\?\)/],
    [['get', '--name', 'x'], 2, /^error: unknown option '--name'\n\(Did you mean --namespace\?\)/],
    [['start', '--exampels'], 2, /^error: unknown option '--exampels'\n\(Did you mean --examples\?\)/],
    [['start', '--xyz=/gone'], 2, /^error: unknown option '--xyz'\n\(portcullis --help/],
    [['start', '-x'], 2, /^error: unknown option '-x'\n\(portcullis --help/],
    [['start', 'here'], 2, /^error: too many arguments for 'start'\..*\n\(portcullis --help/],
    [['run', 'builtin:cel'], 2, /^error: required option '-r, --request-path <file>' not specified/],
    [['test', '-o', 'jsn'], 2, /Allowed choices are .*\n\(Did you mean json\?\)/],
    [['test', '--operation', 'create'], 2, /Allowed choices are .*\n\(Did you mean CREATE\?\)/],
    [['inspect', 'builtin:pod-pro'], 1, /Did you mean builtin:pod-profile\?/],
    [['apply', '-f', 'gone.yaml'], 1, /^error: gone\.yaml cannot be read: .*\nCheck the path/],
    [['export'], 2, /no file is named, and there is no policies\.yml here\nName a file or folder with policies/],
    [['export', 'empty.yaml'], 1, /has no policy of builtin:cel.*\nExpected a ClusterAdmissionPolicy/],
    [
      ['scaffold', 'vap', POLICY],
      1,
      /expected a ValidatingAdmissionPolicy .*\nportcullis export FILE does the reverse/,
    ],
  ] as const) {
    it(`of ${args.map((arg) => arg.replace(ROOT, '')).join(' ')} says what to do`, async () => {
      const result = await portcullis(args, { cwd: folder });
      assert.match(result.stderr, message);
      assert.equal(result.code, code);
    });
  }
});
