import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster, type ListOptions, type WatchOptions } from '../../cluster/index.ts';
import {
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  type ObjectKey,
  OWN_KINDS,
  POLICY_EXCEPTIONS,
  type PolicyException,
  type ResourceType,
} from '../../resources/index.ts';
import type { AuditFinding } from '../finding.ts';
import { eventually, RunningAuditor } from '../testing/running-auditor.ts';
import { celSpec, NOT_LATEST, policyObject, ruleFor, samplePod } from '../testing/sample-policies.ts';

const PODS = knownKind('v1', 'Pod');
const SERVICES = knownKind('v1', 'Service');
const NAMESPACES = knownKind('v1', 'Namespace');
const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const POLICIES = CLUSTER_ADMISSION_POLICIES;
const OWN_POLICIES = ADMISSION_POLICIES;

/** Longer than what causes no evaluation could take to cause one. Milliseconds. */
const QUIET_MS = 700;
const IN_PROD = { namespaceSelector: { matchLabels: { tier: 'prod' } } };
/** Replaces the validations by one of the parameters. */
const LIMITS = {
  from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'limits' } },
  notFound: 'UseDefaults',
  overridable: ['validations'],
  settingsExpression: "{'validations': [{'expression': params.data.expression}]}",
};

describe('an auditor', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    for (const kind of OWN_KINDS) {
      await admin.create(CRDS, customResourceDefinition(kind));
    }
    for (const [name, labels] of Object.entries({ shop: { tier: 'prod' }, play: {} })) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      await admin.create(PODS, samplePod(name, 'bad', 'web:latest'));
      await admin.create(PODS, samplePod(name, 'good', 'web:1'));
    }
  });
  afterEach(async () => {
    await admin.deleteCollection(POLICIES);
    for (const namespace of ['shop', 'play']) {
      await admin.deleteCollection(OWN_POLICIES, { namespace });
      await admin.deleteCollection(CONFIG_MAPS, { namespace });
      await admin.deleteCollection(SERVICES, { namespace });
    }
  });
  after(() => embedded[Symbol.asyncDispose]());

  const states = (running: RunningAuditor, id: string) => (): readonly string[] =>
    running
      .coverage(id)
      .map(({ kind, state, reason }) =>
        [kind?.resource ?? '*', state, ...(reason === undefined ? [] : [reason])].join(' '),
      );

  /** Runs an auditor, and waits until its policies are for pods that it has all scanned. */
  async function scanned(ids: readonly string[], cluster: Cluster = admin): Promise<RunningAuditor> {
    const running = new RunningAuditor(cluster);
    for (const id of ids) {
      await eventually(() => running.coverage(id).map(({ state }) => state), ['Scanned']);
    }
    return running;
  }

  /** What is evaluated while something is done, after some time for more. */
  async function evaluatedBy(running: RunningAuditor, task: () => Promise<unknown>): Promise<readonly string[]> {
    running.evaluated.length = 0;
    await task();
    await sleep(QUIET_MS);
    return running.evaluated.toSorted();
  }

  const patch = (type: ResourceType, key: ObjectKey, body: JsonObject, subresource?: string): Promise<unknown> =>
    admin.patch(type, key, { type: 'merge', body }, subresource === undefined ? {} : { subresource });

  it('skips what accepted exceptions are for, until the second in which they end', async () => {
    const { metadata: policy } = await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await using running = await scanned(['kw.cap.latest']);
    const rejected = ['cap/latest fail Pod play/bad', 'cap/latest fail Pod shop/bad'];
    assert.deepEqual(running.findings, rejected);
    const key = { namespace: 'shop', name: 'one' };
    const accept = async (end: number): Promise<void> => {
      const { metadata } = await admin.create(POLICY_EXCEPTIONS, exceptionUntil(end, key));
      const evaluated = await evaluatedBy(running, () => Promise.resolve());
      assert.deepEqual([evaluated, running.findings], [[], rejected], 'nothing is accepted yet');
      const named = { kind: 'ClusterAdmissionPolicy', name: 'latest', uid: policy.uid ?? '' };
      const accepted = { uid: metadata.uid ?? '', generation: metadata.generation ?? 0, policies: [named] };
      await patch(POLICY_EXCEPTIONS, key, { status: { accepted } }, 'status');
    };
    const isSkipped = (): boolean => running.findings.includes('cap/latest skip Pod shop/bad');
    let end = 0;
    // One that ended before it was noticed says nothing.
    for (let forMs = 6_000; Date.now() >= end; forMs *= 2) {
      end = Math.ceil((Date.now() + forMs) / 1_000) * 1_000;
      await admin.delete(POLICY_EXCEPTIONS, key).catch(() => undefined);
      await accept(end);
      await eventually(() => isSkipped() || Date.now() >= end, true);
    }
    assert.deepEqual(running.findings, ['cap/latest fail Pod play/bad', 'cap/latest skip Pod shop/bad']);
    assert.deepEqual(
      running.coverage('kw.cap.latest').map(({ counts }) => [counts.failed, counts.skipped]),
      [[1, 1]],
    );
    await eventually(() => running.findings, rejected);
    assert.ok(Date.now() >= end);
    await admin.delete(POLICY_EXCEPTIONS, key);
  });

  it('finds what policies reject, and follows objects', async () => {
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await using running = await scanned(['kw.cap.latest']);
    assert.deepEqual(running.findings, ['cap/latest fail Pod play/bad', 'cap/latest fail Pod shop/bad']);
    await admin.create(PODS, samplePod('play', 'new', 'web:latest'));
    await eventually(() => running.findings.includes('cap/latest fail Pod play/new'), true);
    await admin.delete(PODS, { namespace: 'play', name: 'new' });
    await eventually(() => running.findings, ['cap/latest fail Pod play/bad', 'cap/latest fail Pod shop/bad']);
    const [{ policyId, policyUid, policyGeneration, objectVersion }] = running.auditor.of('play') as [AuditFinding];
    const { metadata } = await admin.get(PODS, { namespace: 'play', name: 'bad' });
    const { uid } = (await admin.get(POLICIES, { name: 'latest' })).metadata;
    assert.deepEqual(
      [policyId, policyUid, policyGeneration, objectVersion],
      ['kw.cap.latest', uid, 1, metadata.resourceVersion],
    );
    assert.equal(running.auditor.knowsPolicy(uid ?? ''), true);
    assert.equal(running.auditor.isSettled(uid ?? '', { group: '', kind: 'Pod' }), true);
    assert.equal(running.auditor.knowsPolicy('of nobody'), false);
  });

  it('evaluates nothing where nothing that a policy reads changes, and each pair once after a start', async () => {
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await admin.create(POLICIES, policyObject('prod', celSpec('false', IN_PROD)));
    await using running = await scanned(['kw.cap.latest', 'kw.cap.prod']);
    assert.equal(new Set(running.evaluated).size, running.evaluated.length, running.evaluated.join('\n'));
    assert.deepEqual(await evaluatedBy(running, () => Promise.resolve()), []);
    const status = { status: { phase: 'Running' } };
    const key = { namespace: 'shop', name: 'bad' };
    assert.deepEqual(await evaluatedBy(running, () => patch(PODS, key, status, 'status')), []);
    const note = { metadata: { annotations: { note: 'x' } } };
    assert.deepEqual(await evaluatedBy(running, () => patch(PODS, key, note)), []);
  });

  it('asks after a change of a namespace the policies that read it, about its objects', async () => {
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await admin.create(POLICIES, policyObject('prod', celSpec('false', IN_PROD)));
    await using running = await scanned(['kw.cap.latest', 'kw.cap.prod']);
    const label = (tier: string | null): Promise<unknown> =>
      patch(NAMESPACES, { name: 'play' }, { metadata: { labels: { tier } } });
    try {
      const evaluated = await evaluatedBy(running, async () => {
        await label('prod');
        await eventually(
          () => running.findings.filter((one) => one.startsWith('cap/prod')),
          [
            'cap/prod fail Pod play/bad',
            'cap/prod fail Pod play/good',
            'cap/prod fail Pod shop/bad',
            'cap/prod fail Pod shop/good',
          ],
        );
      });
      assert.deepEqual(evaluated, ['kw.cap.prod play/bad', 'kw.cap.prod play/good']);
    } finally {
      await label(null);
    }
    await eventually(
      () => running.findings.filter((one) => one.startsWith('cap/prod')),
      ['cap/prod fail Pod shop/bad', 'cap/prod fail Pod shop/good'],
    );
  });

  it('asks after a change of parameters the policy that reads them, in their namespace', async () => {
    await admin.create(POLICIES, policyObject('limits', celSpec(NOT_LATEST, { parameters: LIMITS })));
    await using running = await scanned(['kw.cap.limits']);
    const limits = (expression: string): KubernetesObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'play', name: 'limits' },
      data: { expression },
    });
    const evaluated = await evaluatedBy(running, async () => {
      await admin.create(CONFIG_MAPS, limits("object.metadata.name == 'bad'"));
      await eventually(() => running.findings, ['cap/limits fail Pod play/good', 'cap/limits fail Pod shop/bad']);
    });
    assert.deepEqual([...new Set(evaluated)], ['kw.cap.limits play/bad', 'kw.cap.limits play/good']);
    await admin.delete(CONFIG_MAPS, { namespace: 'play', name: 'limits' });
    await eventually(() => running.findings, ['cap/limits fail Pod play/bad', 'cap/limits fail Pod shop/bad']);
  });

  it('keeps no finding of an older generation of a policy, and none of one that is gone', async () => {
    await admin.create(POLICIES, policyObject('changing', celSpec(NOT_LATEST)));
    await admin.create(POLICIES, policyObject('other', celSpec("object.metadata.name != 'bad'")));
    await using running = await scanned(['kw.cap.changing', 'kw.cap.other']);
    const evaluated = await evaluatedBy(running, async () => {
      await patch(POLICIES, { name: 'changing' }, { spec: { settings: { validations: [{ expression: 'false' }] } } });
      await eventually(
        () => [...running.auditor.ofPolicy('kw.cap.changing')].map(({ policyGeneration }) => policyGeneration),
        [2, 2, 2, 2],
      );
      await eventually(states(running, 'kw.cap.changing'), ['pods Scanned']);
    });
    assert.ok(
      evaluated.every((one) => one.startsWith('kw.cap.changing ')),
      evaluated.join('\n'),
    );
    assert.equal(running.auditor.generationOf('kw.cap.changing'), 2);
    await patch(POLICIES, { name: 'changing' }, { spec: { rules: [ruleFor('replicationcontrollers')] } as JsonObject });
    await eventually(() => running.findings, ['cap/other fail Pod play/bad', 'cap/other fail Pod shop/bad']);
    await admin.delete(POLICIES, { name: 'other' });
    await eventually(() => running.findings, []);
    assert.equal(running.auditor.coverage('kw.cap.other'), undefined);
  });

  it('says which kinds of policies it may not read, at first or any more, and claims nothing by these policies', async () => {
    const [groups, policies] = [CLUSTER_ADMISSION_POLICY_GROUPS.resource, POLICIES.resource];
    const forbidden = new Set([groups]);
    const revoked = new AbortController();
    const refuse = (resource: string): never => {
      throw new ApiError(403, 'Forbidden', `${resource} is forbidden`);
    };
    const cluster = withReads(admin, ({ resource }) => (forbidden.has(resource) ? refuse(resource) : undefined));
    const ended = Object.assign(Object.create(cluster) as Cluster, {
      watch: (type: ResourceType, { signal = revoked.signal, ...options }: WatchOptions = {}) =>
        cluster.watch(type, {
          ...options,
          signal: type.resource === policies ? AbortSignal.any([signal, revoked.signal]) : signal,
        }),
    });
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await using running = await scanned(['kw.cap.latest'], ended);
    const unread = (): readonly unknown[] => running.auditor.unreadKinds().map(({ kind }) => kind?.resource);
    assert.deepEqual(unread(), [groups]);
    assert.deepEqual(running.auditor.unreadKinds()[0]?.missingRule, {
      apiGroups: ['policies.kubewarden.io'],
      resources: [groups],
      verbs: ['get', 'list', 'watch'],
    });
    forbidden.delete(groups);
    await eventually(unread, []);
    forbidden.add(policies);
    revoked.abort();
    await eventually(unread, [policies]);
    assert.equal(running.auditor.coverage('kw.cap.latest'), undefined);
    assert.deepEqual(running.findings.length, 2, 'what was found stays in reports');
  });

  it('says what is forbidden in the middle, and goes on with others', async () => {
    let isForbidden = false;
    const refuse = (): never => {
      throw new ApiError(403, 'Forbidden', 'pods is forbidden');
    };
    const cluster = withReads(admin, ({ resource }) => (isForbidden && resource === 'pods' ? refuse() : undefined));
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    await admin.create(
      POLICIES,
      policyObject('ports', celSpec("object.metadata.name != 'web'", { rules: [ruleFor('services')] })),
    );
    await using running = await scanned(['kw.cap.latest', 'kw.cap.ports'], cluster);
    isForbidden = true;
    // A changed policy needs a list.
    await patch(POLICIES, { name: 'latest' }, { spec: { settings: { validations: [{ expression: 'false' }] } } });
    await eventually(states(running, 'kw.cap.latest'), ['pods Forbidden Forbidden']);
    assert.deepEqual(running.coverage('kw.cap.latest')[0]?.missingRule, {
      apiGroups: [''],
      resources: ['pods'],
      verbs: ['list', 'watch'],
    });
    await admin.create(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'shop', name: 'web' },
      spec: { ports: [{ port: 80 }] },
    });
    await eventually(
      () => running.findings.filter((one) => one.startsWith('cap/ports')),
      ['cap/ports fail Service shop/web'],
    );
    assert.deepEqual(states(running, 'kw.cap.ports')(), ['services Scanned']);
    const { uid = '' } = (await admin.get(POLICIES, { name: 'latest' })).metadata;
    assert.equal(running.auditor.isSettled(uid, { group: '', kind: 'Pod' }), false);
    isForbidden = false;
    await eventually(states(running, 'kw.cap.latest'), ['pods Scanned']);
    assert.equal([...running.auditor.ofPolicy('kw.cap.latest')].length, 4);
  });

  it('goes on where a list expires in the middle, and judges nothing twice', async () => {
    let lists = 0;
    const cluster = withReads(admin, ({ resource }, options) => {
      if (resource === 'pods' && options.continue !== undefined) {
        lists += 1;
        if (lists === 1) {
          throw new ApiError(410, 'Expired', 'the list is too old');
        }
      }
      return undefined;
    });
    const names = Array.from({ length: 120 }, (_, index) => `many-${index}`);
    for (const name of names) {
      await admin.create(PODS, samplePod('play', name, `web:${name}`));
    }
    try {
      await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
      await using running = await scanned(['kw.cap.latest'], cluster);
      assert.equal(lists, 2);
      assert.equal(new Set(running.evaluated).size, running.evaluated.length);
      assert.equal(running.coverage('kw.cap.latest')[0]?.counts.scanned, 124);
    } finally {
      for (const name of names) {
        await admin.delete(PODS, { namespace: 'play', name });
      }
    }
  });

  it('notices kinds that appear and go', async () => {
    const names = { plural: 'widgets', singular: 'widget', kind: 'Widget' };
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        names,
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
    const widgets = { group: 'example.com', version: 'v1', resource: 'widgets', kind: 'Widget', namespaced: true };
    const rules = [{ ...ruleFor('widgets'), apiGroups: ['example.com'] }];
    await admin.create(POLICIES, policyObject('widgets', celSpec("object.metadata.name != 'bad'", { rules })));
    await using running = new RunningAuditor(admin);
    await eventually(states(running, 'kw.cap.widgets'), ['* NotServed NotServed']);
    await admin.create(CRDS, definition);
    await eventually(states(running, 'kw.cap.widgets'), ['widgets Scanned']);
    const metadata = { namespace: 'shop', name: 'bad' };
    await admin.create(widgets, { apiVersion: 'example.com/v1', kind: 'Widget', metadata });
    await eventually(() => running.findings, ['cap/widgets fail Widget shop/bad']);
    await admin.delete(CRDS, definition.metadata);
    await eventually(() => running.findings, []);
    await eventually(states(running, 'kw.cap.widgets'), ['* NotServed NotServed']);
  });

  it('judges again where what is looked up changed meanwhile, also back to what it was', async () => {
    await admin.create(POLICIES, policyObject('prod', celSpec("object.metadata.name == ''", IN_PROD)));
    await using running = await scanned(['kw.cap.prod']);
    const label = async (tier: string | null): Promise<void> => {
      await patch(NAMESPACES, { name: 'play' }, { metadata: { labels: { tier } } });
      await sleep(QUIET_MS);
    };
    running.around = async (evaluate) => {
      running.around = undefined;
      await label('prod');
      const verdicts = await evaluate();
      assert.deepEqual(
        verdicts.map(({ outcome, allowed }) => [outcome, allowed]),
        [['verdict', false]],
      );
      await label(null);
      return verdicts;
    };
    await admin.create(PODS, samplePod('play', 'new', 'web:1'));
    try {
      await eventually(() => running.around, undefined);
      await sleep(4 * QUIET_MS);
      await eventually(() => running.findings, ['cap/prod fail Pod shop/bad', 'cap/prod fail Pod shop/good']);
    } finally {
      await admin.delete(PODS, { namespace: 'play', name: 'new' });
    }
  });

  it('has no findings of a policy that cannot be loaded, and says so', async () => {
    await admin.create(POLICIES, policyObject('broken', celSpec(NOT_LATEST)));
    await using running = await scanned(['kw.cap.broken']);
    assert.equal(running.findings.length, 2);
    await patch(POLICIES, { name: 'broken' }, { spec: { module: 'file:///nowhere.wasm' } });
    await eventually(states(running, 'kw.cap.broken'), ['pods Failed NotLoaded']);
    assert.deepEqual(running.findings, []);
    const { uid = '' } = (await admin.get(POLICIES, { name: 'broken' })).metadata;
    assert.equal(running.auditor.isSettled(uid, { group: '', kind: 'Pod' }), false);
    assert.equal(running.auditor.knowsPolicy(uid), true);
  });

  it('evaluates nothing where only the severity of a policy changes, and says it', async () => {
    await admin.create(POLICIES, policyObject('severe', celSpec(NOT_LATEST)));
    await using running = await scanned(['kw.cap.severe']);
    const annotations = { 'io.kubewarden.policy.severity': 'high', 'io.kubewarden.policy.category': 'Images' };
    const evaluated = await evaluatedBy(running, async () => {
      await patch(POLICIES, { name: 'severe' }, { metadata: { annotations } });
      await eventually(
        () => [...running.auditor.ofPolicy('kw.cap.severe')].map(({ severity, category }) => [severity, category]),
        [
          ['high', 'Images'],
          ['high', 'Images'],
        ],
      );
    });
    assert.deepEqual(evaluated, []);
  });

  it('knows nothing from the moment on in which it leads no more, so that no stored result is removed', async () => {
    await admin.create(POLICIES, policyObject('latest', celSpec(NOT_LATEST)));
    const running = await scanned(['kw.cap.latest']);
    const { auditor } = running;
    const { uid = '' } = (await admin.get(POLICIES, { name: 'latest' })).metadata;
    const known: (boolean | undefined)[] = [];
    auditor.onChange(() => known.push(auditor.knowsPolicy(uid), auditor.isSettled(uid, { group: '', kind: 'Pod' })));
    await running[Symbol.asyncDispose]();
    assert.deepEqual([...new Set(known)], [undefined, false]);
    assert.deepEqual([running.findings, auditor.coverage('kw.cap.latest')], [[], undefined]);
  });

  it('says why policies are not audited', async () => {
    await admin.create(POLICIES, policyObject('user', celSpec("request.userInfo.username != 'x'")));
    await using running = new RunningAuditor(admin);
    await eventually(states(running, 'kw.cap.user'), ['* NotAuditable UserInfo']);
    const { uid = '' } = (await admin.get(POLICIES, { name: 'user' })).metadata;
    assert.equal(running.auditor.knowsPolicy(uid), false);
  });
});

/** Excepts the pod `bad` from the policy `latest`. */
function exceptionUntil(end: number, metadata: ObjectKey): PolicyException {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyException',
    metadata,
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'latest' }],
      objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['bad'] },
      reason: 'a test',
      expiresAt: `${new Date(end).toISOString().slice(0, -5)}Z`,
    },
  };
}

/** A cluster whose lists and watches may fail. */
function withReads(cluster: Cluster, before: (type: ResourceType, options: ListOptions) => undefined): Cluster {
  const reads: Pick<Cluster, 'list' | 'watch'> = {
    list: async (type, options = {}) => {
      before(type, options);
      return await cluster.list(type, options);
    },
    watch: (type, options = {}) => {
      before(type, options);
      return cluster.watch(type, options);
    },
  };
  return Object.assign(Object.create(cluster) as Cluster, reads);
}
