import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../resources/index.ts';
import { neededRights } from './needed-rights.ts';

const GROUP = 'policy.open-cluster-management.io';
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a', namespace: 'shop' } };

function policyOf(remediationAction: string, template: JsonObject, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { namespace: 'local-cluster', name: 'one' },
    spec: {
      remediationAction,
      ...spec,
      'object-templates': [{ complianceType: 'musthave', objectDefinition: DEPLOYMENT, ...template }],
    },
  };
}

describe('the rights that a ConfigurationPolicy needs', () => {
  for (const [action, template, expected] of [
    ['inform', {}, ['list', 'watch']],
    ['Enforce', {}, ['list', 'watch', 'get shop', 'create shop', 'update shop']],
    ['enforce', { complianceType: 'MustNotHave' }, ['list', 'watch', 'delete shop']],
    [
      'enforce',
      { recreateOption: 'Always' },
      ['list', 'watch', 'get shop', 'create shop', 'update shop', 'delete shop'],
    ],
    [
      'enforce',
      { objectDefinition: { ...DEPLOYMENT, metadata: { namespace: '{{ .ObjectNamespace }}' } } },
      ['list', 'watch', 'get', 'create', 'update'],
    ],
    ['enforce', { objectDefinition: { ...DEPLOYMENT, kind: '{{ "Pod" }}' } }, []],
    ['enforce', { objectDefinition: { kind: 7, metadata: 'x', ['__proto__']: { kind: 'Secret' } } }, []],
  ] as const) {
    it(`${action} ${JSON.stringify(template)}: ${expected.join(', ')}`, () => {
      const { rights } = neededRights(policyOf(action, template));
      assert.deepEqual(
        rights.map(({ verb, namespace }) => (namespace === undefined ? verb : `${verb} ${namespace}`)),
        expected,
      );
    });
  }
});

describe('the rights that a ConfigurationPolicy needs to prune', () => {
  for (const [action, pruneObjectBehavior, expected] of [
    ['enforce', 'None', false],
    ['enforce', 'DeleteIfCreated', true],
    ['enforce', 'DeleteAll', true],
    ['inform', 'DeleteAll', false],
  ] as const) {
    it(`${action} with ${pruneObjectBehavior}: ${expected ? 'delete' : 'none'}`, () => {
      const { rights } = neededRights(policyOf(action, {}, { pruneObjectBehavior }));
      assert.equal(
        rights.some(({ verb }) => verb === 'delete'),
        expected,
      );
    });
  }
});

/** Rights as `verbs kind`, by kind. */
function textsOf({ rights }: ReturnType<typeof neededRights>): readonly string[] {
  const byKind = Map.groupBy(rights, ({ apiVersion, kind }) => `${apiVersion} ${kind}`);
  return [...byKind].map(([kind, of]) => `${kind}: ${[...new Set(of.map(({ verb }) => verb))].join(' ')}`).toSorted();
}

function policy(spec: JsonObject, ...definitions: readonly JsonObject[]): JsonObject {
  const templates = definitions.map((objectDefinition) => ({ objectDefinition }));
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { namespace: 'policies', name: 'p' },
    spec: { 'policy-templates': templates, ...spec },
  };
}

const template = (kind: string, spec: JsonObject = {}, apiVersion = `${GROUP}/v1`): JsonObject => ({
  apiVersion,
  kind,
  metadata: { name: kind.toLowerCase() },
  spec,
});

const raw = (text: string): JsonObject => ({
  ...template('ConfigurationPolicy', { remediationAction: 'enforce', 'object-templates-raw': text }),
});

describe('the rights that a Policy needs', () => {
  it('follow its own remediationAction, but not for templates that only inform', () => {
    const writes = (action: string, own: string): boolean =>
      neededRights(policy({ remediationAction: action }, policyOf(own, {}))).rights.some(
        ({ verb }) => verb === 'create',
      );
    assert.deepEqual(
      [
        writes('enforce', 'inform'),
        writes('inform', 'enforce'),
        writes('', 'enforce'),
        writes('enforce', 'informonly'),
      ],
      [true, false, true, false],
    );
  });

  it('are those of all templates, of dependencies, and of what templates look up', () => {
    const dependency = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', compliance: 'Compliant' };
    const own = { apiVersion: `${GROUP}/v1`, kind: 'Policy', name: 'other', compliance: 'Compliant' };
    const lookups = template('ConfigurationPolicy', {
      remediationAction: 'inform',
      'object-templates': [
        {
          complianceType: 'musthave',
          objectDefinition: {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'a' },
            data: {
              a: '{{ if (lookup "batch/v1" "Job" "a" "b") }}{{ fromSecret "a" "b" "c" }}{{ end }}',
              b: '{{ "x" | fromClusterClaim }}{{ len (getNodesWithExactRoles "infra").items }}',
              c: '{{hub .ManagedClusterLabels.zone hub}}',
            },
          },
        },
      ],
    });
    const needed = neededRights(
      policy(
        { dependencies: [dependency, own] },
        lookups,
        template('CertificatePolicy'),
        template('Rule', {}, 'rules.example.com/v1'),
      ),
    );
    assert.deepEqual(textsOf(needed), [
      'apps/v1 Deployment: list watch',
      'batch/v1 Job: list watch',
      'cluster.open-cluster-management.io/v1 ManagedCluster: list watch',
      'cluster.open-cluster-management.io/v1alpha1 ClusterClaim: list watch',
      'rules.example.com/v1 Rule: list watch create update delete',
      'v1 ConfigMap: list watch',
      'v1 Node: list watch',
      'v1 Secret: list watch',
    ]);
    assert.deepEqual(needed.notes, []);
  });

  it('are none while it is disabled', () => {
    assert.deepEqual(neededRights(policy({ disabled: true }, policyOf('enforce', {}))), { rights: [], notes: [] });
  });

  it('name what cannot be known', () => {
    const notes = (definition: JsonObject): string => neededRights(policy({}, definition)).notes.join('; ');
    const object = (one: JsonObject): JsonObject =>
      template('ConfigurationPolicy', {
        remediationAction: 'enforce',
        'object-templates': [{ complianceType: 'musthave', objectDefinition: one }],
      });
    assert.match(notes(object({ apiVersion: 'v1', kind: '{{ "Pod" }}' })), /a kind is known only once/);
    assert.match(
      notes(object({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '{{ (lookup "v1" .Object.kind "" "a").x }}' } })),
      /computes the kind that it looks up/,
    );
    assert.match(notes(object({ apiVersion: 'v1', kind: 'Pod', a: '{{ if }}' })), /./);
    assert.match(notes(template('OperatorPolicy')), /not supported yet/);
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'a' } };
    assert.match(notes(object(role)), /to write a Role, the account must have all rights that it grants/);
    assert.match(notes(raw('{{ fromConfigMap "a" "b" "c" }}: {')), /object-templates-raw is known only once/);
  });
});

describe('the rights that object-templates-raw needs', () => {
  const item = (kind: string, type = 'musthave'): string =>
    `- complianceType: ${type}\n  objectDefinition:\n    apiVersion: v1\n    kind: ${kind}\n    metadata: {name: '{{ "a" }}'}\n`;
  for (const [what, text, expected] of [
    ['a loop', `{{- range (lookup "v1" "Node" "" "").items }}\n${item('ConfigMap')}{{- end }}`, ['ConfigMap', 'Node']],
    [
      'all branches',
      `{{ if true }}\n${item('Pod')}{{ else if false }}\n${item('Secret')}{{ else }}\n${item('Service')}{{ end }}`,
      ['Pod', 'Secret', 'Service'],
    ],
    [
      'templates of the hub',
      `{{hub if true hub}}\n${item('Pod')}{{hub end hub}}\n{{ with 1 }}\n${item('Service')}{{ end }}`,
      ['Pod', 'Service'],
    ],
    ['values of several lines', `${item('Pod')}    {{ dict "a" 1 | toYaml | nindent 4 }}\n`, ['Pod']],
    ['no kind of a nested object', `${item('Pod')}    roleRef: {kind: ClusterRole}\n`, ['Pod']],
  ] as const) {
    it(`are known: ${what}`, () => {
      const { rights, notes } = neededRights(policy({ remediationAction: 'enforce' }, raw(text)));
      assert.deepEqual([[...new Set(rights.map(({ kind }) => kind))].toSorted(), notes], [expected, []]);
    });
  }

  it('are written as text with disable-templates', () => {
    const annotations = { 'policy.open-cluster-management.io/disable-templates': 'true' };
    const literal = { ...raw(item('ConfigMap')), metadata: { name: 'a', annotations } };
    assert.deepEqual(textsOf(neededRights(literal)), ['v1 ConfigMap: list watch get create update']);
  });
});
