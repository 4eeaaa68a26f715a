import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { isNotFound } from '../cluster/index.ts';
import { builtinCatalogue, parseCatalogue } from '../engine/network-policy/index.ts';
import {
  ANNOTATIONS,
  type Condition,
  customResourceDefinition,
  findCondition,
  kubernetesKind,
  type JsonObject,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyStatus,
} from '../resources/index.ts';
import { SharedCaches } from '../runtime/index.ts';
import type { LoadCatalogue } from './current-catalogue.ts';
import { NetworkPolicyControllers } from './network-policy-controllers.ts';
import type { AnnotationMode } from './settings/annotation-mode.ts';
import { StatusRemoval } from './status-removal.ts';
import { agentPod, rangePolicy } from './testing/sample-cluster.ts';

const kind = (apiVersion: string, name: string) => kubernetesKind(apiVersion, name) ?? assert.fail(name);
const PODS = kind('v1', 'Pod');
const NAMESPACES = kind('v1', 'Namespace');
const POLICIES = kind('networking.k8s.io/v1', 'NetworkPolicy');
const KEY = { namespace: 'shop', name: 'myegress' };
const { signal } = new AbortController();
const ANNOTATION = ANNOTATIONS.networkPolicyStatus;
const log = pino({ level: 'silent' });

const ACCEPTED_BY_OTHER = {
  type: 'Accepted',
  status: 'True',
  reason: 'Accepted',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

describe('the status of NetworkPolicies', () => {
  let cluster: EmbeddedCluster;
  let running: AsyncDisposable;
  let registry: Registry;
  const events: string[] = [];
  const writes: string[] = [];

  const status = (key = KEY): Promise<NetworkPolicyStatus> => cluster.admin.get(NETWORK_POLICY_STATUSES, key);
  const accepted = async (key = KEY): Promise<Condition | undefined> => {
    try {
      return findCondition((await status(key)).status?.conditions, 'Accepted');
    } catch (error) {
      return isNotFound(error) ? undefined : assert.fail(String(error));
    }
  };
  const until = async (check: () => Promise<boolean>): Promise<void> => {
    for (let attempt = 0; attempt < 500; attempt += 1) {
      if (await check()) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.fail('it did not happen');
  };
  /** Several detections without a write. */
  const settled = async (): Promise<void> => {
    for (let before_ = -1; before_ !== writes.length;) {
      before_ = writes.length;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };

  /** Entries of another field manager. */
  const applyStatus = async (providers: readonly object[]): Promise<void> => {
    const identity = { apiVersion: 'portcullis.dev/v1', kind: 'NetworkPolicyStatus', metadata: KEY };
    const body = { ...identity, status: { providers: providers.map((one) => ({ ...one })) } };
    const options = { fieldManager: 'example', subresource: 'status' };
    await cluster.admin.patch(NETWORK_POLICY_STATUSES, KEY, { type: 'apply', body, force: true }, options);
  };

  before(async () => {
    cluster = await EmbeddedCluster.open({ networkPolicyStatus: true });
    const definitions = kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const one of NETWORK_POLICY_KINDS) {
      await cluster.admin.create(definitions, customResourceDefinition(one));
    }
    for (const name of ['shop', 'kube-system']) {
      await cluster.admin
        .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
        .catch(() => {});
    }
    await cluster.admin.create(PODS, agentPod());
    await cluster.admin.create(POLICIES, rangePolicy());
    running = await started();
    await until(async () => (await accepted()) !== undefined);
  });

  /** The controllers, until they are disposed. */
  const started = async (annotation?: AnnotationMode, loadCatalogue?: LoadCatalogue): Promise<AsyncDisposable> => {
    const stop = new AbortController();
    const caches = new SharedCaches({ cluster: cluster.admin, log });
    registry = new Registry();
    const controllers = new NetworkPolicyControllers({
      cluster: {
        ...bound(cluster.admin),
        patch: (type, key, patch, options) => {
          writes.push(`${type.kind}/${key.name}${options?.subresource === undefined ? '' : '/status'}`);
          return cluster.admin.patch(type, key, patch, options);
        },
      },
      caches,
      events: { event: (object, _type, reason) => events.push(`${object.kind}/${object.metadata.name}: ${reason}`) },
      registry,
      log,
      detectionIntervalMs: 10,
      comparisonDelayMs: 10,
      unknownReporterMs: 500,
      annotation,
      ...(loadCatalogue === undefined ? {} : { loadCatalogue }),
    });
    const ends = [caches.start(stop.signal), controllers.start(stop.signal)];
    return {
      [Symbol.asyncDispose]: async () => {
        stop.abort();
        await Promise.all(ends);
      },
    };
  };

  after(async () => {
    await running[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it('says which feature the provider does not support, and what it does instead', async () => {
    const { status: fields, metadata } = await status();
    assert.deepEqual(fields?.summary, {
      providers: 'cilium 1.15.4',
      unsupported: 'endPort',
      effect: 'FailClosed',
      // An advisory of this version.
      warnings: 'egress',
    });
    const condition = await accepted();
    assert.equal(condition?.status, 'False');
    assert.equal(condition?.reason, 'FeatureNotSupported');
    assert.match(condition?.message ?? '', /allows only port 30000, not 30000 to 32000/);
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind: owner, name }) => [owner, name]),
      [['NetworkPolicy', 'myegress']],
    );
    assert.deepEqual(events, ['NetworkPolicy/myegress: FeatureNotSupported']);
  });

  it('creates an object for the provider, with what was detected', async () => {
    await until(async () => (await cluster.admin.list(NETWORK_POLICY_PROVIDERS)).items[0]?.status !== undefined);
    const provider = await cluster.admin.get(NETWORK_POLICY_PROVIDERS, { name: 'cilium' });
    assert.equal(provider.status?.isPresent, 'True');
    assert.deepEqual(provider.status?.detected, { versions: ['v1.15.4'], nodes: 0 });
  });

  it('writes nothing while nothing changes', async () => {
    await settled();
    const count = writes.length;
    const pod = await cluster.admin.get<KubernetesObject>(PODS, { namespace: 'kube-system', name: 'cilium-a' });
    await cluster.admin.update(PODS, { ...pod, status: { phase: 'Running' } }, { subresource: 'status' });
    await settled();
    assert.deepEqual(writes.slice(count), []);
  });

  describe('that a provider reports itself', () => {
    const REPORTER = { controllerName: 'example.com/agent', username: 'reporter', expireAfterSeconds: 600 };
    const reported = (fields: object = {}, generation = 1): object => ({
      controllerName: REPORTER.controllerName,
      reporter: 'example',
      conditions: [{ ...ACCEPTED_BY_OTHER, observedGeneration: generation, ...fields }],
    });
    const heartbeat = async (name: string, time = Date.now()): Promise<void> => {
      const body = { status: { renewTime: new Date(time).toISOString() } };
      await cluster.admin.patch(NETWORK_POLICY_PROVIDERS, { name }, { type: 'merge', body }, { subresource: 'status' });
    };
    const declare = async (name: string, reporter: JsonObject): Promise<void> => {
      const { kind: kindName } = NETWORK_POLICY_PROVIDERS;
      const body = { apiVersion: 'portcullis.dev/v1', kind: kindName, metadata: { name }, spec: { reporter } };
      const patch = { type: 'apply', body, force: true } as const;
      await cluster.admin.patch(NETWORK_POLICY_PROVIDERS, { name }, patch, { fieldManager: 'admin' });
    };
    const reason = async (): Promise<string> => {
      const { status: state = '', reason: text = '' } = (await accepted()) ?? {};
      return `${state} ${text}`;
    };
    const entry = async (name: string) =>
      (await status()).status?.providers?.find(({ controllerName }) => controllerName === name);

    it('counts while its reporter is named and runs', async () => {
      await declare('example', REPORTER);
      await heartbeat('example');
      await applyStatus([reported({ status: 'Unknown', reason: 'Starting' })]);
      await until(async () => (await status()).status?.summary?.providers === 'cilium 1.15.4, example');
      assert.equal(await reason(), 'False FeatureNotSupported', 'the worst of all entries');
      await until(
        async () =>
          (await cluster.admin.get(NETWORK_POLICY_PROVIDERS, { name: 'example' })).status?.isReporting === 'True',
      );
      assert.match(await registry.metrics(), /portcullis_network_policies\{provider="example",accepted="Unknown"\} 1/);
    });

    it('says nothing that controls a terminal', async () => {
      await applyStatus([{ ...reported(), name: 'cilium', version: 'v1\u001B[2J\u009B2J\u202Etxt' }]);
      await until(async () => (await status()).status?.summary?.providers.includes('example 1') === true);
      const { summary } = (await status()).status ?? {};
      assert.equal(summary?.providers, 'cilium 1.15.4, example 1\u{fffd}[2J\u{fffd}2J\u{fffd}txt');
    });

    it('is removed when its reporter is silent for too long', async () => {
      await heartbeat('example', Date.now() - 601_000);
      await until(async () => (await entry('example.com/agent')) === undefined);
      await until(async () => (await status()).status?.summary?.providers === 'cilium 1.15.4');
      await declare('later', REPORTER);
      for (const [name, message] of [
        ['example', /status\.renewTime, which reporter writes, is more than 600 seconds ago/],
        ['later', /NetworkPolicyProvider example has the same spec\.reporter\.controllerName/],
      ] as const) {
        await until(async () => {
          const { status: fields } = await cluster.admin.get(NETWORK_POLICY_PROVIDERS, { name });
          const stalled = findCondition(fields?.conditions, 'Stalled');
          return stalled?.reason === 'ReporterSilent' && message.test(stalled.message);
        });
        await cluster.admin.delete(NETWORK_POLICY_PROVIDERS, { name });
      }
    });

    it('replaces what is concluded about the provider, with no field of ours left', async () => {
      await declare('cilium', { ...REPORTER, controllerName: 'cilium.io/agent' });
      await heartbeat('cilium');
      await until(
        async () =>
          (await cluster.admin.get(NETWORK_POLICY_PROVIDERS, { name: 'cilium' })).status?.isReporting === 'True',
      );
      const own = { ...reported(), controllerName: 'cilium.io/agent' };
      await applyStatus([own]);
      await until(async () => (await reason()) === 'True Accepted');
      await until(async () => (await entry('cilium.io/agent'))?.features === undefined);
      assert.deepEqual(await entry('cilium.io/agent'), own);
      assert.deepEqual((await status()).status?.providers?.length, 1);
      await settled();
      const count = writes.length;
      await settled();
      assert.equal(writes.length, count);
    });

    for (const [what, fields, generation, expected] of [
      ['another generation of the policy', {}, 7, 'Unknown ReportOutdated'],
      ['an older generation, with its failure', { status: 'False' }, 0, 'Unknown ReportOutdated'],
      ['another condition only', { type: 'Programmed' }, 1, 'Unknown ReportIncomplete'],
      ['something that does not work', { status: 'False', reason: 'Broken' }, 1, 'False Broken'],
    ] as const) {
      it(`is not accepted when it is about ${what}`, async () => {
        await applyStatus([{ ...reported(fields, generation), controllerName: 'cilium.io/agent' }]);
        await until(async () => (await reason()) === expected);
      });
    }

    it('is not accepted when it contradicts itself', async () => {
      const [condition] = (reported() as { conditions: readonly object[] }).conditions;
      const failure = { ...condition, type: 'PartialFailure', reason: 'Some' };
      await applyStatus([{ ...reported(), controllerName: 'cilium.io/agent', conditions: [condition, failure] }]);
      await until(async () => (await reason()) === 'False Some');
      const {
        type: _type,
        observedGeneration: _generation,
        ...feature
      } = { observedGeneration: 1, ...ACCEPTED_BY_OTHER };
      const unsupported = { ...feature, type: 'EndPort', status: 'False', reason: 'a text, and no reason' };
      await applyStatus([{ ...reported(), controllerName: 'cilium.io/agent', features: [unsupported] }]);
      await until(async () => (await reason()) === 'False FeatureNotSupported');
      assert.equal((await status()).status?.summary?.unsupported, 'endPort');
    });

    it('is replaced by what is concluded, with no field of it left, when its reporter is silent for too long', async () => {
      await heartbeat('cilium', Date.now() - 601_000);
      await until(async () => (await entry('cilium.io/agent'))?.reporter === 'portcullis-network-policy');
      assert.equal(await reason(), 'False FeatureNotSupported');
      const { conditions } = (await entry('cilium.io/agent')) ?? {};
      assert.deepEqual(conditions?.map(({ type }) => type).toSorted(), ['Accepted', 'PartialFailure']);
    });

    it('does not count from a clock in the future', async () => {
      await heartbeat('cilium', Date.now() + 3_600_000);
      await applyStatus([{ ...reported(), controllerName: 'cilium.io/agent' }]);
      await until(async () => (await entry('cilium.io/agent'))?.reporter === 'example');
      await until(async () => (await entry('cilium.io/agent'))?.reporter === 'portcullis-network-policy');
      await applyStatus([]);
      await cluster.admin.delete(NETWORK_POLICY_PROVIDERS, { name: 'cilium' });
      await until(async () => (await reason()) === 'False FeatureNotSupported');
    });

    it('may come before ours: the object is adopted', async () => {
      await declare('example', REPORTER);
      await heartbeat('example');
      const key = { namespace: 'shop', name: 'early' };
      const identity = { apiVersion: 'portcullis.dev/v1', kind: 'NetworkPolicyStatus', metadata: key };
      const options = { fieldManager: 'example' };
      await cluster.admin.patch(
        NETWORK_POLICY_STATUSES,
        key,
        { type: 'apply', body: { ...identity, spec: {} } },
        options,
      );
      const body = { ...identity, status: { providers: [{ ...reported() }] } };
      await cluster.admin.patch(
        NETWORK_POLICY_STATUSES,
        key,
        { type: 'apply', body },
        { ...options, subresource: 'status' },
      );
      await cluster.admin.create(POLICIES, rangePolicy('early'));
      await until(async () => (await status(key)).status?.summary?.providers === 'cilium 1.15.4, example');
      assert.equal((await status(key)).metadata.ownerReferences?.[0]?.name, 'early');
      await cluster.admin.delete(POLICIES, key);
      await until(async () => (await accepted(key)) === undefined);
      await cluster.admin.delete(NETWORK_POLICY_PROVIDERS, { name: 'example' });
    });
  });

  it('restores an entry that somebody edits, and reports it', async () => {
    const object = await status();
    const conditions = (object.status?.conditions ?? []).map((one) => ({ ...one, status: 'True' as const }));
    await cluster.admin.update(
      NETWORK_POLICY_STATUSES,
      { ...object, status: { ...object.status, conditions } },
      { subresource: 'status' },
    );
    await until(async () => (await accepted())?.status === 'False');
    // It is reported once it is restored.
    await until(async () => events.at(-1) === 'NetworkPolicy/myegress: NetworkPolicyStatusOverwritten');
  });

  it('restores an entry that another field manager takes over, and reports it', async () => {
    const count = events.length;
    await applyStatus([{ controllerName: 'cilium.io/agent', version: '99.0.0', conditions: [ACCEPTED_BY_OTHER] }]);
    await until(async () => (await accepted())?.status === 'False');
    await until(async () => (await status()).status?.providers?.[0]?.version === 'v1.15.4');
    await until(async () => events.length > count);
    assert.deepEqual(events.slice(count), ['NetworkPolicy/myegress: NetworkPolicyStatusOverwritten']);
    await applyStatus([]);
  });

  it('ignores an entry that another field manager writes in our name, and reports it', async () => {
    await settled();
    const [count, written] = [events.length, writes.length];
    const forged = { controllerName: 'example.com/agent', reporter: 'portcullis-network-policy' };
    await applyStatus([{ ...forged, conditions: [{ ...ACCEPTED_BY_OTHER, status: 'Unknown' }] }]);
    await until(async () => events.length > count);
    await settled();
    assert.ok([...new Set(events.slice(count))].every((one) => one.endsWith(': ForeignNetworkPolicyStatus')));
    assert.equal((await status()).status?.summary?.providers, 'cilium 1.15.4');
    assert.equal(writes.length, written);
    await applyStatus([]);
  });

  it('replaces an object with our label whose owner is another NetworkPolicy', async () => {
    const { metadata } = await status();
    const ownerReferences = (metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid: 'other' }));
    const body = { metadata: { ownerReferences } };
    await cluster.admin.patch(NETWORK_POLICY_STATUSES, KEY, { type: 'merge', body });
    const list = async () => (await cluster.admin.list<NetworkPolicyStatus>(NETWORK_POLICY_STATUSES)).items;
    await until(async () =>
      (await list()).some((one) => one.metadata.uid !== metadata.uid && one.status?.summary !== undefined),
    );
    assert.deepEqual((await status()).metadata.ownerReferences, metadata.ownerReferences);
  });

  it('becomes True when the provider is upgraded: one write, and the policy is not touched', async () => {
    const policy = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    await settled();
    const count = writes.length;
    const pod = await cluster.admin.get<KubernetesObject>(PODS, { namespace: 'kube-system', name: 'cilium-a' });
    const { spec } = agentPod({ image: 'quay.io/cilium/cilium:v1.16.0' });
    await cluster.admin.update(PODS, { ...pod, spec: { ...(pod['spec'] as object), ...(spec as object) } });
    await until(async () => (await accepted())?.status === 'True');
    await settled();
    assert.deepEqual(
      writes.slice(count).filter((one) => one.startsWith('NetworkPolicyStatus')),
      ['NetworkPolicyStatus/myegress/status'],
    );
    const { metadata, spec: rules } = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    assert.deepEqual([metadata.generation, rules], [policy.metadata.generation, policy['spec']]);
    assert.equal((await status()).status?.summary?.unsupported, undefined);
  });

  it('says that another policy of the namespace allows the same already, while it is there', async () => {
    const findings = async (): Promise<string | undefined> => (await status()).status?.summary?.findings;
    const egress = [{}];
    const wide = { ...rangePolicy('allow-all'), spec: { podSelector: {}, policyTypes: ['Egress'], egress } };
    await cluster.admin.create(POLICIES, wide);
    await until(async () => (await findings()) === 'Redundant');
    assert.match((await status()).status?.findings?.[0]?.message ?? '', /allow-all isolates the same pods/);
    await cluster.admin.delete(POLICIES, { namespace: 'shop', name: 'allow-all' });
    await until(async () => (await findings()) === undefined);
  });

  it('ignores an object that another client created for the policy, and reports it', async () => {
    const key = { namespace: 'shop', name: 'forged' };
    const { kind: kindName } = NETWORK_POLICY_STATUSES;
    const { metadata } = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    const owner = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      name: KEY.name,
      uid: metadata.uid ?? '',
    };
    await cluster.admin.create(NETWORK_POLICY_STATUSES, {
      apiVersion: 'portcullis.dev/v1',
      kind: kindName,
      metadata: { ...key, ownerReferences: [owner] },
      spec: {},
    });
    await cluster.admin.create(POLICIES, rangePolicy('forged'));
    await until(async () => events.includes('NetworkPolicy/forged: ForeignNetworkPolicyStatus'));
    assert.equal((await status(key)).status?.conditions, undefined);
    const lines = await registry.metrics();
    assert.match(lines, /portcullis_network_policy_status_forged_total\{kind="ignored"\} [1-9]/);
    assert.match(lines, /portcullis_network_policies\{provider="cilium",accepted="True"\} 1/);
  });

  it('is Unknown without a provider, whose object goes', async () => {
    await cluster.admin.delete(PODS, { namespace: 'kube-system', name: 'cilium-a' }, { gracePeriodSeconds: 0 });
    await until(async () => (await accepted())?.reason === 'ProviderNotFound');
    assert.match(await registry.metrics(), /portcullis_network_policies\{provider="none",accepted="Unknown"\} 2/);
    assert.deepEqual((await status()).status?.providers ?? [], []);
    await until(async () => (await cluster.admin.list(NETWORK_POLICY_PROVIDERS)).items.length === 0);
  });

  it('has the version that the provider’s own object has, where images have none', async () => {
    const [group, plural] = ['crd.projectcalico.org', 'clusterinformations'];
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const information = { apiVersion: `${group}/v1`, kind: 'ClusterInformation' };
    await cluster.admin.create(kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'), {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: 'Cluster',
        names: { plural, singular: 'clusterinformation', kind: information.kind },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    });
    const type = (await cluster.admin.discovery.find(information.apiVersion, information.kind)) ?? assert.fail();
    const key = { name: 'default' };
    await cluster.admin.create(type, { ...information, metadata: key, spec: { calicoVersion: 'v3.18.0' } });
    const image = `example.com/node@sha256:${'0'.repeat(64)}`;
    await cluster.admin.create(PODS, agentPod({ name: 'calico', container: 'calico-node', image }));
    await until(async () => (await status()).status?.summary?.providers === 'calico 3.18.0');
    assert.equal((await accepted())?.status, 'False');
    await cluster.admin.patch(type, key, { type: 'merge', body: { spec: { calicoVersion: 'v3.28.0' } } });
    await until(async () => (await accepted())?.status === 'True');
    await cluster.admin.delete(PODS, { namespace: 'kube-system', name: 'calico' }, { gracePeriodSeconds: 0 });
    await until(async () => (await accepted())?.reason === 'ProviderNotFound');
  });

  it('goes with the policy', async () => {
    await cluster.admin.delete(POLICIES, KEY);
    await until(async () => (await accepted()) === undefined);
  });

  it('goes when the controller is switched off', async () => {
    await cluster.admin.create(POLICIES, rangePolicy());
    await until(async () => (await accepted()) !== undefined);
    await running[Symbol.asyncDispose]();
    await new StatusRemoval({ cluster: cluster.admin, log }).remove(signal);
    assert.equal(await accepted(), undefined);
    assert.deepEqual((await cluster.admin.list(NETWORK_POLICY_PROVIDERS)).items, []);
  });

  it('is computed again when it is switched on again', async () => {
    await cluster.admin.create(PODS, agentPod());
    await using _ = await started();
    await until(async () => (await accepted())?.reason === 'FeatureNotSupported');
    await until(async () => (await cluster.admin.list(NETWORK_POLICY_PROVIDERS)).items.length === 1);
  });

  it('has the rows, agents and settings of a catalogue that is loaded', async () => {
    const text = `name: other
controllerName: example.com/other
checked: '2026-11-24'
latest: 9.0.0
inherits: cilium
detect: {agents: [{container: other-agent}], configMap: other-config}
features:
  EndPort: [{versions: '*', support: Unsupported, effect: Inert, evidence: Inferred, requires: [{setting: enable-policy, is: always}]}]
`;
    const load = async (): Promise<ReturnType<typeof builtinCatalogue>> =>
      builtinCatalogue().extended(parseCatalogue(text, 'other.yaml', builtinCatalogue()));
    await cluster.admin.create(kind('v1', 'ConfigMap'), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'other-config', namespace: 'kube-system' },
      data: { 'enable-policy': 'never' },
    });
    await cluster.admin.create(
      PODS,
      agentPod({ name: 'other', container: 'other-agent', image: 'example.com/a:v1.0.0' }),
    );
    await using _ = await started(undefined, load);
    const entry = async () =>
      (await status()).status?.providers?.find(({ controllerName }) => controllerName === 'example.com/other');
    await until(async () => findCondition((await entry())?.conditions, 'Accepted')?.reason === 'ProviderDisabled');
    assert.match(await registry.metrics(), /portcullis_network_policy_catalogue_missing 0/);
    await cluster.admin.delete(PODS, { namespace: 'kube-system', name: 'other' }, { gracePeriodSeconds: 0 });
    await until(async () => (await entry()) === undefined);
  });

  it('is repeated in the NetworkPolicy where that is switched on, and restored, without a change of its spec', async () => {
    const text = async (): Promise<string> =>
      (await cluster.admin.get<KubernetesObject>(POLICIES, KEY)).metadata.annotations?.[ANNOTATION] ?? '';
    const before = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    {
      await using _ = await started('write');
      await until(async () => (await text()).startsWith('Accepted=False, FeatureNotSupported'));
      const edit = { metadata: { annotations: { [ANNOTATION]: 'Accepted=True' } } };
      await cluster.admin.patch(POLICIES, KEY, { type: 'merge', body: edit });
      await until(async () => (await text()).startsWith('Accepted=False, FeatureNotSupported'));
      await until(async () => {
        const { status: fields } = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
        return JSON.stringify(fields).includes('"reason":"FeatureNotSupported"');
      });
      await settled();
      const count = writes.length;
      await settled();
      assert.equal(writes.length, count);
    }
    await new StatusRemoval({ cluster: cluster.admin, log }).remove(signal);
    const { metadata, spec, status: fields } = await cluster.admin.get<KubernetesObject>(POLICIES, KEY);
    assert.deepEqual([metadata.annotations, metadata.generation, spec], [undefined, 1, before['spec']]);
    assert.deepEqual(fields ?? {}, {});
  });
});

/** The methods of a cluster, which a copy of its fields does not have. */
function bound(admin: EmbeddedCluster['admin']): EmbeddedCluster['admin'] {
  return Object.assign(Object.create(admin) as EmbeddedCluster['admin'], {
    delete: admin.delete.bind(admin),
    list: admin.list.bind(admin),
    get: admin.get.bind(admin),
    discovery: admin.discovery,
  });
}
