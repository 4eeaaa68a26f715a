import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../values/json-text.ts';
import { parsePolicies } from '../definition/policies-file.ts';
import { checkManifestTypes, checkPolicyTypes, describeTypeWarning, offlineKinds } from './index.ts';
import { subjectOfDefinition } from './subject/index.ts';

const KINDS = offlineKinds();

type Rule = Parameters<typeof checkPolicyTypes>[0]['rules'][number];

const rule = (apiGroups: string, resources: string, apiVersions = 'v1'): Rule => ({
  apiGroups: [apiGroups],
  apiVersions: [apiVersions],
  resources: resources.split(' '),
});
const PODS = [rule('', 'pods')];
const DEPLOYMENTS = [rule('apps', 'deployments')];
const WORKLOADS = [
  rule('', 'pods pods/ephemeralcontainers'),
  rule('apps', 'deployments replicasets daemonsets statefulsets'),
  rule('batch', 'jobs cronjobs'),
];

interface Checked {
  readonly variables?: Readonly<Record<string, string>>;
  readonly conditions?: readonly string[];
  readonly settings?: JsonObject;
}

function warningsOf(
  rules: readonly Rule[],
  expressions: readonly string[],
  { variables = {}, conditions = [], settings = {} }: Checked = {},
  kinds = KINDS,
): readonly string[] {
  const { warnings } = checkPolicyTypes(
    {
      rules,
      conditions: conditions.map((expression) => ({ expression })),
      uses: [
        {
          field: 'spec.settings',
          settings: {
            variables: Object.entries(variables).map(([name, expression]) => ({ name, expression })),
            validations: expressions.map((expression) => ({ expression })),
            ...settings,
          },
        },
      ],
    },
    kinds,
  );
  return warnings.map((warning) => `${warning.field}: ${describeTypeWarning(warning)}`);
}

const FIRST = 'spec.settings.validations[0].expression';

describe('types of expressions', () => {
  it('are those of the kind that the rules match', () => {
    assert.deepEqual(warningsOf(PODS, ['object.spec.volumes.all(v, !has(v.hostpath))']), [
      `${FIRST}: undefined field 'hostpath' at 1:32, in v1 Pod: did you mean 'hostPath'?`,
    ]);
    assert.deepEqual(warningsOf(DEPLOYMENTS, ['object.spec.replicas > "5"']).length, 1);
    assert.deepEqual(warningsOf(DEPLOYMENTS, ['oldObject.spec.replica > 5 || request.object.spec.replicaz < 1']), [
      `${FIRST}: undefined field 'replica' at 1:15, in apps/v1 Deployment: did you mean 'replicas'?`,
      `${FIRST}: undefined field 'replicaz' at 1:50, in apps/v1 Deployment: did you mean 'replicas'?`,
    ]);
  });

  it('refuse an index into an object with known fields, as API servers do, and say what to write', () => {
    const refused = (expression: string): readonly string[] =>
      warningsOf(PODS, [expression]).map((text) => text.slice(`${FIRST}: found no matching overload for `.length));
    assert.deepEqual(refused('object.spec["hostNetwork"] == true'), [
      "'_[_]' applied to '(PodSpec, string)' at 1:12, in v1 Pod: select the field with .hostNetwork",
    ]);
    assert.deepEqual(refused('object["spec"].hostNetwork || object.spec[?"hostNetwok"].orValue(false)'), [
      "'_[_]' applied to '(Pod, string)' at 1:7, in v1 Pod: select the field with .spec",
      "'_[?_]' applied to '(PodSpec, string)' at 1:42, in v1 Pod: there is no field 'hostNetwok': did you mean 'hostNetwork'?",
    ]);
    assert.match(
      refused('object.spec[object.metadata.name] == 1')[0] ?? '',
      /^'_\[_]' applied to '\(PodSpec, string\)'/,
    );
    assert.deepEqual(refused('object.metadata.labels["a"] == "b" && object.spec.containers[0].name == "a"'), []);
  });

  it('are kept by variables', () => {
    const variables = { spec: 'object.spec', all: 'variables.spec.containers + variables.spec.initContainers' };
    assert.deepEqual(warningsOf(PODS, ['variables.all.all(c, c.imag != "")'], { variables }), [
      `${FIRST}: undefined field 'imag' at 1:23, in v1 Pod: did you mean 'image'?`,
    ]);
  });

  it('are checked in every expression of the settings, and in conditions of the webhook', () => {
    const wrong = 'object.metadata.nam';
    const settings = {
      matchConditions: [{ name: 'x', expression: `${wrong} == "a"` }],
      validations: [{ expression: 'true', messageExpression: wrong }],
      auditAnnotations: [{ key: 'a', valueExpression: wrong }],
    };
    assert.deepEqual(
      warningsOf(PODS, [], { conditions: [`${wrong} != "a"`], settings, variables: { v: wrong } }).map(
        (text) => text.split(': ')[0],
      ),
      [
        'spec.matchConditions[0].expression',
        'spec.settings.matchConditions[0].expression',
        'spec.settings.variables[0].expression',
        'spec.settings.validations[0].messageExpression',
        'spec.settings.auditAnnotations[0].valueExpression',
      ],
    );
  });

  it('are those of the patched object in mutations', () => {
    const expression =
      'Object{spec: Object.spec{containers: [Object.spec.containers{imagePullPolicy: "Always", imag: "x"}]}}';
    const settings = {
      validations: undefined,
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    };
    const { validations: _, ...mutating } = settings;
    const { warnings } = checkPolicyTypes(
      { rules: PODS, conditions: [], uses: [{ field: 'spec.settings', settings: mutating }] },
      KINDS,
    );
    assert.deepEqual(warnings.map(describeTypeWarning), [
      "undefined field 'imag' at 1:93, in v1 Pod: did you mean 'image'?",
    ]);
  });

  it('are those of parameters', () => {
    const settings = {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      paramRef: { name: 'a', parameterNotFoundAction: 'Deny' },
    };
    assert.deepEqual(warningsOf(PODS, ['params.dat.limit == "1"'], { settings }), [
      `${FIRST}: undefined field 'dat' at 1:7, in v1 Pod: did you mean 'data'?`,
    ]);
    assert.deepEqual(warningsOf(PODS, ['params.data.limit == "1"'], { settings }), []);
  });

  it('are those of parameters that become settings', () => {
    const warnings = (settingsExpression: string, kind = 'ConfigMap'): readonly string[] => {
      const from = { resource: { apiVersion: 'v1', kind, name: 'limits' } };
      const entry = { module: 'limits.wasm', parameters: { from, overridable: ['limit'], settingsExpression } };
      const { policies } = parsePolicies(JSON.stringify({ limits: entry }), 'policies.yml');
      const [definition = assert.fail()] = policies;
      return checkPolicyTypes(subjectOfDefinition(definition, []), KINDS).warnings.map(
        (one) => `${one.field}: ${describeTypeWarning(one)}`,
      );
    };
    assert.deepEqual(warnings("{'limit': params.dat.limit}"), [
      "parameters.settingsExpression: undefined field 'dat' at 1:17, in v1 ConfigMap: did you mean 'data'?",
    ]);
    for (const right of [
      "{'limit': params.data.limit}",
      "{?'limit': params.?data.?limit}",
      "{'limit': [params.data['a'], 1]}",
      'params.data',
    ]) {
      assert.deepEqual(warnings(right), [], right);
    }
    assert.deepEqual(warnings("{'limit': params.anything}", 'Unknown'), [], 'a kind without a schema');
    assert.deepEqual(warnings("{'limit': request.name}"), [], 'does not compile, which is reported elsewhere');
  });

  it('are those of custom kinds among manifests', () => {
    const definition: JsonObject = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [
          {
            name: 'v1',
            served: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: { type: 'object', properties: { size: { type: 'integer' } } },
                  status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                },
              },
            },
          },
        ],
      },
    };
    const kinds = offlineKinds([definition]);
    const rules = [rule('example.com', 'widgets', '*')];
    const check = (expression: string): readonly string[] => warningsOf(rules, [expression], {}, kinds);
    assert.deepEqual(check('object.spec.size > 1 && object.status.any.field == 1 && object.metadata.name != ""'), []);
    assert.deepEqual(check('object.spec.siz > 1'), [
      `${FIRST}: undefined field 'siz' at 1:12, in example.com/v1 Widget: did you mean 'size'?`,
    ]);
  });

  it('of a ValidatingAdmissionPolicy are checked alike', () => {
    const policy: JsonObject = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'a' },
      spec: {
        matchConstraints: { resourceRules: [{ ...DEPLOYMENTS[0], operations: ['CREATE'] }] as unknown as JsonObject[] },
        validations: [{ expression: 'object.replicas > 1' }],
      },
    };
    assert.deepEqual(
      checkManifestTypes(policy, KINDS).warnings.map(({ field, message, line, column }) => [
        field,
        message,
        line,
        column,
      ]),
      [['spec.validations[0].expression', "undefined field 'replicas'", 1, 7]],
    );
  });

  it('are not judged for wildcards, unknown kinds, and expressions that do not compile', () => {
    const wrong = ['object.spec.nothing == 1'];
    for (const rules of [[rule('*', '*')], [rule('', '*')], [rule('example.com', 'things')], [rule('', 'pods/exec')]]) {
      assert.deepEqual(warningsOf(rules, wrong), []);
    }
    assert.deepEqual(warningsOf(PODS, ['object.spec.', 'unknown(object)', 'object.spec.nothing +']), []);
  });

  it('are checked for ten kinds at most, with as many warnings as anybody corrects at once', () => {
    const rules = [
      rule('', 'pods services secrets configmaps nodes namespaces endpoints'),
      rule('apps', 'deployments replicasets daemonsets statefulsets'),
      rule('batch', 'jobs cronjobs'),
    ];
    const many = Array.from({ length: 60 }, (_, index) => `object.metadata.x${index} == 1`);
    const { warnings, kinds } = checkPolicyTypes(
      { rules, conditions: many.map((expression) => ({ expression })), uses: [] },
      KINDS,
    );
    assert.equal(kinds.length, 10);
    assert.equal(warnings.length, 20);
  });
});

describe('expressions for several kinds', () => {
  const podSpec =
    "object.kind == 'Pod' ? object.spec : (object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template.spec : object.spec.template.spec)";

  it('have no warnings for parts that are not evaluated for a kind', () => {
    const valid = [
      "object.kind != 'Pod' || object.spec.containers.all(c, c.image != '')",
      "['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet', 'Job'].all(kind, object.kind != kind) || object.spec.template.spec.containers.all(c, c.image != '')",
      "!(object.kind in ['CronJob']) || object.spec.jobTemplate.spec.template.spec.containers.size() > 0",
      'has(object.spec.template) ? object.spec.template.spec.hostNetwork : true',
      'object.spec.?template.?spec.?hostNetwork.orValue(false)',
      "request.kind.kind == 'Pod' ? object.spec.hostNetwork : true",
      "request.resource.resource != 'jobs' || object.spec.completions > 1",
      "object.kind == 'Pod' || (has(object.spec.template) && object.spec.template.spec.hostNetwork)",
      'variables.isPod ? object.spec.containers.size() > 0 : true',
      'variables.podSpec.containers.all(c, has(c.image)) && variables.podSpec.?volumes.orValue([]).all(v, !has(v.hostPath))',
    ];
    const variables = { isPod: "object.kind == 'Pod'", podSpec };
    assert.deepEqual(warningsOf(WORKLOADS, valid, { variables }), []);
  });

  it('have warnings for what no kind has', () => {
    const wrong = 'variables.podSpec.?volumes.orValue([]).all(v, !has(v.hostpath))';
    assert.deepEqual(warningsOf([...PODS, ...DEPLOYMENTS], [wrong], { variables: { podSpec } }), [
      `${FIRST}: undefined field 'hostpath' at 1:51, in apps/v1 Deployment, v1 Pod: did you mean 'hostPath'?`,
    ]);
  });

  it('have warnings for a part that is evaluated for the kind without the field', () => {
    const forgotten = "object.kind != 'CronJob' || !has(object.spec.jobTemplate.spec.volumes)";
    assert.match(
      warningsOf(WORKLOADS, [forgotten])[0] ?? '',
      /undefined field 'volumes' at 1:33, in batch\/v1 CronJob/u,
    );
    assert.match(
      warningsOf([rule('apps', 'deployments daemonsets')], ['object.spec.replicas < 5'])[0] ?? '',
      /undefined field 'replicas' at 1:12, in apps\/v1 DaemonSet/u,
    );
  });

  it('may name variables of macros like others', () => {
    const shadowing = '[{"kind": "Job", "a": 1}].all(object, object.kind == "Pod" || object.spec.nothing == 1)';
    assert.deepEqual(warningsOf(WORKLOADS, [shadowing]), []);
    const wrong = '[{"kind": "a"}].all(object, object.kind != "Pod" || request.object.metadata.nam == "a")';
    assert.match(warningsOf(WORKLOADS, [wrong])[0] ?? '', /undefined field 'nam'/u);
  });

  it('have no warnings for parts that are meant for kinds which the rules do not match', () => {
    const library = [
      "object.kind != 'Deployment' || object.spec.template.spec.hostNetwork",
      "object.kind.startsWith('Pod') || object.spec.template.spec.hostNetwork",
    ];
    assert.deepEqual(warningsOf(PODS, library), []);
  });
});

describe('idioms of published policies', () => {
  const idioms: readonly (readonly [rules: readonly Rule[], expressions: readonly string[]])[] = [
    [
      PODS,
      [
        'object.spec.containers.all(c, has(c.resources.limits) && "memory" in c.resources.limits && quantity(c.resources.limits["memory"]).isLessThan(quantity("2Gi")))',
        'object.spec.containers.all(c, c.?securityContext.?privileged.orValue(false) == false)',
        'object.spec.containers.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))',
        'object.spec.containers.all(c, !has(c.livenessProbe.httpGet) || c.livenessProbe.httpGet.port in [8080, "http"])',
        '(has(object.spec.securityContext) ? object.spec.securityContext : {}).?runAsNonRoot.orValue(false)',
        'object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == "Job" && o.controller)',
        'timestamp(object.metadata.creationTimestamp) < timestamp("2030-01-01T00:00:00Z")',
        'oldObject == null || object.spec == oldObject.spec || object.metadata.labels == null',
        'object.metadata.annotations.all(key, !key.contains("seccomp") || object.metadata.annotations[key] in ["a"])',
        'object.spec.containers.map(c, {"name": c.name, "ports": c.?ports.orValue([]).size()}).all(m, m.name != "")',
      ],
    ],
    [
      DEPLOYMENTS,
      [
        'object.spec.replicas <= 5 && double(object.spec.replicas) < 5.5',
        'object.spec.selector.matchLabels.all(k, object.spec.template.metadata.labels[k] == object.spec.selector.matchLabels[k])',
        'object.spec.?strategy.?rollingUpdate.?maxSurge.orValue(1) != "50%"',
      ],
    ],
    [[rule('', 'secrets')], ['object.data.all(k, base64.decode(object.data[k]).size() > 0)']],
    [
      [rule('apiextensions.k8s.io', 'customresourcedefinitions')],
      [
        'object.spec.versions.all(v, v.schema.openAPIV3Schema.properties.all(k, v.schema.openAPIV3Schema.properties[k].type != "x"))',
      ],
    ],
    [
      [rule('networking.k8s.io', 'ingresses')],
      [
        'object.spec.rules.all(r, r.host.endsWith(".x") && r.http.paths.all(p, p.backend.service.port.?number.orValue(80) < 99))',
      ],
    ],
  ];
  for (const [index, [rules, expressions]] of idioms.entries()) {
    it(`have no warnings (${index + 1})`, () => assert.deepEqual(warningsOf(rules, expressions), []));
  }
});
