import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { load } from 'js-yaml';
import type { Cluster } from '../../cluster/index.ts';
import {
  apiVersionOf,
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  customResourceDefinition,
  GOVERNANCE_KINDS,
  type JsonObject,
  keyOf,
  kubernetesKind,
  type KubernetesObject,
  MAX_DEPENDENCIES,
  type OwnKind,
  POLICIES,
  POLICY_SETS,
} from '../../resources/index.ts';
import { EmbeddedCluster } from '../embedded/embedded-cluster.ts';
import { definitionsOfCustomResource } from './custom-resource.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/fixtures/governance');

/** An object as it is in a file. */
interface Manifest extends KubernetesObject {
  readonly spec: JsonObject;
}

const MANIFESTS = readdirSync(FIXTURES).map(
  (file) => [file, load(readFileSync(join(FIXTURES, file), 'utf8')) as Manifest] as const,
);

function kindOf({ apiVersion, kind }: KubernetesObject): OwnKind {
  return GOVERNANCE_KINDS.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion) ?? assert.fail(kind);
}

/** The defaults of Open Cluster Management. */
function withDefaults({ kind, spec }: Manifest): JsonObject {
  if (kind !== CONFIGURATION_POLICIES.kind) {
    return spec;
  }
  const templates = spec['object-templates'] as readonly JsonObject[] | undefined;
  return {
    remediationAction: 'inform',
    pruneObjectBehavior: 'None',
    ...spec,
    ...(templates === undefined
      ? {}
      : { 'object-templates': templates.map((template) => ({ recreateOption: 'None', ...template })) }),
  };
}

let embedded: EmbeddedCluster;
let cluster: Cluster;

before(async () => {
  embedded = await EmbeddedCluster.open();
  cluster = embedded.admin;
  const definitions = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') ?? assert.fail();
  for (const kind of GOVERNANCE_KINDS) {
    await cluster.create(definitions, customResourceDefinition(kind));
  }
});

after(async () => {
  await embedded.close();
});

/** Created in namespace `default`, without storing it unless `dryRun` is false. Unknown fields are errors. */
async function create(
  kind: OwnKind,
  spec: JsonObject,
  { name = 'a', dryRun = true }: { readonly name?: string; readonly dryRun?: boolean } = {},
): Promise<Manifest> {
  const metadata = { name, namespace: 'default' };
  const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, spec };
  return (await cluster.create(kind, object, { dryRun, fieldValidation: 'Strict' })) as Manifest;
}

const OBJECT = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } };
const TEMPLATE = { complianceType: 'musthave', objectDefinition: OBJECT };
const MUST_HAVE = ['MustHave', 'Musthave', 'musthave', 'MustOnlyHave', 'Mustonlyhave', 'mustonlyhave'];
const DEPENDENCY = { apiVersion: 'v1', kind: 'Policy', name: 'a', compliance: 'Compliant' };

const policySpec = (fields: JsonObject = {}): JsonObject => ({
  disabled: false,
  'policy-templates': [{ objectDefinition: OBJECT }],
  ...fields,
});
const templateSpec = (fields: JsonObject = {}): JsonObject => ({ 'object-templates': [{ ...TEMPLATE, ...fields }] });
const dependencySpec = (fields: JsonObject): JsonObject => policySpec({ dependencies: [{ ...DEPENDENCY, ...fields }] });

describe('manifests of governance policies', () => {
  for (const [file, manifest] of MANIFESTS) {
    it(`${file} is stored unchanged but for defaults`, async () => {
      const kind = kindOf(manifest);
      const namespaced = { ...manifest, metadata: { ...manifest.metadata, namespace: 'default' } };
      await cluster.create(kind, namespaced, { fieldValidation: 'Strict' });
      const stored = (await cluster.get(kind, keyOf(namespaced))) as Manifest;
      assert.deepEqual(stored.spec, withDefaults(manifest));
      assert.deepEqual(
        [stored.metadata.labels, stored.metadata.annotations],
        [manifest.metadata.labels, manifest.metadata.annotations],
      );
    });

    it(`${file} has no difference when it is applied again`, async () => {
      const kind = kindOf(manifest);
      const metadata = { ...manifest.metadata, namespace: 'default', name: `again-${manifest.metadata.name}` };
      const object: KubernetesObject = { ...manifest, metadata };
      const apply = async (): Promise<KubernetesObject> =>
        await cluster.patch(
          kind,
          keyOf(object),
          { type: 'apply', body: object as JsonObject },
          { fieldManager: 'tool' },
        );
      const first = await apply();
      assert.equal((await apply()).metadata.resourceVersion, first.metadata.resourceVersion);
    });
  }
});

describe('the status of governance kinds', () => {
  const time = '2026-08-01T10:00:00.123456Z';
  const history = [
    { lastTimestamp: time, message: 'NonCompliant; violation - pods [x] not found', count: 57, firstTimestamp: time },
  ];
  const conditions = [
    {
      type: 'Ready',
      status: 'False',
      observedGeneration: 1,
      lastTransitionTime: '2026-08-01T10:00:00Z',
      reason: 'NotFound',
      message: '',
    },
  ];
  const ours = { conditions, observedGeneration: 1 };
  const placement = [{ placementBinding: 'b', placement: 'p', placementRule: 'r' }];
  const cases: readonly (readonly [name: string, kind: OwnKind, spec: JsonObject, status: JsonObject])[] = [
    [
      'a Policy',
      POLICIES,
      policySpec(),
      {
        compliant: 'Pending',
        message: 'kafka-cluster waits',
        pending: [{ template: 'kafka-cluster', reason: 'Mismatch', message: 'Policy default.a is NonCompliant' }],
        placement: [
          {
            placementBinding: 'b',
            placement: 'p',
            policySet: 's',
            decisions: [{ clusterName: 'one', clusterNamespace: 'one' }],
            exclusions: [{ clusterName: 'two' }],
          },
        ],
        status: [
          {
            clustername: 'one',
            clusternamespace: 'one',
            compliant: 'NonCompliant',
            remainingBindings: [{ placementBinding: 'b' }],
          },
        ],
        ...ours,
      },
    ],
    [
      'a copy of a Policy',
      POLICIES,
      policySpec(),
      {
        compliant: 'NonCompliant',
        details: [
          {
            templateMeta: { name: 'a', creationTimestamp: null },
            compliant: 'NonCompliant',
            history: [{ ...history[0], eventName: 'default.my-policy.17a2b3c4d5e6f708' }],
          },
          {
            templateMeta: { name: 'b', labels: { a: 'b' } },
            compliant: 'Pending',
            state: 'Suspended',
            observedGeneration: 3,
            pending: [
              {
                apiVersion: 'v1',
                kind: 'Policy',
                namespace: 'one',
                name: 'default.a',
                required: 'Compliant',
                actual: 'NonCompliant',
                reason: 'Mismatch',
                since: '2026-08-01T10:00:00Z',
                message: 'it is NonCompliant',
              },
            ],
          },
        ],
        ...ours,
      },
    ],
    [
      'a PolicySet',
      POLICY_SETS,
      { policies: ['a'] },
      {
        compliant: 'Pending',
        statusMessage: 'Policies awaiting pending dependencies: a',
        placement,
        exclusions: [{ policyName: 'a', clusters: ['one'] }],
        ...ours,
      },
    ],
    [
      'a ConfigurationPolicy',
      CONFIGURATION_POLICIES,
      templateSpec(),
      {
        compliant: 'Terminating',
        compliancyDetails: [
          {
            Compliant: 'NonCompliant',
            Validity: {},
            conditions: [
              {
                type: 'violation',
                status: 'True',
                lastTransitionTime: '2026-08-01T10:00:00Z',
                reason: 'K8s missing a must have object',
                message: 'pods [x] not found',
              },
            ],
          },
        ],
        lastEvaluated: '2026-08-01T10:00:00Z',
        lastEvaluatedGeneration: 1,
        relatedObjects: [
          {
            object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: '-', namespace: 'default' } },
            compliant: 'NonCompliant',
            reason: 'Resource not found but should exist',
            properties: { createdByPolicy: true, uid: 'u', diff: '- a\n+ b', matchesAfterDryRun: true },
          },
        ],
        history,
        ...ours,
      },
    ],
    [
      'a CertificatePolicy',
      CERTIFICATE_POLICIES,
      {},
      {
        compliant: 'NonCompliant',
        compliancyDetails: {
          default: {
            nonCompliantCertificates: 1,
            nonCompliantCertificatesList: {
              web: {
                secretName: 'web',
                expiration: '2026-08-01T10:00:00Z',
                expiry: -3_600_000_000_000,
                ca: true,
                duration: 7_776_000_000_000_000,
                sans: ['example.com'],
              },
            },
            message: 'Found 1 non compliant certificates in the namespace default.\n',
          },
        },
        history,
        ...ours,
      },
    ],
  ];

  for (const [name, kind, spec, status] of cases) {
    it(`loses nothing of ${name}`, async () => {
      const created = await create(kind, spec, { name: name.replaceAll(' ', '-').toLowerCase(), dryRun: false });
      assert.deepEqual(created['status'], { observedGeneration: -1 });
      const written = await cluster.update(
        kind,
        { ...created, status },
        { subresource: 'status', fieldValidation: 'Strict' },
      );
      assert.deepEqual(written['status'], status);
    });
  }
});

describe('the schema of Policies', () => {
  const bounds = Array.from({ length: MAX_DEPENDENCIES + 1 }, () => DEPENDENCY);
  const refused: readonly (readonly [name: string, spec: JsonObject, message: RegExp])[] = [
    ['no templates', { disabled: false }, /spec\.policy-templates: Required value/],
    ['no disabled', { 'policy-templates': [] }, /spec\.disabled: Required value/],
    ['a template without an object', policySpec({ 'policy-templates': [{}] }), /objectDefinition: Required value/],
    ['an unknown action', policySpec({ remediationAction: 'ENFORCE' }), /spec\.remediationAction: Unsupported value/],
    ['an unknown field', policySpec({ onUnmetDependency: 'delete' }), /unknown field "spec\.onUnmetDependency"/],
    [
      'an unknown compliance',
      dependencySpec({ compliance: 'compliant' }),
      /compliance: Unsupported value: "compliant"/,
    ],
    ['too many dependencies', policySpec({ dependencies: bounds }), /spec\.dependencies: Too many: 501/],
    ...['ConfigurationPolicy', 'CertificatePolicy'].map(
      (kind) =>
        [
          `a namespace for a ${kind}`,
          dependencySpec({ kind, namespace: 'a' }),
          /spec\.dependencies\[0\]\.namespace: Forbidden: namespace must be empty/,
        ] as const,
    ),
    [
      'a namespace in an extra dependency',
      policySpec({
        'policy-templates': [
          {
            objectDefinition: OBJECT,
            extraDependencies: [DEPENDENCY, { ...DEPENDENCY, kind: 'ConfigurationPolicy', namespace: 'a' }],
          },
        ],
      }),
      /spec\.policy-templates\[0\]\.extraDependencies\[1\]\.namespace: Forbidden: namespace must be empty/,
    ],
    ...Object.keys(DEPENDENCY).map((field) => {
      const { [field as 'name']: _left, ...others } = DEPENDENCY;
      const message = new RegExp(`spec\\.dependencies\\[0\\]\\.${field}: Required value`, 'u');
      return [`a dependency without ${field}`, policySpec({ dependencies: [others] }), message] as const;
    }),
  ];
  for (const [name, spec, message] of refused) {
    it(`refuses ${name}`, async () => {
      await assert.rejects(create(POLICIES, spec), { message });
    });
  }

  it('takes all spellings of actions, and dependencies on any kind', async () => {
    for (const remediationAction of ['Inform', 'inform', 'Enforce', 'enforce']) {
      await create(POLICIES, policySpec({ remediationAction }));
    }
    for (const dependency of [
      { kind: 'ConfigurationPolicy', namespace: '' },
      { kind: 'Policy', namespace: 'a' },
      { kind: 'OperatorPolicy', namespace: 'a' },
      { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'a', compliance: 'Pending' },
    ]) {
      await create(POLICIES, dependencySpec(dependency));
    }
  });

  it('fills in no fields', async () => {
    assert.deepEqual((await create(POLICIES, policySpec())).spec, policySpec());
  });
});

describe('the schema of PolicySets', () => {
  it('refuses empty names and exclusions of no cluster', async () => {
    await assert.rejects(create(POLICY_SETS, {}), { message: /spec\.policies: Required value/ });
    await assert.rejects(create(POLICY_SETS, { policies: [''] }), { message: /spec\.policies\[0\]: Invalid value/ });
    const exclusions = [{ policyName: 'a', clusterNames: [] }];
    await assert.rejects(create(POLICY_SETS, { policies: ['a'], exclusions }), { message: /clusterNames/ });
  });
});

describe('the schema of ConfigurationPolicies', () => {
  it('fills in the defaults of Open Cluster Management', async () => {
    const { spec } = (await create(CONFIGURATION_POLICIES, templateSpec())) as Manifest & ConfigurationPolicy;
    assert.deepEqual(
      [spec.remediationAction, spec.pruneObjectBehavior, spec['object-templates']?.[0]?.recreateOption],
      ['inform', 'None', 'None'],
    );
    assert.deepEqual(Object.keys(spec).toSorted(), ['object-templates', 'pruneObjectBehavior', 'remediationAction']);
  });

  it('takes exactly one of object-templates and object-templates-raw', async () => {
    const message = /spec: Invalid value: .*exactly one of object-templates and object-templates-raw must be set/;
    await assert.rejects(create(CONFIGURATION_POLICIES, {}), { message });
    await assert.rejects(create(CONFIGURATION_POLICIES, { ...templateSpec(), 'object-templates-raw': '' }), {
      message,
    });
    await create(CONFIGURATION_POLICIES, { 'object-templates-raw': '{{ if true }}[]{{ end }}' });
    await create(CONFIGURATION_POLICIES, { 'object-templates': [] });
  });

  const spellings: Readonly<Record<string, readonly string[]>> = {
    complianceType: [...MUST_HAVE, 'MustNotHave', 'Mustnothave', 'mustnothave'],
    metadataComplianceType: MUST_HAVE,
    recreateOption: ['None', 'IfRequired', 'Always'],
    recordDiff: ['Log', 'InStatus', 'None'],
  };
  for (const [field, values] of Object.entries(spellings)) {
    it(`takes all spellings of ${field}, and no other`, async () => {
      for (const value of values) {
        await create(CONFIGURATION_POLICIES, templateSpec({ [field]: value }));
      }
      const message = new RegExp(`spec\\.object-templates\\[0\\]\\.${field}: Unsupported value`, 'u');
      await assert.rejects(create(CONFIGURATION_POLICIES, templateSpec({ [field]: 'MUSTHAVE' })), { message });
    });
  }

  it('takes the severities and actions in lower case and capitalised', async () => {
    for (const severity of ['low', 'Low', 'medium', 'Medium', 'high', 'High', 'critical', 'Critical']) {
      await create(CONFIGURATION_POLICIES, { ...templateSpec(), severity, remediationAction: 'Enforce' });
      await create(CERTIFICATE_POLICIES, { severity, remediationAction: 'Enforce' });
    }
  });

  it('takes durations, watch and never as intervals', async () => {
    const spec = (compliant: string): JsonObject => ({ ...templateSpec(), evaluationInterval: { compliant } });
    for (const interval of ['watch', 'never', '10s', '1h30m', '1.5h', '100ms', '5us', '5ns']) {
      await create(CONFIGURATION_POLICIES, spec(interval));
    }
    for (const interval of ['', '10', 'daily', '-5s', '1d']) {
      await assert.rejects(create(CONFIGURATION_POLICIES, spec(interval)), {
        message: /evaluationInterval\.compliant/,
      });
    }
  });
});

describe('the schema of CertificatePolicies', () => {
  it('refuses durations that Go does not parse, and empty patterns', async () => {
    for (const field of ['minimumDuration', 'minimumCADuration', 'maximumDuration', 'maximumCADuration']) {
      await create(CERTIFICATE_POLICIES, { [field]: '300h0m0s' });
      await assert.rejects(create(CERTIFICATE_POLICIES, { [field]: '30d' }), { message: new RegExp(`spec.${field}`) });
    }
    for (const field of ['allowedSANPattern', 'disallowedSANPattern']) {
      await assert.rejects(create(CERTIFICATE_POLICIES, { [field]: '' }), { message: new RegExp(`spec.${field}`) });
    }
  });
});

describe('the definitions of governance kinds', () => {
  it('have the names that people know', () => {
    assert.deepEqual(
      GOVERNANCE_KINDS.map((kind) => `${kind.resource}.${apiVersionOf(kind)} ${kind.declaration.shortNames.join()}`),
      [
        'policies.policy.open-cluster-management.io/v1 plc',
        'policysets.policy.open-cluster-management.io/v1beta1 plcset',
        'configurationpolicies.policy.open-cluster-management.io/v1 ',
        'certificatepolicies.policy.open-cluster-management.io/v1 ',
      ],
    );
  });

  it('are labelled where a Policy may contain their objects', () => {
    const labelled = GOVERNANCE_KINDS.filter(
      (kind) =>
        customResourceDefinition(kind).metadata.labels?.['policy.open-cluster-management.io/policy-type'] ===
        'template',
    );
    assert.deepEqual(labelled, [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES]);
  });

  it('show copies of a Policy, and why it is not compliant', () => {
    const [definition] = definitionsOfCustomResource(customResourceDefinition(POLICIES));
    const { printer } = definition ?? assert.fail();
    const narrow = printer.columns.filter(({ priority = 0 }) => priority === 0).map(({ name }) => name);
    assert.deepEqual(narrow, [
      'Name',
      'Remediation action',
      'Compliance state',
      'Age',
      'Phase',
      'Serving',
      'Copy on',
      'Message',
    ]);
    const copy = {
      apiVersion: apiVersionOf(POLICIES),
      kind: POLICIES.kind,
      metadata: {
        name: 'default.a',
        namespace: 'local-cluster',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: {
          'policy.open-cluster-management.io/cluster-name': 'local-cluster',
          'policy.open-cluster-management.io/root-policy': 'default.a',
        },
      },
      spec: policySpec({ remediationAction: 'enforce' }),
      status: { compliant: 'Pending', message: 'b waits for Policy default.c' },
    };
    const now = Date.parse('2026-01-01T01:00:00Z');
    assert.deepEqual(printer.cells(copy, now), [
      'default.a',
      'enforce',
      'Pending',
      '60m',
      null,
      null,
      'local-cluster',
      'b waits for Policy default.c',
      'default.a',
    ]);
    const root = { ...copy, metadata: { name: 'a', namespace: 'default' } };
    assert.equal(printer.cells(root, now)[4], null);
  });

  it('show the newest message of a ConfigurationPolicy', () => {
    const [definition] = definitionsOfCustomResource(customResourceDefinition(CONFIGURATION_POLICIES));
    const { printer } = definition ?? assert.fail();
    const object = {
      apiVersion: apiVersionOf(CONFIGURATION_POLICIES),
      kind: CONFIGURATION_POLICIES.kind,
      metadata: { name: 'a' },
      spec: { remediationAction: 'inform' },
      status: { compliant: 'Compliant', history: [{ message: 'newest' }, { message: 'older' }] },
    };
    const cells = printer.cells(object, 0);
    assert.deepEqual([cells[1], cells[2], cells.at(-1)], ['Compliant', 'inform', 'newest']);
  });
});
