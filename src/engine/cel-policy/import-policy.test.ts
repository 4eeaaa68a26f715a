import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseYaml } from '../../values/yaml/index.ts';
import { valueAt } from '../../values/index.ts';
import type { JsonObject } from '../values/json-text.ts';
import { importPolicies, type ImportedPolicies } from './import-policy.ts';

const EXAMPLE = new URL('../../../examples/replica-limit/validating-admission-policy.yaml', import.meta.url);
const PODS = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] };
const DEPLOYMENTS = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['deployments'] };
const VALIDATIONS = [{ expression: 'object.metadata.name != "web"' }];

function policy(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'one', ...metadata },
    spec: { matchConstraints: { resourceRules: [PODS] }, validations: VALIDATIONS, ...spec },
  };
}

function binding(spec: JsonObject = {}, name = 'bound'): JsonObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: 'one', validationActions: ['Deny'], ...spec },
  };
}

/** The spec of the only policy. */
function specOf({ policies, problems, notes }: ImportedPolicies): JsonObject {
  assert.deepEqual([problems, notes, policies.length], [[], [], 1]);
  return policies[0]?.['spec'] as JsonObject;
}

/** The spec of a policy for these requests. */
function matched(constraints: JsonObject, resources: JsonObject): JsonObject {
  const result = importPolicies([policy({ matchConstraints: constraints }), binding({ matchResources: resources })]);
  const { settings, ...spec } = specOf(result);
  const { validations: _, ...rest } = settings as JsonObject;
  const { module: __, mutating: ___, ...match } = spec;
  return { ...match, ...rest };
}

describe('importPolicies', () => {
  it('converts a policy with its binding', () => {
    const manifests = parseYaml(readFileSync(EXAMPLE, 'utf8')) as JsonObject[];
    const [variables, validations] = ['variables', 'validations'].map((key) => valueAt(manifests[0], 'spec', key));
    assert.deepEqual(importPolicies(manifests), {
      policies: [
        {
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'ClusterAdmissionPolicy',
          metadata: { name: 'replica-limit' },
          spec: {
            module: 'builtin:cel',
            mutating: false,
            rules: [{ ...DEPLOYMENTS, operations: ['CREATE', 'UPDATE'] }],
            settings: { variables, validations },
          },
        },
      ],
      problems: [],
      notes: [],
    });
  });

  it('matches what both the policy and its binding match', () => {
    const labels = { matchLabels: { team: 'shop' } };
    const others = { matchLabels: { team: 'bank', tier: 'gold' } };
    const exists = { matchExpressions: [{ key: 'tier', operator: 'Exists' }] };
    const rules = { resourceRules: [PODS] };
    const named = { ...PODS, resourceNames: ['web'] };
    const cases: readonly (readonly [
      name: string,
      constraints: JsonObject,
      resources: JsonObject,
      match: JsonObject,
    ])[] = [
      ['only rules', rules, {}, { rules: [PODS] }],
      [
        'a scope',
        { resourceRules: [{ ...PODS, scope: 'Namespaced' }] },
        {},
        { rules: [{ ...PODS, scope: 'Namespaced' }] },
      ],
      ['the default scope', { resourceRules: [{ ...PODS, scope: '*' }] }, {}, { rules: [PODS] }],
      ['Exact', { ...rules, matchPolicy: 'Exact' }, {}, { rules: [PODS], matchPolicy: 'Exact' }],
      ['a selector of the binding', rules, { namespaceSelector: labels }, { rules: [PODS], namespaceSelector: labels }],
      [
        'selectors of namespaces of both',
        { ...rules, namespaceSelector: labels },
        { namespaceSelector: others },
        {
          rules: [PODS],
          namespaceSelector: {
            matchLabels: { team: 'shop' },
            matchExpressions: [
              { key: 'team', operator: 'In', values: ['bank'] },
              { key: 'tier', operator: 'In', values: ['gold'] },
            ],
          },
        },
      ],
      [
        'expressions of both',
        { ...rules, namespaceSelector: exists },
        { namespaceSelector: exists },
        {
          rules: [PODS],
          namespaceSelector: { matchExpressions: [...exists.matchExpressions, ...exists.matchExpressions] },
        },
      ],
      ['a selector of objects', rules, { objectSelector: labels }, { rules: [PODS], objectSelector: labels }],
      [
        'selectors of objects of both',
        { ...rules, objectSelector: labels },
        { objectSelector: exists },
        { rules: [PODS], objectSelector: labels, matchConstraints: { objectSelector: exists } },
      ],
      [
        'excluded resources of both',
        { ...rules, excludeResourceRules: [named] },
        { excludeResourceRules: [DEPLOYMENTS] },
        { rules: [PODS], matchConstraints: { excludeResourceRules: [named, DEPLOYMENTS] } },
      ],
      [
        'rules of both',
        rules,
        { resourceRules: [named], matchPolicy: 'Exact' },
        { rules: [PODS], matchConstraints: { matchPolicy: 'Exact', resourceRules: [named] } },
      ],
      [
        'names of objects',
        { resourceRules: [named] },
        {},
        { rules: [PODS], matchConstraints: { resourceRules: [named] } },
      ],
      [
        'names of objects, and rules of the binding',
        { resourceRules: [named], matchPolicy: 'Exact' },
        { resourceRules: [DEPLOYMENTS] },
        { rules: [DEPLOYMENTS], matchConstraints: { matchPolicy: 'Exact', resourceRules: [named] } },
      ],
    ];
    for (const [name, constraints, resources, match] of cases) {
      assert.deepEqual(matched(constraints, resources), match, name);
    }
  });

  it('reports names of objects in both, which one policy cannot express', () => {
    const named = { ...PODS, resourceNames: ['web'] };
    const { policies, problems } = importPolicies([
      policy({ matchConstraints: { resourceRules: [named] } }),
      binding({ matchResources: { resourceRules: [named] } }),
    ]);
    assert.deepEqual(policies, []);
    assert.deepEqual(
      problems.map(({ manifest, field }) => `${manifest} ${field}`),
      ['ValidatingAdmissionPolicy/one spec.matchConstraints.resourceRules'],
    );
  });

  it('keeps failurePolicy for webhooks and for expressions', () => {
    assert.deepEqual(specOf(importPolicies([policy({ failurePolicy: 'Ignore' }), binding()])), {
      module: 'builtin:cel',
      mutating: false,
      rules: [PODS],
      failurePolicy: 'Ignore',
      settings: { failurePolicy: 'Ignore', validations: VALIDATIONS },
    });
    assert.equal(specOf(importPolicies([policy({ failurePolicy: 'Fail' }), binding()]))['failurePolicy'], undefined);
  });

  it('monitors when the binding does not deny, and says what has no counterpart', () => {
    const cases = [
      [['Deny'], undefined, 0],
      [['Deny', 'Audit'], undefined, 1],
      [['Warn'], 'monitor', 1],
      [['Warn', 'Audit'], 'monitor', 2],
    ] as const;
    for (const [actions, mode, notes] of cases) {
      const result = importPolicies([policy({}), binding({ validationActions: [...actions] })]);
      assert.deepEqual(
        [valueAt(result.policies[0], 'spec', 'mode'), result.notes.length],
        [mode, notes],
        actions.join(),
      );
    }
  });

  it('grants what expressions read', () => {
    const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
    const paramRef = { name: 'limits', parameterNotFoundAction: 'Deny' };
    const validations = [{ expression: 'params.data.team == namespaceObject.metadata.name' }];
    const { contextAwareResources, settings } = specOf(
      importPolicies([policy({ paramKind, validations }), binding({ paramRef })]),
    );
    assert.deepEqual(contextAwareResources, [paramKind, { apiVersion: 'v1', kind: 'Namespace' }]);
    assert.deepEqual(settings, { paramKind, validations, paramRef });
  });

  it('makes one policy for each binding', () => {
    const { policies } = importPolicies([policy({}), binding({}, 'first'), binding({}, 'second')]);
    assert.deepEqual(
      policies.map(({ metadata }) => metadata),
      [{ name: 'first' }, { name: 'second' }],
    );
  });

  it('refuses two policies of one name', () => {
    const second = policy({}, { name: 'two' });
    const { problems } = importPolicies([
      policy({}),
      binding({}, 'first'),
      binding({}, 'two'),
      second,
      binding({ policyName: 'two' }, 'third'),
    ]);
    assert.match(problems[0]?.message ?? '', /two policies would be named "two"/);
  });

  it('converts a policy without a binding, and says that it has no effect in an API server', () => {
    const { policies, notes } = importPolicies([policy({})]);
    assert.equal(policies.length, 1);
    assert.match(notes.join(), /^ValidatingAdmissionPolicy\/one: no binding names it/);
  });

  it('notes a binding whose policy is not there, and ignores kinds of other groups', () => {
    const other = { ...policy({ validations: [] }), apiVersion: 'example.com/v1' };
    const { policies, notes } = importPolicies([policy({}), other, binding(), binding({ policyName: 'two' }, 'lost')]);
    assert.deepEqual(valueAt(policies[0], 'spec', 'settings'), { validations: VALIDATIONS });
    assert.deepEqual(notes, ['ValidatingAdmissionPolicyBinding/lost: there is no policy "two"']);
  });

  it('keeps labels and annotations, but not those of kubectl', () => {
    const annotations = { 'example.com/a': 'b', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
    const metadata = { labels: { team: 'shop' }, annotations, resourceVersion: '7', uid: 'x' };
    const { policies } = importPolicies([policy({}, metadata), binding()]);
    assert.deepEqual(policies[0]?.['metadata'], {
      name: 'one',
      labels: { team: 'shop' },
      annotations: { 'example.com/a': 'b' },
    });
  });

  it('converts mutating policies', () => {
    const mutations = [
      {
        patchType: 'ApplyConfiguration',
        applyConfiguration: { expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}' },
      },
    ];
    const manifests = [
      {
        ...policy({}),
        kind: 'MutatingAdmissionPolicy',
        spec: { matchConstraints: { resourceRules: [PODS] }, mutations, reinvocationPolicy: 'Never' },
      },
      { ...binding(), kind: 'MutatingAdmissionPolicyBinding', spec: { policyName: 'one' } },
    ];
    assert.deepEqual(specOf(importPolicies(manifests)), {
      module: 'builtin:cel',
      mutating: true,
      rules: [PODS],
      settings: { mutations, reinvocationPolicy: 'Never' },
    });
  });

  it('names another module', () => {
    const module = 'registry://registry.example.com/policies/cel-policy:v1.0.0';
    assert.equal(specOf(importPolicies([policy({}), binding()], { module }))['module'], module);
  });

  it('reports what an API server would reject', () => {
    const { policies, problems } = importPolicies([policy({ validations: [{ expression: 'nothing' }] }), binding()]);
    assert.deepEqual(policies, []);
    assert.equal(problems[0]?.manifest, 'ValidatingAdmissionPolicy/one');
    assert.match(problems[0]?.message ?? '', /undeclared reference to 'nothing'/);
  });

  it('survives hostile manifests', () => {
    const hostile: JsonObject[] = [
      {},
      { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy' },
      { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', metadata: [], spec: 'x' },
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        spec: { matchResources: 7 },
      },
      { apiVersion: 'admissionregistration.k8s.io/v1', kind: '__proto__' },
      policy({ matchConstraints: { resourceRules: 'pods' } }),
      policy(JSON.parse('{"matchConstraints": {"resourceRules": [null], "__proto__": {}}}') as JsonObject),
    ];
    for (const manifest of hostile) {
      assert.deepEqual(importPolicies([manifest]).policies, [], JSON.stringify(manifest));
    }
  });
});
