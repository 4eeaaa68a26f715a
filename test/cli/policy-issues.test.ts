// What users see of policies that serve, and do less than they say.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import type { CommandResult } from './command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

const UID = 'example.com/uid';

const rule = (apiGroups: string, resources: string, operations = ['CREATE']): object => ({
  apiGroups: [apiGroups],
  apiVersions: ['v1'],
  resources: [resources],
  operations,
});

function policy(name: string, rules: readonly object[], expression: string, spec: object = {}): object {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: { module: 'builtin:cel', mutating: false, rules, settings: { validations: [{ expression }] }, ...spec },
  };
}

/** A kind that is installed after the policy for it. */
const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

describe('a policy that serves, but', { skip: skipWithoutCluster() }, () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
  });
  after(() => started[Symbol.asyncDispose]());

  const kubectl = async (args: readonly string[], object?: object): Promise<string> => {
    const { code, stdout, stderr } = await started.kubectl(args, object && JSON.stringify(object));
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const apply = async (object: object): Promise<string> => await kubectl(['apply', '-f', '-'], object);
  const rollout = (name: string): Promise<CommandResult> =>
    started.portcullis(['rollout', 'status', `cap/${name}`, '--timeout', '30s']);
  const ready = async (name: string): Promise<string> =>
    await kubectl(['get', 'cap', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']);
  /** The row of `kubectl get`: phase, whether it is enforced, and the reason. */
  const row = async (name: string): Promise<readonly (string | undefined)[]> => {
    const cells = (await kubectl(['get', 'cap', name, '--no-headers'])).trim().split(/ {2,}/);
    return [cells.find((cell) => cell === 'Active'), cells.find((cell) => cell === 'True'), cells.at(-2)];
  };
  const issuesOnMetricsPage = async (): Promise<readonly string[]> => {
    const page = await started.controllerMetrics();
    return page.split('\n').filter((line) => line.startsWith('portcullis_policy_issues{'));
  };

  for (const [name, reason, wrong, mended, message] of [
    [
      'kind-as-resource',
      'CannotMatch',
      policy('kind-as-resource', [rule('', 'pod')], 'true'),
      policy('kind-as-resource', [rule('', 'pods')], 'true'),
      /spec\.rules\[0\]\.resources\[0\]: Kubernetes has no resource "pod" in apiGroups "". Did you mean pods\?/,
    ],
    [
      'field-of-nothing',
      'CannotSucceed',
      policy('field-of-nothing', [rule('', 'services')], 'object.spec.typ != "NodePort"'),
      policy('field-of-nothing', [rule('', 'services')], 'object.spec.type != "NodePort"'),
      /spec\.settings\.validations\[0\]\.expression: undefined field 'typ' .*: it succeeds for no object/,
    ],
    [
      'value-of-another-type',
      'CannotSucceed',
      policy('value-of-another-type', [rule('', 'services')], 'object.spec.externalName == 1'),
      policy('value-of-another-type', [rule('', 'services')], '!has(object.spec.externalName)'),
      /spec\.settings\.validations\[0\]\.expression: found no matching overload for '_==_' .*: it succeeds for no object/,
    ],
    [
      'never-connects',
      'CannotMatch',
      policy('never-connects', [rule('', 'configmaps'), rule('', 'pods/exec')], 'true'),
      policy('never-connects', [rule('', 'configmaps'), rule('', 'pods/exec', ['CONNECT'])], 'true'),
      /requests for "pods\/exec" have the operation CONNECT, never CREATE/,
    ],
  ] as const) {
    it(`cannot work, is not ready until it is mended: ${name}`, async () => {
      await apply(wrong);
      const failed = await rollout(name);
      assert.equal(failed.code, 1, failed.stdout);
      assert.match(failed.stderr, new RegExp(`Active: revision 1 serves on 1 of 1 replicas, but ${reason}: `));
      assert.match(failed.stderr, message);
      assert.deepEqual(await row(name), ['Active', 'True', reason]);
      assert.equal(await ready(name), 'False');
      const described = await kubectl(['describe', 'cap', name]);
      assert.match(described, new RegExp(`Issues:\\n\\s+Field:[^]*Reason:\\s+${reason}\\n\\s+Severity:\\s+Error`));
      assert.match(described, new RegExp(`Warning\\s+${reason}\\s`));
      assert.ok((await issuesOnMetricsPage()).some((line) => line.includes(`reason="${reason}",severity="error"} 1`)));
      await apply(mended);
      assert.match((await rollout(name)).stdout, /: Active: revision 2 serves on 1 of 1 replicas\n$/);
      assert.equal(await ready(name), 'True');
      assert.deepEqual(await row(name), ['Active', 'True', 'Serving']);
      await kubectl(['delete', 'cap', name]);
    });
  }

  it('is for a kind that is installed later, is ready with a warning, which ends then', async () => {
    await apply(policy('widgets', [rule('example.com', 'widgets')], 'true'));
    const { code, stdout, stderr } = await rollout('widgets');
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /, but NotServed: spec\.rules\[0\]\.apiGroups: the cluster serves no API group "example\.com"\n$/,
    );
    assert.equal(await ready('widgets'), 'True');
    assert.deepEqual(await row('widgets'), ['Active', 'True', 'NotServed']);
    await apply(WIDGETS);
    await eventually(async () => assert.deepEqual(await row('widgets'), ['Active', 'True', 'Serving']), {
      timeoutMs: 60_000,
    });
    assert.doesNotMatch((await rollout('widgets')).stdout, /but/);
  });

  it('refuses a namespace for its parameters, says which, until they are valid', async () => {
    const parameters = {
      from: { namespace: { annotations: [UID] } },
      overridable: ['variables'],
      settingsExpression: `{'variables': [{'name': 'uid', 'expression': string(int(params.annotations['${UID}']))}]}`,
    };
    const namespace = (uid: string): object => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'tenant', annotations: { [UID]: uid } },
    });
    await apply(namespace('1000'));
    await apply(policy('tenants', [rule('', 'secrets')], 'true', { parameters }));
    assert.match((await rollout('tenants')).stdout, /: Active: revision 1 serves on 1 of 1 replicas\n$/);
    await apply(namespace('none'));
    await eventually(async () => assert.deepEqual(await row('tenants'), ['Active', 'True', 'InvalidParameters']));
    const { code, stdout } = await rollout('tenants');
    assert.equal(code, 0);
    assert.match(
      stdout,
      /, but InvalidParameters: 1 of \d+ namespaces? would be refused for their parameters: tenant /,
    );
    assert.ok((await issuesOnMetricsPage()).some((line) => line.includes('reason="InvalidParameters"')));
    await apply(namespace('2000'));
    await eventually(async () => assert.deepEqual(await row('tenants'), ['Active', 'True', 'Serving']));
  });
});
