import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { type JsonObject, valueAt } from '../../../values/index.ts';
import { manifestObjects, objectText } from '../../manifest-objects.ts';
import { policiesIn } from '../../policy/policy-files.ts';
import { runnablePolicy } from '../../policy/policy-code.ts';
import { PolicyRunner } from '../../policy/policy-runner.ts';
import { requestForObject } from '../../policy/request-document.ts';
import { ServedKinds } from '../../policy/served-kinds.ts';
import { Progress } from '../../progress.ts';
import { countOutcomes, exitCodeOf, type ResourceReport } from './resource-report.ts';
import { LogLines, testResources } from './resource-runner.ts';

const log = new LogLines();
const runner = new PolicyRunner({ onLog: log.add });
after(() => runner[Symbol.asyncDispose]());

const EVERYTHING = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*'] }];

/** A policy of our kind with a validation in CEL. */
function policy(name: string, expression: string, spec: object = {}): string {
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: EVERYTHING,
      settings: { validations: [{ expression, message: `${name} denies` }] },
      ...spec,
    },
  });
}

const MUTATING = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: tiers}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  reinvocationPolicy: Never
  mutations:
    - {patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"tier": "one"}}}'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: tiers}
spec: {policyName: tiers}
`;

const POD = '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: []}}';

async function tested(policies: readonly string[], resources: string, filter = ''): Promise<ResourceReport> {
  const source = { text: policies.join('\n---\n'), name: 'policies.yaml', folder: process.cwd() };
  const file = { name: 'resources.yaml', isInput: false, text: resources };
  const subjects = manifestObjects(resources, file.name).objects.map((object) => ({
    resource: { ...object, file },
    text: objectText(object.object),
    review: requestForObject(object.object, undefined, {}, new ServedKinds([])).review,
    withDefaults: (changed: JsonObject): JsonObject => changed,
  }));
  const progress = new Progress();
  const results = await testResources(policiesIn([source]).policies, subjects, runner, log, {
    progress,
    session: undefined,
    isWanted: (resource, name) => `${resource} › ${name}`.includes(filter),
    codeOf: (one) => runnablePolicy(one, { progress }),
  });
  return { ...results, warnings: [] };
}

const shown = ({ resources }: ResourceReport): readonly string[] =>
  resources.flatMap(({ text, results }) =>
    results.map(({ policy: { name }, outcome, message = '' }) => `${text} ${name} ${outcome} ${message}`.trim()),
  );

describe('policies on resources', () => {
  it('pass or fail each resource that they match, and skip the others with the reason', async () => {
    const services = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['CREATE'] }];
    const report = await tested(
      [policy('all', "object.kind != 'Service'"), policy('services', 'true', { rules: services })],
      `${POD}\n---\n{apiVersion: v1, kind: Service, metadata: {name: web}}`,
    );
    assert.deepEqual(shown(report), [
      'Pod web cap/all pass',
      'Pod web cap/services skip no rule is for CREATE of pods (resources: services)',
      'Service web cap/all fail all denies',
      'Service web cap/services pass',
    ]);
    assert.equal(exitCodeOf(report), 1);
    assert.deepEqual(countOutcomes(report), { pass: 2, fail: 1, warn: 0, error: 0, skip: 1 });
  });

  it('see the object as mutating policies left it, whatever the order of the files', async () => {
    const report = await tested([policy('tiers', "object.metadata.?labels.tier.orValue('') == 'one'"), MUTATING], POD);
    assert.deepEqual(shown(report), ['Pod web cap/tiers pass', 'Pod web map/tiers pass']);
    const [result] = report.resources;
    assert.equal(valueAt(result?.before, 'metadata', 'labels'), undefined);
    assert.deepEqual(valueAt(result?.after, 'metadata', 'labels'), { tier: 'one' });
    assert.deepEqual(
      result?.results.map(({ isMutated }) => isMutated),
      [false, true],
    );
  });

  it('warn in monitor mode, and change nothing', async () => {
    const report = await tested([policy('watched', 'false', { mode: 'monitor' })], POD);
    assert.deepEqual(shown(report), ['Pod web cap/watched warn in monitor mode: watched denies']);
    assert.equal(exitCodeOf(report), 0);
  });

  it('warn when the answer has warnings', async () => {
    const validating = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  validations: [{expression: 'false', message: too large}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Warn]}
`;
    const [line = ''] = shown(await tested([validating], POD));
    assert.match(line, /^Pod web vap\/small warn .*too large/);
  });

  it('are problems of their own when they cannot be loaded, and the others are evaluated', async () => {
    const report = await tested(
      [
        policy('wrong', 'object.', {}),
        policy('gone', 'true', { module: 'file:///nowhere/policy.wasm', settings: {} }),
        policy('fine', 'true'),
      ],
      POD,
    );
    assert.deepEqual(
      report.problems.map(({ policy: { name }, isUnreadable }) => [name, isUnreadable]),
      [
        ['cap/wrong', false],
        ['cap/gone', true],
      ],
    );
    assert.deepEqual(shown(report), ['Pod web cap/fine pass']);
    assert.equal(exitCodeOf(report), 2);
    assert.equal(exitCodeOf({ ...report, problems: report.problems.slice(0, 1) }), 1);
  });

  it('give an error when they give no verdict', async () => {
    const conditions = [{ name: 'broken', expression: 'object.spec.none.none == 1' }];
    const report = await tested(
      [
        policy('trap', 'true', { module: `file://${process.cwd()}/test/fixtures/guests/trap.wasm`, settings: {} }),
        policy('conditions', 'true', { matchConditions: conditions }),
      ],
      POD,
    );
    const [trap = '', condition = ''] = shown(report);
    assert.match(trap, /^Pod web cap\/trap error the policy gave no verdict: /);
    assert.match(condition, /^Pod web cap\/conditions error .*no such key/);
    assert.equal(exitCodeOf(report), 1);
  });

  it('evaluate objects that are hostile, digits and all', async () => {
    const big =
      '{apiVersion: v1, kind: ConfigMap, metadata: {name: "a\\u001b[2J"}, data: {__proto__: x, count: 9007199254740993}}';
    const report = await tested(
      [policy('any', "object.data.count == 9007199254740993 && '__proto__' in object.data")],
      big,
    );
    assert.deepEqual(shown(report), ['ConfigMap a cap/any pass']);
  });

  it('are left out by a filter', async () => {
    const report = await tested([policy('a', 'true'), policy('b', 'true')], POD, '› cap/b');
    assert.deepEqual(shown(report), ['Pod web cap/b pass']);
  });
});
