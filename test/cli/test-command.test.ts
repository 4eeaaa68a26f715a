// `portcullis test`, `portcullis run --manifests` and `portcullis export` as processes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { valueAt } from '../../src/values/index.ts';
import { parseYaml } from '../../src/values/yaml/index.ts';
import { COMMAND, type CommandResult, ENVIRONMENT, EXAMPLES, GUESTS, portcullis, ROOT } from './command.ts';

interface Report {
  readonly summary: Readonly<
    Record<'suites' | 'cases' | 'passed' | 'failed' | 'errors' | 'skipped' | 'problems', number>
  >;
  readonly suites: readonly {
    readonly name: string;
    readonly file: string;
    readonly problem?: string;
    readonly cases: readonly {
      readonly name: string;
      readonly status: string;
      readonly error?: string;
      readonly mismatches: readonly { readonly field: string; readonly expected: string; readonly actual: string }[];
    }[];
  }[];
}

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-test-'));
});
after(() => rm(folder, { recursive: true }));

let folders = 0;
/** A new folder with files. */
async function workspace(files: Readonly<Record<string, string>>): Promise<string> {
  const path = join(folder, String(++folders));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), text);
  }
  return path;
}

const test = (...args: readonly string[]): Promise<CommandResult> => portcullis(['test', ...args]);
async function report(...args: readonly string[]): Promise<Report & { readonly code: number | null }> {
  const { stdout, stderr, code } = await test('-o', 'json', ...args);
  assert.notEqual(stdout, '', stderr);
  return { ...(JSON.parse(stdout) as Report), code };
}

const guest = (name: string): string => join(ROOT, GUESTS, `${name}.wasm`);
const LABELS = join(ROOT, EXAMPLES, 'required-labels', 'policy.wasm');
const POD = '{apiVersion: v1, kind: Pod, metadata: {name: web}}';
/** A file with one case of a policy. */
const one = (module: string, expect: string, rest = ''): string =>
  `policy: {module: '${module}'}\ncases:\n  - {name: only, object: ${POD}, expect: ${expect}${rest}}\n`;

describe('the tests of the examples', { concurrency: 2 }, () => {
  it('pass, and include every policy', async () => {
    const { summary, suites, code } = await report(EXAMPLES);
    assert.deepEqual(
      suites.flatMap(({ cases }) => cases).filter(({ status }) => status !== 'passed'),
      [],
    );
    assert.equal(code, 0);
    assert.equal(summary.passed, summary.cases);
    // The policy about NetworkPolicies reads their statuses, which only a cluster has.
    const policies = globSync('*/policy.yaml', { cwd: join(ROOT, EXAMPLES) })
      .map(dirname)
      .filter((name) => name !== 'network-policy');
    assert.ok(policies.length >= 7);
    const tested = new Set(suites.map(({ file }) => dirname(file)));
    assert.deepEqual(
      policies.filter((policy) => !tested.has(join(EXAMPLES, policy))),
      [],
    );
  });

  it('each have an accepted and a rejected request, and a case for settings', async () => {
    const files = globSync(`${EXAMPLES}/*/portcullis-test.yml`, { cwd: ROOT });
    for (const file of files) {
      const text = await readFile(join(ROOT, file), 'utf8');
      assert.match(text, /allowed: true/, file);
      assert.match(text, /allowed: false|objectContains/, file);
      assert.match(text, /settings: (?:rejected|accepted)/, file);
    }
  });
});

describe('portcullis test', { concurrency: 2 }, () => {
  it('prints a table, and exits with 0', async () => {
    const { stdout, stderr, code } = await test(`${EXAMPLES}/required-labels`);
    assert.equal(code, 0);
    assert.equal(stderr, '');
    assert.match(
      stdout,
      /^SUITE +CASES +PASSED +FAILED +TIME\nrequired-labels +9 +9 +0 +\d+.*\n\n✔ 9 of 9 cases passed/,
    );
  });

  it('shows expected and actual values, and exits with 1', async () => {
    const path = await workspace({
      'a/portcullis-test.yml': one(LABELS, '{allowed: true}', ', settings: {labels: [team]}'),
    });
    const { stdout, code } = await test(path);
    assert.equal(code, 1);
    assert.match(stdout, /^✘ a › only {2}.*portcullis-test\.yml:3:5$/m);
    assert.match(stdout, /^ {4}allowed\n {6}expected {2}true\n {6}got {7}false$/m);
    assert.match(stdout, /got {7}Pod "web" has no label "team"/);
  });

  it('reports every failed expectation', async () => {
    const seccomp = join(ROOT, EXAMPLES, 'default-seccomp', 'policy.wasm');
    const object = '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: b}]}}';
    const cases = [
      '{allowed: false}',
      '{allowed: true, message: x}',
      '{allowed: true, code: 200}',
      '{allowed: true, warnings: [x]}',
      '{allowed: true, auditAnnotations: {a: b}}',
      '{allowed: true, unchanged: true}',
      `{allowed: true, object: ${object}}`,
      '{allowed: true, objectContains: {spec: {hostPID: true}}}',
      '{allowed: true, patch: []}',
      '{allowed: true, settings: accepted, patch: [{op: add, path: /spec/securityContext/seccompProfile, value: {type: RuntimeDefault}}]}',
    ].map((expect, index) => `  - {name: c${index}, object: ${object}, expect: ${expect}}`);
    const path = await workspace({
      'portcullis-test.yml': `policy: {module: '${seccomp}'}\ncases:\n${cases.join('\n')}\n  - {name: settings, expect: {settings: rejected}}\n  - {name: message, settings: {profile: 1}, expect: {settings: rejected, message: other}}\n  - {name: unexpected, settings: {profile: 1}, object: ${object}, expect: {allowed: false}}\n`,
    });
    const { suites, code } = await report(path);
    assert.equal(code, 1);
    assert.deepEqual(
      suites[0]?.cases.map(({ mismatches }) => mismatches.map(({ field }) => field).join()),
      [
        'allowed',
        'message',
        'code',
        'warnings[0]',
        'auditAnnotations[a]',
        'unchanged',
        'object',
        'objectContains.spec.hostPID',
        'patch',
        '',
        'settings',
        'message',
        'settings',
      ],
    );
  });

  it('reports a policy without a verdict as an error, whatever is expected, and runs the other suites', async () => {
    const misbehaving = ['guest-error', 'loop-in-settings', 'loop-in-validate', 'trap', 'unknown-import', 'wasi-loop'];
    const files = misbehaving.map((name) => [`${name}.portcullis-test.yml`, one(guest(name), '{allowed: false}')]);
    const path = await workspace({
      ...Object.fromEntries(files),
      'z.portcullis-test.yml': one(guest('accept'), '{allowed: true}'),
    });
    const { suites, summary, code } = await report('--timeout', '1', path);
    assert.equal(code, 1);
    assert.deepEqual(
      suites.map(({ name, cases }) => [name, cases[0]?.status]),
      [...misbehaving.map((name) => [name, 'error']), ['z', 'passed']],
    );
    assert.equal(summary.errors, misbehaving.length);
    for (const { cases } of suites.slice(0, -1)) {
      assert.notEqual(cases[0]?.error ?? '', '');
    }
  });

  it('runs the next case after one was ended, and has a result for each', async () => {
    const cases = ['web', '~', 'web'].map(
      (name, index) =>
        `  - {name: c${index}, object: {apiVersion: v1, kind: Pod, metadata: {name: '${name}'}}, expect: {allowed: true}}`,
    );
    const of = (name: string): string => `policy: {module: '${guest(name)}'}\ncases:\n${cases.join('\n')}\n`;
    const path = await workspace({
      'a.portcullis-test.yml': of('wasi-loop'),
      'b.portcullis-test.yml': of('loop-when-asked'),
    });
    const { suites } = await report('--timeout', '1', path);
    assert.deepEqual(
      suites.map(({ cases: results }) => results.map(({ status }) => status)),
      [
        ['error', 'error', 'error'],
        ['passed', 'error', 'passed'],
      ],
    );
    assert.match(suites[0]?.cases[2]?.error ?? '', /did not end while it was checking its settings/);
  });

  it('does not trust a verdict that depends on an unanswered host capability', async () => {
    const module = join(ROOT, EXAMPLES, 'namespace-owner', 'policy.wasm');
    const session = join(ROOT, EXAMPLES, 'namespace-owner', 'session.yml');
    const cases = [
      `  - {name: no session, object: ${POD}, expect: {allowed: false}}`,
      `  - {name: not recorded, session: '${session}', object: ${POD}, expect: {allowed: false}}`,
      `  - {name: recorded, session: '${session}', namespace: scratch, object: ${POD}, expect: {allowed: false}}`,
    ];
    const path = await workspace({
      'portcullis-test.yml': `policy: {module: '${module}', settings: {label: owner}}\ncases:\n${cases.join('\n')}\n`,
    });
    const { suites } = await report(path);
    const results = suites[0]?.cases ?? [];
    assert.deepEqual(
      results.map(({ status }) => status),
      ['error', 'error', 'passed'],
    );
    assert.match(
      results[0]?.error ?? '',
      /the recorded session does not answer these host calls of the policy: kubernetes\/get_resource/,
    );
    assert.match(
      results[1]?.error ?? '',
      /the recorded session does not answer these host calls of the policy: KubernetesGetResource/,
    );
  });

  it('sends raw requests, requests and reviews, from the test file and from other files', async () => {
    const answer = `'{"accepted":false,"message":"raw it is"}'`;
    const path = await workspace({
      'raw.json': '{"answer": "{\\"accepted\\":true}"}',
      'request.yml': await readFile(join(ROOT, EXAMPLES, 'required-labels', 'requests', 'rejected.json'), 'utf8'),
      'portcullis-test.yml': `
policy: {module: '${guest('scripted-answer')}'}
cases:
  - {name: raw, raw: {answer: ${answer}}, expect: {allowed: false, message: raw it is}}
  - {name: raw file, rawFile: raw.json, expect: {allowed: true}}
`,
      'b.portcullis-test.yml': `
policy: {module: '${LABELS}', settings: {labels: [app.kubernetes.io/name]}}
cases:
  - {name: review, request: request.yml, expect: {allowed: false}}
  - name: request
    request:
      uid: '1'
      kind: {group: '', version: v1, kind: Pod}
      resource: {group: '', version: v1, resource: pods}
      operation: CREATE
      userInfo: {}
      object: {metadata: {labels: {app.kubernetes.io/name: web}}}
    expect: {allowed: true}
  - {name: no request, request: {uid: '1'}, expect: {allowed: false}}
`,
    });
    const { suites } = await report(path);
    assert.deepEqual(
      suites.map(({ cases }) => cases.map(({ status }) => status)),
      [
        ['passed', 'passed', 'error'],
        ['passed', 'passed'],
      ],
    );
    assert.match(suites[0]?.cases[2]?.error ?? '', /request\.kind/);
  });

  it('runs policies and groups of a policies file, with its grants and modes', async () => {
    const path = await workspace({
      'policies.yml': `
strict: {module: 'file://${LABELS}', settings: {labels: [team]}, message: ask the platform team}
watching: {module: 'file://${LABELS}', settings: {labels: [team]}, policyMode: monitor}
broken: {module: 'file://${LABELS}', setings: {}}
`,
      ...Object.fromEntries(
        [
          ['strict', '{allowed: false, message: ask the platform team}'],
          ['watching', '{allowed: true}'],
          ['broken', '{allowed: true}'],
          ['missing', '{allowed: true}'],
        ].map(([id = '', expect = '']) => [
          `${id}.portcullis-test.yml`,
          `policy: {policiesFile: policies.yml, id: ${id}}\ncases: [{name: a, object: ${POD}, expect: ${expect}}]\n`,
        ]),
      ),
    });
    const { suites, code } = await report(path);
    assert.equal(code, 2);
    const of = (name: string): Report['suites'][number] | undefined => suites.find((suite) => suite.name === name);
    assert.equal(of('strict')?.cases[0]?.status, 'passed');
    assert.equal(of('watching')?.cases[0]?.status, 'passed');
    assert.match(of('broken')?.problem ?? '', /policies\.yml:4:\d+ setings: /);
    assert.match(of('missing')?.problem ?? '', /has no policy "missing" \(It has strict, watching\.\)/);
  });

  it('finds test files in folders, and names its patterns when there are none', async () => {
    const text = one(guest('accept'), '{allowed: true}');
    const path = await workspace({
      'portcullis-test.yml': text,
      'deep/er/x.portcullis-test.yaml': text,
      'node_modules/p/portcullis-test.yml': text,
      '.hidden/portcullis-test.yml': text,
      'other.yml': text,
      'portcullis-test.yml.bak': text,
      'empty/none.txt': '',
    });
    await symlink(path, join(path, 'deep', 'loop'));
    const { suites } = await report(path, join(path, 'deep'), join(path, 'other.yml'));
    assert.deepEqual(
      suites.map(({ file }) => file.slice(path.length + 1)),
      ['deep/er/x.portcullis-test.yaml', 'portcullis-test.yml', 'other.yml'],
    );
    const { stderr, stdout, code } = await test(join(path, 'empty'));
    assert.equal(code, 2);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /error: no tests in .*empty: expected files named portcullis-test\.yml or NAME\.portcullis-test\.yml/,
    );
    assert.match((await test(join(path, 'nope'))).stderr, /nope cannot be read: there is no such file/);
  });

  it('runs the cases that match a pattern', async () => {
    const path = `${EXAMPLES}/required-labels`;
    const { summary, suites } = await report('--filter', 'labels › .*settings', path);
    assert.deepEqual([summary.cases, summary.passed, summary.skipped], [2, 2, 7]);
    assert.ok(suites[0]?.cases.every(({ name }) => name.startsWith('settings')));
    const none = await test('--filter', 'nothing is called so', path);
    assert.equal(none.code, 2);
    assert.match(none.stderr, /no case matches --filter/);
    const bad = await test('--filter', 'a(', path);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /RE2 pattern/);
  });

  it('shows the problems of a file with positions, and exits with 2 although others pass', async () => {
    const path = await workspace({
      'a.portcullis-test.yml': 'policy:\n  modul: x.wasm\ncases: []\n',
      'b.portcullis-test.yml': one(guest('accept'), '{allowed: true}'),
      'c.portcullis-test.yml':
        'policy: {module: nope.wasm}\ncases: [{name: a, object: nope.yml, expect: {allowed: true}}]\n',
      'd.portcullis-test.yml': one(guest('accept'), '{allowed: true}').replace('kind: Pod', 'kind: Widget'),
    });
    const { stdout, code } = await test(path);
    assert.equal(code, 2);
    assert.match(stdout, /a\.portcullis-test\.yml:1:1 policy: expected one of .*did you mean "module" by "modul"\?/);
    assert.match(stdout, /c\.portcullis-test\.yml:1:1 .*nope\.wasm cannot be read/);
    assert.match(stdout, /c\.portcullis-test\.yml:2:19 .*nope\.yml cannot be read/);
    assert.match(stdout, /d\.portcullis-test\.yml:3:5 Widget of v1 is not a builtin kind/);
    assert.match(stdout, /✘ 1 of 1 case passed, 3 files could not be run/);
  });

  it('has equal results and exit codes in every format, on standard output and in files', async () => {
    const path = await workspace({
      'a.portcullis-test.yml': one(guest('accept'), '{allowed: true, message: "<&\\"x"}'),
      'b.portcullis-test.yml': one(guest('trap'), '{allowed: true}'),
    });
    const files = ['junit', 'json', 'yaml', 'table'].flatMap((format) => [
      '--output-file',
      `${format}=${join(path, format)}`,
    ]);
    const results = await Promise.all(['table', 'json', 'yaml', 'junit'].map((format) => test('-o', format, path)));
    assert.deepEqual(
      results.map(({ code }) => code),
      [1, 1, 1, 1],
    );
    const [table, json, yaml, junit] = results.map(({ stdout }) => stdout);
    assert.match(table ?? '', /1 failed, 1 without a verdict/);
    assert.equal((JSON.parse(json ?? '') as Report).summary.errors, 1);
    assert.match(yaml ?? '', /^summary:\n {2}suites: 2\n {2}cases: 2\n {2}passed: 0\n {2}failed: 1\n {2}errors: 1$/m);
    assert.match(junit ?? '', /^<\?xml .*\n<testsuites name="portcullis" tests="2" failures="1" errors="1" /);
    assert.match(junit ?? '', /<failure message="message: expected &lt;&amp;&quot;x, got nothing"/);
    await test(path, ...files);
    const times = /\d+(?:\.\d+)? m?s$|(?:durationMs"?: |time=")[\d.]+|\d+(?: +)ms| +TIME| +\d+ ms/gm;
    const plain = (text = ''): string => text.replaceAll(times, '');
    assert.equal(plain(await readFile(join(path, 'junit'), 'utf8')), plain(junit));
    assert.equal(plain(await readFile(join(path, 'json'), 'utf8')), plain(json));
    assert.equal((await test(path, '--output-file', 'text=x')).code, 2);
    assert.match((await test(path, '--output-file', `json=${path}`)).stderr, /cannot be written: it is a folder/);
  });

  it('colours text output, unless NO_COLOR is set', async () => {
    const path = await workspace({ 'portcullis-test.yml': one(guest('accept'), '{allowed: false}') });
    const env = { NO_COLOR: '', FORCE_COLOR: '1' };
    const colored = await portcullis(['test', path], { env });
    const escape = '\u001B[';
    assert.ok(colored.stdout.includes(`${escape}31m✘`), colored.stdout);
    assert.ok(!(await portcullis(['test', path])).stdout.includes(escape));
    assert.ok(!(await portcullis(['test', '-o', 'junit', path], { env })).stdout.includes(escape));
  });

  it('completes its flags in shells', async () => {
    const { stdout } = await portcullis(['completion', 'bash']);
    assert.match(
      stdout,
      /"test -o" \| "test --output".*\) mapfile -t COMPREPLY < <\(compgen -W "table json yaml junit /,
    );
    assert.match(stdout, /^ {4}test\) flags=".*--watch.*--output-file/m);
    assert.match(stdout, /"run --manifests"[^)]*\) mapfile -t COMPREPLY < <\(compgen -f/);
  });
});

describe('portcullis test of a policy with a misspelled field', () => {
  const expression = 'object.spec.hostNetwok == true';
  const cases = (more = ''): string =>
    `cases:\n  - {name: a pod, object: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {}}, expect: {allowed: false}${more}}\n`;
  const manifest = [
    'apiVersion: policies.kubewarden.io/v1',
    'kind: ClusterAdmissionPolicy',
    'metadata: {name: a}',
    'spec:',
    '  module: builtin:cel',
    '  mutating: false',
    '  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]',
    '  settings:',
    '    validations:',
    `      - expression: ${expression}`,
  ].join('\n');
  const entry = `p:\n  module: builtin:cel\n  settings: {validations: [{expression: "${expression}"}]}\n`;

  it('names its place, wherever the settings are', async () => {
    const path = await workspace({
      'file.portcullis-test.yml': `policy: {policiesFile: policies/p.yml, id: p}\n${cases()}`,
      'policies/p.yml': entry,
      'manifest.portcullis-test.yml': `policy: policies/a.yaml\n${cases()}`,
      'policies/a.yaml': manifest,
      'settings.portcullis-test.yml': `policy: {module: builtin:cel, settings: s.yml}\n${cases()}`,
      's.yml': `validations: [{expression: ${expression}}]`,
      'case.portcullis-test.yml': `policy: {module: builtin:cel}\n${cases(`,\n     settings: {validations: [{expression: ${expression}}]}`)}`,
      'inline.portcullis-test.yml': `policy:\n  manifests:\n    - ${manifest.replaceAll('\n', '\n      ')}\n${cases()}`,
    });
    const { stderr, stdout } = await portcullis(['test', '-o', 'github', '.'], { cwd: path });
    const places = stderr
      .split('\n')
      .flatMap((line) => /^warning: (\S+:\d+:\d+) .*undefined field 'hostNetwok'/.exec(line)?.[1] ?? []);
    assert.deepEqual(places.toSorted(), [
      'case.portcullis-test.yml:4:55',
      'inline.portcullis-test.yml:12:38',
      'policies/a.yaml:10:32',
      'policies/p.yml:3:53',
      's.yml:1:39',
    ]);
    assert.match(
      stdout,
      /^::warning file=policies\/a\.yaml,line=10,col=32,title=type-check of ClusterAdmissionPolicy a::/m,
    );
  });

  it('checks all settings that cases state, each once and for the objects of its cases', async () => {
    const wrong = `settings: {validations: [{expression: ${expression}}]}`;
    const deployments = 'settings: {validations: [{expression: object.spec.replicas > 1}]}';
    const caseOf = (name: string, kind: string, settings: string): string =>
      `  - {name: ${name}, object: {kind: ${kind}, metadata: {name: web}, spec: {}}, expect: {allowed: true}, ${settings}}\n`;
    const pod = 'Pod, apiVersion: v1';
    const cases = `cases:\n${caseOf('a', pod, 'operation: CREATE')}${caseOf('b', pod, wrong)}${caseOf('c', pod, wrong)}`;
    const right = manifest.replace(expression, 'object.spec.hostNetwork == true');
    const path = await workspace({
      'entry.portcullis-test.yml':
        `policy: {module: builtin:cel, settings: {validations: [{expression: 'true'}]}}\n${cases}` +
        caseOf('d', 'Deployment, apiVersion: apps/v1', deployments),
      'right.portcullis-test.yml': `policy: policies/right.yaml\n${cases}`,
      'wrong.portcullis-test.yml': `policy: policies/wrong.yaml\n${cases}`,
      'policies/right.yaml': right,
      'policies/wrong.yaml': manifest.replace(expression, 'object.spec.hostPit == true'),
    });
    const { stderr } = await portcullis(['test', '.'], { cwd: path });
    const column = caseOf('b', pod, wrong).indexOf('.hostNetwok') + 1;
    assert.deepEqual(stderr.match(/(?<=^warning: )\S+:\d+:\d+|undefined field '\w+'/gm)?.toSorted(), [
      `entry.portcullis-test.yml:4:${column}`,
      'policies/wrong.yaml:10:32',
      `right.portcullis-test.yml:4:${column}`,
      "undefined field 'hostNetwok'",
      "undefined field 'hostNetwok'",
      "undefined field 'hostNetwok'",
      "undefined field 'hostPit'",
      `wrong.portcullis-test.yml:4:${column}`,
    ]);
  });

  it('warns of it in the manifest that is exported', async () => {
    const path = await workspace({ 'a.yaml': manifest });
    const { stderr } = await portcullis(['export', 'a.yaml'], { cwd: path });
    assert.match(stderr, /^warning: a\.yaml:10:32 ClusterAdmissionPolicy a: .*undefined field 'hostNetwok'/m);
  });
});

/** `portcullis test --watch` as a process, which Ctrl-C ends. */
async function watched(
  args: readonly string[],
  steps: (seen: (pattern: RegExp) => Promise<void>) => Promise<void>,
): Promise<void> {
  const child = spawn(process.execPath, [COMMAND, 'test', '--watch', ...args], { cwd: ROOT, env: ENVIRONMENT });
  const exit = once(child, 'exit');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  try {
    // Waits for output after the last match.
    await steps(async (pattern) => {
      while (!pattern.test(output)) {
        await Promise.race([once(child.stdout, 'data'), exit.then(() => assert.fail(output))]);
      }
      output = '';
    });
  } finally {
    child.kill('SIGINT');
  }
  assert.deepEqual(await exit, [0, null]);
}

describe('portcullis test --watch', () => {
  it('tests policies on manifests again when a policy, its module, a manifest or a folder has changed', async () => {
    const rules = '[{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]';
    const policy = (module: string): string =>
      `{apiVersion: policies.kubewarden.io/v1, kind: ClusterAdmissionPolicy, metadata: {name: a}, spec: {module: '${module}', mutating: false, settings: {}, rules: ${rules}}}`;
    const pod = (name: string): string => `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}}`;
    const path = await workspace({ 'policy.yaml': policy('file://./a.wasm'), 'pods/a.yaml': pod('a') });
    const at = (name: string): string => join(path, name);
    await writeFile(at('a.wasm'), await readFile(guest('accept')));
    await watched(['-p', at('policy.yaml'), at('pods')], async (seen) => {
      await seen(/✔ 1 resource, 1 policy: 1 pass [^]*Ctrl-C stops/);
      await writeFile(at('new.wasm'), await readFile(guest('trap')));
      await rename(at('new.wasm'), at('a.wasm'));
      await seen(/✘ 1 resource, 1 policy: 0 pass, 1 error [^]*Ctrl-C stops/);
      await writeFile(at('policy.yaml'), 'kind: [\n');
      await seen(/policy\.yaml:\d+:\d+ is not YAML/);
      await writeFile(
        at('policy.yaml'),
        policy('builtin:cel').replace('{}', '{validations: [{expression: "!has(object.spc)"}]}'),
      );
      await seen(/^warning: .*policy\.yaml:1:\d+ .*'spc'[^]*✔ 1 resource, 1 policy: 1 pass /m);
      await writeFile(at('pods/b.yaml'), pod('b'));
      await seen(/✔ 2 resources, 1 policy: 2 pass /);
    });
  });

  it('runs the suites that a change affects again, and ends on Ctrl-C', async () => {
    const text = one('policy.wasm', '{allowed: true}');
    const path = await workspace({
      'portcullis-test.yml': text,
      'b.portcullis-test.yml': one(guest('accept'), '{allowed: true}'),
    });
    await writeFile(join(path, 'policy.wasm'), await readFile(guest('accept')));
    await watched([path], async (seen) => {
      await seen(/✔ 2 of 2 cases passed[^]*Ctrl-C stops/);
      await writeFile(join(path, 'new.wasm'), await readFile(guest('trap')));
      await rename(join(path, 'new.wasm'), join(path, 'policy.wasm'));
      await seen(/✘ 1 of 2 cases passed, 1 without a verdict[^]*Ctrl-C stops/);
      await writeFile(join(path, 'portcullis-test.yml'), 'policy: [\n');
      await seen(/is not JSON or YAML[^]*1 file could not be run[^]*Ctrl-C stops/);
      await rm(join(path, 'portcullis-test.yml'));
      await seen(/✔ 1 of 1 case passed[^]*Ctrl-C stops/);
      await writeFile(join(path, 'c.portcullis-test.yml'), one(guest('accept'), '{allowed: false}'));
      await seen(/✘ 1 of 2 cases passed, 1 failed[^]*Ctrl-C stops/);
    });
  });

  it('needs text output', async () => {
    const { code, stderr } = await test('--watch', '-o', 'json');
    assert.equal(code, 2);
    assert.match(stderr, /--watch needs -o table/);
  });
});

const VAP = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
    - expression: object.spec.replicas <= int(params.data.most)
      messageExpression: "'at most ' + params.data.most + ' in ' + namespaceObject.metadata.name"
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas-binding}
spec:
  policyName: replicas
  validationActions: [Deny]
  paramRef: {name: limits, parameterNotFoundAction: Deny}
  matchResources: {namespaceSelector: {matchLabels: {limited: 'yes'}}}
`;
const OBJECTS = `
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {limited: 'yes'}}}
  - {apiVersion: v1, kind: Namespace, metadata: {name: free}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}, data: {most: '3'}}
`;
const deployment = (replicas: number): string =>
  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: ${replicas}}}`;

/** A policy with parameters: the label that its namespace, or a profile in it, requires. */
const parameters = (from: string): string =>
  `{from: ${from}, overridable: [labels], settingsExpression: "{'labels': [params.LABEL]}"}`;
const OWN_POLICY = `
apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: labels}
spec:
  module: file://${LABELS}
  mutating: false
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  parameters: ${parameters('{namespace: {annotations: [example.com/label]}}').replace('LABEL', "annotations['example.com/label']")}
`;
const TENANTS = ['red', 'blue']
  .map(
    (name) =>
      `---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, annotations: {example.com/label: ${name}, other: x}}\n`,
  )
  .join('');

describe('policies with parameters', { concurrency: 2 }, () => {
  it('are tested and run with the objects among their manifests', async () => {
    const path = await workspace({
      'policy.yaml': OWN_POLICY,
      'tenants.yaml': TENANTS,
      'portcullis-test.yml': `
policy: {manifests: [policy.yaml, tenants.yaml]}
cases:
  - {name: red, namespace: red, object: ${POD}, expect: {allowed: false, message: {contains: no label "red"}}}
  - {name: blue, namespace: blue, object: ${POD}, expect: {allowed: false, message: {contains: no label "blue"}}}
  - name: none
    namespace: green
    object: ${POD}
    expect: {allowed: false, message: 'there are no parameters: the namespace "green" does not exist'}
`,
    });
    const { summary, suites } = await report(path);
    assert.equal(summary.passed, 3, JSON.stringify(suites));
    const request = {
      uid: 'u',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: 'blue',
      operation: 'CREATE',
      userInfo: { username: 'alice' },
      object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } },
    };
    const files = [join(path, 'policy.yaml'), join(path, 'tenants.yaml')];
    const denied = await portcullis(['run', '--manifests', ...files, '-r', '-'], { stdin: JSON.stringify(request) });
    assert.equal(denied.code, 0, denied.stderr);
    assert.match(denied.stdout, /"allowed":false,.*no label \\"blue\\"/);
  });

  it('have the limit of a cluster', async () => {
    const long = 'x'.repeat(40_000);
    const path = await workspace({
      'policy.yaml': OWN_POLICY,
      'tenants.yaml': TENANTS.replace('example.com/label: red', `example.com/label: ${long}`),
      'object.yaml': OWN_POLICY.replace(
        /parameters: .*/,
        `parameters: ${parameters('{resource: {apiVersion: v1, kind: ConfigMap, name: label}}').replace('LABEL', 'params.data.label')}`,
      ),
      'objects.yaml': `{apiVersion: v1, kind: ConfigMap, metadata: {name: label, namespace: red}, data: {label: ${long}}}`,
      'annotation.portcullis-test.yml': `
policy: {manifests: [policy.yaml, tenants.yaml]}
cases: [{name: a, namespace: red, object: ${POD}, expect: {allowed: false, message: {contains: 'label of the namespace "red" is too long: expected at most 32768 characters, got 40000'}}}]
`,
      'object.portcullis-test.yml': `
policy: {manifests: [object.yaml, objects.yaml]}
cases: [{name: a, namespace: red, object: ${POD}, expect: {allowed: false, message: {contains: 'ConfigMap red/label cannot be read: the object is too large: expected at most 32768 characters, got 40'}}}]
`,
    });
    const { summary, suites } = await report(path);
    assert.equal(summary.passed, 2, JSON.stringify(suites));
  });

  it('give no verdict without their objects, and say which are missing', async () => {
    const profile = '{resource: {apiVersion: example.com/v1, kind: Profile, name: main}}';
    const path = await workspace({
      'policies.yml': `labels: {module: 'file://${LABELS}', parameters: ${parameters(profile).replace('LABEL', 'label')}}`,
      'file.portcullis-test.yml': `policy: {policiesFile: policies.yml, id: labels}\ncases: [{name: a, namespace: red, object: ${POD}, expect: {allowed: false}}]`,
      'two.portcullis-test.yml': `policy: {manifests: [two.yaml]}\ncases: [{name: a, object: ${POD}, expect: {allowed: false}}]`,
      'two.yaml': `${OWN_POLICY}---${OWN_POLICY.replace('{name: labels}', '{name: more}')}`,
      'empty.portcullis-test.yml': `policy: {manifests: [{apiVersion: policies.kubewarden.io/v1, kind: AdmissionPolicy, metadata: {name: x}}]}\ncases: [{name: a, object: ${POD}, expect: {allowed: false}}]`,
    });
    const { suites } = await report(path);
    const texts = suites.map(({ problem, cases }) => problem ?? cases[0]?.error ?? '');
    assert.match(texts[0] ?? '', /empty\.portcullis-test\.yml:1:1 AdmissionPolicy x: spec: Required value/);
    assert.match(texts[1] ?? '', /has parameters, and there is no cluster to read Profile red\/main.*manifests/s);
    assert.match(texts[2] ?? '', /has 2 policies: expected "name" with one of them/);
  });
});

describe('Kubernetes’ own policies', { concurrency: 2 }, () => {
  it('are tested with their bindings, parameters and namespaces', async () => {
    const path = await workspace({
      'vap.yml': VAP,
      'objects.yml': OBJECTS,
      'portcullis-test.yml': `
policy: {manifests: [vap.yml, objects.yml], kubernetesVersion: '1.33'}
defaults: {namespace: shop}
cases:
  - {name: few, object: ${deployment(3)}, expect: {allowed: true}}
  - name: many
    object: ${deployment(4)}
    expect:
      allowed: false
      code: 403
      message: >-
        deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas-binding' denied
        request: at most 3 in shop
  - {name: elsewhere, namespace: free, object: ${deployment(4)}, expect: {matched: false}}
  - {name: wrong, object: ${deployment(4)}, expect: {allowed: true}}
`,
      'map.portcullis-test.yml': `
policy:
  manifests:
    - apiVersion: admissionregistration.k8s.io/v1alpha1
      kind: MutatingAdmissionPolicy
      metadata: {name: team}
      spec:
        reinvocationPolicy: Never
        matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
        mutations:
          - patchType: JSONPatch
            jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': 'a'}}]"}
    - {apiVersion: admissionregistration.k8s.io/v1alpha1, kind: MutatingAdmissionPolicyBinding, metadata: {name: team}, spec: {policyName: team}}
cases:
  - {name: changes, object: ${deployment(1)}, expect: {allowed: true, objectContains: {metadata: {labels: {team: a}}}}}
`,
      'bad.portcullis-test.yml': `
policy:
  manifests: [{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: x}, spec: {validations: [{expression: objct.spec}]}}]
cases: [{name: a, object: ${POD}, expect: {allowed: true}}]
`,
    });
    const { suites, code } = await report(path);
    assert.equal(code, 1);
    assert.deepEqual(
      suites.map(({ name, cases }) => [name, cases.map(({ status }) => status).join()]),
      [
        ['bad', 'error'],
        ['map', 'passed'],
        [String(folders), 'passed,passed,passed,failed'].with(0, suites[2]?.name ?? ''),
      ],
    );
    assert.match(suites[0]?.cases[0]?.error ?? '', /portcullis-test\.yml:3:\d+ ValidatingAdmissionPolicy x: .*objct/);
  });

  it('answer a request as an API server does', async () => {
    const path = await workspace({ 'vap.yml': VAP, 'objects.yml': OBJECTS });
    const request = {
      uid: 'u',
      kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      name: 'web',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'alice' },
      object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec: { replicas: 9 } },
    };
    const manifests = ['run', '--manifests', join(path, 'vap.yml'), join(path, 'objects.yml'), '-r', '-'];
    const denied = await portcullis(manifests, { stdin: JSON.stringify(request) });
    assert.equal(denied.code, 0, denied.stderr);
    assert.match(denied.stdout, /"allowed":false,"status":\{"message":".*at most 3 in shop","code":403\}/);
    const review = JSON.stringify({ request: { ...request, namespace: 'free' } });
    const allowed = await portcullis([...manifests, '--fail-on', 'deny'], { stdin: review });
    assert.equal(allowed.code, 0);
    assert.match(
      allowed.stderr,
      /vap\/replicas does not match the request: matchResources of the binding replicas-binding: namespaceSelector does not select the namespace free/,
    );
  });

  it('are refused with all of their problems', async () => {
    const path = await workspace({
      'bad.yml': VAP.replace('object.spec.replicas', 'objct.spec.replicas'),
      'none.yml': OBJECTS,
      'text.yml': 'hello',
      'broken.yml': 'a: [',
    });
    const run = (name: string, ...flags: readonly string[]): Promise<CommandResult> =>
      portcullis([
        'run',
        '--manifests',
        join(path, name),
        ...flags,
        '-r',
        `${EXAMPLES}/required-labels/requests/rejected.json`,
      ]);
    for (const [name, message] of [
      ['bad.yml', /bad\.yml:11:19 ValidatingAdmissionPolicy replicas: spec\.validations\[0\]\.expression: .*objct/],
      ['none.yml', /none\.yml has no policy\nExpected a ClusterAdmissionPolicy/],
      ['text.yml', /document 1 is not a manifest/],
      ['broken.yml', /broken\.yml:1:5 is not YAML/],
      ['nope.yml', /nope\.yml cannot be read/],
    ] as const) {
      const { code, stdout, stderr } = await run(name);
      assert.match(stderr, message);
      assert.equal(code, 1);
      assert.equal(stdout, '');
    }
    assert.equal((await run('none.yml', '-s', 'x.json')).code, 2);
    assert.equal((await run('none.yml', '--kubernetes-version', '34')).code, 2);
    const request = ['-r', `${EXAMPLES}/required-labels/requests/rejected.json`];
    assert.match(
      (await portcullis(['run', 'x.wasm', '--manifests', 'x.yml', ...request])).stderr,
      /got both \(x\.wasm and --manifests\)/,
    );
  });
});

describe('portcullis test of a policy in manifests', { concurrency: 2 }, () => {
  const POLICY = `
apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: labels}
spec:
  module: registry://registry.example/labels:1
  mutating: false
  mode: monitor
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {tier: gold}}
  settings: {labels: [team]}
`;
  const DENIED = 'expect: {allowed: false, message: {contains: \'no label "team"\'}}';
  const modules = `modules: {'registry://registry.example/labels:1': '${LABELS}'}`;

  it('respects rules and selectors, and fails a case whose request the policy does not match', async () => {
    const path = await workspace({
      'policy.yaml': POLICY,
      'portcullis-test.yml': `
policy:
  manifests: [policy.yaml, {apiVersion: v1, kind: Namespace, metadata: {name: gold, labels: {tier: gold}}}]
  mode: protect
  ${modules}
defaults: {namespace: gold}
cases:
  - {name: denied, object: ${POD}, ${DENIED}}
  - {name: other kind, object: {apiVersion: v1, kind: Service, metadata: {name: web}}, expect: {matched: false}}
  - {name: deleted, oldObject: ${POD}, expect: {allowed: true}}
  - {name: matched, object: ${POD}, expect: {matched: false}}
  - {name: unknown, namespace: iron, object: ${POD}, expect: {matched: true, allowed: false}}
`,
    });
    const { suites } = await report(path);
    const results = suites.flatMap(({ cases }) => cases).map(({ name, status }) => [name, status]);
    assert.deepEqual(results, [
      ['denied', 'passed'],
      ['other kind', 'passed'],
      ['deleted', 'failed'],
      ['matched', 'failed'],
      ['unknown', 'failed'],
    ]);
    const { stdout } = await test(path);
    assert.match(
      stdout,
      /matched\n +expected +true\n +got +false: no rule is for DELETE of pods \(operations: CREATE\)\n/,
    );
    assert.match(stdout, /got +unknown: .*namespaceSelector is taken to select the namespace iron/);
  });

  it('gives the verdict of the webhook in monitor mode', async () => {
    const path = await workspace({
      'policy.yaml': POLICY,
      'portcullis-test.yml': `policy: {manifests: [policy.yaml], ${modules}}\ncases: [{name: monitored, object: ${POD}, expect: {allowed: true}}]\n`,
    });
    assert.equal((await report(path)).code, 0);
  });

  it('names the policies to choose from, and modules that there are none', async () => {
    const path = await workspace({
      'policy.yaml': `${POLICY}---${POLICY.replace('{name: labels}', '{name: more}')}`,
      'a.portcullis-test.yml': `policy: policy.yaml\ncases: [{name: a, object: ${POD}, expect: {allowed: true}}]\n`,
      'b.portcullis-test.yml': `policy: {manifests: [policy.yaml], name: cap/more, modules: {x: a.wasm}}\ncases: [{name: a, object: ${POD}, expect: {allowed: true}}]\n`,
    });
    const { stdout, stderr, code } = await test(path);
    assert.equal(code, 2);
    const said = `${stdout}${stderr}`;
    assert.match(said, /has 2 policies: expected "name" with one of them \(It has cap\/labels, cap\/more\.\)/);
    assert.match(said, /modules: kw\.cap\.more has no module x: it has registry:\/\/registry\.example\/labels:1/);
  });
});

describe('portcullis export', { concurrency: 2 }, () => {
  const rules =
    'matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}';
  const POLICIES = `
replicas:
  module: builtin:cel
  settings: {${rules}, validations: [{expression: object.spec.replicas <= 3}]}
watching:
  module: builtin:cel
  policyMode: monitor
  settings: {${rules}, validations: [{expression: object.spec.replicas <= 3}]}
everything:
  module: builtin:cel
  settings: {validations: [{expression: 'true'}]}
broken:
  module: builtin:cel
  settings: {${rules}, validations: [{expression: object.spec.replicas <=}]}
labels: {module: file:///labels.wasm}
`;
  const exported = async (...args: readonly string[]): Promise<CommandResult> => {
    const path = await workspace({ 'policies.yml': POLICIES });
    return await portcullis(['export', join(path, 'policies.yml'), ...args]);
  };

  it('prints a policy and its binding, which answer as the policy does', async () => {
    const { stdout, stderr, code } = await exported('--policy', 'replicas');
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '');
    assert.deepEqual(
      [...stdout.matchAll(/^kind: (.*)$/gm)].map(([, kind]) => kind),
      ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'],
    );
    const path = await workspace({
      'exported.yml': stdout,
      'portcullis-test.yml': `policy: {manifests: [exported.yml]}\ncases:\n  - {name: few, object: ${deployment(3)}, expect: {allowed: true}}\n  - {name: many, object: ${deployment(4)}, expect: {allowed: false}}\n`,
    });
    assert.equal((await report(path)).code, 0);
  });

  it('prints JSON', async () => {
    const { stdout } = await exported('--policy', 'replicas', '-o', 'json');
    const list = JSON.parse(stdout) as { kind: string; items: { kind: string }[] };
    assert.equal(list.kind, 'List');
    assert.equal(list.items.length, 2);
  });

  it('names what it leaves out', async () => {
    const { stderr } = await exported();
    assert.match(stderr, /^note: left out, because .*: labels \(of file:\/\/\/labels\.wasm\)$/m);
  });

  it('makes the binding of a monitored policy audit only', async () => {
    assert.match((await exported('--policy', 'watching')).stdout, /validationActions:\n +- Warn\n +- Audit\n/);
  });

  it('reports differences from API servers, and what they would refuse', async () => {
    const everything = await exported('--policy', 'everything');
    assert.equal(everything.code, 0);
    assert.match(everything.stderr, /note: everything: matchConstraints: .*set matchConstraints/);
    const broken = await exported('--policy', 'broken');
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /policies\.yml:14:\d+ broken: settings\.validations\[0\]\.expression: /);
  });

  it('keeps rules, selectors, conditions and failurePolicy of a manifest, and its namespace in the binding', async () => {
    const manifest = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'AdmissionPolicy',
      metadata: { name: 'replicas', namespace: 'shop' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        failurePolicy: 'Ignore',
        rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] }],
        objectSelector: { matchLabels: { tier: 'gold' } },
        matchConditions: [{ name: 'one', expression: 'true' }],
        settings: {
          matchConditions: [{ name: 'one', expression: "request.operation == 'CREATE'" }],
          validations: [{ expression: 'object.spec.replicas <= 3' }],
        },
      },
    };
    const path = await workspace({ 'policy.json': JSON.stringify(manifest) });
    const { stdout, stderr, code } = await portcullis(['export', join(path, 'policy.json'), '-o', 'json']);
    assert.equal(code, 0, stderr);
    const [policy, binding] = (JSON.parse(stdout) as { items: { metadata: { name: string }; spec: unknown }[] }).items;
    assert.equal(policy?.metadata.name, 'shop.replicas');
    assert.deepEqual(policy.spec, {
      failurePolicy: 'Ignore',
      matchConstraints: {
        matchPolicy: 'Equivalent',
        resourceRules: [{ ...manifest.spec.rules[0], scope: 'Namespaced' }],
        objectSelector: { matchLabels: { tier: 'gold' } },
      },
      matchConditions: [
        { name: 'one', expression: 'true' },
        { name: 'one-2', expression: "request.operation == 'CREATE'" },
      ],
      validations: [{ expression: 'object.spec.replicas <= 3' }],
    });
    assert.deepEqual(binding?.spec, {
      policyName: 'shop.replicas',
      validationActions: ['Deny'],
      matchResources: {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['shop'] }],
        },
      },
    });
  });

  it('prints the policy that examples have for API servers', async () => {
    const folder = join(ROOT, EXAMPLES, 'replica-limit');
    const { stdout } = await portcullis(['export', join(folder, 'policy.yaml')]);
    const specOf = (text: string): unknown => {
      const [policy] = parseYaml(text);
      return ['failurePolicy', 'variables', 'validations'].map((field) => valueAt(policy, 'spec', field));
    };
    assert.deepEqual(specOf(stdout), specOf(await readFile(join(folder, 'validating-admission-policy.yaml'), 'utf8')));
  });

  it('exports every policy that can be exported, and no others', async () => {
    const path = await workspace({ 'policies.yml': POLICIES.replace(/^broken:\n(?: .*\n)+/m, '') });
    const all = await portcullis(['export', join(path, 'policies.yml')]);
    assert.equal(all.stdout.match(/^kind: ValidatingAdmissionPolicy$/gm)?.length, 3);
    const some = await exported();
    assert.deepEqual([some.stdout, some.code], ['', 1]);
    const other = await exported('--policy', 'labels');
    assert.equal(other.code, 1);
    assert.equal(other.stdout, '');
    assert.match(other.stderr, /labels is of file:\/\/\/labels\.wasm: expected a policy of builtin:cel/);
    assert.match((await exported('--policy', 'nope')).stderr, /has no policy "nope"/);
    assert.equal((await exported('--kubernetes-version', 'x')).code, 2);
  });
});
