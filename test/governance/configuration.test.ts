// ConfigurationPolicies on an embedded cluster: what they report, write and delete.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  findCondition,
  type JsonObject,
  type JsonValue,
  knownKind,
  type KubernetesObject,
} from '../../src/resources/index.ts';
import { GovernanceLab, type LabObject, type LabReference, templateKind } from './governance-lab.ts';

const NAME = 'checked';
const POLICY = { kind: 'ConfigurationPolicy', name: `local-cluster/${NAME}` };
const CONFIG_MAP = { kind: 'ConfigMap', name: 'default/settings' };

async function startLab(): Promise<GovernanceLab> {
  const lab = await GovernanceLab.start();
  await lab.namespace('local-cluster');
  return lab;
}

function configMap(data: JsonObject = { mode: 'safe' }, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'default', ...metadata },
    data,
  };
}

function template(objectDefinition: JsonValue, options: JsonObject = {}): JsonObject {
  return { complianceType: 'musthave', objectDefinition, ...options };
}

function policy(templates: readonly JsonObject[] | string, spec: JsonObject = {}, name = NAME): JsonObject {
  const field = typeof templates === 'string' ? 'object-templates-raw' : 'object-templates';
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { name, namespace: 'local-cluster' },
    spec: { remediationAction: 'enforce', ...spec, [field]: templates },
  };
}

const messages = (object: LabObject | undefined): readonly string[] =>
  (object?.status?.history ?? []).map(({ message }) => message);
const newest = (object: LabObject | undefined): string | undefined => messages(object)[0];
const readyReason = (object: LabObject | undefined): string | undefined =>
  findCondition(object?.status?.conditions, 'Ready')?.reason;

interface Related {
  readonly object: { readonly kind: string; readonly metadata: { readonly name: string; readonly namespace?: string } };
  readonly compliant: string;
  readonly reason: string;
  readonly properties?: { readonly createdByPolicy?: boolean; readonly uid?: string; readonly diff?: string };
}
const related = (object: LabObject | undefined): readonly Related[] =>
  (object?.status?.['relatedObjects'] ?? []) as readonly Related[];

/** Waits until the newest message of the policy is as expected. */
async function says(lab: GovernanceLab, message: string, reference: LabReference = POLICY): Promise<LabObject> {
  return await lab.sees(reference, (object) => newest(object) === message);
}

const violation = (text: string): string => `NonCompliant; violation - ${text}`;
const notification = (text: string): string => `Compliant; notification - ${text}`;
const IN_DEFAULT = 'configmaps [settings]';

describe('musthave', () => {
  it('creates, updates and restores an object, and keeps what others added', async () => {
    await using lab = await startLab();
    await lab.apply(policy([template(configMap())]));
    const created = await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`));
    assert.deepEqual(messages(created), [
      notification(`${IN_DEFAULT} found as specified in namespace default`),
      notification(`${IN_DEFAULT} was created successfully in namespace default`),
      violation(`${IN_DEFAULT} not found in namespace default`),
    ]);
    const { uid } = (await lab.appears(CONFIG_MAP)).metadata;
    assert.deepEqual(related(created), [
      {
        object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' } },
        compliant: 'Compliant',
        reason: 'Resource found as expected',
        properties: { createdByPolicy: true, uid },
      },
    ]);

    await lab.merge(CONFIG_MAP, { data: { mode: 'fast', other: 'kept' } });
    const restored = await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === 'safe');
    assert.deepEqual(restored.data, { mode: 'safe', other: 'kept' });
    const updated = await lab.sees(POLICY, (object) => messages(object).some((text) => text.includes('updated')));
    assert.ok(messages(updated).includes(violation(`${IN_DEFAULT} found but not as specified in namespace default`)));

    await lab.delete(CONFIG_MAP);
    await lab.appears(CONFIG_MAP);
  });

  it('only reports with inform, and shows no values of a ConfigMap', async () => {
    await using lab = await startLab();
    await lab.apply(policy([template(configMap())], { remediationAction: 'inform' }));
    await says(lab, violation(`${IN_DEFAULT} not found in namespace default`));
    assert.equal(await lab.get(CONFIG_MAP), undefined);
    await lab.apply(configMap({ mode: 'fast' }));
    const differs = await says(lab, violation(`${IN_DEFAULT} found but not as specified in namespace default`));
    assert.match(related(differs)[0]?.properties?.diff ?? '', /^# The difference is redacted because/);
    assert.deepEqual((await lab.get(CONFIG_MAP))?.data, { mode: 'fast' });
    await lab.apply(configMap({ mode: 'safe' }));
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`));
  });

  it('compares an unnamed template with all objects of a namespace, and never writes', async () => {
    await using lab = await startLab();
    const { metadata: _, ...rest } = configMap();
    await lab.apply(policy([template(rest)], { namespaceSelector: { include: ['default'] } }));
    await says(lab, violation('configmaps not found in namespace default'));
    await lab.apply(configMap({ mode: 'safe', more: 'x' }));
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`));
  });

  it('identifies elements of lists by another field', async () => {
    await using lab = await startLab();
    const service = (port: JsonObject): JsonObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'default' },
      spec: { selector: { app: 'web' }, ports: [port] },
    });
    await lab.apply(service({ port: 80, targetPort: 8080 }));
    const keyed = { listKeys: [{ path: 'spec.ports', key: 'port' }] };
    await lab.apply(policy([template(service({ port: 80, targetPort: 9090 }), keyed)]));
    const changed = await lab.sees({ kind: 'Service', name: 'default/web' }, (object) =>
      JSON.stringify(object?.spec?.['ports']).includes('9090'),
    );
    const ports = changed.spec?.['ports'];
    assert.equal(Array.isArray(ports) ? ports.length : 0, 1);
  });

  it('compares a status, and never writes it', async () => {
    await using lab = await startLab();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'later' }, status: { phase: 'Active' } };
    await lab.apply(policy([template(namespace)]));
    const checked = await says(lab, notification('namespaces [later] found as specified'));
    const first =
      'namespaces [later] was created successfully, the status of the object will be verified in the next evaluation';
    assert.ok(messages(checked).includes(violation(first)), messages(checked).join('\n'));
  });
});

describe('mustonlyhave', () => {
  it('removes what the template does not have', async () => {
    await using lab = await startLab();
    await lab.apply(configMap({ mode: 'safe', other: 'x' }, { labels: { team: 'a' } }));
    await lab.apply(policy([template(configMap(), { complianceType: 'mustonlyhave' })]));
    const only = await lab.sees(CONFIG_MAP, (object) => object?.data?.['other'] === undefined);
    assert.deepEqual([only.data, only.metadata.labels], [{ mode: 'safe' }, { team: 'a' }]);
  });
});

describe('mustnothave', () => {
  it('deletes the object with enforce, and reports it with inform', async () => {
    await using lab = await startLab();
    await lab.apply(configMap());
    const never = [template(configMap({ other: 'data' }), { complianceType: 'mustnothave' })];
    await lab.apply(policy(never, { remediationAction: 'inform' }));
    await says(lab, violation(`${IN_DEFAULT} found in namespace default`));
    await lab.apply(policy(never));
    await lab.disappears(CONFIG_MAP);
    await says(lab, notification(`${IN_DEFAULT} missing as expected in namespace default`));
  });

  it('is not compliant while a finalizer holds the object', async () => {
    await using lab = await startLab();
    await lab.apply(configMap({}, { finalizers: ['lab.example.com/hold'] }));
    await lab.apply(policy([template(configMap(), { complianceType: 'mustnothave' })]));
    const reason = 'it is being deleted, and a finalizer or a grace period holds it';
    await says(
      lab,
      violation(`${IN_DEFAULT} in namespace default exists, and cannot be deleted, reason: \`${reason}\``),
    );
    await lab.merge(CONFIG_MAP, { metadata: { finalizers: null } });
    await says(lab, notification(`${IN_DEFAULT} missing as expected in namespace default`));
  });
});

describe('the selectors of a ConfigurationPolicy', () => {
  it('select namespaces that are created or labelled later', async () => {
    await using lab = await startLab();
    const { metadata: _, ...rest } = configMap();
    const selected = template({ ...rest, metadata: { name: 'settings' } });
    await lab.apply(policy([selected], { namespaceSelector: { matchLabels: { team: 'a' } } }));
    const none =
      'namespaced object settings of kind ConfigMap has no namespace specified from the policy namespaceSelector nor the object metadata';
    await says(lab, violation(none));
    await lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a1', labels: { team: 'a' } } });
    await lab.appears({ kind: 'ConfigMap', name: 'a1/settings' });
    await lab.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels: { team: 'a' } } });
    await lab.appears(CONFIG_MAP);
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespaces: a1, default`));
  });

  it('select objects by labels, and change only these', async () => {
    await using lab = await startLab();
    const one = (name: string, labels: JsonObject): JsonObject => configMap({ mode: 'fast' }, { name, labels });
    await lab.apply(one('a', { app: 'web' }), one('b', { app: 'web' }), one('c', { app: 'other' }));
    const selecting = { objectSelector: { matchLabels: { app: 'web' } } };
    const { metadata: _, ...rest } = configMap();
    await lab.apply(policy([template({ ...rest, metadata: { namespace: 'default' } }, selecting)]));
    await says(lab, notification('configmaps [a, b] found as specified in namespace default'));
    const modeOf = async (name: string) =>
      (await lab.get({ kind: 'ConfigMap', name: `default/${name}` }))?.data?.['mode'];
    assert.deepEqual([await modeOf('a'), await modeOf('b'), await modeOf('c')], ['safe', 'safe', 'fast']);
    await lab.apply(one('d', { app: 'web' }));
    await says(lab, notification('configmaps [a, b, d] found as specified in namespace default'));
  });
});

describe('the options of a ConfigurationPolicy', () => {
  it('recreate an object whose immutable field differs', async () => {
    await using lab = await startLab();
    const immutable = (mode: string): JsonObject => ({ ...configMap({ mode }), immutable: true });
    await lab.apply(immutable('fast'));
    const before = await lab.appears(CONFIG_MAP);
    await lab.apply(policy([template(immutable('safe'))]));
    const advice =
      'cannot be updated, likely due to immutable fields not matching, you may set spec["object-templates"][].recreateOption to recreate the object';
    await says(lab, violation(`${IN_DEFAULT} in namespace default ${advice}`));
    await lab.apply(policy([template(immutable('safe'), { recreateOption: 'IfRequired' })]));
    const after = await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === 'safe');
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`));
  });

  it('replace the message', async () => {
    await using lab = await startLab();
    const customMessage = {
      compliant: 'all is well with {{ .Policy.metadata.name }}',
      noncompliant: 'look: {{ .DefaultMessage }}',
    };
    await lab.apply(policy([template(configMap())], { customMessage, remediationAction: 'inform' }));
    await says(lab, `NonCompliant; look: ${violation(`${IN_DEFAULT} not found in namespace default`)}`);
    await lab.apply(configMap());
    await says(lab, 'Compliant; all is well with checked');
  });

  it('evaluate never again, at an interval, or on changes', async () => {
    await using lab = await startLab();
    const inform = { remediationAction: 'inform' };
    await lab.apply(policy([template(configMap())], { ...inform, evaluationInterval: { noncompliant: 'never' } }));
    const note =
      'This policy will not be evaluated again due to spec.evaluationInterval.noncompliant being set to "never".';
    const missing = `${IN_DEFAULT} not found in namespace default`;
    await says(lab, violation(`${missing}. ${note}`));
    await lab.apply(configMap());
    // Not after a restart, either.
    await lab.stopControllers();
    await lab.startControllers();
    await lab.apply(policy([template(configMap())], inform, 'watching'));
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`), {
      ...POLICY,
      name: 'local-cluster/watching',
    });
    assert.equal(newest(await lab.get(POLICY)), violation(`${missing}. ${note}`));
    await lab.apply(
      policy([template(configMap())], { ...inform, evaluationInterval: { compliant: '1h', noncompliant: '100ms' } }),
    );
    await says(lab, notification(`${IN_DEFAULT} found as specified in namespace default`));
  });
});

describe('the templates of a ConfigurationPolicy', () => {
  const source = (value: string): JsonObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'source', namespace: 'default' },
    data: { value },
  });

  it('follow what they look up', async () => {
    await using lab = await startLab();
    await lab.apply(source('one'));
    const raw = `
- complianceType: musthave
  objectDefinition:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: default}
    data:
      mode: '{{ (lookup "v1" "ConfigMap" "default" "source").data.value }}'
`;
    await lab.apply(policy(raw));
    await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === 'one');
    await lab.apply(source('two'));
    await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === 'two');
    await lab.delete({ kind: 'ConfigMap', name: 'default/source' });
    await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === '<no value>');
  });

  it('insert values of Secrets that no status shows, and that are never parsed again', async () => {
    await using lab = await startLab();
    const hostile = '{{ fail "parsed" }}"\n: -';
    await lab.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'source', namespace: 'default' },
      data: { key: Buffer.from(hostile).toString('base64') },
    });
    const role = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: {
        name: 'robot',
        namespace: 'default',
        annotations: { key: '{{ fromSecret "default" "source" "key" | base64dec }}' },
      },
    };
    await lab.apply(policy([template(role)], { remediationAction: 'inform' }));
    await lab.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot', namespace: 'default' } });
    const differs = await says(
      lab,
      violation('serviceaccounts [robot] found but not as specified in namespace default'),
    );
    assert.match(related(differs)[0]?.properties?.diff ?? '', /^# The difference is redacted/);
    assert.ok(!JSON.stringify(differs.status).includes('parsed'));
    await lab.apply(policy([template(role)]));
    const written = await lab.sees(
      { kind: 'ServiceAccount', name: 'default/robot' },
      (object) => object?.metadata.annotations?.['key'] !== undefined,
    );
    assert.equal(written.metadata.annotations?.['key'], hostile);
  });

  const KEY = '{{ fromSecret "default" "source" "key" | base64dec }}';
  const raw = (lines: string, definition: string): string =>
    `- complianceType: musthave\n${lines}  objectDefinition: ${definition}\n`;
  const NAMED = '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}';
  for (const [where, templates] of Object.entries({
    'a kind': raw('', `{apiVersion: v1, kind: ${KEY}, metadata: {name: a}}`),
    'an API version': raw('', `{apiVersion: apps/${KEY}, kind: Deployment, metadata: {name: a}}`),
    'an API group': raw('', `{apiVersion: ${KEY}/v1, kind: Deployment, metadata: {name: a}}`),
    'a kind that a skipped template names': raw(
      '',
      `{apiVersion: v1, kind: ${KEY}, metadata: {name: a, labels: {a: skipObject}}}`,
    ),
    'the operator of a selector': raw(
      `  objectSelector: {matchExpressions: [{key: a, operator: ${KEY}, values: [b]}]}\n`,
      '{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}',
    ),
    'the key of a selector': raw(
      `  objectSelector: {matchExpressions: [{key: "-${KEY}", operator: Exists}]}\n`,
      '{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}',
    ),
    'the value of a label of a selector': raw(
      `  objectSelector: {matchLabels: {a: "-${KEY}"}}\n`,
      '{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}',
    ),
    'a compliance type': raw('', NAMED).replace('musthave', KEY),
    'a list that cannot be merged': raw('', `{apiVersion: v1, kind: ConfigMap, metadata: ["${KEY}"]}`),
    'a text of fail': raw('', `{apiVersion: v1, kind: {{ fail (fromSecret "default" "source" "key" | base64dec) }}}`),
  })) {
    it(`report nothing of a Secret that was read into ${where} of object-templates-raw`, async () => {
      await using lab = await startLab();
      const data = { key: Buffer.from('hunter2').toString('base64') };
      await lab.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'source', namespace: 'default' }, data });
      await lab.apply(policy(templates));
      const seen = await lab.sees(POLICY, (now) => newest(now)?.includes('redacted') === true);
      assert.doesNotMatch(JSON.stringify(seen.status), /hunter2/);
      assert.doesNotMatch(JSON.stringify(await lab.list('Event', 'events.k8s.io/v1')), /hunter2/);
    });
  }

  it('report nothing of the Secret that a template of a Secret reads as its own object', async () => {
    await using lab = await startLab();
    const data = { key: Buffer.from('hunter2').toString('base64') };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'source', namespace: 'default' } };
    await lab.apply({ ...secret, data });
    await lab.apply(policy([template({ ...secret, type: '{{ fail (.Object.data.key | base64dec) }}' })]));
    const seen = await lab.sees(POLICY, (now) => newest(now)?.includes('redacted') === true);
    assert.doesNotMatch(JSON.stringify(seen.status), /hunter2/);
  });

  it('insert values of Secrets that API servers refuse: their messages are not reported', async () => {
    await using lab = await startLab();
    const data = { key: Buffer.from('no label: hunter2').toString('base64') };
    await lab.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'source', namespace: 'default' }, data });
    const label = '{{ fromSecret "default" "source" "key" | base64dec }}';
    await lab.apply(policy([template(configMap({}, { labels: { label } }))]));
    const reason = 'Invalid: the message is redacted, because the template reads Secrets';
    const text = `${IN_DEFAULT} in namespace default is missing, and cannot be created, reason: \`${reason}\``;
    const refused = await says(lab, violation(text));
    assert.ok(!JSON.stringify(refused).includes('hunter2'));
  });

  it('skip objects', async () => {
    await using lab = await startLab();
    const skipped = configMap({ mode: '{{ skipObject }}' });
    await lab.apply(policy([template(skipped)]));
    await says(lab, notification('All objects of kind ConfigMap were skipped by the `skipObject` template function'));
  });

  it('skip objects of a kind that is not served, until it is', async () => {
    await using lab = await startLab();
    const isMissing = 'not (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "widgets.lab.example.com")';
    const widget = {
      apiVersion: 'lab.example.com/v1',
      kind: 'Widget',
      metadata: { name: 'one', namespace: 'default', labels: { skip: `{{ skipObject (${isMissing}) }}` } },
    };
    await lab.apply(policy([template(widget)]));
    await says(lab, notification('All objects of kind Widget were skipped by the `skipObject` template function'));
    await lab.apply(templateKind('Widget', 'Namespaced'));
    await says(lab, notification('widgets [one] found as specified in namespace default'));
  });

  for (const [what, mode] of [
    ['do not parse', '{{ if }}'],
    ['do not end', '{{ range $i := until 10000 }}{{ range $j := until 10000 }}x{{ end }}{{ end }}'],
    ['explode', '{{ repeat 100000000 "x" }}'],
    ['call an unknown function', '{{ getHostByName "example.com" }}'],
  ] as const) {
    it(`that ${what} are a violation, and the controller goes on`, async () => {
      await using lab = await startLab();
      await lab.apply(policy([template(configMap({ mode })), template(configMap({}, { name: 'other' }))]));
      await lab.appears({ kind: 'ConfigMap', name: 'default/other' });
      const failed = await lab.sees(POLICY, (object) => object?.status?.compliant === 'NonCompliant');
      assert.ok(JSON.stringify(failed.status?.['compliancyDetails']).includes('"reason":"Error processing template"'));
      assert.equal(await lab.get(CONFIG_MAP), undefined);
    });
  }
});

describe('pruning', () => {
  const CREATED = { pruneObjectBehavior: 'DeleteIfCreated' };
  const ALL = { pruneObjectBehavior: 'DeleteAll' };
  const named = (name: string): JsonObject => template(configMap({ mode: 'safe' }, { name }));
  const reference = (name: string): LabReference => ({ kind: 'ConfigMap', name: `default/${name}` });
  const evaluated = (count: number) => (object: LabObject | undefined) =>
    object?.status?.['lastEvaluatedGeneration'] === object?.metadata.generation &&
    object?.status?.compliant === 'Compliant' &&
    related(object).length === count;

  it('deletes with a policy what it created, and leaves what was there before', async () => {
    await using lab = await startLab();
    await lab.apply(configMap({ mode: 'safe' }, { name: 'old' }));
    await lab.apply(policy([named('new'), named('old')], CREATED));
    await lab.sees(POLICY, evaluated(2));
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.equal(await lab.get(reference('new')), undefined);
    assert.notEqual(await lab.get(reference('old')), undefined);
  });

  it('deletes everything with DeleteAll, but nothing that it only looked at or that must not exist', async () => {
    await using lab = await startLab();
    const { metadata: _, ...rest } = configMap({ mode: 'seen' });
    await lab.apply(configMap({ mode: 'safe' }, { name: 'old' }), configMap({ mode: 'seen' }, { name: 'seen' }));
    const looked = template({ ...rest, metadata: { namespace: 'default' } });
    const unwanted = template(configMap({}, { name: 'unwanted' }), { complianceType: 'mustnothave' });
    await lab.apply(policy([named('new'), named('old'), looked, unwanted], ALL));
    await lab.sees(POLICY, evaluated(4));
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.deepEqual([await lab.get(reference('new')), await lab.get(reference('old'))], [undefined, undefined]);
    assert.notEqual(await lab.get(reference('seen')), undefined);
  });

  it('deletes what an edit removes, after an announcement, and nothing else', async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a'), named('b')], CREATED));
    await lab.sees(POLICY, evaluated(2));
    await lab.apply(policy([named('b')], CREATED));
    await lab.disappears(reference('a'));
    await lab.sees(POLICY, evaluated(1));
    assert.notEqual(await lab.get(reference('b')), undefined);
    for (const [reason, verb] of [
      ['ObjectsPruning', 'deletes'],
      ['ObjectsPruned', 'deleted'],
    ] as const) {
      const [event] = await lab.events(reason);
      assert.equal(event?.note, `${verb} by pruneObjectBehavior DeleteIfCreated: ConfigMap a`);
    }
  });

  it("leaves an object of somebody else that has the policy's field manager, and says that nothing proves its creator", async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a')], { ...CREATED, remediationAction: 'inform' }));
    const { uid = '' } = (await lab.sees(POLICY, (now) => newest(now)?.includes('not found') === true)).metadata;
    await lab.stopControllers();
    const forged = configMap({ mode: 'safe' }, { name: 'a' }) as unknown as KubernetesObject;
    await lab.cluster.admin.create(knownKind('v1', 'ConfigMap'), forged, {
      fieldManager: `portcullis-governance/${uid}`,
    });
    await lab.startControllers();
    await lab.merge(POLICY, { spec: { remediationAction: 'enforce' } });
    const seen = await lab.sees(POLICY, (now) => readyReason(now) === 'CreatorUnknown');
    const ready = findCondition(seen.status?.conditions, 'Ready');
    assert.equal(ready?.status, 'True');
    assert.match(ready.message, /^nothing proves that the policy created ConfigMap default\/a, /);
    assert.equal(related(seen)[0]?.properties?.createdByPolicy, undefined);
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.notEqual(await lab.get(reference('a')), undefined);
  });

  it('leaves an object that somebody else created again', async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a')], CREATED));
    await lab.sees(POLICY, evaluated(1));
    await lab.stopControllers();
    await lab.delete(reference('a'));
    await lab.apply(configMap({ mode: 'safe' }, { name: 'a' }));
    await lab.startControllers();
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.notEqual(await lab.get(reference('a')), undefined);
  });

  /** Each way to recreate an object: the object that is there, and the template. */
  const recreations: Readonly<Record<string, readonly [JsonObject, JsonObject]>> = {
    Always: [configMap({ mode: 'fast' }), template(configMap(), { recreateOption: 'Always' })],
    'IfRequired, because of an immutable field': [
      { ...configMap({ mode: 'fast' }), immutable: true },
      template(configMap(), { recreateOption: 'IfRequired' }),
    ],
    'Always, for mustonlyhave': [
      configMap({ mode: 'safe', more: 'x' }),
      template(configMap(), { recreateOption: 'Always', complianceType: 'mustonlyhave' }),
    ],
  };
  const isOwn = (object: LabObject | undefined): boolean | undefined => related(object)[0]?.properties?.createdByPolicy;

  for (const [how, [object, recreating]] of Object.entries(recreations)) {
    it(`leaves an object that was there before, and that the policy recreated: ${how}`, async () => {
      await using lab = await startLab();
      await lab.apply(object);
      const { uid } = (await lab.appears(CONFIG_MAP)).metadata;
      await lab.apply(policy([recreating], CREATED));
      await lab.sees(CONFIG_MAP, (now) => now !== undefined && now.metadata.uid !== uid);
      const seen = await lab.sees(POLICY, evaluated(1));
      assert.equal(isOwn(seen), false);
      await lab.delete(POLICY);
      await lab.disappears(POLICY);
      assert.equal((await lab.get(CONFIG_MAP))?.data?.['mode'], 'safe');
    });
  }

  it('deletes what the policy created, and recreated since', async () => {
    await using lab = await startLab();
    await lab.apply(policy([template(configMap(), { recreateOption: 'Always' })], CREATED));
    const { uid } = (await lab.appears(CONFIG_MAP)).metadata;
    await lab.sees(POLICY, evaluated(1));
    await lab.apply(configMap({ mode: 'fast' }));
    const again = await lab.sees(CONFIG_MAP, (now) => now?.data?.['mode'] === 'safe' && now.metadata.uid !== uid);
    await lab.sees(POLICY, (now) => related(now)[0]?.properties?.uid === again.metadata.uid);
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.equal(await lab.get(CONFIG_MAP), undefined);
  });

  it("leaves an object that a user put in place of the policy's own, and that the policy recreated", async () => {
    await using lab = await startLab();
    await lab.apply(policy([template(configMap(), { recreateOption: 'Always' })], CREATED));
    await lab.sees(POLICY, evaluated(1));
    await lab.stopControllers();
    await lab.delete(CONFIG_MAP);
    await lab.apply(configMap({ mode: 'fast' }));
    const { uid } = (await lab.appears(CONFIG_MAP)).metadata;
    await lab.startControllers();
    const again = await lab.sees(CONFIG_MAP, (now) => now !== undefined && now.metadata.uid !== uid);
    const seen = await lab.sees(POLICY, (now) => related(now)[0]?.properties?.uid === again.metadata.uid);
    assert.equal(isOwn(seen), false);
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.notEqual(await lab.get(CONFIG_MAP), undefined);
  });

  it('leaves an object whose recreation a finalizer delays until it is gone', async () => {
    await using lab = await startLab();
    await lab.apply(configMap({ mode: 'fast' }, { finalizers: ['lab.example.com/wait'] }));
    const { uid } = (await lab.appears(CONFIG_MAP)).metadata;
    await lab.apply(policy([template(configMap(), { recreateOption: 'Always' })], CREATED));
    await lab.sees(POLICY, (now) => newest(now)?.includes('timed out') === true);
    await lab.stopControllers();
    await lab.merge(CONFIG_MAP, { metadata: { finalizers: null } });
    await lab.disappears(CONFIG_MAP);
    await lab.startControllers();
    await lab.sees(CONFIG_MAP, (now) => now !== undefined && now.metadata.uid !== uid);
    const seen = await lab.sees(POLICY, evaluated(1));
    assert.equal(isOwn(seen), false);
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.notEqual(await lab.get(CONFIG_MAP), undefined);
  });

  it('deletes what the policy created after a user had deleted the object that was there before', async () => {
    await using lab = await startLab();
    await lab.apply(configMap());
    await lab.apply(policy([template(configMap(), { recreateOption: 'Always' })], CREATED));
    assert.equal(isOwn(await lab.sees(POLICY, evaluated(1))), false);
    await lab.delete(CONFIG_MAP);
    await lab.sees(POLICY, (now) => evaluated(1)(now) && isOwn(now) === true);
    await lab.delete(POLICY);
    await lab.disappears(POLICY);
    assert.equal(await lab.get(CONFIG_MAP), undefined);
  });

  it('deletes nothing after an edit by which the templates fail', async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a'), named('b')], ALL));
    await lab.sees(POLICY, evaluated(2));
    const broken = template(configMap({ mode: '{{ fail "broken" }}' }, { name: 'a' }));
    await lab.apply(policy([broken, named('b')], ALL));
    const failed = await lab.sees(POLICY, (object) => object?.status?.compliant === 'NonCompliant');
    assert.notEqual(await lab.get(reference('a')), undefined);
    assert.equal(related(failed).length, 2);
    await lab.apply(policy('{{ fail "broken" }}', ALL));
    await lab.sees(
      POLICY,
      (object) =>
        object?.status?.['lastEvaluatedGeneration'] === object?.metadata.generation && related(object).length === 2,
    );
    assert.notEqual(await lab.get(reference('b')), undefined);
    await lab.delete(POLICY);
    await lab.disappears(reference('a'));
    await lab.disappears(reference('b'));
  });

  it('does not take an object for another one after an edit of its version', async () => {
    await using lab = await startLab();
    const version = (name: string) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    });
    await lab.apply({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'gates.lab.example.com' },
      spec: {
        group: 'lab.example.com',
        scope: 'Cluster',
        names: { kind: 'Gate', plural: 'gates', singular: 'gate', listKind: 'GateList' },
        versions: [version('v1'), version('v2')],
      },
    });
    const gate = (apiVersion: string): JsonObject => ({
      apiVersion,
      kind: 'Gate',
      metadata: { name: 'web' },
      spec: {},
    });
    const web = { apiVersion: 'lab.example.com/v1', kind: 'Gate', name: 'web' };
    await lab.apply(policy([template(gate('lab.example.com/v1'))], ALL));
    await lab.sees(POLICY, evaluated(1));
    const { metadata } = await lab.appears(web);
    await lab.apply(policy([template(gate('lab.example.com/v2'))], ALL));
    await lab.sees(POLICY, evaluated(1));
    assert.equal((await lab.get(web))?.metadata.uid, metadata.uid);
  });

  it('waits for finalizers, and says what it waits for', async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a')], CREATED));
    await lab.sees(POLICY, evaluated(1));
    await lab.merge(reference('a'), { metadata: { finalizers: ['lab.example.com/hold'] } });
    await lab.delete(POLICY);
    const terminating = await lab.sees(POLICY, (object) => readyReason(object) === 'Pruning');
    assert.equal(terminating.status?.compliant, 'Terminating');
    const held = await lab.sees(POLICY, (object) =>
      (findCondition(object?.status?.conditions, 'Ready')?.message ?? '').startsWith('Failed to delete objects'),
    );
    assert.equal(
      findCondition(held.status?.conditions, 'Ready')?.message,
      'Failed to delete objects: v1, Kind=ConfigMap "a" in namespace default (it is being deleted)',
    );
    await lab.merge(reference('a'), { metadata: { finalizers: null } });
    await lab.disappears(POLICY);
  });

  it('deletes nothing when the kind of the policy is uninstalled', async () => {
    await using lab = await startLab();
    await lab.apply(policy([named('a')], ALL));
    await lab.sees(POLICY, evaluated(1));
    const name = 'configurationpolicies.policy.open-cluster-management.io';
    await lab.delete({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name });
    await lab.disappears({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name });
    assert.notEqual(await lab.get(reference('a')), undefined);
  });
});

describe('two ConfigurationPolicies that disagree about an object', () => {
  it('are both reported, and write less and less often', async () => {
    await using lab = await startLab();
    await lab.apply(configMap({ mode: 'none' }));
    const rival = { ...POLICY, name: 'local-cluster/rival' };
    await lab.apply(
      policy([template(configMap({ mode: 'left' }))]),
      policy([template(configMap({ mode: 'right' }))], {}, 'rival'),
    );
    for (const [reference, other] of [
      [POLICY, 'rival'],
      [rival, NAME],
    ] as const) {
      const contested = await lab.sees(reference, (object) => readyReason(object) === 'Contested');
      assert.equal(
        findCondition(contested.status?.conditions, 'Ready')?.message,
        `objects are changed in turn with ${other}: let only one policy enforce them`,
      );
    }
    const blocked = await Promise.any(
      [POLICY, rival].map((one) =>
        lab.sees(one, (object) => newest(object)?.includes('change this object in turn') === true),
      ),
    );
    assert.equal(blocked.status?.compliant, 'NonCompliant');
    await lab.delete(rival);
    await lab.sees(CONFIG_MAP, (object) => object?.data?.['mode'] === 'left');
  });
});
