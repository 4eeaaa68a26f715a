// What a user who may write Policies in one namespace can do with the rights of the governance account, and what they cannot.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type JsonObject } from '../../src/resources/index.ts';
import { GovernanceLab, type LabObject, withWrites } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';
const USER = { username: 'governance', groups: ['system:authenticated'] };
const CONFIGURATION = { kind: 'ConfigurationPolicy', name: 'local-cluster/tenant' };

function configuration(spec: JsonObject, name = 'tenant'): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'ConfigurationPolicy',
    metadata: { name },
    spec: { remediationAction: 'enforce', ...spec },
  };
}

function policy(definitions: readonly JsonObject[], name = 'tenant'): JsonObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies' },
    spec: { disabled: false, 'policy-templates': definitions.map((objectDefinition) => ({ objectDefinition })) },
  };
}

function musthave(...definitions: readonly JsonObject[]): JsonObject {
  return {
    'object-templates': definitions.map((objectDefinition) => ({ complianceType: 'musthave', objectDefinition })),
  };
}

const configMap = (name: string, data: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});

/** The governance account may do some verbs with some resources. */
function grant(name: string, resources: readonly string[], verbs: readonly string[]): readonly JsonObject[] {
  const rbac = 'rbac.authorization.k8s.io';
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: [''], resources, verbs }],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: rbac, kind: 'User', name: USER.username }],
    },
  ] as readonly JsonObject[];
}

const newest = (object: LabObject | undefined): string => object?.status?.history?.[0]?.message ?? '';

describe('the rights of the governance account', () => {
  it('bound what a Policy reads and writes; new rights count without a change of the Policy', async () => {
    await using lab = await GovernanceLab.start({ governed: (cluster) => cluster.as(USER) });
    await lab.apply(policy([configuration(musthave(configMap('settings')))]));
    const unreadable = await lab.sees(
      CONFIGURATION,
      (object) => findCondition(object?.status?.conditions, 'Ready')?.reason === 'ObjectsUnreadable',
    );
    assert.equal(unreadable.status?.compliant, 'NonCompliant');
    assert.match(newest(unreadable), /configmaps is forbidden: User "governance" cannot list/);
    await lab.apply(...grant('reads', ['configmaps'], ['get', 'list', 'watch']));
    await lab.sees(CONFIGURATION, (object) =>
      /is missing, and cannot be created, reason: `configmaps "?.*is forbidden/.test(newest(object)),
    );
    assert.equal(await lab.get({ kind: 'ConfigMap', name: 'default/settings' }), undefined);
  });

  it('say that an object was compared without a dry run where they only read, as long as that makes a difference', async () => {
    await using lab = await GovernanceLab.start({ governed: (cluster) => cluster.as(USER) });
    const service = (spec: JsonObject): JsonObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'default' },
      spec,
    });
    // The API server adds a protocol and a target port to each port.
    const ports = { ports: [{ name: 'a', port: 80 }] };
    const inform = (spec: JsonObject): JsonObject => ({ ...musthave(service(spec)), remediationAction: 'inform' });
    await lab.apply(
      ...grant('reads', ['services'], ['get', 'list', 'watch']),
      service({ ...ports, type: 'ClusterIP' }),
    );
    await lab.apply(policy([configuration(inform({ ...ports, type: 'NodePort' }))]));
    const readyReason = (object: LabObject | undefined): string | undefined =>
      findCondition(object?.status?.conditions, 'Ready')?.reason;
    const compared = await lab.sees(CONFIGURATION, (object) => readyReason(object) === 'ComparedWithoutDryRun');
    assert.equal(compared.status?.compliant, 'NonCompliant');
    assert.match(
      findCondition(compared.status?.conditions, 'Ready')?.message ?? '',
      /^1 objects that differ were compared without a dry run, because the governance account may not update them/,
    );
    await lab.apply(policy([configuration(inform({ type: 'ClusterIP' }))]));
    await lab.sees(
      CONFIGURATION,
      (object) => object?.status?.compliant === 'Compliant' && readyReason(object) === 'Evaluated',
    );
  });

  it('bound what templates look up, and no value of what they may not read is in a status', async () => {
    await using lab = await GovernanceLab.start({ governed: (cluster) => cluster.as(USER) });
    await lab.apply(
      ...grant('reads', ['configmaps'], ['get', 'list', 'watch', 'create', 'update']),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'key', namespace: 'default' },
        data: { key: 'aHVudGVyMg==' },
      },
      policy([configuration(musthave(configMap('stolen', { key: '{{ fromSecret "default" "key" "key" }}' })))]),
    );
    const refused = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'NonCompliant');
    assert.match(newest(refused), /cannot read Secret default\/key: .*secrets is forbidden/);
    assert.equal(await lab.get({ kind: 'ConfigMap', name: 'default/stolen' }), undefined);
    assert.ok(!JSON.stringify(refused).includes('aHVudGVyMg'));
  });

  it('do not include the rights of the controller', async () => {
    await using lab = await GovernanceLab.start({ governed: (cluster) => cluster.as(USER) });
    const copy = {
      apiVersion: `${GROUP}/v1`,
      kind: 'Policy',
      metadata: {
        name: 'policies.forged',
        namespace: 'local-cluster',
        labels: { [`${GROUP}/root-policy`]: 'policies.forged' },
      },
      spec: { disabled: false, 'policy-templates': [] },
    };
    await lab.apply(policy([configuration(musthave(copy))]));
    await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'NonCompliant');
    assert.equal(await lab.policy('local-cluster/policies.forged'), undefined);
  });
});

describe('a Policy of a tenant', () => {
  it('cannot take over, change or remove templates of another one', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policy([configuration(musthave(configMap('a')))], 'first'));
    const { metadata } = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
    const stolen = configuration({ ...musthave(configMap('b')), pruneObjectBehavior: 'DeleteAll' });
    await lab.apply(policy([stolen], 'second'));
    const refused = await lab.reaches('policies/second', 'NonCompliant');
    assert.match(
      refused.status?.message ?? '',
      /Template name must be unique.*already exists in policy policies\.first/,
    );
    await lab.delete({ kind: 'Policy', name: 'policies/second' });
    await lab.disappears({ kind: 'Policy', name: 'local-cluster/policies.second' });
    assert.equal((await lab.get(CONFIGURATION))?.metadata.uid, metadata.uid);
    assert.equal(await lab.get({ kind: 'ConfigMap', name: 'default/b' }), undefined);
  });

  it('cannot place its templates elsewhere, own others, or set annotations of the controller', async () => {
    await using lab = await GovernanceLab.start();
    const { metadata: _, ...definition } = configuration(musthave(configMap('a')));
    const metadata = {
      name: 'tenant',
      namespace: 'kube-system',
      finalizers: ['lab.example.com/hold'],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: 'x' }],
      annotations: { 'portcullis.dev/suspended': 'for ever', 'portcullis.dev/policy': 'policies.other', note: 'kept' },
      labels: { [`${GROUP}/cluster-name`]: 'other' },
    };
    await lab.apply(policy([{ ...definition, metadata }]));
    const applied = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
    const { annotations, labels, ownerReferences, finalizers } = applied.metadata;
    assert.deepEqual(Object.keys(annotations ?? {}).toSorted(), ['note', 'portcullis.dev/applied']);
    assert.equal(labels?.[`${GROUP}/cluster-name`], 'local-cluster');
    assert.deepEqual(
      ownerReferences?.map(({ kind }) => kind),
      ['Policy'],
    );
    assert.equal(finalizers, undefined);
  });

  it('may not have other kinds as templates', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policy([configMap('direct')]));
    const refused = await lab.reaches('policies/tenant', 'NonCompliant');
    assert.match(refused.status?.message ?? '', /policy-template kind is not supported: \/v1, Kind=ConfigMap/);
    assert.deepEqual(
      (await lab.list('ConfigMap')).filter(({ metadata }) => metadata.name === 'direct'),
      [],
    );
  });

  it('with more objects than a status can list has a status that fits, and says so', async () => {
    await using lab = await GovernanceLab.start();
    const raw = `
{{- range $i := until 6000 }}
- complianceType: musthave
  objectDefinition: {apiVersion: v1, kind: ConfigMap, metadata: {name: "settings-of-a-long-name-{{ $i }}", namespace: default}}
{{- end }}`;
    await lab.apply(policy([configuration({ remediationAction: 'inform', 'object-templates-raw': raw })]));
    const large = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'NonCompliant');
    assert.ok(JSON.stringify(large).length < 1_500_000, `${JSON.stringify(large).length}`);
    assert.match(
      findCondition(large.status?.conditions, 'Ready')?.message ?? '',
      /^the status has only \d+ of 6000 objects, and only these are pruned: split the policy; the status has only \d+ of 6000 object templates/,
    );
    await lab.reaches('policies/tenant', 'NonCompliant');
  });

  it('with more object templates than are allowed is refused', async () => {
    await using lab = await GovernanceLab.start();
    const raw = '{{ range $i := until 10000 }}- {}\n{{ end }}- {}';
    await lab.apply(policy([configuration({ 'object-templates-raw': raw })]));
    const refused = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'NonCompliant');
    assert.match(newest(refused), /expected at most 10000 object templates, got 10001/);
  });

  it('with slow templates does not keep others waiting for long', async () => {
    await using lab = await GovernanceLab.start();
    const slow = '{{ range $i := until 900 }}{{ range $j := until 900 }}{{ end }}{{ end }}x';
    const maps = Array.from({ length: 200 }, (_, index) => configMap(`slow-${index}`, { slow }));
    const inform = { remediationAction: 'inform' };
    await lab.apply(policy([configuration({ ...musthave(...maps), ...inform })]));
    await lab.apply(policy([configuration({ ...musthave(configMap('fast')) }, 'fast')], 'fast'));
    await lab.reaches('policies/fast', 'Compliant');
    const refused = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'NonCompliant');
    assert.match(JSON.stringify(refused.status?.['compliancyDetails']), /the policy takes too long to evaluate/);
    const { reason, message = '' } = findCondition(refused.status?.conditions, 'Ready') ?? {};
    assert.equal(reason, 'EvaluationEnded');
    assert.match(message, /^the policy takes too long to evaluate: split it/);
  });
});

describe('a cluster that changes meanwhile', () => {
  const GATES = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.lab.example.com}
spec:
  group: lab.example.com
  scope: Namespaced
  names: {kind: Gate, plural: gates, singular: gate, listKind: GateList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`;
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: 'gates.lab.example.com',
  };
  const gate = { apiVersion: 'lab.example.com/v1', kind: 'Gate', metadata: { name: 'web', namespace: 'default' } };

  it('gets, loses and gets again the kind of an object', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policy([configuration(musthave(gate))]));
    const unknown =
      "couldn't find mapping resource with kind Gate in API version lab.example.com/v1, please check if you have CRD deployed";
    const isUnknown = (object: LabObject | undefined): boolean =>
      newest(object) === `NonCompliant; violation - ${unknown}`;
    await lab.sees(CONFIGURATION, isUnknown);
    for (let time = 0; time < 2; time += 1) {
      await lab.apply(GATES);
      await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
      await lab.delete(definition);
      await lab.disappears(definition);
      await lab.sees(CONFIGURATION, isUnknown);
    }
  });

  it('loses the namespace of an object, and gets it again', async () => {
    await using lab = await GovernanceLab.start();
    await lab.namespace('shop');
    const { metadata: _, ...rest } = configMap('settings');
    const here = { ...rest, metadata: { name: 'settings', namespace: 'shop' } } as JsonObject;
    await lab.apply(policy([configuration(musthave(here))]));
    await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
    await lab.delete({ kind: 'Namespace', name: 'shop' });
    await lab.disappears({ kind: 'Namespace', name: 'shop' });
    await lab.sees(CONFIGURATION, (object) =>
      newest(object).includes('configmaps [settings] in namespace shop is missing, and cannot be created'),
    );
    await lab.namespace('shop');
    await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
  });

  it('loses the namespace of the cluster: nothing is pruned, and everything comes back', async () => {
    await using lab = await GovernanceLab.start();
    await lab.apply(policy([configuration({ ...musthave(configMap('settings')), pruneObjectBehavior: 'DeleteAll' })]));
    const { metadata } = await lab.sees(CONFIGURATION, (object) => object?.status?.compliant === 'Compliant');
    const before = await lab.get({ kind: 'ConfigMap', name: 'default/settings' });
    await lab.delete({ kind: 'Namespace', name: 'local-cluster' });
    await lab.sees(
      CONFIGURATION,
      (object) => object?.status?.compliant === 'Compliant' && object.metadata.uid !== metadata.uid,
    );
    assert.equal((await lab.get({ kind: 'ConfigMap', name: 'default/settings' }))?.metadata.uid, before?.metadata.uid);
  });
});

describe('an idle cluster', () => {
  it('gets no writes for policies that are compliant, also from a fresh controller', async () => {
    const writes: string[] = [];
    await using lab = await GovernanceLab.start({
      through: (cluster) =>
        withWrites(cluster, async (send, verb) => {
          writes.push(verb);
          return await send();
        }),
    });
    const settings = configuration(
      musthave(configMap('a', { mode: 'safe' }), {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: 'default' },
        spec: { ports: [{ port: 80 }] },
      }),
    );
    await lab.apply(
      policy([settings]),
      policy([configuration({ ...musthave(configMap('c')), pruneObjectBehavior: 'DeleteAll' }, 'other')], 'other'),
    );
    await lab.reaches('policies/tenant', 'Compliant');
    await lab.reaches('policies/other', 'Compliant');
    await lab.stopControllers();
    await lab.startControllers();
    await lab.apply(
      policy([configuration({ ...musthave(configMap('d')), remediationAction: 'inform' }, 'marker')], 'marker'),
    );
    writes.length = 0;
    await lab.reaches('policies/marker', 'NonCompliant');
    // Whatever a fresh controller would write for the others comes before the end of the marker, or is not there at all.
    const others = writes.filter((verb) => !/^(?:create|update) (?:policies|configurationpolicies|events)$/.test(verb));
    assert.deepEqual(others, ['create policyrevisions', 'update policyrevisions'], 'the revision of the marker');
  });
});
