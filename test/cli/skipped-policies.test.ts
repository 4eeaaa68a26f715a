// `portcullis test` and `run`: a policy that does not apply to an object is skipped, not passed, and the reason names the
// constraint.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type CommandResult, portcullis } from './command.ts';

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-skipped-'));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text)));
});
after(() => rm(folder, { recursive: true }));

const RULE = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
const CONDITIONS = [
  { name: 'always', expression: 'true' },
  { name: 'never', expression: 'false' },
];
const DENY = [{ expression: 'false' }];

/** A ValidatingAdmissionPolicy that denies what it matches, and its binding. */
function vap(constraints: object, spec: object = {}, binding: object = {}): string {
  const of = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: 'p' } };
  const policy = {
    ...of,
    kind: 'ValidatingAdmissionPolicy',
    spec: { matchConstraints: { resourceRules: [RULE], ...constraints }, validations: DENY, ...spec },
  };
  const bound = { policyName: 'p', validationActions: ['Deny'], ...binding };
  return `${JSON.stringify(policy)}\n---\n${JSON.stringify({ ...of, kind: 'ValidatingAdmissionPolicyBinding', spec: bound })}`;
}

/** A policy of ours that denies what it matches. */
function own(spec: object, settings: object = {}, metadata: object = {}): string {
  const isOfCluster = Object.keys(metadata).length === 0;
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: isOfCluster ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name: 'p', ...metadata },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: [RULE],
      settings: { validations: DENY, ...settings },
      ...spec,
    },
  });
}

const SELECTOR = { matchLabels: { a: 'b' } };

const POLICIES: Readonly<Record<string, { readonly text: string; readonly reason: RegExp }>> = {
  'vap-operation': {
    text: vap({ resourceRules: [{ ...RULE, operations: ['UPDATE', 'CONNECT'] }] }),
    reason: /its matchConstraints: resourceRules .*\(operations: UPDATE, CONNECT\)/,
  },
  'vap-resource': {
    text: vap({ resourceRules: [{ ...RULE, resources: ['services'] }] }),
    reason: /\(resources: services\)/,
  },
  'vap-group': { text: vap({ resourceRules: [{ ...RULE, apiGroups: ['apps'] }] }), reason: /\(apiGroups: apps\)/ },
  'vap-version': { text: vap({ resourceRules: [{ ...RULE, apiVersions: ['v2'] }] }), reason: /\(apiVersions: v2\)/ },
  'vap-scope': { text: vap({ resourceRules: [{ ...RULE, scope: 'Cluster' }] }), reason: /\(scope: Cluster\)/ },
  'vap-names': { text: vap({ resourceRules: [{ ...RULE, resourceNames: ['x'] }] }), reason: /\(resourceNames: x\)/ },
  'vap-excluded': { text: vap({ excludeResourceRules: [RULE] }), reason: /excludeResourceRules exclude it/ },
  'vap-namespace': {
    text: vap({ namespaceSelector: SELECTOR }),
    reason: /namespaceSelector does not select the namespace shop/,
  },
  'vap-object': { text: vap({ objectSelector: SELECTOR }), reason: /matchConstraints: objectSelector selects neither/ },
  'vap-condition': { text: vap({}, { matchConditions: CONDITIONS }), reason: /its matchCondition "never" is false/ },
  'vap-binding': {
    text: vap({}, {}, { matchResources: { objectSelector: SELECTOR } }),
    reason: /matchResources of the binding p: objectSelector/,
  },
  'vap-unbound': { text: vap({}, {}, { policyName: 'other' }), reason: /no binding names it/ },
  'vap-parameters': {
    text: vap(
      {},
      { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } },
      { paramRef: { name: 'none', parameterNotFoundAction: 'Allow' } },
    ),
    reason: /there are no parameters for the binding p/,
  },
  'own-operation': {
    text: own({ rules: [{ ...RULE, operations: ['DELETE'] }] }, { validations: [{ expression: 'true' }] }),
    reason: /\(operations: DELETE\)/,
  },
  'own-condition': { text: own({ matchConditions: CONDITIONS }), reason: /its matchCondition "never" is false/ },
  'own-object': { text: own({ objectSelector: SELECTOR }), reason: /its objectSelector selects neither/ },
  'own-namespace': {
    text: own({ namespaceSelector: SELECTOR }),
    reason: /its namespaceSelector does not select the namespace shop/,
  },
  'own-elsewhere': { text: own({}, {}, { namespace: 'other' }), reason: /it is for another namespace than shop/ },
  'settings-condition': {
    text: own({}, { matchConditions: CONDITIONS }),
    reason: /its settings: the matchCondition "never" is false/,
  },
  'settings-constraints': {
    text: own({}, { matchConstraints: { resourceRules: [{ ...RULE, resourceNames: ['x'] }] } }),
    reason: /its settings: matchConstraints: .*\(resourceNames: x\)/,
  },
};

const POD =
  '{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: web, image: web}]}}';

const FILES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(POLICIES).map(([name, { text }]) => [`${name}.yaml`, text])),
  'pod.yaml': `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n${POD}`,
  'only-pod.yaml': POD,
  'system-pod.yaml': POD.replace('namespace: shop', 'namespace: kube-system'),
  'all-pods.yaml': own({}),
  'p.portcullis-test.yml': `
policy: vap-condition.yaml
cases:
  - {name: expected, object: ${POD}, expect: {matched: false, message: {contains: '"never" is false'}}}
  - {name: another reason, object: ${POD}, expect: {matched: false, message: {contains: objectSelector}}}
  - {name: passed, object: ${POD}, expect: {allowed: true}}
`,
};

const command = (...args: readonly string[]): Promise<CommandResult> => portcullis(args, { cwd: folder });

describe('a policy that does not apply', { concurrency: 2 }, () => {
  for (const [name, { reason }] of Object.entries(POLICIES)) {
    it(`is skipped with the constraint: ${name}`, async () => {
      const { stdout, code } = await command('test', '-v', '-p', `${name}.yaml`, 'pod.yaml', '--filter', 'Pod');
      assert.equal(code, 0, stdout);
      const [row = ''] = stdout.match(/^Pod .*$/m) ?? [];
      assert.match(row, / skip /);
      assert.match(row, reason);
    });
  }

  it('is exempt in namespaces of Kubernetes', async () => {
    const { stdout } = await command('test', '-v', '-p', 'all-pods.yaml', 'system-pod.yaml');
    assert.match(stdout, / skip +the namespace kube-system is exempt from policies of the cluster$/m);
  });

  it('fails with --require-match', async () => {
    const [one, none, run] = await Promise.all([
      command('test', '-p', 'all-pods.yaml', '-p', 'vap-condition.yaml', 'pod.yaml', '--require-match'),
      command('test', '-p', 'vap-condition.yaml', 'pod.yaml', '--require-match'),
      command('run', 'vap-condition.yaml', '-r', 'only-pod.yaml', '--require-match'),
    ]);
    assert.match(one.stdout, /1 fail, 3 do not apply/);
    assert.deepEqual([none.code, run.code], [1, 1]);
    assert.match(none.stdout, /^✘ 2 resources, 1 policy: 0 pass, 2 do not apply/m);
    assert.match(run.stderr, /its matchCondition "never" is false/);
  });

  for (const [format, pattern] of [
    ['junit', /<skipped message="its matchCondition &quot;never&quot; is false"\/?>/],
    ['tap', /^ *ok .*Pod shop\/web › vap\/p # SKIP its matchCondition "never" is false$/m],
    ['json', /"result": "skip",[^}]*"message": "its matchCondition \\"never\\" is false"/],
  ] as const) {
    it(`is skipped in ${format}`, async () => {
      const { stdout } = await command('test', '-p', 'vap-condition.yaml', 'pod.yaml', '-o', format);
      assert.match(stdout, pattern);
    });
  }

  it('is expected by a test file, with the reason, and does not pass another expectation', async () => {
    const { stdout, code } = await command('test', 'p.portcullis-test.yml');
    assert.equal(code, 1);
    assert.match(stdout, /^p +3 +1 +2 /m);
    assert.match(stdout, /p › another reason[^]*message\n +expected .*objectSelector[^]*got .*"never" is false/);
    assert.match(stdout, /p › passed[^]*matched\n +expected +true\n +got +false: its matchCondition "never" is false/);
  });
});
