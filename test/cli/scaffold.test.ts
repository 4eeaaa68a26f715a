// `portcullis scaffold`, and the tutorials, which begin with it: what it writes passes its tests and is active in a cluster.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { findOnPath } from '../cluster/binaries.ts';
import { COMMAND, type CommandResult, portcullis, ROOT, run } from './command.ts';
import { examplesOf, outputPattern } from './page-examples.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

/** What `scaffold policy owner-label` writes in Rego, with the modules that `npm run examples:build` built. */
const REGO = join(ROOT, 'test', 'fixtures', 'scaffold');
const REGO_LANGUAGES = ['rego', 'gatekeeper'] as const;

const POLICIES: readonly (readonly [name: string, object: string, flags: readonly string[]])[] = [
  ['scaffolded-cap', 'cap/scaffolded-cap', []],
  ['scaffolded-ap', 'ap/scaffolded-ap', ['--type', 'ap', '--resource', 'deployments']],
  ['scaffolded-capg', 'capg/scaffolded-capg', ['--type', 'ClusterAdmissionPolicyGroup', '--resource', 'svc']],
  ['scaffolded-apg', 'apg/scaffolded-apg', ['--type', 'apg', '--resource', 'jobs.batch']],
  ['scaffolded-mutating', 'cap/scaffolded-mutating', ['--mutating', '--resource', 'namespaces']],
];

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

/** A program that stands for OPA where it is not installed: it builds what `npm run examples:build` has built. */
const OPA = `#!/bin/sh
# opa build -t wasm -e ENTRY -o bundle.tar.gz policy.rego
for language in ${REGO_LANGUAGES.join(' ')}; do
  if cmp -s policy.rego "${REGO}/$language/policy.rego"; then
    tar -czf "$7" --transform 's,^,/,' -P -C "${REGO}/$language" policy.wasm && exit
  fi
done
echo 'opa is not installed, and policy.rego is not the one of the fixtures' >&2
exit 1
`;

describe('portcullis scaffold', () => {
  let folder: string;
  let started: StartedPortcullis;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-scaffold-'));
    const programs = join(folder, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'npx'), `#!/bin/sh\nshift\nexec "${process.execPath}" "${COMMAND}" "$@"\n`, {
      mode: 0o755,
    });
    if (findOnPath('opa') === undefined) {
      writeFileSync(join(programs, 'opa'), OPA, { mode: 0o755 });
    }
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
  });
  after(async () => {
    await started[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const scaffold = (args: readonly string[]): Promise<CommandResult> =>
    portcullis(['scaffold', ...args], { cwd: folder });

  it('writes policies of all kinds that pass their tests and become active', async () => {
    for (const [name, , flags] of POLICIES) {
      const stdout = succeeded(await scaffold(['policy', name, ...flags]));
      assert.match(stdout, new RegExp(`^Wrote ${name}/policy.yaml\n[^]*\nNext:\n  cd ${name}\n  portcullis test\n`));
    }
    assert.match(succeeded(await portcullis(['test'], { cwd: folder })), /^✔ (\d+) of \1 cases passed/m);
    const files = POLICIES.flatMap(([name]) => ['-f', join(folder, name, 'policy.yaml')]);
    succeeded(await started.portcullis(['apply', ...files]));
    const objects = POLICIES.map(([, object]) => object);
    succeeded(await started.portcullis(['wait', ...objects, '--for=condition=PolicyActive', '--timeout=60s']));
    succeeded(await started.portcullis(['delete', ...objects]));
  });

  it('writes policies in Rego for both entry points', async () => {
    for (const language of REGO_LANGUAGES) {
      const output = join(folder, language);
      succeeded(await scaffold(['policy', 'owner-label', '--language', language, '-o', output]));
      const names = readdirSync(output);
      assert.deepEqual(names.toSorted(), ['metadata.yml', 'policy.rego', 'policy.yaml', 'portcullis-test.yml']);
      for (const name of names) {
        assert.equal(
          readFileSync(join(output, name), 'utf8'),
          readFileSync(join(REGO, language, name), 'utf8'),
          `${language}/${name}: scaffold it again, and run npm run examples:build`,
        );
      }
    }
  });

  it('replaces no files', async () => {
    const file = join(folder, 'kept', 'policy.yaml');
    mkdirSync(join(folder, 'kept'));
    writeFileSync(file, 'mine');
    const { code, stdout, stderr } = await scaffold(['policy', 'kept']);
    assert.deepEqual(
      [code, stdout, readFileSync(file, 'utf8'), readdirSync(join(folder, 'kept')).length],
      [1, '', 'mine', 1],
    );
    assert.match(stderr, /kept\/policy.yaml exists already: nothing was written\n.*--force/);
    succeeded(await scaffold(['policy', 'kept', '--force']));
    assert.notEqual(readFileSync(file, 'utf8'), 'mine');
  });

  it('prints the manifest of a module, which a cluster accepts', async () => {
    const module = join(REGO, 'rego', 'policy.wasm');
    const manifest = succeeded(
      await scaffold(['manifest', module, '--title', 'from-metadata', '--settings-json', '{"label":"team"}']),
    );
    assert.equal(
      manifest,
      `apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata:
  name: from-metadata
spec:
  module: file://${module}
  settings:
    label: team
  rules:
    - apiGroups:
        - ''
      apiVersions:
        - v1
      resources:
        - pods
      operations:
        - CREATE
        - UPDATE
  mutating: false
`,
    );
    succeeded(await started.portcullis(['apply', '-f', '-', '--dry-run=server'], manifest));
  });

  it('prints the manifest of a module in a registry, by its reference there', async () => {
    const reference = 'registry://registry.example/required-labels:1.0.0';
    const args = ['manifest', reference, '-t', 'AdmissionPolicy', '--sources-path', join(ROOT, 'examples/sources.yml')];
    const manifest = succeeded(await scaffold(args));
    assert.match(manifest, new RegExp(`^kind: AdmissionPolicy\n[^]*\n  module: ${reference}\n`, 'm'));
  });

  it('prints the request for an object, which run takes', async () => {
    const [before, after] = ['a', 'b'].map(
      (value) => `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"owner":"${value}"}}}`,
    );
    writeFileSync(join(folder, 'before.json'), before ?? '');
    const args = ['admission-request', '--operation', 'UPDATE', '--object', '-', '--old-object', 'before.json'];
    const review = succeeded(await portcullis(['scaffold', ...args], { cwd: folder, stdin: after ?? '' }));
    assert.match(review, /^\{\n {2}"apiVersion": "admission.k8s.io\/v1",\n {2}"kind": "AdmissionReview"/);
    const deletion = succeeded(await scaffold(['request', 'before.json', '--operation', 'DELETE']));
    assert.match(deletion, /"operation": "DELETE"[^]*"object": null,\n {4}"oldObject": \{/);
    const settings =
      '{"validations": [{"expression": "oldObject.metadata.labels.owner == object.metadata.labels.owner"}]}';
    const verdict = await portcullis(['run', 'builtin:cel', '-r', '-', '--settings-json', settings], { stdin: review });
    assert.match(succeeded(verdict), /"allowed":false/);
    const unnamed = await scaffold(['request']);
    assert.deepEqual([unnamed.code, unnamed.stdout], [2, ''], unnamed.stderr);
  });

  it('converts Kubernetes’ own policies, which a cluster accepts', async () => {
    const example = join(ROOT, 'examples/replica-limit/validating-admission-policy.yaml');
    const policy = succeeded(await scaffold(['vap', example]));
    succeeded(await started.portcullis(['apply', '-f', '-', '--dry-run=server'], policy));
    const exported = succeeded(await portcullis(['export', '-'], { stdin: policy }));
    assert.equal(succeeded(await portcullis(['scaffold', 'vap', '-'], { stdin: exported })), policy);
    const [first = '', second = ''] = readFileSync(example, 'utf8').split('---\n');
    writeFileSync(join(folder, 'vap.yaml'), first);
    writeFileSync(join(folder, 'binding.yaml'), second);
    assert.equal(succeeded(await scaffold(['vap', '--policy', 'vap.yaml', '--binding', 'binding.yaml'])), policy);
    const unknown = await scaffold(['vap', join('scaffolded-cap', 'policy.yaml')]);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /expected a ValidatingAdmissionPolicy/);
  });

  it('says what is wrong with flags', async () => {
    const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
      [['policy', 'a', '--type', 'policy'], /Allowed choices are cap, ap, capg, apg/],
      [['manifst'], /Did you mean manifest\?/],
    ];
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await scaffold(args);
      assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`);
      assert.match(stderr, message);
    }
  });

  for (const page of ['tutorial-cel', 'tutorial-rego']) {
    it(`docs/${page}.md works as it is written`, async () => {
      const checkout = join(folder, page);
      mkdirSync(join(checkout, '.portcullis'), { recursive: true });
      symlinkSync(started.kubeconfig, join(checkout, '.portcullis', 'kubeconfig'));
      const text = readFileSync(join(ROOT, 'docs', `${page}.md`), 'utf8');
      const examples = examplesOf(text);
      // Each block begins where the one before ended, as in a terminal.
      let state = `cd '${checkout}'`;
      for (const { line, commands, output } of examples) {
        const script = `${state}\nexec 2>&1\n${commands}\n{ echo "cd '$PWD'"; export -p | grep KUBECONFIG || true; } > '${folder}/state'`;
        const { code, stdout } = await run('sh', ['-e', '-c', script], {
          env: { PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`, HOME: started.home },
        });
        assert.equal(code, 0, `docs/${page}.md line ${line}:\n${commands}\n${stdout}`);
        if (output !== undefined) {
          assert.match(stdout, outputPattern(output), `docs/${page}.md line ${line}:\n${stdout}`);
        }
        state = readFileSync(join(folder, 'state'), 'utf8');
      }
      assert.ok(examples.length > 5);
    });
  }
});
