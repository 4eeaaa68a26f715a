import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import {
  type AdmissionPolicySpec,
  policyId,
  type PolicyMatch,
  policyMatch,
  type ResourceType,
} from '../../resources/index.ts';
import { aborted, ObjectCache, Waiting } from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './webhook-kinds.ts';
import { until } from '../testing/until.ts';
import type { WebhookState } from '../rollout/webhook-state.ts';
import type { PolicyReference } from './enforcement-records.ts';
import { PolicyWebhooks } from './policy-webhooks.ts';
import type { Webhook, WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WritePace } from './write-pace.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
const { signal } = new AbortController();

interface TestPolicy {
  readonly policy: PolicyReference;
  readonly match: PolicyMatch;
  readonly spec: AdmissionPolicySpec;
}

function testPolicy(
  name: string,
  rest: object = {},
  policyServer = 'default',
  ownWebhook = false,
  namespace?: string,
): TestPolicy {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const key = { name, ...(namespace === undefined ? {} : { namespace }) };
  const spec = {
    module: 'x',
    mutating: false,
    rules: [RULE],
    timeoutSeconds: 10,
    ...rest,
  } as unknown as AdmissionPolicySpec;
  const match = policyMatch({ kind, metadata: key, spec }, { productNamespace: 'portcullis', ownWebhook });
  return { policy: { id: policyId({ kind, metadata: key }), kind, key, policyServer }, match, spec };
}

function forResource(name: string, resource: string, policyServer?: string): TestPolicy {
  return testPolicy(name, { rules: [{ ...RULE, resources: [resource] }] }, policyServer);
}

/** An embedded API server, and one leader after another that writes webhooks to it. */
class Scene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly registry = new Registry();
  readonly requeued: string[] = [];
  target: WebhookTarget | undefined = { url: 'https://localhost:8443', ca: 'PEM' };
  isReachable = true;
  /** The response to writes. */
  refusal: ApiError | undefined;
  /** The kind of configurations that another writer contests. */
  contested: ResourceType | undefined;
  /** Writes end when this does. */
  held: Promise<void> | undefined;
  writes = 0;
  #webhooks: PolicyWebhooks | undefined;
  #stop = new AbortController();
  #running: readonly Promise<void>[] = [];

  private constructor(cluster: EmbeddedCluster) {
    this.cluster = cluster;
  }

  static async open(): Promise<Scene> {
    const scene = new Scene(await EmbeddedCluster.open());
    await scene.lead();
    scene.webhooks.expect([]);
    return scene;
  }

  get webhooks(): PolicyWebhooks {
    assert.ok(this.#webhooks);
    return this.#webhooks;
  }

  /** Starts a new leader. */
  async lead(): Promise<void> {
    await this.#end();
    this.#stop = new AbortController();
    this.registry.clear();
    const log = pino({ level: 'silent' });
    const cluster: Cluster = new Proxy(this.cluster.admin, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        return typeof member !== 'function'
          ? member
          : (...args: unknown[]): unknown => {
              const isWrite = name === 'patch' || name === 'update';
              const contest =
                args[0] === this.contested ? new Waiting('Contested', 60_000, 'another writer') : undefined;
              const refusal = this.refusal ?? contest;
              if (!isWrite) {
                return Reflect.apply(member, target, args);
              }
              this.writes += 1;
              return refusal === undefined
                ? this.#write(() => Reflect.apply(member, target, args), args)
                : Promise.reject(refusal);
            };
      },
    });
    const labelSelector = 'app.kubernetes.io/managed-by=portcullis';
    const cacheOf = (type: typeof VALIDATING_WEBHOOKS): ObjectCache<WebhookConfiguration> =>
      new ObjectCache({ cluster, type, labelSelector, log });
    const [validating, mutating] = [cacheOf(VALIDATING_WEBHOOKS), cacheOf(MUTATING_WEBHOOKS)];
    this.#webhooks = new PolicyWebhooks({
      cluster,
      validating,
      mutating,
      target: () => this.target,
      isReachable: () => this.isReachable,
      exemptNamespaces: [],
      identities: [],
      productNamespace: 'portcullis',
      pace: () => new WritePace(0.05),
      isOurs: (server) => server !== 'theirs',
      requeue: ({ id }) => this.requeued.push(id),
      log,
      registry: this.registry,
    });
    this.#running = [validating, mutating, this.#webhooks].map((one) => one.start(this.#stop.signal));
    await this.#webhooks.ready;
  }

  /** What the policy is told of its webhook. */
  async enforce({ policy, match, spec }: TestPolicy, ...before: readonly TestPolicy[]): Promise<WebhookState['state']> {
    const matches = [...before.map((one) => one.match), match];
    return (await this.webhooks.enforce(policy, matches, spec, false, signal)).state;
  }

  /** Enforces a policy, and waits until it is woken and webhooks cover it. */
  async enforceFully(one: TestPolicy, ...before: readonly TestPolicy[]): Promise<void> {
    while (this.requeued.splice(0) && (await this.enforce(one, ...before)) !== 'Covered') {
      await until(() => this.requeued.includes(one.policy.id));
    }
  }

  isCovered(policy: PolicyReference, match: PolicyMatch | undefined): boolean {
    return this.webhooks.stateOf(policy, match).state === 'Covered';
  }

  webhooksOf(policyServer = 'default'): readonly Webhook[] {
    return [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS]
      .flatMap((type) => [...this.cluster.state.list(type)] as WebhookConfiguration[])
      .filter(({ metadata }) => metadata.labels?.['portcullis.dev/policy-server'] === policyServer)
      .flatMap(({ webhooks = [] }) => webhooks as readonly Webhook[]);
  }

  resources(policyServer?: string): string {
    return this.webhooksOf(policyServer)
      .flatMap(({ rules }) => rules.flatMap(({ resources }) => resources))
      .join();
  }

  /** A write that may be held up, and ends when its signal does. */
  async #write(write: () => unknown, args: readonly unknown[]): Promise<unknown> {
    const { signal: stopped } = args.at(-1) as { readonly signal: AbortSignal };
    await Promise.race([this.held, aborted(stopped)]);
    stopped.throwIfAborted();
    return await write();
  }

  async #end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    await this.cluster.close();
  }
}

describe('PolicyWebhooks', () => {
  it('covers a policy at once, and writes nothing when it is covered already', async () => {
    await using scene = await Scene.open();
    const pods = testPolicy('p');
    assert.equal(scene.isCovered(pods.policy, undefined), false);
    assert.equal(await scene.enforce(pods), 'Pending');
    await until(() => scene.requeued.includes(pods.policy.id));
    assert.equal(await scene.enforce(pods), 'Covered');
    assert.equal(scene.isCovered(pods.policy, undefined), true);
    const { revision } = scene.cluster;
    assert.equal(await scene.enforce(testPolicy('q')), 'Covered');
    scene.webhooks.targetsChanged();
    await scene.enforceFully(testPolicy('q'));
    assert.equal(scene.cluster.revision, revision);
  });

  it('creates webhooks of a policy server when it is reached, and updates them even when it is not', async () => {
    await using scene = await Scene.open();
    scene.isReachable = false;
    const [pods, secrets] = [forResource('p', 'pods'), forResource('s', 'secrets')];
    assert.equal(await scene.enforce(pods), 'Pending');
    scene.webhooks.targetsChanged();
    await sleep(100);
    assert.equal(scene.resources(), '');
    scene.isReachable = true;
    scene.webhooks.targetsChanged();
    await until(() => scene.requeued.includes(pods.policy.id));
    assert.equal(scene.resources(), 'pods');
    scene.isReachable = false;
    await scene.enforceFully(secrets);
    scene.webhooks.remove(pods.policy);
    await until(() => scene.resources() === 'secrets');
  });

  it('covers policies of an unreached policy server that another server or leader enforced before', async () => {
    await using scene = await Scene.open();
    const [onA, onB] = [forResource('p', 'pods', 'a'), forResource('p', 'pods', 'b')];
    await scene.enforceFully(onA);
    scene.isReachable = false;
    await scene.webhooks.dryRun(onB.policy, onB.match, onB.spec, signal);
    await scene.enforceFully(forResource('other', 'secrets', 'a'));
    await until(() => scene.resources('b') === 'pods');
    await scene.enforceFully(onB);
    await until(() => scene.resources('a') === 'secrets');

    await scene.lead();
    const active = forResource('q', 'configmaps', 'c');
    assert.equal(await scene.enforce(active), 'Pending');
    const { policy } = active;
    await scene.lead();
    await scene.enforceFully({ ...active, policy: { ...policy, isActive: true } });
    assert.equal(scene.resources('c'), 'configmaps');
  });

  it('requeues a policy after a deferred write', async () => {
    await using scene = await Scene.open();
    await scene.enforceFully(forResource('first', 'pods'));
    const second = forResource('second', 'secrets');
    assert.equal(await scene.enforce(second), 'Pending');
    await until(() => scene.requeued.includes('kw.cap.second'));
    assert.equal(await scene.enforce(second), 'Covered');
  });

  it('lets no reconciliation wait for a write, and wakes each policy once when it has ended', async () => {
    await using scene = await Scene.open();
    const write = Promise.withResolvers<void>();
    scene.held = write.promise;
    const all = Array.from({ length: 1_000 }, (_, index) => forResource(`p${index}`, `r${index % 100}`));
    for (const one of all) {
      assert.equal(await scene.enforce(one), 'Pending');
    }
    assert.deepEqual(scene.requeued, []);
    write.resolve();
    await until(() => scene.requeued.length >= all.length);
    assert.deepEqual(new Set(scene.requeued), new Set(all.map(({ policy }) => policy.id)));
    assert.equal(scene.requeued.length, all.length);
    const { writes } = scene;
    for (const one of all) {
      assert.equal(await scene.enforce(one), 'Covered');
    }
    assert.deepEqual([writes <= 10, scene.writes], [true, writes], `${writes} writes`);
  });

  it('loses no policy when the leader changes while a write is under way', async () => {
    await using scene = await Scene.open();
    scene.held = new Promise(() => undefined);
    const pods = testPolicy('p');
    assert.equal(await scene.enforce(pods), 'Pending');
    await until(() => scene.writes === 1);
    await scene.lead();
    scene.held = undefined;
    assert.equal(await scene.enforce(pods), 'Pending');
    await until(() => scene.requeued.includes(pods.policy.id));
    assert.equal(await scene.enforce(pods), 'Covered');
  });

  it('says that the own webhook of a removed policy is gone only after a write that may add it', async () => {
    await using scene = await Scene.open();
    const write = Promise.withResolvers<void>();
    scene.held = write.promise;
    const own = testPolicy('own', {}, 'default', true);
    assert.equal(await scene.enforce(own), 'Pending');
    await until(() => scene.writes === 1);
    assert.equal(scene.webhooks.remove(own.policy).state, 'Pending');
    write.resolve();
    await until(() => scene.requeued.splice(0).length > 0 && scene.webhooks.remove(own.policy).state === 'Absent');
    assert.deepEqual(scene.webhooksOf(), []);
  });

  it('wakes a policy whose webhook is gone and cannot be written again', async () => {
    await using scene = await Scene.open();
    const pods = testPolicy('p');
    await scene.enforceFully(pods);
    scene.refusal = new ApiError(403, 'Forbidden', 'not you');
    await scene.cluster.admin.delete(VALIDATING_WEBHOOKS, { name: 'portcullis-default' });
    const isFailing = (): boolean => scene.webhooks.stateOf(pods.policy, pods.match).state === 'Failing';
    await until(() => scene.requeued.splice(0).includes(pods.policy.id) && isFailing());
    scene.refusal = undefined;
    scene.requeued.length = 0;
    await until(() => scene.requeued.includes(pods.policy.id));
    assert.ok(scene.isCovered(pods.policy, pods.match));
  });

  it('covers both revisions of a policy, then the last one only', async () => {
    await using scene = await Scene.open();
    const [before, after] = [forResource('p', 'pods'), testPolicy('p', { mutating: true })];
    await scene.enforceFully(before);
    await scene.enforceFully(after, before);
    assert.ok(scene.isCovered(before.policy, before.match));
    assert.equal(await scene.enforce(after), 'Covered');
    await until(() => scene.webhooksOf().length === 1);
    assert.equal(scene.webhooksOf()[0]?.reinvocationPolicy, 'IfNeeded');
  });

  it('covers workloads for a policy that checks pod templates, in a webhook that never rejects for want of an answer', async () => {
    await using scene = await Scene.open();
    const rest = { podTemplates: 'Warn', objectSelector: { matchLabels: { a: 'b' } } };
    const [before, after] = [testPolicy('p'), testPolicy('p', rest)];
    await scene.enforceFully(before);
    assert.equal(scene.isCovered(testPolicy('q').policy, after.match), false);
    await scene.enforceFully(after);
    assert.ok(scene.isCovered(after.policy, after.match));
    await until(() => scene.webhooksOf().some(({ objectSelector }) => objectSelector.matchLabels !== undefined));
    const [pods, workloads] = scene.webhooksOf();
    assert.deepEqual([pods?.failurePolicy, pods?.rules], ['Fail', [{ ...RULE, scope: '*' }]]);
    assert.deepEqual(
      [workloads?.name, workloads?.failurePolicy, workloads?.objectSelector],
      ['validating.ignore.equivalent.cluster.templates.portcullis.dev', 'Ignore', {}],
    );
    assert.match(scene.resources(), /^pods,.*deployments.*cronjobs/);
    await scene.enforceFully(testPolicy('q', { podTemplates: 'Enforce' }));
    assert.equal(scene.webhooksOf().length, 2);
    scene.webhooks.remove(testPolicy('q').policy);
    await scene.enforceFully(before);
    await until(() => scene.webhooksOf().length === 1);
  });

  it('keeps the webhook of workloads before every policy was reconciled', async () => {
    await using scene = await Scene.open();
    const own = testPolicy('own', { podTemplates: 'Warn', mutating: true }, 'default', true, 'shop');
    await scene.enforceFully(own);
    await scene.lead();
    await scene.enforceFully(testPolicy('other'));
    assert.match(scene.resources(), /deployments/);
    assert.ok(scene.isCovered(own.policy, own.match));
    assert.ok(!scene.resources().includes('podtemplates'));
  });

  it('covers an upcoming revision in advance, without counting the policy as covered', async () => {
    await using scene = await Scene.open();
    const upcoming = testPolicy('upcoming');
    await scene.webhooks.dryRun(upcoming.policy, upcoming.match, upcoming.spec, signal);
    await until(() => scene.resources() === 'pods');
    assert.equal(scene.isCovered(upcoming.policy, undefined), false);
    scene.webhooks.clearUpcoming(upcoming.policy);
    await until(() => scene.webhooksOf().length === 0);
  });

  it('creates no webhook of its own in advance for a policy that never served', async () => {
    await using scene = await Scene.open();
    const own = testPolicy('own', {}, 'default', true);
    await scene.webhooks.dryRun(own.policy, own.match, own.spec, signal);
    await scene.enforceFully(testPolicy('other'));
    assert.ok(!scene.webhooksOf().some(({ name }) => name.startsWith('kw.')));
    await scene.enforceFully(own);
    assert.ok(scene.webhooksOf().some(({ name }) => name.startsWith('kw.')));
  });

  it('reports the refusal of one policy, and enforces the others', async () => {
    await using scene = await Scene.open();
    const large = {
      objectSelector: {
        matchLabels: Object.fromEntries(
          Array.from({ length: 2_000 }, (_, index) => [`a-long-label/${index}`, 'a-long-value-of-one']),
        ),
      },
    };
    await assert.rejects(scene.enforce(testPolicy('large', large)), /bytes, expected at most 64000/);
    await scene.enforceFully(testPolicy('good'));
    for (const bad of [{ sideEffects: 'Some' }, { matchConditions: [{ name: 'x', expression: 'nonsense(' }] }]) {
      // The dry run finds the error although the match is covered already.
      await assert.rejects(scene.enforce(testPolicy('bad', bad)), { name: 'ApiError', code: 422 });
    }
    const many = Array.from({ length: 64 }, (_, index) => ({ name: `c${index}`, expression: 'true' }));
    const wild = { rules: [{ ...RULE, apiGroups: ['*'] }], matchConditions: many };
    await assert.rejects(scene.enforce(testPolicy('bad', wild, 'default', true)), /expected at most 63/);
    await scene.enforceFully(testPolicy('bad', wild));
    assert.equal(scene.webhooksOf().length, 1);
  });

  it('writes separate configurations for each policy server, and removes those of a server without policies', async () => {
    await using scene = await Scene.open();
    const [one, other] = [forResource('a', 'pods', 'one'), forResource('b', 'secrets', 'other')];
    await scene.enforceFully(one);
    await scene.enforceFully(other);
    assert.deepEqual([scene.resources('one'), scene.resources('other')], ['pods', 'secrets']);
    scene.webhooks.remove({ ...one.policy, policyServer: 'default' });
    await until(() => scene.webhooksOf('one').length === 0);
    assert.equal(scene.resources('other'), 'secrets');
  });

  it('narrows no webhook before every policy was reconciled', async () => {
    await using scene = await Scene.open();
    await scene.enforceFully(forResource('a', 'pods'));
    await scene.enforceFully(forResource('b', 'secrets'));
    const own = testPolicy('own', {}, 'default', true);
    await scene.enforceFully(own);
    await scene.lead();
    const c = forResource('c', 'services');
    await scene.enforceFully(c);
    scene.webhooks.remove(own.policy);
    await until(() => !scene.webhooksOf().some(({ name }) => name.startsWith('kw.cap.own')));
    assert.equal(scene.resources(), 'pods,secrets,services');
    scene.webhooks.expect(['kw.cap.b', 'kw.cap.c']);
    scene.webhooks.targetsChanged();
    await scene.enforceFully(c);
    assert.equal(scene.resources(), 'pods,secrets,services');
    scene.webhooks.markReconciled('kw.cap.b');
    await until(() => scene.resources() === 'services');
  });

  it('moves mutating webhooks of namespaced policies out of the object of the previous version, and misses no request', async () => {
    await using scene = await Scene.open();
    const policies = [
      testPolicy('a', { mutating: true }),
      testPolicy('b', { mutating: true }, 'default', false, 'shop'),
      testPolicy('c', { mutating: true }, 'default', true, 'shop'),
    ];
    for (const policy of policies) {
      await scene.enforceFully(policy);
    }
    const { target } = scene;
    // Without a target, the edits below are not reverted.
    scene.target = undefined;
    const { admin } = scene.cluster;
    const { items } = await admin.list(MUTATING_WEBHOOKS);
    const made = new Map(items.map(({ metadata, webhooks = [] }) => [metadata.name, webhooks]));
    const [whole, part] = ['portcullis-default', 'namespaced-portcullis-default'].map((name) => ({ name }));
    assert.ok(whole !== undefined && part !== undefined);
    const before = await admin.get(MUTATING_WEBHOOKS, whole);
    await admin.update(MUTATING_WEBHOOKS, { ...before, webhooks: [...made.values()].flat() });
    await admin.delete(MUTATING_WEBHOOKS, part);
    await scene.lead();
    assert.ok(policies.every(({ policy, match }) => scene.isCovered(policy, match)));
    scene.target = target;
    scene.webhooks.expect(policies.map(({ policy }) => policy.id));
    for (const policy of policies) {
      assert.equal(await scene.enforce(policy), 'Covered');
    }
    const stored = (): readonly WebhookConfiguration[] => [...scene.cluster.state.list(MUTATING_WEBHOOKS)];
    await until(() => stored().length === 2 && scene.webhooksOf().length === 3);
    const now = new Map(stored().map((object) => [object.metadata.name, object]));
    assert.deepEqual(new Map([...now].map(([name, { webhooks }]) => [name, webhooks])), made);
    const [narrowed, added] = [now.get(whole.name), now.get(part.name)].map((one) => one?.metadata.resourceVersion);
    assert.ok(Number(added) < Number(narrowed), 'the new object is there before the other one is narrowed');
  });

  it('writes nothing for a policy server without a target, or of another controller', async () => {
    await using scene = await Scene.open();
    scene.target = undefined;
    const pods = testPolicy('p');
    assert.equal(await scene.enforce(pods), 'Pending');
    assert.equal(await scene.enforce(testPolicy('t', {}, 'theirs')), 'Pending');
    assert.deepEqual([scene.webhooksOf(), scene.webhooksOf('theirs')], [[], []]);
    scene.target = { service: { namespace: 'portcullis', name: 'policy-server-default', port: 443 }, ca: 'PEM' };
    scene.webhooks.targetsChanged();
    await until(() => scene.requeued.includes('kw.cap.p'));
    scene.target = { ...scene.target, ca: 'PEM and another' };
    scene.webhooks.targetsChanged();
    const caBundle = Buffer.from('PEM and another').toString('base64');
    await until(() => JSON.stringify(scene.webhooksOf()[0]?.clientConfig).includes(caBundle));
    assert.deepEqual(scene.webhooksOf('theirs'), []);
  });

  it('reports and counts a refused write, and retries it', async () => {
    await using scene = await Scene.open();
    scene.refusal = new ApiError(403, 'Forbidden', 'not you');
    const pods = testPolicy('p');
    assert.equal(await scene.enforce(pods), 'Pending');
    await until(() => scene.requeued.splice(0).includes(pods.policy.id));
    const refused = { state: 'Failing', reason: 'WebhookRefused', message: 'not you' };
    assert.deepEqual(scene.webhooks.stateOf(pods.policy, undefined), refused);
    // Told, it is not woken for the same failure again.
    assert.equal(await scene.enforce(pods), 'Failing');
    const failing = 'portcullis_webhook_configurations_failing{policy_server="default"} 1';
    assert.ok((await scene.registry.metrics()).includes(failing));
    scene.refusal = undefined;
    await until(() => scene.requeued.includes('kw.cap.p'));
    assert.ok(scene.isCovered(pods.policy, pods.match));
    const metrics = await scene.registry.metrics();
    assert.ok(!metrics.includes(failing));
    assert.match(metrics, /portcullis_webhooks\{policy_server="default",kind="ValidatingWebhookConfiguration"\} 1/);
    assert.match(metrics, /portcullis_webhook_configuration_writes_total\{result="written"\} 1/);
  });

  for (const [code, reason] of [
    [500, 'InternalError'],
    [409, 'Conflict'],
  ] as const) {
    it(`requeues policies that are not covered because writes keep failing with ${code}`, async () => {
      await using scene = await Scene.open();
      scene.refusal = new ApiError(code, reason, 'not now');
      const pods = testPolicy('p');
      assert.equal(await scene.enforce(pods), 'Pending');
      await until(() => scene.requeued.includes('kw.cap.p'));
      const failing = {
        state: 'Failing',
        reason: 'ReconcileFailed',
        message: 'webhooks of PolicyServer default not written: not now',
      };
      assert.deepEqual(scene.webhooks.stateOf(pods.policy, undefined), failing);
    });
  }

  it('writes all other configurations while another writer contests one, and requeues their policies', async () => {
    await using scene = await Scene.open();
    await scene.enforceFully(testPolicy('first'));
    await scene.enforceFully(testPolicy('second', { mutating: true }));
    scene.contested = VALIDATING_WEBHOOKS;
    const contested = forResource('contested', 'services');
    const other = testPolicy('other', { mutating: true, rules: [{ ...RULE, resources: ['services'] }] });
    scene.requeued.length = 0;
    await Promise.all([scene.enforce(contested), scene.enforce(other)]);
    await until(() => [contested, other].every(({ policy }) => scene.requeued.includes(policy.id)));
    assert.ok(scene.isCovered(other.policy, other.match));
    const { state, ...rest } = scene.webhooks.stateOf(contested.policy, undefined);
    assert.deepEqual([state, 'reason' in rest && rest.reason], ['Failing', 'Contested']);
  });
});
