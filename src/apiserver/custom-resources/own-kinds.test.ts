import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import { ALL_KINDS, apiVersionOf, customResourceDefinition, isJsonObject, OWN_KINDS } from '../../resources/index.ts';
import type {
  AdmissionPolicy,
  ClusterAdmissionPolicy,
  FieldError,
  KubernetesObject,
  MutableObject,
} from '../../resources/index.ts';
import { metadataErrors, ObjectSchema } from '../../resources/validation/index.ts';
import { customResourceErrors } from './custom-resource-validation.ts';
import { applyCustomResourceDefaults, definitionsOfCustomResource } from './custom-resource.ts';

const SCHEMAS = new Map(ALL_KINDS.map((kind) => [kind.kind, { kind, schema: new ObjectSchema(kind.schema()) }]));

function judge(given: object, old?: object): { readonly object: KubernetesObject; readonly errors: readonly string[] } {
  const object = structuredClone(given) as MutableObject & KubernetesObject;
  const found = SCHEMAS.get(object.kind);
  assert.ok(found !== undefined, `${object.kind} is a kind of our own`);
  const before = old === undefined ? undefined : judge(old).object;
  found.schema.applyDefaults(object);
  const unknown = found.schema.unknownFields(object).map((field) => `unknown field "${field}"`);
  const errors: FieldError[] = [...metadataErrors(object, found.kind), ...found.schema.validate(object, before)];
  return { object, errors: [...unknown, ...errors.map(({ field, message }) => `${field}: ${message}`)] };
}

const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

const clusterPolicy = (spec: object = {}): object => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'a' },
  spec: { module: 'builtin:pod-security', mutating: false, rules, ...spec },
});

const policy = (rule: object): object => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'AdmissionPolicy',
  metadata: { name: 'a', namespace: 'b' },
  spec: { module: 'builtin:pod-security', mutating: false, rules: [{ ...rules[0], ...rule }] },
});

const group = (spec: object = {}): object => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicyGroup',
  metadata: { name: 'a' },
  spec: { expression: 'a()', message: 'no', policies: { a: { module: 'builtin:cel' } }, rules, ...spec },
});

describe('own kinds', () => {
  for (const kind of ALL_KINDS) {
    it(`${kind.kind} is a CustomResourceDefinition that API servers take`, () => {
      const crd = structuredClone(customResourceDefinition(kind)) as KubernetesObject & MutableObject;
      applyCustomResourceDefaults(crd);
      assert.deepEqual(customResourceErrors(crd), []);
    });

    it(`the example of ${kind.kind} is right`, () => {
      const example = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...kind.declaration.example };
      assert.deepEqual(judge(example).errors, []);
    });
  }

  it('have the names that people know', () => {
    const names = OWN_KINDS.map(({ resource, declaration }) => `${resource} ${declaration.shortNames.join()}`);
    assert.deepEqual(names.slice(0, 5), [
      'clusteradmissionpolicies cap',
      'admissionpolicies admpol',
      'clusteradmissionpolicygroups capg',
      'admissionpolicygroups apg',
      'policyservers polsrv',
    ]);
  });

  it('take the manifests of the examples', () => {
    const files = globSync('examples/*/policy.yaml');
    const objects = files.flatMap((file) => loadAll(readFileSync(file, 'utf8')));
    const ours = objects.filter(
      (object) => isJsonObject(object) && OWN_KINDS.some(({ kind }) => kind === object['kind']),
    );
    for (const object of ours) {
      assert.deepEqual(judge(object as object).errors, [], JSON.stringify(object));
    }
    assert.ok(files.length > 5);
  });

  it('have observedGeneration -1 until a controller has seen them, if a controller reconciles their kind', () => {
    for (const kind of ALL_KINDS) {
      const example = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...kind.declaration.example };
      const { status } = judge(example).object as { status?: unknown };
      const isReconciled = !['PolicyRevision', 'PolicyServerReplica', 'ControllerReplica'].includes(kind.kind);
      assert.deepEqual(status, isReconciled ? { observedGeneration: -1 } : undefined, kind.kind);
    }
  });

  it('show policies with what matters first', () => {
    const [definition] = definitionsOfCustomResource(customResourceDefinition(OWN_KINDS[0] ?? assert.fail()));
    const { printer } = definition ?? assert.fail();
    const narrow = printer.columns.filter(({ priority = 0 }) => priority === 0).map(({ name }) => name);
    assert.deepEqual(narrow, [
      'Name',
      'Mode',
      'Phase',
      'Enforced',
      'Desired',
      'Serving',
      'Ready',
      'Findings',
      'Reason',
      'Age',
    ]);
    const { object } = judge({
      ...clusterPolicy(),
      metadata: {
        name: 'a',
        creationTimestamp: '2026-01-01T00:00:00Z',
        annotations: { 'io.kubewarden.policy.severity': 'high' },
      },
      status: { phase: 'Active', desiredRevision: 3, conditions: [{ type: 'Enforced', status: 'True' }] },
    });
    const cells = printer.cells(object, Date.parse('2026-01-01T01:00:00Z'));
    assert.deepEqual(cells.slice(0, 10), ['a', 'protect', 'Active', 'True', 3, null, null, null, null, '60m']);
    assert.ok(cells.includes('high'));
  });
});

describe('the schema of policies', () => {
  it('fills in the defaults of Kubewarden', () => {
    const { spec } = judge(clusterPolicy()).object as ClusterAdmissionPolicy;
    assert.deepEqual(
      [spec.policyServer, spec.mode, spec.backgroundAudit, spec.timeoutSeconds, spec.failurePolicy],
      ['default', 'protect', true, 10, undefined],
    );
  });

  it('keeps settings as they are', () => {
    const settings = { any: { thing: [1, null] } };
    const { object, errors } = judge(clusterPolicy({ settings }));
    assert.deepEqual([(object as AdmissionPolicy).spec.settings, errors], [settings, []]);
    assert.deepEqual(judge(clusterPolicy({ settings: null })).errors, []);
  });

  it('reports mistakes', () => {
    assert.deepEqual(judge(clusterPolicy({ timeoutEvalSeconds: 20 })).errors, [
      'spec.timeoutEvalSeconds: Invalid value: "object": timeoutEvalSeconds cannot be greater than timeoutSeconds',
    ]);
    assert.deepEqual(judge(clusterPolicy({ timeoutSeconds: 31, rules: [] })).errors.slice(0, 2), [
      'spec.rules: Invalid value: 0: spec.rules in body should have at least 1 items',
      'spec.timeoutSeconds: Invalid value: 31: spec.timeoutSeconds in body should be less than or equal to 30',
    ]);
    assert.match(judge(clusterPolicy({ mode: 'off' })).errors.join(), /supported values: "protect", "monitor"/u);
  });

  it('forbids what cannot change', () => {
    assert.deepEqual(judge(clusterPolicy({ policyServer: 'b' }), clusterPolicy({ policyServer: 'a' })).errors, [
      'spec.policyServer: Invalid value: "string": the field is immutable',
    ]);
  });

  it('keeps policies of namespaces within them', () => {
    assert.deepEqual(judge(policy({})).errors, []);
    for (const [rule, field] of [
      [{ apiGroups: ['*'] }, 'apiGroups'],
      [{ resources: ['*'] }, 'resources'],
      [{ resources: ['*/*'] }, 'resources'],
      [{ apiGroups: ['wgpolicyk8s.io'], resources: ['policyreports'] }, 'resources'],
      [{ scope: 'Cluster' }, 'scope'],
    ] as const) {
      assert.match(judge(policy(rule)).errors.join(), new RegExp(`^spec\\.rules\\[0\\]\\.${field}: Forbidden: `, 'u'));
    }
  });

  it('checks names and times of the members of groups', () => {
    const member = { module: 'builtin:cel' };
    assert.deepEqual(judge(group()).errors, []);
    assert.match(judge(group({ policies: { 'a-b': member } })).errors.join(), /must be identifiers/u);
    assert.match(judge(group({ policies: { package: member } })).errors.join(), /reserved words/u);
    const slow = { ...member, timeoutEvalSeconds: 6 };
    assert.match(judge(group({ policies: { a: slow, b: slow } })).errors.join(), /all members together/u);
    assert.deepEqual(judge(group({ timeoutSeconds: 12, policies: { a: slow, b: slow } })).errors, []);
  });
});
