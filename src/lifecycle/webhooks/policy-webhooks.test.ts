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
import { ObjectCache, Waiting } from '../../runtime/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../policy-kinds.ts';
import { until } from '../testing/until.ts';
import type { AskedPolicy } from './asked-records.ts';
import { type AskResult, PolicyWebhooks } from './policy-webhooks.ts';
import type { Webhook, WebhookConfiguration, WebhookTarget } from './webhook-object.ts';
import { WritePace } from './write-pace.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
const { signal } = new AbortController();

interface Asked {
  readonly policy: AskedPolicy;
  readonly match: PolicyMatch;
  readonly spec: AdmissionPolicySpec;
}

function asked(name: string, rest: object = {}, policyServer = 'default', ownWebhook = false): Asked {
  const kind = 'ClusterAdmissionPolicy';
  const key = { name };
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

function forResource(name: string, resource: string, policyServer?: string): Asked {
  return asked(name, { rules: [{ ...RULE, resources: [resource] }] }, policyServer);
}

/** An API server, and webhooks that are written to it by one leader after the other. */
class Scene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly registry = new Registry();
  readonly told: string[] = [];
  target: WebhookTarget | undefined = { url: 'https://localhost:8443', ca: 'PEM' };
  isReached = true;
  /** What API servers answer to writes. */
  refusal: ApiError | undefined;
  /** What is written again and again by somebody else. */
  contested: ResourceType | undefined;
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

  /** Another leader begins. */
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
              const held = args[0] === this.contested ? new Waiting('Contested', 60_000, 'somebody else') : undefined;
              const refusal = this.refusal ?? held;
              return isWrite && refusal !== undefined ? Promise.reject(refusal) : Reflect.apply(member, target, args);
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
      isReached: () => this.isReached,
      exemptNamespaces: [],
      identities: [],
      productNamespace: 'portcullis',
      pace: () => new WritePace(0.05),
      isOurs: (server) => server !== 'theirs',
      done: ({ id }) => this.told.push(id),
      log,
      registry: this.registry,
    });
    this.#running = [validating, mutating, this.#webhooks].map((one) => one.start(this.#stop.signal));
    await this.#webhooks.ready;
  }

  async ask({ policy, match, spec }: Asked, ...before: readonly Asked[]): Promise<AskResult> {
    const matches = [...before.map((one) => one.match), match];
    return await this.webhooks.ask(policy, matches, spec, false, signal);
  }

  /** Asks, and waits until API servers do. */
  async asks(one: Asked, ...before: readonly Asked[]): Promise<void> {
    this.told.length = 0;
    if ((await this.ask(one, ...before)) === 'later') {
      await until(() => this.told.includes(one.policy.id));
    }
  }

  found(policyServer = 'default'): readonly Webhook[] {
    return [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS]
      .flatMap((type) => [...this.cluster.state.list(type)] as WebhookConfiguration[])
      .filter(({ metadata }) => metadata.labels?.['portcullis.dev/policy-server'] === policyServer)
      .flatMap(({ webhooks = [] }) => webhooks as readonly Webhook[]);
  }

  resources(policyServer?: string): string {
    return this.found(policyServer)
      .flatMap(({ rules }) => rules.flatMap(({ resources }) => resources))
      .join();
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
  it('has API servers ask, at once, and not twice', async () => {
    await using scene = await Scene.open();
    const pods = asked('p');
    assert.equal(scene.webhooks.isAsked(pods.policy, undefined), false);
    assert.equal(await scene.ask(pods), 'written');
    assert.equal(await scene.ask(pods), 'asked');
    assert.equal(scene.webhooks.isAsked(pods.policy, undefined), true);
    const { revision } = scene.cluster;
    assert.equal(await scene.ask(asked('q')), 'asked');
    scene.webhooks.targetsChanged();
    await scene.asks(asked('q'));
    assert.equal(scene.cluster.revision, revision);
  });

  it('begins to ask a policy server when it is reached, and changes what it is asked also when it is not', async () => {
    await using scene = await Scene.open();
    scene.isReached = false;
    const [pods, secrets] = [forResource('p', 'pods'), forResource('s', 'secrets')];
    assert.equal(await scene.ask(pods), 'later');
    scene.webhooks.targetsChanged();
    await sleep(100);
    assert.equal(scene.resources(), '');
    scene.isReached = true;
    scene.webhooks.targetsChanged();
    await until(() => scene.told.includes(pods.policy.id));
    assert.equal(scene.resources(), 'pods');
    scene.isReached = false;
    await scene.asks(secrets);
    await scene.webhooks.dismiss(pods.policy, signal);
    await until(() => scene.resources() === 'secrets');
  });

  it('asks a policy server that is not reached about what was enforced before, by another one or under another leader', async () => {
    await using scene = await Scene.open();
    const [onA, onB] = [forResource('p', 'pods', 'a'), forResource('p', 'pods', 'b')];
    await scene.asks(onA);
    scene.isReached = false;
    await scene.webhooks.foresee(onB.policy, onB.match, onB.spec, signal);
    await scene.asks(forResource('other', 'secrets', 'a'));
    await until(() => scene.resources('b') === 'pods');
    await scene.asks(onB);
    await until(() => scene.resources('a') === 'secrets');

    await scene.lead();
    const active = forResource('q', 'configmaps', 'c');
    assert.equal(await scene.ask(active), 'later');
    const { policy } = active;
    await scene.lead();
    await scene.asks({ ...active, policy: { ...policy, isActive: true } });
    assert.equal(scene.resources('c'), 'configmaps');
  });

  it('tells a policy later, when its part is not written at once', async () => {
    await using scene = await Scene.open();
    await scene.asks(forResource('first', 'pods'));
    const second = forResource('second', 'secrets');
    assert.equal(await scene.ask(second), 'later');
    await until(() => scene.told.includes('kw.cap.second'));
    assert.equal(await scene.ask(second), 'asked');
  });

  it('asks about both revisions of a policy, then about the last only', async () => {
    await using scene = await Scene.open();
    const [before, after] = [forResource('p', 'pods'), asked('p', { mutating: true })];
    await scene.asks(before);
    await scene.asks(after, before);
    assert.ok(scene.webhooks.isAsked(before.policy, before.match));
    assert.equal(await scene.ask(after), 'asked');
    await until(() => scene.found().length === 1);
    assert.equal(scene.found()[0]?.reinvocationPolicy, 'IfNeeded');
  });

  it('has what is foreseen asked about in time, which is not to ask about the policy', async () => {
    await using scene = await Scene.open();
    const soon = asked('soon');
    await scene.webhooks.foresee(soon.policy, soon.match, soon.spec, signal);
    await until(() => scene.resources() === 'pods');
    assert.equal(scene.webhooks.isAsked(soon.policy, undefined), false);
    scene.webhooks.foreseeNothing(soon.policy);
    await until(() => scene.found().length === 0);
  });

  it('asks nobody in a webhook of its own of what never served', async () => {
    await using scene = await Scene.open();
    const own = asked('own', {}, 'default', true);
    await scene.webhooks.foresee(own.policy, own.match, own.spec, signal);
    await scene.asks(asked('other'));
    assert.ok(!scene.found().some(({ name }) => name.startsWith('kw.')));
    await scene.asks(own);
    assert.ok(scene.found().some(({ name }) => name.startsWith('kw.')));
  });

  it('lets an API server refuse one policy, and no other', async () => {
    await using scene = await Scene.open();
    const large = {
      objectSelector: {
        matchLabels: Object.fromEntries(
          Array.from({ length: 2_000 }, (_, index) => [`a-long-label/${index}`, 'a-long-value-of-one']),
        ),
      },
    };
    await assert.rejects(scene.ask(asked('large', large)), /bytes, expected at most 64000/);
    await scene.asks(asked('good'));
    for (const bad of [{ sideEffects: 'Some' }, { matchConditions: [{ name: 'x', expression: 'nonsense(' }] }]) {
      // It asks for nothing that is not asked about already.
      await assert.rejects(scene.ask(asked('bad', bad)), { name: 'WebhookRefusal' });
    }
    const many = Array.from({ length: 64 }, (_, index) => ({ name: `c${index}`, expression: 'true' }));
    const wild = { rules: [{ ...RULE, apiGroups: ['*'] }], matchConditions: many };
    await assert.rejects(scene.ask(asked('bad', wild, 'default', true)), /expected at most 63/);
    await scene.asks(asked('bad', wild));
    assert.equal(scene.found().length, 1);
  });

  it('keeps the configurations of policy servers apart, and removes those of one without policies', async () => {
    await using scene = await Scene.open();
    const [one, other] = [forResource('a', 'pods', 'one'), forResource('b', 'secrets', 'other')];
    await scene.asks(one);
    await scene.asks(other);
    assert.deepEqual([scene.resources('one'), scene.resources('other')], ['pods', 'secrets']);
    await scene.webhooks.dismiss({ ...one.policy, policyServer: 'default' }, signal);
    await until(() => scene.found('one').length === 0);
    assert.equal(scene.resources('other'), 'secrets');
  });

  it('leaves nothing out before it knows of every policy', async () => {
    await using scene = await Scene.open();
    await scene.asks(forResource('a', 'pods'));
    await scene.asks(forResource('b', 'secrets'));
    const own = asked('own', {}, 'default', true);
    await scene.asks(own);
    await scene.lead();
    const c = forResource('c', 'services');
    await scene.asks(c);
    await scene.webhooks.dismiss(own.policy, signal);
    await until(() => !scene.found().some(({ name }) => name.startsWith('kw.cap.own')));
    assert.equal(scene.resources(), 'pods,secrets,services');
    scene.webhooks.expect(['kw.cap.b', 'kw.cap.c']);
    scene.webhooks.targetsChanged();
    await scene.asks(c);
    assert.equal(scene.resources(), 'pods,secrets,services');
    scene.webhooks.know('kw.cap.b');
    await until(() => scene.resources() === 'services');
  });

  it('takes webhooks over whose paths are those of the version before, and never asks twice', async () => {
    await using scene = await Scene.open();
    const policies = [asked('a', { mutating: true }, 'default', true), asked('b', {}, 'default', true)];
    for (const policy of policies) {
      await scene.asks(policy);
    }
    const made = scene.found();
    const { target } = scene;
    // Nobody puts right what follows.
    scene.target = undefined;
    for (const type of [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS]) {
      const object = await scene.cluster.admin.get(type, { name: 'portcullis-default' });
      const text = JSON.stringify(object).replace(/[/]admit[/](?:validating|mutating)[.]/, '/admit/');
      await scene.cluster.admin.update(type, JSON.parse(text) as WebhookConfiguration);
    }
    await scene.lead();
    assert.ok(scene.found().every(({ clientConfig }) => JSON.stringify(clientConfig).includes('/admit/kw.cap.')));
    assert.ok(policies.every(({ policy, match }) => scene.webhooks.isAsked(policy, match)));
    scene.target = target;
    scene.webhooks.targetsChanged();
    await until(() => {
      assert.equal(scene.found().length, 2);
      return JSON.stringify(scene.found()) === JSON.stringify(made);
    });
  });

  it("writes nothing where it is not known where a policy server is, or it is another controller's", async () => {
    await using scene = await Scene.open();
    scene.target = undefined;
    const pods = asked('p');
    assert.equal(await scene.ask(pods), 'later');
    assert.equal(await scene.ask(asked('t', {}, 'theirs')), 'later');
    assert.deepEqual([scene.found(), scene.found('theirs')], [[], []]);
    scene.target = { service: { namespace: 'portcullis', name: 'policy-server-default', port: 443 }, ca: 'PEM' };
    scene.webhooks.targetsChanged();
    await until(() => scene.told.includes('kw.cap.p'));
    scene.target = { ...scene.target, ca: 'PEM and another' };
    scene.webhooks.targetsChanged();
    const caBundle = Buffer.from('PEM and another').toString('base64');
    await until(() => JSON.stringify(scene.found()[0]?.clientConfig).includes(caBundle));
    assert.deepEqual(scene.found('theirs'), []);
  });

  it('tells of what API servers refuse for all, counts it, and tries again', async () => {
    await using scene = await Scene.open();
    scene.refusal = new ApiError(403, 'Forbidden', 'not you');
    const pods = asked('p');
    assert.equal(await scene.ask(pods), 'later');
    assert.deepEqual(scene.webhooks.failure('default'), {
      state: 'reconciling',
      reason: 'WebhookRefused',
      message: 'not you',
    });
    const failing = 'portcullis_webhook_configurations_failing{policy_server="default"} 1';
    assert.ok((await scene.registry.metrics()).includes(failing));
    scene.refusal = undefined;
    await until(() => scene.webhooks.isAsked(pods.policy, pods.match));
    await until(() => scene.told.includes('kw.cap.p'));
    assert.equal(scene.webhooks.failure('default'), undefined);
    const metrics = await scene.registry.metrics();
    assert.ok(!metrics.includes(failing));
    assert.match(metrics, /portcullis_webhooks\{policy_server="default",kind="ValidatingWebhookConfiguration"\} 1/);
    assert.match(metrics, /portcullis_webhook_configuration_writes_total\{result="written"\} 1/);
  });

  for (const [code, reason] of [
    [500, 'InternalError'],
    [409, 'Conflict'],
  ] as const) {
    it(`calls policies that are not enforced because writes fail again and again with ${code}`, async () => {
      await using scene = await Scene.open();
      scene.refusal = new ApiError(code, reason, 'not now');
      const pods = asked('p');
      assert.equal(await scene.ask(pods), 'later');
      await until(() => scene.told.includes('kw.cap.p'));
      assert.deepEqual(scene.webhooks.failure('default'), {
        state: 'reconciling',
        reason: 'ReconcileFailed',
        message: 'not now',
      });
    });
  }

  it('writes all others while somebody else writes one again and again, and tells of them', async () => {
    await using scene = await Scene.open();
    await scene.ask(asked('first'));
    await scene.ask(asked('second', { mutating: true }));
    scene.contested = VALIDATING_WEBHOOKS;
    const held = forResource('held', 'services');
    const other = asked('other', { mutating: true, rules: [{ ...RULE, resources: ['services'] }] });
    scene.told.length = 0;
    const answers = await Promise.all([scene.ask(held), scene.ask(other)]);
    await until(() => scene.webhooks.isAsked(other.policy, other.match));
    await until(() => answers[1] === 'written' || scene.told.includes(other.policy.id));
    assert.equal(scene.webhooks.isAsked(held.policy, undefined), false);
    assert.equal(scene.webhooks.failure('default')?.reason, 'Contested');
  });
});
