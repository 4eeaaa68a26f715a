import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import {
  CONFIGURATION_POLICIES,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  POLICIES,
  POLICY_SETS,
  type PolicyDependency,
} from '../../../resources/index.ts';
import { SharedCaches } from '../../../runtime/index.ts';
import { DependencyGraphs } from '../../dependencies/dependency-graphs.ts';
import {
  DEFAULT_GOVERNANCE_SETTINGS,
  type GovernanceSettings,
  isGoverned,
} from '../../settings/governance-settings.ts';
import { OwnCluster } from '../../targets/own-cluster.ts';
import { GovernanceReviews } from './governance-reviews.ts';
import { GOVERNANCE_ERRORS, GOVERNANCE_WARNINGS, type WriteFindings } from './write-findings.ts';

const GROUP = 'policy.open-cluster-management.io';

const on = (name: string, more: Partial<PolicyDependency> = {}): PolicyDependency => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Policy',
  name,
  compliance: 'Compliant',
  ...more,
});

const configuration = (name: string, objects: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'ConfigurationPolicy',
  metadata: { name, ...metadata },
  spec: {
    remediationAction: 'inform',
    'object-templates': [
      { complianceType: 'musthave', objectDefinition: { apiVersion: 'v1', kind: 'Pod', ...objects } },
    ],
  },
});

function policy(
  name: string,
  {
    dependencies,
    extra,
    definitions = [configuration(`${name}-config`)],
    metadata = {},
    ...spec
  }: JsonObject & {
    readonly dependencies?: readonly PolicyDependency[];
    readonly extra?: readonly PolicyDependency[];
    readonly definitions?: readonly JsonObject[];
    readonly metadata?: JsonObject;
  } = {},
): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies', ...metadata },
    spec: {
      disabled: false,
      ...(dependencies === undefined ? {} : { dependencies }),
      ...spec,
      'policy-templates': definitions.map((objectDefinition) => ({
        objectDefinition,
        ...(extra === undefined ? {} : { extraDependencies: extra }),
      })),
    },
  } as unknown as JsonObject;
}

function set(name: string, policies: readonly string[], exclusions: readonly string[] = []): JsonObject {
  return {
    apiVersion: `${GROUP}/v1beta1`,
    kind: 'PolicySet',
    metadata: { name, namespace: 'policies' },
    spec: {
      policies: [...policies],
      ...(exclusions.length === 0
        ? {}
        : { exclusions: exclusions.map((policyName) => ({ policyName, clusterNames: ['east'] })) }),
    },
  };
}

const texts = ({ warnings }: WriteFindings): readonly string[] =>
  warnings.map(({ code, field, text }) => `${field}: ${text} [${code}]`);

describe('the rules for governance kinds', () => {
  let cluster: EmbeddedCluster;
  let caches: SharedCaches;
  const stop = new AbortController();
  let running: Promise<void>;

  function reviews(settings: Partial<GovernanceSettings> = {}, isSilent = false): GovernanceReviews {
    const governed = { ...DEFAULT_GOVERNANCE_SETTINGS, ...settings };
    const { clusterName: clusterNamespace, mode } = governed;
    const targets = new OwnCluster(clusterNamespace, mode === 'hub');
    const policies = caches.cache(POLICIES);
    const graphs = new DependencyGraphs({
      policies,
      policySets: caches.cache(POLICY_SETS),
      clusterNamespace,
      rootIn: (policy) => (targets.hasCopies(policy.metadata.namespace ?? '') ? undefined : policy),
      isPlaced: ({ metadata }) => mode === 'standalone' && isGoverned(metadata.namespace ?? '', governed),
    });
    return new GovernanceReviews({ governed, targets, policies, graphs, isSilent: () => isSilent });
  }

  const created = (object: JsonObject, settings?: Partial<GovernanceSettings>): WriteFindings =>
    reviews(settings).review(POLICIES, object, true);

  before(async () => {
    cluster = await EmbeddedCluster.open();
    const definitions = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const namespaces = knownKind('v1', 'Namespace');
    for (const kind of [POLICIES, POLICY_SETS]) {
      await cluster.admin.create(definitions, customResourceDefinition(kind));
    }
    for (const name of ['policies', 'other']) {
      await cluster.admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const stored = [
      policy('operator'),
      policy('cluster', { dependencies: [on('topics')] }),
      policy('topics', { dependencies: [on('users', { namespace: 'other' })] }),
      policy('users', { metadata: { namespace: 'other' }, dependencies: [on('operator', { namespace: 'policies' })] }),
      policy('off', { disabled: true }),
      policy('with.dot'),
      policy('on-base', { dependencies: [on('base', { apiVersion: `${GROUP}/v1beta1`, kind: 'PolicySet' })] }),
      policy('also-on-base', { extra: [on('base', { apiVersion: `${GROUP}/v1beta1`, kind: 'PolicySet' })] }),
      policy('leaf', { dependencies: [on('on-base')] }),
    ];
    for (const object of stored) {
      await cluster.admin.create(POLICIES, object as never);
    }
    await cluster.admin.create(POLICY_SETS, set('all', ['operator', 'cluster']) as never);
    await cluster.admin.create(POLICY_SETS, set('base', ['operator']) as never);
    caches = new SharedCaches({ cluster: cluster.admin, log: pino({ level: 'silent' }) });
    caches.cache(POLICIES);
    caches.cache(POLICY_SETS);
    running = caches.start(stop.signal);
    await caches.ready;
  });
  after(async () => {
    stop.abort();
    await running;
    await cluster.close();
  });

  it('have nothing against a Policy that works', () => {
    const dependencies = [on('operator'), on('all', { apiVersion: `${GROUP}/v1beta1`, kind: 'PolicySet' })];
    assert.deepEqual(created(policy('fine', { dependencies })), { errors: [], warnings: [] });
  });

  it('refuse a new Policy without any remediation, as upstream, and warn of a change to it', () => {
    const { spec: _, ...definition } = configuration('config');
    const object = policy('unset', { definitions: [{ ...definition, spec: { 'object-templates': [] } }] });
    const { errors } = created(object);
    assert.deepEqual(
      errors.map(({ code, field, message }) => `${field}: ${message} [${code}]`),
      [
        'spec.policy-templates[0].objectDefinition.spec.remediationAction: Required value: RemediationAction field of the policy and policy template cannot both be unset [remediation-action]',
      ],
    );
    const changed = reviews().review(POLICIES, object, false);
    assert.deepEqual(changed.errors, []);
    assert.match(texts(changed)[0] ?? '', /\[remediation-action\]$/);
    assert.deepEqual(created(policy('set', { remediationAction: 'inform' })).errors, []);
  });

  it('refuse a name that its copy cannot have', () => {
    const name = 'x'.repeat(250);
    assert.deepEqual(
      created(policy(name)).errors.map(({ code }) => code),
      ['name-too-long'],
    );
    assert.deepEqual(created(policy('x'.repeat(200))).errors, []);
  });

  it('refuse exclusions of a PolicySet that are not of its Policies, or given twice', () => {
    const { errors } = reviews().review(POLICY_SETS, set('s', ['operator'], ['operator', 'none', 'operator']), true);
    assert.deepEqual(
      errors.map(({ field, message }) => `${field}: ${message}`),
      [
        'spec.exclusions[1].policyName: Invalid value: "none": policy in spec.exclusions is not listed in spec.policies',
        'spec.exclusions[2].policyName: Duplicate value: "operator"',
      ],
    );
  });

  const warned: readonly (readonly [what: string, object: JsonObject, texts: readonly string[]])[] = [
    [
      'a Policy that depends on itself',
      policy('self', { dependencies: [on('self')] }),
      ['spec: policy policies/self depends on itself: none of it is ever applied [dependency-cycle]'],
    ],
    [
      'a template that depends on itself',
      policy('own', { extra: [on('own-config', { kind: 'ConfigurationPolicy' })] }),
      ['spec: policy policies/own depends on itself: none of it is ever applied [dependency-cycle]'],
    ],
    [
      'a cycle through stored Policies of several namespaces',
      policy('operator', { dependencies: [on('cluster')] }),
      [
        'spec: dependencies form a cycle: policies/operator → policies/cluster → policies/topics → other/users → policies/operator: none of it is ever applied [dependency-cycle]',
      ],
    ],
    [
      'a dependency that does not exist, with the name that is meant',
      policy('typo', { extra: [on('operator'), on('operatr')] }),
      [
        'spec.policy-templates[0].extraDependencies[1].name: Policy policies.operatr does not exist yet: it is waited for; did you mean operator? [dependency-not-found]',
      ],
    ],
    [
      'a name with a dot, which is read as one with a namespace',
      policy('dotted', { dependencies: [on('with.dot')] }),
      [
        'spec.dependencies[0].name: Policy with.dot does not exist yet: it is waited for; a name with a dot is read as NAMESPACE.NAME: set the namespace policies as well [dependency-not-found]',
      ],
    ],
    [
      'a dependency in another namespace, without the names in it',
      policy('far', { dependencies: [on('user', { namespace: 'other' })] }),
      ['spec.dependencies[0].name: Policy other.user does not exist yet: it is waited for [dependency-not-found]'],
    ],
    [
      'a template that no Policy has',
      policy('lacks', { dependencies: [on('nothing', { kind: 'ConfigurationPolicy' })] }),
      [
        'spec.dependencies[0].name: no policy of this cluster contains ConfigurationPolicy nothing yet: it is waited for [dependency-not-found]',
      ],
    ],
    [
      'a dependency that is disabled',
      policy('waits', { dependencies: [on('off')] }),
      ['spec.dependencies[0].name: Policy policies.off is not placed on this cluster [dependency-not-placed]'],
    ],
    [
      'contradictory dependencies',
      policy('torn', { dependencies: [on('operator')], extra: [on('operator', { compliance: 'NonCompliant' })] }),
      ['spec: dependency on policies.operator has conflicting compliance states [dependency-conflict]'],
    ],
    [
      'dependencies that name nothing',
      policy('unparsable', {
        dependencies: [
          on('operator', { apiVersion: `${GROUP}/v1/policies` }),
          on('b', { kind: 'policy' }),
          { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', compliance: 'Compliant' },
          { apiVersion: 'v1', kind: 'Node', name: 'node-1', compliance: 'Compliant' },
        ],
      }),
      [
        `spec.dependencies[0].apiVersion: expected GROUP/VERSION or VERSION, got "${GROUP}/v1/policies" [dependency]`,
        `spec.dependencies[1].kind: there is no kind "policy" in ${GROUP}: did you mean Policy? [dependency]`,
        'spec.dependencies[2].namespace: a Deployment has a namespace: set it [dependency]',
      ],
    ],
    [
      'templates of one name',
      policy('twice', { definitions: [configuration('config'), configuration('config')] }),
      ['spec.policy-templates: All policy-template names must be unique within a policy [template-name]'],
    ],
    [
      'templates that do not parse, or call what does not exist',
      policy('broken', {
        definitions: [
          configuration('config', {
            a: '{{ fromConfigMap }',
            b: '{{ fromConfigmap "a" "b" "c" }}',
            c: '{{ lookup "v1" "Pod" "" "" }}',
            d: '{{hub env "HOME" hub}}',
          }),
        ],
      }),
      [
        'spec.policy-templates[0].objectDefinition.spec.object-templates[0].objectDefinition.d: not a valid template: line 1: the function env of Open Cluster Management is not supported: it reads the environment of the controller, which is none of the policy’s business [template]',
        'spec.policy-templates[0].objectDefinition.spec.object-templates[0].objectDefinition.a: not a valid template: line 1: unexpected } [template]',
        'spec.policy-templates[0].objectDefinition.spec.object-templates[0].objectDefinition.b: not a valid template: line 1: there is no function fromConfigmap: did you mean fromConfigMap? [template]',
      ],
    ],
    [
      'templates of the hub that act as an account',
      policy('account', {
        hubTemplateOptions: { serviceAccountName: 'admin' },
        definitions: [configuration('config', { a: '{{hub .ManagedClusterName hub}}' })],
      }),
      [
        'spec.policy-templates[0].objectDefinition: spec.hubTemplateOptions.serviceAccountName is not supported: whoever may write the Policy would get the rights of the account. Remove it; templates of the hub then read the namespace of the Policy [hub-template]',
      ],
    ],
    [
      'a Policy in the namespace of the cluster',
      policy('here', { metadata: { namespace: 'local-cluster' } }),
      [
        'metadata.namespace: Policies in the namespace of the cluster are copies: create the Policy in another namespace, or it is not applied [namespace]',
      ],
    ],
    [
      'a namespace whose Policies do not count',
      policy('system', { metadata: { namespace: 'kube-system' } }),
      ['metadata.namespace: Policies in namespace kube-system do not count: see --governance-namespaces [namespace]'],
    ],
  ];
  for (const [what, object, expected] of warned) {
    it(`warn of ${what}`, () => {
      const findings = created(object);
      assert.deepEqual(findings.errors, []);
      assert.deepEqual(texts(findings), expected);
    });
  }

  it('warn of Policies that a set names, and that do not exist', () => {
    const findings = reviews().review(POLICY_SETS, set('s', ['operator', 'clustr', 'none']), true);
    assert.deepEqual(texts(findings), [
      'spec.policies[1]: Policy policies/clustr does not exist yet: did you mean cluster? [set-member]',
      'spec.policies[2]: Policy policies/none does not exist yet [set-member]',
    ]);
  });

  it('warn of a cycle that a changed set closes through a Policy that depends on it, once', () => {
    const change = (name: string, ...members: readonly string[]) =>
      texts(reviews().review(POLICY_SETS, set(name, members), false));
    assert.deepEqual(change('base', 'operator', 'leaf'), [
      'spec.policies: dependencies form a cycle: policies/leaf → policies/on-base → policies/leaf: none of it is ever applied [dependency-cycle]',
    ]);
    assert.deepEqual(change('base', 'also-on-base'), [
      'spec.policies: policy policies/also-on-base depends on itself: none of it is ever applied [dependency-cycle]',
    ]);
    assert.deepEqual(change('base', 'operator'), []);
    assert.deepEqual(change('unused', 'operator', 'leaf'), []);
  });

  it('leave templates alone that are plain text', () => {
    const annotations = { [`${GROUP}/disable-templates`]: 'true' };
    const definitions = [configuration('config', { a: '{{ nothing }}' }, { annotations })];
    assert.deepEqual(created(policy('plain', { definitions })).warnings, []);
    const review = reviews().review(CONFIGURATION_POLICIES, configuration('config', { a: '{{ nothing }}' }), true);
    assert.match(texts(review)[0] ?? '', /^spec\.object-templates\[0\].*there is no function nothing/);
  });

  it('say nothing about copies, placement by a hub, and while others are at work', () => {
    const metadata = { namespace: 'local-cluster', labels: { [`${GROUP}/root-policy`]: 'policies.x' } };
    assert.deepEqual(created(policy('policies.x', { metadata, dependencies: [on('none')] })).warnings, []);
    assert.deepEqual(created(policy('x', { dependencies: [on('operator')] }), { mode: 'hub' }).warnings, []);
    const silent = reviews({}, true).review(POLICIES, policy('self', { dependencies: [on('self')] }), true);
    assert.deepEqual(silent, { errors: [], warnings: [] });
  });

  it('are ready for documents that are no Policies', () => {
    for (const object of [
      {},
      { spec: null },
      { metadata: {}, spec: { dependencies: 5, 'policy-templates': [7, {}] } },
    ]) {
      for (const kind of [POLICY_SETS, CONFIGURATION_POLICIES]) {
        reviews().review(kind, object, true);
      }
      reviews().review(POLICIES, { metadata: {}, ...object }, true);
    }
  });

  it('are bounded for a Policy of very many dependencies', () => {
    const many = Array.from({ length: 500 }, (_, index) => on(`none-${index}`));
    const definitions = Array.from({ length: 1000 }, (_, index) => configuration(`c${index}`, { a: '{{ x }}' }));
    const { warnings } = created(policy('huge', { dependencies: many, extra: many, definitions }));
    assert.deepEqual(
      warnings.map(({ code }) => code).filter((code) => code !== 'template'),
      ['dependency-conflict'],
    );
    assert.ok(warnings.length <= 11);
  });

  it('name kinds of Open Cluster Management that are not supported', () => {
    const operator = { ...configuration('o', {}), apiVersion: 'policy.open-cluster-management.io/v1beta1' };
    const { warnings } = created(policy('p', { definitions: [{ ...operator, kind: 'OperatorPolicy' }] }));
    assert.deepEqual(
      warnings.map(({ code, field }) => [code, field]),
      [['template-kind', 'spec.policy-templates[0].objectDefinition.kind']],
    );
    assert.match(warnings[0]?.text ?? '', /^OperatorPolicy is not supported yet: /);
  });

  it('check no templates beyond the limit', () => {
    const definitions = [
      configuration('long', { a: `{{/* ${'x'.repeat(100_000)} */}}` }),
      configuration('c', { a: '{{ x }}' }),
    ];
    assert.deepEqual(created(policy('long', { definitions })).warnings, []);
  });

  it('are the ones in the documentation', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/governance.md'), 'utf8');
    const section = page.split('\n## What is checked when it is applied\n')[1]?.split('\n## ')[0] ?? '';
    const codes = Array.from(section.matchAll(/^\| `([a-z-]+)` \|/gm), ([, code = '']) => code);
    assert.deepEqual(codes.toSorted(), [...new Set<string>([...GOVERNANCE_ERRORS, ...GOVERNANCE_WARNINGS])].toSorted());
  });
});
