import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { ApiError, type Cluster, ClusterError } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  AUDITOR_FIELD_MANAGER,
  CLUSTER_ADMISSION_POLICIES,
  type ClusterAdmissionPolicy,
  type AuditStatus,
  customResourceDefinition,
  findCondition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  LAST_APPLIED_ANNOTATION,
  POLICY_REVISIONS,
  READY,
  POLICY_SERVERS,
  type PolicyRevision,
  type ResourceType,
} from '../resources/index.ts';
import {
  aborted,
  errorKind,
  type EventSink,
  FIRST_REPORTED_FAILURE,
  ObjectCache,
  type ReconcileResult,
} from '../runtime/index.ts';
import type { PrevalidationResult, RevisionReport } from '../control/index.ts';
import { AnnotationWarnings } from './annotation-warnings.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './webhooks/webhook-kinds.ts';
import { PolicyReconciler } from './policy-reconciler.ts';
import { Prevalidations } from './prevalidations.ts';
import { MonitoredReports } from './replicas/monitored-reports.ts';
import type { KnownReplica, ReplicaDirectory } from './replicas/replica-directory.ts';
import { DEFAULT_ROLLOUT_SETTINGS, RevisionStore } from '../rollout/index.ts';
import { ERROR_RULES, type FallibleStep } from './rollout/error-rules.ts';
import { until } from './testing/until.ts';
import { asJson } from '../values/index.ts';
import type { WebhookState } from './rollout/webhook-state.ts';
import { RESOURCES_SERVED, TYPE_CHECKED } from './type-checks/type-check-conditions.ts';
import type { TypeCheckReport } from './type-checks/type-check-report.ts';
import { PolicyWebhooks } from './webhooks/policy-webhooks.ts';

/** Erases the screen by C0 and C1 controls, turns text around, and is a link. */
const HOSTILE = 'evil\u001B[2J\u009B2J\u202Etxt\u2066\u0007\u001B]8;;evil:a\u001B\\';
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u;
const KEY = { name: 'p' };
const NAMESPACE = 'portcullis';
const { signal } = new AbortController();

/** Replicas that accept every pre-validation, and report every revision as loaded. */
function obligingReplicas(
  embedded: EmbeddedCluster,
  states: readonly KnownReplica['state'][],
  answer: () => PrevalidationResult,
): ReplicaDirectory {
  const report = ({
    metadata,
    spec,
    status,
  }: KubernetesObject & { spec?: unknown; status?: unknown }): RevisionReport => ({
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    policy: 'kw.cap.p',
    revision: (spec as { revision: number }).revision,
    state: (status as { state?: string } | undefined)?.state === 'Serving' ? 'Serving' : 'Staged',
  });
  return {
    replicas: () =>
      states.length === 0
        ? undefined
        : states.map((state, index) => ({
            name: `r${index}`,
            policyServer: 'default',
            state,
            reports: () =>
              state === 'connected' ? [...embedded.state.list(POLICY_REVISIONS, NAMESPACE)].map(report) : [],
          })),
    monitored: new MonitoredReports(),
    subscribe: () => () => undefined,
    prevalidate: () => Promise.resolve(answer()),
  };
}

const AUDIT = {
  summary: '0',
  state: 'Complete',
  reason: 'Scanned',
  message: 'nothing',
  observedGeneration: 1,
  counts: { matched: 0, passed: 0, failed: 0, wouldChange: 0, unjudged: 0 },
  kinds: [],
} as const satisfies AuditStatus;

/** A cluster with a policy, and a reconciler whose caches receive no events after their first list. */
class Scene implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly events: string[] = [];
  /** States of the replicas; empty while replicas are unknown. */
  readonly states: KnownReplica['state'][] = ['connected'];
  readonly settings = { ...DEFAULT_ROLLOUT_SETTINGS };
  /** What replicas answer. */
  answer: PrevalidationResult = {
    ok: true,
    modules: [{ name: 'p', module: 'builtin:cel', digest: 'builtin:cel@1' }],
  };
  /** What is known of the kinds that the policy matches. */
  typeCheck: TypeCheckReport | undefined = { unserved: [], warnings: [], expressions: 0, kinds: [] };
  readonly reconciler: PolicyReconciler;
  readonly webhooks: PolicyWebhooks;
  readonly #stop = new AbortController();
  readonly #caches: readonly ObjectCache[];
  readonly #running: readonly Promise<void>[];
  readonly #prevalidated = Promise.withResolvers<void>();
  /** The webhook of the policy is not what its last reconciliation was told. */
  #woken = Promise.withResolvers<void>();
  #replaced: AdmissionPolicyObject | undefined;

  private constructor(embedded: EmbeddedCluster, cluster: Cluster) {
    this.cluster = embedded;
    const withoutEvents: Pick<Cluster, 'list' | 'watch'> = {
      list: (type, options) => embedded.admin.list(type, options),
      // eslint-disable-next-line require-yield
      async *watch(_type, options) {
        await aborted(options?.signal ?? new AbortController().signal);
      },
    };
    const cacheOf = <T extends KubernetesObject>(type: ResourceType<T>): ObjectCache<T> =>
      new ObjectCache({ cluster: withoutEvents, type, log: pino({ level: 'silent' }) });
    const cached = cacheOf<AdmissionPolicyObject>(CLUSTER_ADMISSION_POLICIES);
    const policies: Pick<ObjectCache<AdmissionPolicyObject>, 'get' | 'subscribe'> = {
      get: (key) => this.#replaced ?? cached.get(key),
      subscribe: (listener) => cached.subscribe(listener),
    };
    const [policyServers, revisions] = [cacheOf(POLICY_SERVERS), cacheOf(POLICY_REVISIONS)];
    const [validating, mutating] = [cacheOf(VALIDATING_WEBHOOKS), cacheOf(MUTATING_WEBHOOKS)];
    this.#caches = [cached, policyServers, revisions, validating, mutating] as readonly ObjectCache[];
    const replicas = obligingReplicas(embedded, this.states, () => this.answer);
    const events: EventSink = { event: (_object, type, reason) => this.events.push(`${type} ${reason}`) };
    const log = pino({ level: 'silent' });
    const webhooks = (this.webhooks = new PolicyWebhooks({
      cluster,
      validating,
      mutating,
      target: () => ({ url: 'https://localhost:8443', ca: 'PEM' }),
      exemptNamespaces: [],
      identities: [],
      productNamespace: 'portcullis',
      requeue: () => this.#woken.resolve(),
      log,
    }));
    this.#running = [...this.#caches, webhooks].map((one) => one.start(this.#stop.signal));
    this.reconciler = new PolicyReconciler(CLUSTER_ADMISSION_POLICIES, {
      cluster,
      policies,
      policyServers,
      revisions: new RevisionStore({ cluster, cache: revisions, namespace: NAMESPACE }),
      webhooks,
      namespace: NAMESPACE,
      replicas,
      prevalidations: new Prevalidations({
        replicas,
        requeue: () => this.#prevalidated.resolve(),
        failed: () => undefined,
      }),
      settings: this.settings,
      typeChecks: { of: () => this.typeCheck, forget: () => undefined },
      events,
      warnings: new AnnotationWarnings(events),
    });
  }

  static async open(
    through: (cluster: Cluster) => Cluster = (cluster) => cluster,
    annotations: Readonly<Record<string, string>> = {},
  ): Promise<Scene> {
    const embedded = await EmbeddedCluster.open();
    const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const kind of OWN_KINDS) {
      await embedded.admin.create(crds, customResourceDefinition(kind));
    }
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await embedded.admin.create(knownKind('v1', 'Namespace'), namespace);
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    await embedded.admin.create<KubernetesObject & { spec: unknown }>(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { ...KEY, annotations },
      spec: { module: 'builtin:cel', mutating: false, rules },
    });
    const scene = new Scene(embedded, through(embedded.admin));
    await Promise.all([scene.webhooks.ready, ...scene.#caches.map(({ synced }) => synced)]);
    return scene;
  }

  /** @param failures in a row before */
  async reconcile(failures: number = 0): Promise<ReconcileResult> {
    return await this.reconciler.reconcile(KEY, signal, { failures, stopped: signal });
  }

  /** Reconciles before and after the pre-validation, and each time that the policy is woken while its webhook is to be written. */
  async rollOut(): Promise<void> {
    await this.reconcile();
    await this.prevalidated();
    await this.reconcile();
    while (this.webhook().state === 'Pending') {
      await this.woken();
      await this.reconcile();
    }
  }

  async prevalidated(): Promise<void> {
    await this.#prevalidated.promise;
  }

  webhook(): WebhookState {
    const policy = { id: 'kw.cap.p', kind: 'ClusterAdmissionPolicy', key: KEY, policyServer: 'default' };
    return this.webhooks.stateOf(policy, undefined);
  }

  /** Resolves when the policy is woken, and forgets it. */
  async woken(): Promise<void> {
    await this.#woken.promise;
    this.#woken = Promise.withResolvers();
  }

  /** Makes the cache return this instead of the policy. */
  replace(policy: AdmissionPolicyObject): void {
    this.#replaced = policy;
  }

  /** Writes the part of the status that an auditor writes. */
  async writeAudit(): Promise<void> {
    const body = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { ...KEY },
      status: { audit: AUDIT },
    };
    const options = { subresource: 'status', fieldManager: AUDITOR_FIELD_MANAGER };
    await this.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'apply', body: asJson(body) }, options);
  }

  policy(): Promise<ClusterAdmissionPolicy> {
    return this.cluster.admin.get(CLUSTER_ADMISSION_POLICIES, KEY);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    await this.cluster.close();
  }
}

type Crd = KubernetesObject & {
  readonly spec: {
    readonly versions: readonly {
      readonly schema: {
        readonly openAPIV3Schema: {
          readonly properties: { readonly spec: { readonly properties: Record<string, unknown> } };
        };
      };
    }[];
  };
};

type Verb = 'create' | 'update' | 'patch' | 'delete';

/** A cluster in which requests fail for which `failure` returns an error, or wait for what it returns. */
function failing(
  failure: (verb: Verb, type: ResourceType, args: readonly unknown[]) => Error | Promise<void> | undefined,
): (cluster: Cluster) => Cluster {
  return (cluster) =>
    new Proxy(cluster, {
      get: (target, property) => {
        const member: unknown = Reflect.get(target, property);
        return typeof member !== 'function'
          ? member
          : (...args: unknown[]): unknown => {
              const met = failure(property as Verb, args[0] as ResourceType, args);
              const apply = (): unknown => Reflect.apply(member, target, args);
              return met instanceof Error ? Promise.reject(met) : met === undefined ? apply() : met.then(apply);
            };
      },
    });
}

/** A cluster that refuses webhook configurations. */
function refusing(code: 403 | 422): (cluster: Cluster) => Cluster {
  const error = new ApiError(code, code === 403 ? 'Forbidden' : 'Invalid', 'not these');
  return failing((verb, { group }) =>
    (verb === 'create' || verb === 'patch') && group === 'admissionregistration.k8s.io' ? error : undefined,
  );
}

/** A cluster that refuses patches of a policy's spec and annotations. */
function unpatchable(code: 403 | 409): (cluster: Cluster) => Cluster {
  const error = new ApiError(code, code === 403 ? 'Forbidden' : 'Conflict', 'not permitted');
  return failing((verb, _type, args) =>
    verb === 'patch' && (args[2] as { type: string }).type === 'json' ? error : undefined,
  );
}

describe('PolicyReconciler', () => {
  it('writes the status before a slow pre-validation and after it', async () => {
    await using scene = await Scene.open();
    await scene.reconcile();
    const { status } = await scene.policy();
    assert.deepEqual([status?.phase, status?.observedGeneration], ['Pending', 1]);
    await scene.rollOut();
    assert.equal((await scene.policy()).status?.phase, 'Active');
  });

  it('leaves the part of the auditor as it is, and writes nothing because of it', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    await scene.writeAudit();
    const { metadata } = await scene.policy();
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.equal((await scene.policy()).metadata.resourceVersion, metadata.resourceVersion);
    scene.states.push('connected');
    await scene.reconcile();
    const { status } = await scene.policy();
    assert.deepEqual([status?.totalReplicas, status?.audit], [2, AUDIT]);
  });

  for (const [what, answer] of Object.entries({
    'a failure': { ok: false, reason: 'ModuleNotFound', message: HOSTILE, isTransient: true },
    warnings: {
      ok: true,
      modules: [{ name: 'p', module: 'builtin:cel', digest: 'builtin:cel@1' }],
      warnings: [HOSTILE],
    },
  } as const satisfies Readonly<Record<string, PrevalidationResult>>)) {
    it(`writes nothing into statuses that controls a terminal, where a pre-validation has ${what}`, async () => {
      await using scene = await Scene.open();
      scene.answer = answer;
      await scene.rollOut();
      const revision = await scene.cluster.admin.get(POLICY_REVISIONS, { namespace: NAMESPACE, name: 'kw.cap.p-1' });
      for (const { status } of [await scene.policy(), revision]) {
        const texts = JSON.stringify(status, (_, value: unknown) =>
          typeof value === 'string' && CONTROLS.test(value) ? assert.fail(value) : value,
        );
        assert.match(texts, /evil\u{fffd}\[2J/u);
      }
    });
  }

  it('writes no issue that controls a terminal, where an expression has it', async () => {
    await using scene = await Scene.open();
    const warnings = [{ field: 'spec.settings', message: HOSTILE }];
    scene.typeCheck = { unserved: [], warnings, expressions: 1, kinds: ['v1 Pod'] };
    await scene.rollOut();
    const { issues } = (await scene.policy()).status ?? {};
    assert.deepEqual(
      issues?.map(({ message }) => message),
      ['evil\u{fffd}[2J\u{fffd}2J\u{fffd}txt\u{fffd}\u{fffd}\u{fffd}]8;;evil:a\u{fffd}\\'],
    );
  });

  it('repeats no write and no event while its caches are stale', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    assert.equal((await scene.policy()).status?.phase, 'Active');
    const { revision } = scene.cluster;
    await scene.reconcile();
    await scene.reconcile();
    assert.equal(scene.cluster.revision, revision);
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 1);
    assert.deepEqual(scene.events, ['Normal Serving']);
  });

  it('writes what is wrong for the kinds of the cluster, once, and that it has healed', async () => {
    await using scene = await Scene.open();
    const good = { unserved: [], warnings: [], expressions: 1, kinds: ['v1 Pod'] };
    const stateOf = async (): Promise<readonly string[]> => {
      const { conditions } = (await scene.policy()).status ?? {};
      return [RESOURCES_SERVED, TYPE_CHECKED].map((type) => findCondition(conditions, type)?.status ?? 'none');
    };
    const readiness = async (): Promise<string> => {
      const { status, reason, message } = findCondition((await scene.policy()).status?.conditions, READY) ?? {};
      return `${status} ${reason}: ${message}`;
    };
    const serves = 'revision 1 serves on every replica';
    scene.typeCheck = undefined;
    await scene.rollOut();
    assert.deepEqual(await stateOf(), ['none', 'none']);
    assert.match(
      await readiness(),
      /^False Checking: revision 1 serves on every replica; its rules and expressions are /,
    );
    const problem = { field: 'spec.rules[0].resources[0]', message: 'the cluster serves no resource "pod"' };
    scene.typeCheck = { ...good, unserved: [problem] };
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.deepEqual(await stateOf(), ['False', 'True']);
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.deepEqual(scene.events, ['Normal Serving', 'Warning NotServed']);
    assert.equal(await readiness(), `True NotServed: ${serves}, but ${problem.field}: ${problem.message}`);
    scene.typeCheck = { ...good, unserved: [{ ...problem, isCertain: true }] };
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.equal(await readiness(), `False CannotMatch: ${serves}, but ${problem.field}: ${problem.message}`);
    // A controller that starts knows nothing yet.
    scene.typeCheck = undefined;
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.match(await readiness(), /^False CannotMatch: /);
    scene.typeCheck = good;
    scene.replace(await scene.policy());
    await scene.reconcile();
    assert.deepEqual(await stateOf(), ['True', 'True']);
    assert.equal(await readiness(), `True Serving: ${serves}`);
    assert.deepEqual(scene.events, ['Normal Serving', 'Warning NotServed', 'Warning CannotMatch']);
  });

  it('creates no second revision when its cache lacks the one of another process', async () => {
    await using scene = await Scene.open();
    await using other = await Scene.open();
    await scene.rollOut();
    const [made] = [...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)];
    assert.ok(made);
    const { resourceVersion: _, uid: __, ...metadata } = made.metadata;
    await other.cluster.admin.create(POLICY_REVISIONS, { ...made, metadata });
    await assert.rejects(other.reconcile(), { name: 'ApiError', reason: 'AlreadyExists' });
    assert.equal([...other.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 1);
  });

  it('leaves a policy where it serves when another schema lets it name another PolicyServer', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    const write = async (spec: JsonObject): Promise<void> => {
      const patch = { type: 'merge', body: { spec } } as const;
      scene.replace(await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, patch));
    };
    await assert.rejects(write({ policyServer: 'other' }), /spec\.policyServer: .*the field is immutable/);

    const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const ours = await scene.cluster.admin.get(crds, { name: 'clusteradmissionpolicies.policies.kubewarden.io' });
    const other = structuredClone(ours) as Crd;
    const fields = other.spec.versions[0]?.schema.openAPIV3Schema.properties.spec.properties ?? {};
    fields['policyServer'] = { type: 'string' };
    await scene.cluster.admin.update(crds, other);
    await write({ policyServer: 'other', failurePolicy: 'Ignore' });
    await assert.rejects(scene.reconcile(FIRST_REPORTED_FAILURE), { reason: 'SchemaReplaced' });
    const { status } = await scene.policy();
    const revisions = [...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)];
    assert.deepEqual([revisions.length, status?.servingRevision, status?.totalReplicas], [1, 1, 1]);
    assert.match(
      status?.message ?? '',
      /^spec\.policyServer was changed from default to other .*: nothing new is rolled out, and PolicyServer default goes on/,
    );
    assert.equal(scene.webhook().state, 'Covered');

    await write({ policyServer: 'default' });
    await scene.reconcile();
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 2);
  });

  describe('of a policy that has lost its parameters', () => {
    const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const parameters = {
      from: { namespace: { labels: ['tier'] } },
      overridable: ['variables'],
      settingsExpression: '{}',
    };
    const write = async (scene: Scene, spec: JsonObject): Promise<void> => {
      scene.replace(
        await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body: { spec } }),
      );
    };
    const withParameters = async (scene: Scene): Promise<void> => {
      await write(scene, { parameters });
      await scene.rollOut();
      assert.equal((await scene.policy()).status?.phase, 'Active');
    };
    const revisions = (scene: Scene): number => [...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length;

    const key = { name: 'clusteradmissionpolicies.policies.kubewarden.io' };
    /** Puts a schema without parameters in the place of ours. Returns how to put ours back. */
    const replaceSchema = async (scene: Scene): Promise<() => Promise<unknown>> => {
      const ours = (await scene.cluster.admin.get(crds, key)) as Crd;
      const other = structuredClone(ours);
      delete other.spec.versions[0]?.schema.openAPIV3Schema.properties.spec.properties['parameters'];
      await scene.cluster.admin.update(crds, other);
      return async () => {
        const { metadata } = await scene.cluster.admin.get(crds, key);
        return await scene.cluster.admin.update(crds, { ...ours, metadata });
      };
    };
    const isHeld = async (scene: Scene): Promise<void> => {
      await assert.rejects(scene.reconcile(FIRST_REPORTED_FAILURE), { reason: 'SchemaReplaced' });
    };

    it('rolls out nothing new while another schema drops them', async () => {
      await using scene = await Scene.open();
      await withParameters(scene);
      await replaceSchema(scene);
      await write(scene, { failurePolicy: 'Ignore' });
      assert.equal((await scene.policy()).spec.parameters, undefined);
      await isHeld(scene);
      const { status } = await scene.policy();
      assert.deepEqual([status?.reason, status?.servingRevision, revisions(scene)], ['SchemaReplaced', 1, 1]);
    });

    it('rolls out nothing new when the schema is back, until the policy is written again', async () => {
      await using scene = await Scene.open();
      await withParameters(scene);
      const putBack = await replaceSchema(scene);
      await write(scene, { failurePolicy: 'Ignore' });
      await isHeld(scene);
      await putBack();
      scene.replace(await scene.policy());
      await isHeld(scene);
      assert.equal(revisions(scene), 1);
      await write(scene, { parameters });
      await scene.reconcile();
      assert.equal(revisions(scene), 2);
    });

    it('rolls out nothing of it when it was applied with them under another schema', async () => {
      await using scene = await Scene.open();
      await replaceSchema(scene);
      const applied = async (spec: JsonObject): Promise<void> => {
        const annotations = { [LAST_APPLIED_ANNOTATION]: JSON.stringify({ spec }) };
        const body = { metadata: { annotations } };
        scene.replace(await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body }));
      };
      await applied({ parameters });
      await isHeld(scene);
      assert.equal(revisions(scene), 0);
      await applied({});
      await scene.reconcile();
      assert.equal(revisions(scene), 1);
    });

    it('takes no notice of what else the annotation of an apply says', async () => {
      await using scene = await Scene.open();
      for (const text of [
        '{',
        '[]',
        '{"spec":{"parameters":1}}',
        '{"spec":{"parameters":{"from":7}}}',
        '{"spec":{"policies":{"a":{"parameters":{}}}}}',
      ]) {
        const body = { metadata: { annotations: { [LAST_APPLIED_ANNOTATION]: text } } };
        scene.replace(await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body }));
        await scene.reconcile();
      }
      assert.equal(revisions(scene), 1);
    });

    it('rolls out what was declared without them', async () => {
      await using scene = await Scene.open();
      await withParameters(scene);
      await write(scene, { parameters: null });
      await scene.reconcile();
      assert.equal(revisions(scene), 2);
    });
  });

  it('reports that a configuration was refused, and does not retry with backoff', async () => {
    await using scene = await Scene.open(refusing(422));
    await scene.rollOut();
    const { status } = await scene.policy();
    assert.deepEqual([status?.phase, status?.reason], ['Error', 'WebhookRefused']);
    assert.match(status?.message ?? '', /not these/);
    assert.deepEqual(scene.events, ['Warning WebhookRefused']);
  });

  it('reports that it must not write configurations, and retries with backoff', async () => {
    await using scene = await Scene.open(refusing(403));
    await assert.rejects(scene.rollOut(), { name: 'ReconcileError', reason: 'WebhookRefused', retry: 'with backoff' });
    assert.equal((await scene.policy()).status?.reason, 'WebhookRefused');
  });

  it('removes webhooks and revisions of a deleted policy before a new one of the same name serves', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    const key = { name: 'portcullis-default' };
    await scene.cluster.admin.get(VALIDATING_WEBHOOKS, key);
    scene.webhooks.expect(['kw.cap.p']);
    const [made] = [...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)];
    const first = await scene.policy();
    // So quickly that no cache has seen the deletion.
    scene.replace({ ...first, metadata: { ...first.metadata, uid: 'another' } });
    await scene.reconcile().catch(() => undefined);
    await until(() => [...scene.cluster.state.list(VALIDATING_WEBHOOKS, undefined)].length === 0);
    assert.ok(
      ![...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].some(
        ({ metadata }) => metadata.uid === made?.metadata.uid,
      ),
    );
  });

  it('keeps a deleted policy serving for a while after its own webhook was removed', async () => {
    await using scene = await Scene.open(undefined, { [ANNOTATIONS.webhook]: 'Own' });
    await scene.rollOut();
    const webhooks = (): unknown[] =>
      [...scene.cluster.state.list(VALIDATING_WEBHOOKS, undefined)].flatMap((object) => object['webhooks']);
    assert.equal(webhooks().length, 1);
    scene.webhooks.expect(['kw.cap.p']);
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await scene.reconcile();
    await until(() => webhooks().length === 0);
    const { requeueAfterMs = 0 } = await scene.reconcile();
    assert.ok(requeueAfterMs > 0, 'API servers notice the removal late');
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 1);
  });

  it('waits for no write of webhooks, and keeps the revisions of a policy that is deleted during one', async () => {
    const [started, write] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = failing((verb, { group }) => {
      if (verb !== 'patch' || group !== 'admissionregistration.k8s.io') {
        return undefined;
      }
      started.resolve();
      return write.promise;
    });
    await using scene = await Scene.open(held, { [ANNOTATIONS.webhook]: 'Own' });
    await scene.reconcile();
    await scene.prevalidated();
    await scene.reconcile();
    await started.promise;
    scene.webhooks.expect(['kw.cap.p']);
    const policy = await scene.policy();
    assert.equal(policy.status?.phase, 'Pending');
    scene.replace({ ...policy, metadata: { ...policy.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    assert.deepEqual(await scene.reconcile(), {});
    const revisions = (): number => [...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length;
    assert.equal(revisions(), 1);
    write.resolve();
    await until(async () => {
      await scene.woken();
      // API servers notice late that its webhook is gone.
      return (await scene.reconcile()).requeueAfterMs !== undefined;
    });
    assert.deepEqual([...scene.cluster.state.list(VALIDATING_WEBHOOKS, undefined)], []);
    assert.equal(revisions(), 1);
  });

  it('reports a new replica in the status, but not as an event of each policy', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    // As if the revision had served for long.
    scene.settings.progressDeadlineMs = 0;
    scene.states.push('connecting');
    await scene.reconcile();
    const { status } = await scene.policy();
    assert.deepEqual([status?.phase, status?.reason], ['Updating', 'ReplicasStarting']);
    scene.states[1] = 'connected';
    await scene.reconcile();
    const after = (await scene.policy()).status;
    assert.deepEqual([after?.phase, after?.readyReplicas], ['Active', 2]);
    assert.deepEqual(scene.events, ['Normal Serving']);
  });

  it('requeues a policy while its replicas are unknown', async () => {
    await using scene = await Scene.open();
    scene.states.length = 0;
    const { requeueAfterMs = 0 } = await scene.reconcile();
    assert.ok(requeueAfterMs > 0);
  });

  it('rolls out the declared spec while a rollback is forbidden', async () => {
    await using scene = await Scene.open(unpatchable(403));
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, annotations: { [ANNOTATIONS.rollbackTo]: '1' } } });
    await assert.rejects(scene.rollOut(), { name: 'ApiError', code: 403 });
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 1);
  });

  it('rolls out nothing after a rollback that conflicts with a newer version of the policy', async () => {
    await using scene = await Scene.open(unpatchable(409));
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, annotations: { [ANNOTATIONS.rollbackTo]: '1' } } });
    await assert.rejects(scene.reconcile(), { name: 'ApiError', code: 409 });
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 0);
  });

  /** A condition as one line. */
  async function conditionText(scene: Scene, type: string): Promise<string | undefined> {
    const condition = findCondition((await scene.policy()).status?.conditions, type);
    return condition && `${condition.status} ${condition.reason}: ${condition.message}`;
  }

  type Fails = (verb: Verb, type: ResourceType, args: readonly unknown[]) => boolean;
  const isRevision = ({ resource }: ResourceType): boolean => resource === 'policyrevisions';
  const stateOf = (object: unknown): string | undefined => (object as PolicyRevision).status?.state;
  /** How each of these steps is made to fail, and what leads to it. */
  const FAILING_STEPS: readonly (readonly [FallibleStep, Fails, (scene: Scene) => Promise<void>])[] = [
    ['create', (verb, type) => verb === 'create' && isRevision(type), async () => undefined],
    ['rollBack', (verb, _type, args) => verb === 'patch' && (args[2] as { type: string }).type === 'json', annotated],
    ['prevalidate', (verb, _type, args) => verb === 'update' && stateOf(args[1]) === 'Validated', prevalidated],
    ['dryRun', (verb, { group }) => verb === 'create' && group === 'admissionregistration.k8s.io', prevalidated],
    ['transition', (verb, _type, args) => verb === 'update' && stateOf(args[1]) === 'Serving', prevalidated],
    ['remove', (verb, type) => verb === 'delete' && isRevision(type), deleted],
  ];
  async function prevalidated(scene: Scene): Promise<void> {
    await scene.reconcile();
    await scene.prevalidated();
  }
  async function annotated(scene: Scene): Promise<void> {
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, annotations: { [ANNOTATIONS.rollbackTo]: '1' } } });
  }
  async function deleted(scene: Scene): Promise<void> {
    await scene.rollOut();
    scene.webhooks.expect(['kw.cap.p']);
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  }
  const ERRORS: readonly (ApiError | ClusterError)[] = [
    new ApiError(409, 'Conflict', 'changed since'),
    new ApiError(403, 'Forbidden', 'not you'),
    new ApiError(422, 'Invalid', 'not this'),
    new ClusterError('unreachable', 'nobody answers'),
  ];
  for (const [step, fails, lead] of FAILING_STEPS) {
    for (const error of ERRORS) {
      const kind = errorKind(error);
      const { effect, reason = 'ReconcileFailed' } = ERROR_RULES[step][kind];
      it(`${step}, ${kind}: ${effect}, ${reason}`, async () => {
        const met: Error[] = [];
        await using scene = await Scene.open(failing((...call) => (fails(...call) ? met[0] : undefined)));
        await lead(scene);
        met.push(error);
        const revisions = async (): Promise<readonly PolicyRevision[]> =>
          (await scene.cluster.admin.list(POLICY_REVISIONS, { namespace: NAMESPACE })).items;
        const before = (await revisions()).length;
        // A conflict is shown when it repeats.
        const ended = scene.reconcile(FIRST_REPORTED_FAILURE);
        if (effect === 'fail the revision') {
          await ended;
          assert.deepEqual(
            (await revisions()).map(({ status }) => [status?.state, status?.reason]),
            [['Failed', reason]],
          );
        } else {
          await assert.rejects(ended, { message: error.message });
          assert.equal((await revisions()).length - before, effect === 'go on' ? 1 : 0);
        }
        assert.match((await conditionText(scene, 'Ready')) ?? '', new RegExp(`^False ${reason}: .*${error.message}`));
      });
    }
  }

  const CREATE_FAILS = [
    [403, 'Forbidden', 1, 'Reconciling'],
    [409, 'AlreadyExists', FIRST_REPORTED_FAILURE, 'Reconciling'],
    [422, 'Invalid', 1, 'Stalled'],
    [500, 'InternalError', 1, 'Reconciling'],
  ] as const;
  for (const [code, reason, attempts, abnormal] of CREATE_FAILS) {
    it(`reports that a revision cannot be created (${code}), and continues when it can`, async () => {
      let error: ApiError | undefined = new ApiError(code, reason, 'no revision');
      await using scene = await Scene.open(
        failing((verb, { resource }) => (verb === 'create' && resource === 'policyrevisions' ? error : undefined)),
      );
      for (let failures = 0; failures < attempts; failures += 1) {
        await assert.rejects(scene.reconcile(failures), { code });
      }
      const { status } = await scene.policy();
      const why = 'no revision; the spec has no revision yet';
      assert.deepEqual([status?.phase, status?.reason, status?.message], ['Pending', 'ReconcileFailed', why]);
      assert.equal(await conditionText(scene, 'Ready'), `False ReconcileFailed: ${why}`);
      assert.equal(await conditionText(scene, abnormal), `True ReconcileFailed: ${why}`);
      error = undefined;
      await scene.rollOut();
      assert.equal(await conditionText(scene, 'Ready'), 'True Serving: revision 1 serves on every replica');
      assert.equal(await conditionText(scene, abnormal), undefined);
      assert.deepEqual(scene.events, ['Normal Serving']);
    });
  }

  it('reports that the state of a revision cannot be written', async () => {
    const errors: ApiError[] = [];
    await using scene = await Scene.open(
      failing((verb, { resource }) => (verb === 'update' && resource === 'policyrevisions' ? errors[0] : undefined)),
    );
    await scene.reconcile();
    errors.push(new ApiError(500, 'InternalError', 'etcd is away'));
    await until(async () => {
      await scene.reconcile().catch(() => undefined);
      return (await conditionText(scene, 'Ready')) !== 'False Validating: revision 1 is being fetched and checked';
    });
    assert.match(
      (await conditionText(scene, 'Reconciling')) ?? '',
      /^True ReconcileFailed: etcd is away; revision 1 is/,
    );
  });

  it('reports on a policy that is Active what it cannot write, without an event of its own', async () => {
    const errors: ApiError[] = [];
    await using scene = await Scene.open(
      failing((verb, { resource }) => (verb === 'delete' && resource === 'policyrevisions' ? errors[0] : undefined)),
    );
    scene.settings.historyLimit = 0;
    await scene.rollOut();
    errors.push(new ApiError(403, 'Forbidden', 'must not delete'));
    const spec = { spec: { timeoutSeconds: 5 } };
    scene.replace(await scene.cluster.admin.patch(CLUSTER_ADMISSION_POLICIES, KEY, { type: 'merge', body: spec }));
    await until(async () => {
      await scene.reconcile().catch(() => undefined);
      return (await scene.policy()).status?.reason === 'ReconcileFailed';
    });
    assert.equal((await scene.policy()).status?.phase, 'Active');
    assert.match(
      (await conditionText(scene, 'Reconciling')) ?? '',
      /^True ReconcileFailed: must not delete; revision 2/,
    );
    assert.equal(scene.events.includes('Normal ReconcileFailed'), false);
  });

  it('reports that a deleted policy cannot be removed, while a finalizer keeps it', async () => {
    const errors: ApiError[] = [];
    await using scene = await Scene.open(
      failing((verb, { resource }) => (verb === 'delete' && resource === 'policyrevisions' ? errors[0] : undefined)),
    );
    await scene.rollOut();
    scene.webhooks.expect(['kw.cap.p']);
    errors.push(new ApiError(403, 'Forbidden', 'must not delete'));
    const policy = await scene.policy();
    scene.replace({ ...policy, metadata: { ...policy.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await assert.rejects(scene.reconcile(), { code: 403 });
    assert.match((await conditionText(scene, 'Ready')) ?? '', /^False ReconcileFailed: must not delete; /);
  });

  it('leaves the status of a deleted policy as it is when its removal succeeds', async () => {
    await using scene = await Scene.open();
    await scene.rollOut();
    scene.webhooks.expect(['kw.cap.p']);
    const policy = await scene.policy();
    const { generation = 0 } = policy.metadata;
    const deletion = { deletionTimestamp: '2026-01-01T00:00:00Z', generation: generation + 1 };
    scene.replace({ ...policy, metadata: { ...policy.metadata, ...deletion } });
    await scene.reconcile();
    assert.equal([...scene.cluster.state.list(POLICY_REVISIONS, NAMESPACE)].length, 0);
    assert.deepEqual(await scene.policy(), policy);
  });

  it('reports once that webhook configurations cannot be written, and does not retry with backoff', async () => {
    const error = new ApiError(500, 'InternalError', 'etcd is away');
    await using scene = await Scene.open(
      failing((verb, { group }) => (verb === 'patch' && group === 'admissionregistration.k8s.io' ? error : undefined)),
    );
    await assert.rejects(scene.rollOut(), { name: 'Waiting', reason: 'ReconcileFailed' });
    assert.match(
      (await conditionText(scene, 'Reconciling')) ?? '',
      /^True ReconcileFailed: .*etcd is away; revision 1 serves/,
    );
    const { revision } = scene.cluster;
    await assert.rejects(scene.reconcile(), { name: 'Waiting' });
    assert.equal(scene.cluster.revision, revision);
  });
});
