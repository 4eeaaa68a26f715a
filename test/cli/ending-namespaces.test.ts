// A namespace that is deleted with objects that have a finalizer, under policies whose parameters are in it, by kubectl.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import type { CommandResult } from './command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

const FINALIZER = 'example.com/backup';
/** Takes the finalizer away, as the controller does that set it. */
const RELEASE = '--type=merge --patch={"metadata":{"finalizers":null}}'.split(' ');

const RULES = [
  { apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE', 'UPDATE', 'DELETE'] },
];

/** Secrets need a level that the config map `level` of their namespace allows. */
const BY_OBJECT = {
  parameters: {
    from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'level' } },
    overridable: ['variables'],
    settingsExpression: "{'variables': [{'name': 'level', 'expression': \"'\" + params.data.level + \"'\"}]}",
  },
  settings: { validations: [{ expression: "variables.level != 'none'", message: 'the level is none' }] },
};
/** The same, by the parameters of `builtin:cel`. */
const BY_PARAM_REF = {
  contextAwareResources: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  settings: {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    paramRef: { name: 'level', parameterNotFoundAction: 'Deny' },
    validations: [{ expression: "params.data.level != 'none'", message: 'the level is none' }],
  },
};
/** The same, by an annotation that the namespace does not have any more. */
const BY_ANNOTATION = {
  ...BY_OBJECT,
  parameters: {
    ...BY_OBJECT.parameters,
    from: { namespace: { annotations: ['example.com/level'] } },
    settingsExpression:
      "{'variables': [{'name': 'level', 'expression': \"'\" + params.annotations['example.com/level'] + \"'\"}]}",
  },
};

describe('a namespace that is deleted', { skip: skipWithoutCluster() }, () => {
  let started: StartedPortcullis;
  const kubectl = (args: readonly string[], stdin?: object): Promise<CommandResult> =>
    started.kubectl(args, stdin === undefined ? '' : JSON.stringify(stdin));
  const done = async (args: readonly string[], stdin?: object): Promise<string> => {
    const { code, stdout, stderr } = await kubectl(args, stdin);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  before(async () => {
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
  });
  after(() => started[Symbol.asyncDispose]());

  const cases = { object: BY_OBJECT, annotation: BY_ANNOTATION, 'param-ref': BY_PARAM_REF };
  for (const [name, spec] of Object.entries(cases)) {
    it(`goes away with its parameters (${name}), and keeps what it protects until then`, async () => {
      const namespace = `tenant-${name}`;
      const inside = (...args: readonly string[]): string[] => ['-n', namespace, ...args];
      const release = (): Promise<CommandResult> => kubectl(inside('patch', 'secret', 'kept', ...RELEASE));
      const metadata = { name: namespace, annotations: { 'example.com/level': 'some' } };
      await done(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata });
      await done(inside('create', 'configmap', 'level', '--from-literal=level=some'));
      await done(['apply', '-f', '-'], {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        metadata: { name },
        spec: {
          module: 'builtin:cel',
          mutating: false,
          rules: RULES,
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          ...spec,
        },
      });
      await done(['wait', `cap/${name}`, '--for=condition=Ready', '--timeout=60s']);
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'kept', namespace, finalizers: [FINALIZER] },
      };
      await done(['apply', '-f', '-'], secret);

      // While the namespace lives, nobody gets rid of the finalizer by removing the parameters.
      await done(inside('delete', 'configmap', 'level'));
      await done(['annotate', 'namespace', namespace, 'example.com/level-']);
      await eventually(async () => {
        const { code, stderr } = await kubectl(inside('delete', 'secret', 'kept', '--wait=false', '--dry-run=server'));
        assert.match(stderr, /there are no parameters|no params found/);
        assert.equal(code, 1);
      });
      assert.match((await release()).stderr, /there are no parameters|no params found/);

      await done(['delete', 'namespace', namespace, '--wait=false']);
      const labelled = await kubectl(inside('label', 'secret', 'kept', 'a=b'));
      assert.match(labelled.stderr, /there are no parameters|no params found/);
      // Policy servers read the namespace within seconds.
      await eventually(async () => assert.equal((await release()).code, 0), { timeoutMs: 30_000 });
      await done(['wait', `namespace/${namespace}`, '--for=delete', '--timeout=60s']);
      await done(['delete', 'cap', name]);
    });
  }
});
