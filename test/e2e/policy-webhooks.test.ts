// Webhook configurations of policies on a real API server. They are stored with all fields as written, so that none is written
// again without a change. Thousands of policies need few configurations, and few writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { type Cluster as ClusterPort, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '../../src/lifecycle/webhooks/webhook-kinds.ts';
import type { PolicyReference } from '../../src/lifecycle/webhooks/enforcement-records.ts';
import { PolicyWebhooks } from '../../src/lifecycle/webhooks/policy-webhooks.ts';
import { webhookConfigurations } from '../../src/lifecycle/webhooks/webhook-configurations.ts';
import type { WebhookConfiguration, WebhookTarget } from '../../src/lifecycle/webhooks/webhook-object.ts';
import {
  DEFAULT_EXEMPT_NAMESPACES,
  type AdmissionPolicySpec,
  isOwnBucket,
  keyOf,
  type KubernetesObject,
  kubernetesKind,
  policyId,
  type PolicyMatch,
  policyMatch,
  type ResourceType,
} from '../../src/resources/index.ts';
import { ObjectCache } from '../../src/runtime/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const RULE = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] };
const WRITES: ReadonlySet<string | symbol> = new Set(['create', 'update', 'patch', 'delete']);
const EXEMPTIONS = {
  exemptNamespaces: DEFAULT_EXEMPT_NAMESPACES,
  identities: [
    'system:serviceaccount:portcullis:portcullis-controller',
    'system:serviceaccount:portcullis:policy-server-*',
  ],
  productNamespace: 'portcullis',
};

interface TestPolicy {
  readonly policy: PolicyReference;
  readonly match: PolicyMatch;
  readonly spec: AdmissionPolicySpec;
}

function testPolicy(name: string, rest: object = {}, namespace?: string, ownWebhook = false): TestPolicy {
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
  return { policy: { id: policyId({ kind, metadata: key }), kind, key, policyServer: 'default' }, match, spec };
}

/** Policies of all kinds and settings. Every tenth one matches other resources than the rest. */
function mixed(index: number): TestPolicy {
  const resources = index % 10 === 0 ? [`things${index}`] : [['deployments', 'statefulsets', 'daemonsets'][index % 3]];
  return testPolicy(
    `p${index}`,
    {
      rules: [{ ...RULE, resources }],
      mutating: index % 5 === 0,
      failurePolicy: index % 3 === 0 ? 'Ignore' : 'Fail',
      matchPolicy: index % 7 === 0 ? 'Exact' : 'Equivalent',
      objectSelector: index % 11 === 0 ? { matchLabels: { a: 'b' } } : {},
      timeoutSeconds: 2 + (index % 28),
    },
    index % 2 === 0 ? undefined : `tenant-${index}`,
    index % 100 === 99,
  );
}

const ALL = {
  failurePolicy: 'Ignore',
  matchPolicy: 'Exact',
  matchConditions: [{ name: 'named', expression: "object.metadata.name != ''" }],
  objectSelector: { matchLabels: { a: 'b' } },
  namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b', 'c'] }] },
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: 7,
};

describe('webhook configurations of policies on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let cluster: KubernetesCluster;
  let target: WebhookTarget;

  before(async () => {
    server = await startCluster();
    const ca = readFileSync(server.caFile, 'utf8');
    target = { url: 'https://localhost:8443', ca };
    cluster = new KubernetesCluster({ server: server.url, ca, credentials: tokenCredentials(server.adminToken) });
  });
  after(async () => {
    cluster?.close();
    await server?.[Symbol.asyncDispose]();
  });

  function builtin<T extends KubernetesObject & { spec?: unknown }>(apiVersion: string, kind: string): ResourceType<T> {
    const type = kubernetesKind(apiVersion, kind);
    assert.ok(type);
    return type;
  }

  const typeOf = ({ kind }: WebhookConfiguration): ResourceType<WebhookConfiguration> =>
    kind === MUTATING_WEBHOOKS.kind ? MUTATING_WEBHOOKS : VALIDATING_WEBHOOKS;

  async function everything(): Promise<readonly WebhookConfiguration[]> {
    const lists = [await cluster.list(VALIDATING_WEBHOOKS), await cluster.list(MUTATING_WEBHOOKS)];
    return lists.flatMap(({ items }) => items);
  }

  async function removeAll(): Promise<void> {
    for (const object of await everything()) {
      await cluster.delete(typeOf(object), keyOf(object));
    }
  }

  /** Runs `use` with a PolicyWebhooks. @returns the number of writes */
  async function withWebhooks(
    use: (webhooks: PolicyWebhooks, requeued: (id: string) => Promise<void>) => Promise<void>,
    given: WebhookTarget = target,
  ): Promise<number> {
    let writes = 0;
    const counted: ClusterPort = new Proxy(cluster, {
      get: (real, name) => {
        const member: unknown = Reflect.get(real, name);
        return typeof member !== 'function'
          ? member
          : (...parameters: unknown[]): unknown => {
              const isDryRun = parameters.some((one) => (one as { dryRun?: boolean } | undefined)?.dryRun === true);
              writes += WRITES.has(name) && !isDryRun ? 1 : 0;
              return Reflect.apply(member, real, parameters);
            };
      },
    });
    const log = pino({ level: 'silent' });
    const labelSelector = 'app.kubernetes.io/managed-by=portcullis';
    const [validating, mutating] = [VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS].map(
      (type) => new ObjectCache({ cluster: counted, type, labelSelector, log }),
    );
    assert.ok(validating && mutating);
    const done = new Map<string, PromiseWithResolvers<void>>();
    const promiseOf = (id: string): PromiseWithResolvers<void> => {
      const one = done.get(id) ?? Promise.withResolvers<void>();
      done.set(id, one);
      return one;
    };
    const webhooks = new PolicyWebhooks({
      cluster: counted,
      validating,
      mutating,
      target: () => given,
      ...EXEMPTIONS,
      requeue: ({ id }) => promiseOf(id).resolve(),
      log,
    });
    const stop = new AbortController();
    const running = [validating, mutating, webhooks].map((one) => one.start(stop.signal));
    try {
      await webhooks.ready;
      webhooks.expect([]);
      await use(webhooks, (id) => promiseOf(id).promise);
    } finally {
      stop.abort();
      await Promise.all(running);
    }
    return writes;
  }

  const { signal } = new AbortController();

  for (const [name, one] of Object.entries({
    plain: testPolicy('plain'),
    everything: testPolicy('everything', ALL),
    alone: testPolicy('alone', ALL, undefined, true),
    mutating: testPolicy('mutating', { mutating: true }),
    namespaced: testPolicy('own', {}, 'shop'),
    wild: testPolicy('wild', { rules: [{ ...RULE, apiGroups: ['*'], resources: ['*/*'] }] }),
    ours: testPolicy('ours', { rules: [{ ...RULE, apiGroups: ['policies.kubewarden.io'], resources: ['*'] }] }),
    'pod templates': testPolicy('templates', {
      ...ALL,
      rules: [{ ...RULE, apiGroups: [''], resources: ['pods'] }],
      podTemplates: 'Enforce',
    }),
    'empty selectors': testPolicy('empty', {
      objectSelector: { matchLabels: {}, matchExpressions: [{ key: 'a', operator: 'Exists', values: [] }] },
    }),
  })) {
    it(`${name}: stored as written, corrected after an edit, and then not written again`, async () => {
      const writes = await withWebhooks(async (webhooks, requeued) => {
        const enforce = async (): Promise<string> =>
          (await webhooks.enforce(one.policy, [one.match], one.spec, false, signal)).state;
        assert.equal(await enforce(), 'Pending');
        await requeued(one.policy.id);
        assert.equal(await enforce(), 'Covered');
        const [made] = await everything();
        assert.ok(made);
        const edit = { metadata: { labels: { theirs: 'too' } }, webhooks: [] };
        await cluster.patch(typeOf(made), keyOf(made), { type: 'merge', body: edit });
        await eventually(async () => {
          const [now] = await everything();
          assert.deepEqual([now?.webhooks, now?.metadata.labels?.['theirs']], [made.webhooks, 'too']);
        });
        webhooks.targetsChanged();
        await new Promise((resolve) => setTimeout(resolve, 100));
        const [last] = await everything();
        assert.equal(await enforce(), 'Covered');
        assert.equal(last?.metadata.resourceVersion, (await everything())[0]?.metadata.resourceVersion);
        assert.equal(webhooks.remove(one.policy).state, isOwnBucket(one.match.bucket) ? 'Pending' : 'Absent');
        await eventually(async () => assert.deepEqual(await everything(), []));
      });
      assert.equal(writes, 3);
    });
  }

  for (const count of [1, 100, 3_500]) {
    it(`needs at most eight objects for ${count} policies of mixed settings`, async () => {
      const matches = Array.from({ length: count }, (_, index) => mixed(index).match);
      const { configurations, warnings } = webhookConfigurations(matches, {
        ...EXEMPTIONS,
        policyServer: 'default',
        target,
      });
      assert.deepEqual(warnings, []);
      assert.ok(configurations.length <= 8, String(configurations.length));
      for (const configuration of configurations) {
        await cluster.create(typeOf(configuration), configuration);
      }
      await removeAll();
    });
  }

  it('writes at most ten times for a thousand policies that are applied at once', async (context) => {
    const all = Array.from({ length: 1_000 }, (_, index) => mixed(index));
    const started = performance.now();
    const writes = await withWebhooks(async (webhooks, requeued) => {
      for (const { policy, match, spec } of all) {
        await webhooks.dryRun(policy, match, spec, signal);
      }
      // In parallel, as reconcilers run, because a policy that waits must not delay others.
      await Promise.all(
        all.map(async ({ policy, match, spec }) => {
          while ((await webhooks.enforce(policy, [match], spec, false, signal)).state !== 'Covered') {
            await requeued(policy.id);
          }
        }),
      );
      assert.ok(all.every(({ policy, match }) => webhooks.stateOf(policy, match).state === 'Covered'));
    });
    context.diagnostic(`${writes} writes`);
    // On a busy machine the stream lasts longer: pauses in it take a write each 8 s (MAX_QUIET_GAP_MS).
    assert.ok(writes <= 10 + Math.floor((performance.now() - started) / 8_000), `${writes} writes`);
    await removeAll();
  });

  it('exempts what is needed to repair a policy that rejects everything', async () => {
    // Nothing listens there, and failurePolicy is Fail.
    const unreachable = { ...target, url: 'https://127.0.0.1:1' };
    const wild = testPolicy('lock', {
      rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }],
    });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portcullis' } };
    await cluster.create(builtin('v1', 'Namespace'), namespace);
    await withWebhooks(async (webhooks) => {
      await webhooks.enforce(wild.policy, [wild.match], wild.spec, false, signal);
      const create = async (kind: string, apiVersion: string, where: string): Promise<unknown> =>
        await cluster.create(builtin(apiVersion, kind), {
          apiVersion,
          kind,
          metadata: { generateName: 'lock-', namespace: where },
        });
      await eventually(async () => assert.rejects(create('ConfigMap', 'v1', 'default'), /failed calling webhook/));
      await create('Lease', 'coordination.k8s.io/v1', 'default');
      await create('ConfigMap', 'v1', 'portcullis');
      await create('ConfigMap', 'v1', 'kube-system');
      await cluster.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      });
      await cluster.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { nonResourceAttributes: { path: '/', verb: 'get' } },
        },
      });
    }, unreachable);
    await removeAll();
  });
});
