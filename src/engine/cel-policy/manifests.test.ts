import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EngineError } from '../values/errors.ts';
import type { JsonObject } from '../values/json-text.ts';
import { podReview } from '../testing/reviews.ts';
import { admissionRequest, evaluateManifests, exportPolicy, loadManifests, manifestProblemText } from './index.ts';
import type { ManifestVerdict } from './index.ts';

const PODS: JsonObject = {
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
};
const API_VERSION = 'admissionregistration.k8s.io/v1';

function policy(name: string, spec: JsonObject, kind = 'ValidatingAdmissionPolicy'): JsonObject {
  return { apiVersion: API_VERSION, kind, metadata: { name }, spec: { matchConstraints: PODS, ...spec } };
}

function binding(name: string, policyName: string, spec: JsonObject = {}): JsonObject {
  const actions = { validationActions: ['Deny'] };
  const kind = 'ValidatingAdmissionPolicyBinding';
  return { apiVersion: API_VERSION, kind, metadata: { name }, spec: { policyName, ...actions, ...spec } };
}

function mutatingBinding(policyName: string): JsonObject {
  const kind = 'MutatingAdmissionPolicyBinding';
  return { apiVersion: API_VERSION, kind, metadata: { name: policyName }, spec: { policyName } };
}

function evaluate(documents: readonly JsonObject[], request: JsonObject = {}, kubernetesVersion = 37): ManifestVerdict {
  const loaded = loadManifests(documents, { kubernetesVersion });
  return evaluateManifests(loaded, admissionRequest(podReview(request).request as JsonObject));
}

const ALWAYS = { validations: [{ expression: 'false', message: 'no' }] };

describe('manifests with a missing choice', () => {
  const paramRef = { name: 'limits' };
  const cases: readonly (readonly [document: JsonObject, message: string])[] = [
    [
      binding('b', 'p', { paramRef }),
      'spec.paramRef.parameterNotFoundAction: Required value: expected one of "Deny", "Allow"',
    ],
    [
      binding('b', 'p', { validationActions: [] }),
      'spec.validationActions: Required value: at least one validation action is required: expected one of "Audit", "Deny", "Warn"',
    ],
    [
      policy('p', { reinvocationPolicy: 'Never', mutations: [{}] }, 'MutatingAdmissionPolicy'),
      'spec.mutations[0].patchType: Required value: expected one of "ApplyConfiguration", "JSONPatch"',
    ],
  ];
  for (const [document, message] of cases) {
    it(`are told the choices: ${message}`, () => {
      const { problems } = loadManifests([document]);
      assert.ok(
        problems.map(({ field, message: text }) => `${field}: ${text}`).includes(message),
        JSON.stringify(problems),
      );
    });
  }
});

describe('evaluateManifests', () => {
  it('gives the verdict of an API server', () => {
    const verdict = evaluate([policy('p', ALWAYS), binding('b', 'p')]);
    assert.deepEqual(verdict, {
      allowed: false,
      message: `pods "nginx" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
      reason: 'Invalid',
      code: 422,
      causes: [`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`],
      warnings: [],
      messageProblems: [],
      auditAnnotations: {},
      evaluated: ['p/b'],
    });
  });

  it('warns and annotates for bindings that do not deny', () => {
    const note = { auditAnnotations: [{ key: 'k', valueExpression: 'string(object.metadata.name)' }] };
    const two = { ...note, validations: [{ expression: 'false', message: 'a<b' }, { expression: '1 == 2' }] };
    const documents = [policy('p', two), binding('b', 'p', { validationActions: ['Warn', 'Audit'] })];
    const failures = [
      { message: 'a<b', policy: 'p', binding: 'b', expressionIndex: 0, validationActions: ['Warn', 'Audit'] },
      {
        message: 'failed expression: 1 == 2',
        policy: 'p',
        binding: 'b',
        expressionIndex: 1,
        validationActions: ['Warn', 'Audit'],
      },
    ];
    const verdict = evaluate(documents);
    assert.equal(verdict.allowed, true);
    assert.deepEqual(verdict.warnings, [
      "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a<b",
      "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: 1 == 2",
    ]);
    const { 'validation.policy.admission.k8s.io/validation_failure': noted = '', ...others } = verdict.auditAnnotations;
    assert.deepEqual(others, { 'p/k': 'nginx' });
    assert.deepEqual(JSON.parse(noted), failures);
    assert.ok(noted.includes(String.raw`a\u003cb`), 'as Go writes it');
    const older = evaluate(documents, {}, 34).auditAnnotations['validation.policy.admission.k8s.io/validation_failure'];
    assert.deepEqual(JSON.parse(older ?? ''), failures.slice(0, 1));
  });

  it('finds parameters, with the scope of their CustomResourceDefinition', () => {
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      spec: { group: 'example.test', scope: 'Cluster', names: { kind: 'Limit' } },
    };
    const limit = { apiVersion: 'example.test/v1', kind: 'Limit', metadata: { name: 'l' }, spec: { most: 0 } };
    const spec = {
      paramKind: { apiVersion: 'example.test/v1', kind: 'Limit' },
      validations: [{ expression: 'object.spec.containers.size() <= params.spec.most' }],
    };
    const bound = binding('b', 'p', { paramRef: { name: 'l', parameterNotFoundAction: 'Deny' } });
    assert.match(String(evaluate([policy('p', spec), bound, definition, limit]).message), /failed expression/);
    assert.match(
      String(evaluate([policy('p', spec), bound, definition]).message),
      /no params found for policy binding/,
    );
  });

  it('finds namespaces among the manifests', () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels: { team: 'a' } } };
    const selector = { namespaceSelector: { matchLabels: { team: 'b' } } };
    const documents = [policy('p', ALWAYS), binding('b', 'p', { matchResources: selector })];
    assert.equal(evaluate([...documents, namespace]).allowed, true);
    assert.match(String(evaluate(documents).message), /failed to configure binding: namespaces "default" not found/);
    const looks = policy('q', { validations: [{ expression: "namespaceObject.metadata.labels.team == 'b'" }] });
    assert.equal(evaluate([looks, binding('c', 'q'), namespace]).allowed, false);
    assert.throws(() => evaluate([looks, binding('c', 'q')]), /namespaces "default" not found: add the manifest/);
  });

  it('mutates before it validates, and again with reinvocationPolicy IfNeeded', () => {
    const expression =
      "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'n': object.metadata.?labels.?n.orValue('') + '+'}}]";
    const mutation = { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] };
    const kind = 'MutatingAdmissionPolicy';
    const validating = [
      policy('v', {
        validations: [
          { expression: "object.metadata.labels.n == '+'", messageExpression: 'string(object.metadata.labels.n)' },
        ],
      }),
      binding('v', 'v'),
    ];
    const once = policy('m', { ...mutation, reinvocationPolicy: 'Never' }, kind);
    const verdict = evaluate([...validating, once, mutatingBinding('m')]);
    assert.equal(verdict.allowed, true);
    assert.deepEqual((verdict.patchedObject as JsonObject).metadata, { name: 'nginx', labels: { n: '+' } });
    const twice = policy('m', { ...mutation, reinvocationPolicy: 'IfNeeded' }, kind);
    assert.match(String(evaluate([...validating, twice, mutatingBinding('m')]).message), /denied request: \+\+$/);
  });

  it('names the manifest that is wrong, and evaluates none', () => {
    const loaded = loadManifests([
      policy('p', { validations: [{ expression: 'nope' }] }),
      { ...binding('b', 'p'), spec: { policyname: 'p' } },
      'text',
      policy('lonely', ALWAYS),
      binding('stray', 'gone'),
    ]);
    const texts = loaded.problems.map(manifestProblemText).join('\n');
    assert.match(texts, /ValidatingAdmissionPolicy\/p: spec\.validations\[0\]\.expression: Invalid value: "nope"/);
    assert.match(
      texts,
      /ValidatingAdmissionPolicyBinding\/b: spec\.policyname: unknown key "policyname": did you mean "policyName"\?/,
    );
    assert.match(texts, /document 3: expected a mapping/);
    assert.equal(loaded.problems[0]?.position?.line, 1);
    assert.ok(loaded.notes.some((note) => note.includes('"lonely" has no effect: no binding names it')));
    assert.ok(
      loaded.notes.some((note) => note.includes('"stray" has no effect: there is no validating policy "gone"')),
    );
    const request = admissionRequest(podReview().request as JsonObject);
    assert.throws(() => evaluateManifests(loaded, request), EngineError);
  });

  it('evaluates neither for policies nor for reviews, but for webhook configurations', () => {
    const all = { resourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }] };
    const documents = [policy('p', { ...ALWAYS, matchConstraints: all }), binding('b', 'p')];
    const isAllowed = (group: string, kind: string): boolean => {
      const kindId = { group, version: 'v1', kind };
      const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
      const resource = { group, version: 'v1', resource: plural.toLowerCase() };
      const request = { kind: kindId, requestKind: kindId, resource, requestResource: resource };
      return evaluate(documents, request).allowed;
    };
    const own = 'admissionregistration.k8s.io';
    const exempt: readonly (readonly [group: string, kind: string])[] = [
      [own, 'ValidatingAdmissionPolicy'],
      [own, 'MutatingAdmissionPolicyBinding'],
      ['authentication.k8s.io', 'SelfSubjectReview'],
      ['authentication.k8s.io', 'TokenReview'],
      ['authorization.k8s.io', 'LocalSubjectAccessReview'],
      ['authorization.k8s.io', 'SelfSubjectAccessReview'],
      ['authorization.k8s.io', 'SelfSubjectRulesReview'],
      ['authorization.k8s.io', 'SubjectAccessReview'],
    ];
    for (const [group, kind] of exempt) {
      assert.equal(isAllowed(group, kind), true, kind);
    }
    assert.equal(isAllowed(own, 'ValidatingWebhookConfiguration'), false);
    assert.equal(isAllowed(own, 'MutatingWebhookConfiguration'), false);
    assert.equal(isAllowed('example.test', 'TokenReview'), false);
  });

  it('fails when nothing serves the paramKind', () => {
    const spec = { paramKind: { apiVersion: 'example.test/v1', kind: 'Limit' }, validations: [{ expression: 'true' }] };
    const bound = binding('b', 'p', { paramRef: { name: 'l', parameterNotFoundAction: 'Allow' } });
    const message =
      "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.test/v1, Kind=Limit'";
    assert.deepEqual(evaluate([policy('p', spec), bound]).causes, [message]);
    assert.equal(evaluate([policy('p', { ...spec, failurePolicy: 'Ignore' }), bound]).allowed, true);
    const builtin = { ...spec, paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } };
    assert.equal(evaluate([policy('p', builtin), bound]).allowed, true);
  });

  it('checks expressions as new ones, in the language of the version before', () => {
    const spec = { validations: [{ expression: "isIP('1.2.3.4')" }] };
    const problems = (kubernetesVersion: number): number =>
      loadManifests([policy('p', spec)], { kubernetesVersion }).problems.length;
    assert.deepEqual([problems(29), problems(30), problems(31)], [1, 1, 0]);
  });

  it('refuses orValue of a plain value from 1.37 on', () => {
    const documents = [
      policy('p', { validations: [{ expression: "object.kind.orValue('') == 'Pod'" }] }),
      binding('b', 'p'),
    ];
    assert.equal(evaluate(documents, {}, 36).allowed, true);
    assert.match(String(evaluate(documents, {}, 37).message), /no such overload/);
  });
});

describe('exportPolicy', () => {
  it('makes a policy and a binding with the same effect in an API server', () => {
    const settings = { matchConstraints: PODS, ...ALWAYS, variables: [], failurePolicy: 'Ignore' };
    const { manifests, problems } = exportPolicy(settings, { name: 'exported' });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      manifests.map(({ kind }) => kind),
      ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'],
    );
    assert.match(String(evaluate(manifests).message), /'exported' with binding 'exported' denied request: no$/);
  });

  it('reports settings that have no equivalent', () => {
    const settings = {
      paramKind: { APIVersion: 'v1', Kind: 'ConfigMap' },
      paramRef: { Name: 'x', ParameterNotFoundAction: 'Deny' },
      validations: [{ expression: "request.uid != ''", reason: 'Unauthorized', message: '' }],
    };
    const options = { name: 'p', monitors: true, message: 'all', checksPodTemplates: true };
    const { manifests, problems } = exportPolicy(settings, options);
    const texts = problems.map(({ field, message }) => `${field}: ${message}`).join('\n');
    assert.match(texts, /matchConstraints: the settings do not say which resources/);
    assert.match(texts, /validations\[0\]\.reason: API servers do not take the reason Unauthorized/);
    assert.match(texts, /podTemplates: it has no counterpart/);
    assert.match(texts, /spec\.validations\[0\]\.expression: .*undefined field 'uid'/);
    const [exported, bound] = manifests as [JsonObject, JsonObject];
    const { paramKind, validations } = exported.spec as JsonObject;
    assert.deepEqual(paramKind, { apiVersion: 'v1', kind: 'ConfigMap' });
    assert.deepEqual(validations, [{ expression: "request.uid != ''", message: 'all', reason: 'Forbidden' }]);
    assert.deepEqual((bound.spec as JsonObject).paramRef, { name: 'x', parameterNotFoundAction: 'Deny' });
    assert.deepEqual((bound.spec as JsonObject).validationActions, ['Warn', 'Audit']);
    assert.deepEqual(exportPolicy({ validations: 1 }, { name: 'p' }).manifests, []);
  });

  it('exports mutations in the API version of the cluster’s release', () => {
    const jsonPatch = { expression: "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]" };
    const settings = { matchConstraints: PODS, mutations: [{ patchType: 'JSONPatch', jsonPatch }] };
    const newest = exportPolicy(settings, { name: 'p' });
    assert.deepEqual([newest.problems, newest.manifests[0]?.apiVersion], [[], API_VERSION]);
    assert.deepEqual((evaluate(newest.manifests).patchedObject as JsonObject).metadata, {
      name: 'nginx',
      labels: { a: 'b' },
    });
    const older = exportPolicy(settings, { name: 'p', kubernetesVersion: 34 });
    assert.equal(older.manifests[1]?.apiVersion, 'admissionregistration.k8s.io/v1beta1');
    assert.match(String(older.problems[0]?.message), /feature gate MutatingAdmissionPolicy/);
  });
});
