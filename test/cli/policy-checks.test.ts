// `portcullis test`, `run` and `export` refuse the policies that a cluster refuses, and show the place in the file.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type CommandResult, portcullis } from './command.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-checks-'));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text)));
});
after(() => rm(folder, { recursive: true }));

/** @param spec the lines of the spec after its rules */
const own = (operations: string, spec: string): string => `apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: checked}
spec:
  module: builtin:cel
  mutating: false
  rules:
    - {apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [${operations}]}
${spec}`;

const settings = (expression: string): string => `  settings:
    validations:
      - expression: ${expression}
`;

const KUBERNETES = (kind: string, spec: string): string => `apiVersion: admissionregistration.k8s.io/v1
kind: ${kind}
metadata: {name: checked}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
${spec}---
apiVersion: admissionregistration.k8s.io/v1
kind: ${kind}Binding
metadata: {name: checked}
`;

const WIDGETS = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}, tags: {type: array, items: {type: string}}}}
`;

const ofWidgets = (type: string, field: string, expression: string): string =>
  own('CREATE', `  settings: {mutations: [{patchType: ${type}, ${field}: {expression: '${expression}'}}]}\n`)
    .replace('mutating: false', 'mutating: true')
    .replace("apiGroups: ['']", 'apiGroups: [example.com]')
    .replace('configmaps', 'widgets');

const FILES = {
  'object.yaml': '{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {key: a}}',
  'namespace.yaml': '{apiVersion: v1, kind: Namespace, metadata: {name: default}}',
  'old-object.yaml': own('CREATE', settings('oldObject.data.key != null')),
  'connect.yaml': own('DELETE', settings('object.data.key != null')),
  'condition.yaml': own('CREATE', `  matchConditions: [{name: c, expression: objekt == null}]\n${settings('"true"')}`),
  'wildcard.yaml': own('"*", CREATE', settings('"true"')),
  'compile.yaml': own('CREATE', settings("|\n          has(object.data) &&\n            objekt.data.key != ''")),
  'selector.yaml': own(
    'CREATE',
    `  objectSelector: {matchExpressions: [{key: a, operator: In}]}\n${settings('"true"')}`,
  ),
  'vap.yaml': `${KUBERNETES('ValidatingAdmissionPolicy', '  validations: [{expression: limt(5) == 5}]\n')}spec: {policyName: checked, validationActions: [Deny]}\n`,
  'binding.yaml': `${KUBERNETES('ValidatingAdmissionPolicy', '  validations: [{expression: "true"}]\n')}spec: {policyName: checked, validationActions: [Denie]}\n`,
  'map.yaml': `${KUBERNETES('MutatingAdmissionPolicy', "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: limt(5)}]'}}]\n")}spec: {policyName: checked}\n`,
  'policies.yml': `checked:\n  module: builtin:cel\n${settings("object.metadata.labels['team' != ''")}`,
  'unused.yaml': own('CREATE, UPDATE', settings('object.data.key == oldObject.data.key')),
  'message.yaml': `${own('DELETE', settings("request.userInfo.username == 'nobody'"))}        messageExpression: "'not ' + object.metadata.name"\n`,
  'condition-vap.yaml': `${KUBERNETES(
    'ValidatingAdmissionPolicy',
    `  matchConditions:
    - name: named
      expression: >-
        has(object.metadata) &&
        namespaceObject.metadata.name == 'a'
  validations: [{expression: "true"}]
`,
  )}spec: {policyName: checked, validationActions: [Deny]}\n`,
  'op-map.yaml': `${KUBERNETES('MutatingAdmissionPolicy', '  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: \'[JSONPatch{op: "update", path: "/data/a", value: "b"}]\'}}]\n')}spec: {policyName: checked}\n`,
  'lowercase.yaml': own(
    'CREATE',
    settings("|\n          has(object.data) &&\n          request.operation == 'create'"),
  ),
  'never-patch.yaml': own(
    'CREATE',
    `  settings:
    mutations:
      - patchType: JSONPatch
        jsonPatch:
          expression: |
            [
              JSONPatch{op: 'update', path: '/data/a', value: 'b'}
            ]
`,
  ).replace('mutating: false', 'mutating: true'),
  'widgets.yaml': WIDGETS,
  'widget.yaml': '{apiVersion: example.com/v1, kind: Widget, metadata: {name: one}, spec: {size: 1}}',
  'tags.yaml': ofWidgets('ApplyConfiguration', 'applyConfiguration', 'Object{spec: Object.spec{tags: ["a"]}}'),
  'size.yaml': ofWidgets('JSONPatch', 'jsonPatch', '[JSONPatch{op: "replace", path: "/spec/size", value: "3"}]'),
  'misspelled.yaml': ofWidgets('JSONPatch', 'jsonPatch', '[JSONPatch{op: "replace", path: "/spec/sise", value: 3}]'),
  'unused.portcullis-test.yml':
    'policy: old-object.yaml\ncases: [{name: one, object: object.yaml, expect: {allowed: false}}]',
};

const REFUSED = [
  { file: 'old-object.yaml', place: '11:9', message: /oldObject, which is null on CREATE.* \[null-object\]/ },
  { file: 'connect.yaml', place: '11:9', message: /object, which is null on DELETE.* \[null-object\]/ },
  { file: 'condition.yaml', place: '9:43', message: /spec\.matchConditions\[0\]\.expression: .*undeclared reference/ },
  { file: 'wildcard.yaml', place: '8:69', message: /\[rule-wildcard\]/ },
  { file: 'compile.yaml', place: '13:13', message: /undeclared reference to 'objekt'/ },
  { file: 'selector.yaml', place: '9:39', message: /\[selector\]/ },
  { file: 'vap.yaml', place: '7:34', message: /undeclared reference to 'limt'/ },
  { file: 'binding.yaml', place: '12:49', message: /validationActions\[0\]: Unsupported value: "Denie"/ },
  { file: 'map.yaml', place: '8:82', message: /undeclared reference to 'limt'/ },
  { file: 'policies.yml', place: '5:56', message: /Syntax error/ },
  { file: 'never-patch.yaml', place: '15:15', message: /no operation "update".* \[mutation\]/ },
];

const command = (...args: readonly string[]): Promise<CommandResult> => portcullis(args, { cwd: folder });

describe('a policy that a cluster refuses', { concurrency: 2 }, () => {
  for (const { file, place, message } of REFUSED) {
    it(`passes no test, and is shown at its place: ${file}`, async () => {
      const { stdout, code } = await command('test', '-p', file, 'object.yaml');
      assert.equal(code, 1, stdout);
      assert.match(stdout, message);
      assert.ok(stdout.includes(`│ ${file}:${place} `), stdout);
      assert.doesNotMatch(stdout, / pass$/m);
    });

    it(`is not run: ${file}`, async () => {
      const target = file === 'policies.yml' ? ['--policies', file] : [file];
      const { stdout, stderr, code } = await command('run', ...target, '-r', 'object.yaml');
      assert.deepEqual([stdout, code], ['', 1]);
      assert.match(stderr, message);
      assert.ok(stderr.includes(`${file}:${place} `), stderr);
    });
  }

  it('is not tested by a test file', async () => {
    const { stdout, code } = await command('test', 'unused.portcullis-test.yml');
    assert.equal(code, 1, stdout);
    assert.match(stdout, /old-object\.yaml:11:9 .*\[null-object\]/);
  });

  it('is not exported, not even in part', async () => {
    const { stdout, stderr, code } = await command('export', 'compile.yaml');
    assert.deepEqual([stdout, code], ['', 1]);
    assert.match(stderr, /compile\.yaml:13:13 .*undeclared reference/);
  });
});

describe('a mutation of a custom kind', { concurrency: 2 }, () => {
  for (const [file, message] of [
    ['tags.yaml', /\.spec\.tags of Widget is merged as a whole .* can never succeed \[mutation\]/],
    ['size.yaml', /the value is a text, where the field has a number: the mutation can never succeed \[mutation\]/],
  ] as const) {
    it(`that never succeeds is refused where its CustomResourceDefinition is known: ${file}`, async () => {
      const results = await Promise.all([
        command('test', '-p', file, 'widgets.yaml', 'widget.yaml'),
        command('test', '-p', file, '-p', 'widgets.yaml', 'widget.yaml'),
        command('run', file, '-r', 'widget.yaml', '--manifests', 'widgets.yaml'),
      ]);
      for (const { stdout, stderr, code } of results) {
        assert.match(stdout + stderr, message);
        assert.equal(code, 1);
      }
    });
  }

  it('of a field that it does not have has a warning', async () => {
    const { stderr } = await command('test', '-p', 'misspelled.yaml', 'widgets.yaml', 'widget.yaml');
    assert.match(stderr, /Widget has no field \/spec\/sise: API servers drop what is added \[mutation\]$/m);
  });
});

describe('a policy that a cluster warns about', () => {
  it('is tested and run with the warning, at its place', async () => {
    const results = await Promise.all([
      command('test', '-p', 'unused.yaml', 'object.yaml'),
      command('run', 'unused.yaml', '-r', 'object.yaml'),
    ]);
    for (const { stderr } of results) {
      assert.match(
        stderr,
        /^warning: unused\.yaml:11:9 ClusterAdmissionPolicy checked: .* null on CREATE.*\[null-object\]$/m,
      );
    }
  });

  for (const { file, place, message } of [
    {
      file: 'condition-vap.yaml',
      place: '11:9 ValidatingAdmissionPolicy checked',
      message: /namespaceObject is always null in match conditions.*\[namespace-object\]$/m,
    },
    {
      file: 'op-map.yaml',
      place: '8:64 MutatingAdmissionPolicy checked',
      message: /no operation "update".*\[mutation\]$/m,
    },
    {
      file: 'lowercase.yaml',
      place: '13:11 ClusterAdmissionPolicy checked',
      message: /write "CREATE".*\[request-value\]$/m,
    },
  ]) {
    it(`is shown at the place in its expression: ${file}`, async () => {
      const results = await Promise.all([
        command('test', '-p', file, 'object.yaml', 'namespace.yaml'),
        command('run', file, '-r', 'object.yaml', '--manifests', 'namespace.yaml'),
      ]);
      for (const { stderr } of results) {
        assert.ok(stderr.includes(`warning: ${file}:${place}: `), stderr);
        assert.match(stderr, message);
        assert.doesNotMatch(stderr, /^note:/m);
      }
    });
  }

  it('is tested and run with a warning that a messageExpression gives no message', async () => {
    const deletion = ['--operation', 'DELETE'];
    const [tested, run] = await Promise.all([
      command('test', '-p', 'message.yaml', 'object.yaml', ...deletion),
      command('run', 'message.yaml', '-r', 'object.yaml', ...deletion),
    ]);
    assert.match(
      tested.stderr,
      /^warning: message\.yaml:12:9 ClusterAdmissionPolicy checked: .*messageExpression: gives no message, .*no such key/m,
    );
    assert.match(run.stderr, /^warn +kw\.cap\.checked: validations\[0\]\.messageExpression: .*no such key/m);
  });

  it('shows each failure once', async () => {
    const { stdout } = await command('test', '-p', 'message.yaml', 'object.yaml', '--operation', 'DELETE');
    assert.equal(stdout.split('failed expression').length, 2, stdout);
  });

  it('fails where it looks at a namespace that is not there, and is tested on the others', async () => {
    await writeFile(
      join(folder, 'elsewhere.yaml'),
      '{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: gone}}',
    );
    const files = ['object.yaml', 'namespace.yaml', 'elsewhere.yaml'];
    const { stdout, code } = await command('test', '-p', 'condition-vap.yaml', ...files);
    assert.equal(code, 1);
    assert.match(stdout, /^ConfigMap one +vap\/checked +fail/m);
    assert.match(stdout, /^ConfigMap gone\/two +vap\/checked +error/m);
    assert.match(stdout, /│ namespaces "gone" not found: add the manifest of the Namespace/);
  });

  it('has the rule in SARIF', async () => {
    const { stdout } = await command('test', '-p', 'unused.yaml', 'object.yaml', '-o', 'sarif');
    const [run] = (JSON.parse(stdout) as { runs: { tool: { driver: { rules: { id: string }[] } } }[] }).runs;
    assert.ok(run?.tool.driver.rules.some(({ id }) => id === 'null-object'));
  });
});
