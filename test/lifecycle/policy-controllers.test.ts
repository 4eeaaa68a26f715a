// The lifecycle of policies of all kinds, with an API server that calls a real policy server.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiError } from '../../src/cluster/index.ts';
import {
  ANNOTATIONS,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  POLICY_REVISIONS,
  policyId,
} from '../../src/resources/index.ts';
import { example, until } from '../server/harness.ts';
import { kind, MUTATING, PODS, type Policy, PolicyLab, VALIDATING } from './policy-lab.ts';

const POLICIES = 'policies.kubewarden.io/v1';
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

/** The name of both webhook configurations of the policy server. */
const CONFIGURATION = { name: 'portcullis-default' };

function requires(label: string): { readonly module: string; readonly settings: unknown } {
  return { module: example('required-labels'), settings: { labels: [label] } };
}

function policy(metadata: ObjectKey, label: string, rest: Readonly<Record<string, unknown>> = {}): KubernetesObject {
  return {
    apiVersion: POLICIES,
    kind: metadata.namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata,
    spec: { ...requires(label), rules: RULES, mutating: false, ...rest },
  };
}

function group(metadata: ObjectKey, label: string): KubernetesObject {
  return {
    apiVersion: POLICIES,
    kind: metadata.namespace === undefined ? 'ClusterAdmissionPolicyGroup' : 'AdmissionPolicyGroup',
    metadata,
    spec: {
      expression: 'member()',
      message: `the group wants ${label}`,
      policies: { member: requires(label) },
      rules: RULES,
    },
  };
}

function typeOf(object: KubernetesObject): ReturnType<typeof kind<Policy>> {
  return kind<Policy>(object.apiVersion, object.kind);
}

describe('LifecycleControllers', () => {
  let lab: PolicyLab;
  before(async () => {
    lab = await PolicyLab.start();
    for (const name of ['shop', 'bank']) {
      await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
  });

  /** The message with which a pod is rejected; undefined if it is allowed. */
  async function refusal(
    namespace: string,
    labels: Readonly<Record<string, string>> = {},
  ): Promise<string | undefined> {
    const spec = { containers: [{ name: 'app', image: 'app' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'pod-', namespace, labels }, spec };
    try {
      await lab.cluster.admin.create(PODS, pod, { dryRun: true });
      return undefined;
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error.message;
    }
  }

  async function remove(object: KubernetesObject): Promise<void> {
    await lab.cluster.admin.delete(typeOf(object), keyOf(object));
    await until(() => lab.server.server.policy(policyId(object)) === undefined);
    if (lab.server.server.policies().policies.length === 0) {
      // The next test starts without webhook configurations.
      await lab.sees(VALIDATING, CONFIGURATION, (found) => found === undefined);
      await lab.sees(MUTATING, CONFIGURATION, (found) => found === undefined);
    }
  }

  for (const [object, elsewhere] of [
    [policy({ name: 'life' }, 'owner'), true],
    [policy({ namespace: 'shop', name: 'life' }, 'owner'), false],
    [group({ name: 'life' }, 'owner'), true],
    [group({ namespace: 'shop', name: 'life' }, 'owner'), false],
  ] as const) {
    it(`handles creation, update, failure, recovery and deletion of ${object.kind}`, async () => {
      const isGroup = 'policies' in (object as { spec?: object }).spec!;
      const change = (spec: object): Promise<void> =>
        lab.merge(typeOf(object), keyOf(object), { spec: isGroup ? { policies: { member: spec } } : spec });

      await lab.create(object);
      await lab.reaches(object, 'Active');
      assert.match((await refusal('shop')) ?? '', /owner/);
      assert.equal(await refusal('shop', { owner: 'me' }), undefined);
      assert.equal((await refusal('bank')) !== undefined, elsewhere);

      await change({ settings: { labels: ['team'] } });
      await lab.reaches(object, 'Active');
      assert.equal(await refusal('shop', { team: 'red' }), undefined);
      assert.match((await refusal('shop', { owner: 'me' })) ?? '', isGroup ? /group wants/ : /team/);

      await change({ settings: { labels: 7 } });
      const failed = await lab.reaches(object, 'Degraded');
      assert.equal(failed.status?.reason, 'InvalidSettings');
      assert.deepEqual(
        failed.status.conditions.map(({ type, status }) => [type, status]),
        [
          ['PolicyActive', 'True'],
          ['Enforced', 'True'],
          ['UpToDate', 'False'],
          ['Ready', 'False'],
          ['Stalled', 'True'],
        ],
      );
      assert.equal(await refusal('shop', { team: 'red' }), undefined);
      assert.notEqual(await refusal('shop', { owner: 'me' }), undefined);

      await change({ settings: { labels: ['owner'] } });
      await lab.reaches(object, 'Active');
      assert.equal(await refusal('shop', { owner: 'me' }), undefined);

      await remove(object);
      assert.equal(await refusal('shop'), undefined);
    });
  }

  it('writes nothing after the rollout of a change has ended', async () => {
    const object = policy({ name: 'steady' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const before = await lab.quiet();
    await lab.reconciles(policyId(object));
    await lab.reconciles(policyId(object));
    assert.equal(await lab.quiet(), before);
    await lab.merge(typeOf(object), keyOf(object), { spec: { settings: { labels: ['team'] } } });
    await lab.reaches(object, 'Active');
    const changed = await lab.quiet();
    await lab.reconciles(policyId(object));
    assert.equal(await lab.quiet(), changed);
    await remove(object);
  });

  it('emits each event once', async () => {
    const object = policy({ name: 'reported' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.reconciles(policyId(object));
    await lab.merge(typeOf(object), keyOf(object), { spec: { settings: { labels: 7 } } });
    await lab.reaches(object, 'Degraded');
    await lab.reconciles(policyId(object));
    await lab.merge(typeOf(object), keyOf(object), { metadata: { labels: { any: 'change' } } });
    await lab.quiet();
    assert.deepEqual((await lab.events('reported')).toSorted(), ['InvalidSettings 1', 'Serving 1']);
    await remove(object);
  });

  it('adds its metrics to those of the policy server in the same process', async () => {
    const object = policy({ name: 'counted' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const labels = { controller: 'clusteradmissionpolicies', result: 'success' };
    assert.ok((await lab.server.metric('controller_runtime_reconcile_total', labels)) > 0);
    const cache = 'clusteradmissionpolicies.policies.kubewarden.io';
    assert.equal(await lab.server.metric('portcullis_cache_objects', { cache }), 1);
    assert.equal(await lab.server.metric('portcullis_policy_phase', { policy_name: policyId(object) }), 1);
    const active = { policy_server: 'default', phase: 'Active', enforced: 'true' };
    assert.equal(await lab.server.metric('portcullis_policies', active), 1);
    assert.ok((await lab.server.metric('portcullis_rollouts_total', { result: 'active' })) > 0);
    assert.ok((await lab.server.metric('portcullis_rollout_seconds_count')) > 0);
    await remove(object);
  });

  it('counts a policy that has never served as not enforced', async () => {
    const object = policy({ name: 'unserved' }, 'owner', { settings: { labels: 7 } });
    await lab.create(object);
    await lab.reaches(object, 'Error');
    const failed = { policy_server: 'default', phase: 'Error' };
    const unenforced = (labels = {}): Promise<number> =>
      lab.server.metric('portcullis_policies', { ...labels, enforced: 'false' });
    await until(async () => (await unenforced(failed)) === 1);
    await lab.merge(typeOf(object), keyOf(object), { spec: { settings: { labels: ['owner'] } } });
    await lab.reaches(object, 'Active');
    await until(async () => (await unenforced()) === 0);
    await remove(object);
  });

  it('counts policies that are disarmed', async () => {
    const object = policy({ name: 'disarmed' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const disarmed = (): Promise<number> =>
      lab.server.metric('portcullis_policies_disarmed', { policy_server: 'default' });
    const annotate = async (reason: string | null): Promise<void> => {
      const annotations = { [ANNOTATIONS.disarmed]: reason };
      await lab.merge(typeOf(object), keyOf(object), { metadata: { annotations } });
    };
    await annotate('INC-1');
    await until(async () => (await disarmed()) === 1);
    await annotate(null);
    await lab.reaches(object, 'Active');
    await until(async () => (await disarmed()) === 0);
    await remove(object);
  });

  it('does not serve a policy that reads a kind which the cluster does not have', async () => {
    const widget = { group: 'example.com', names: { kind: 'Widget', plural: 'widgets' }, scope: 'Namespaced' };
    const rego = {
      module: example('host-namespaces'),
      settings: {},
      contextAwareResources: [{ apiVersion: 'example.com/v1', kind: 'Widget' }],
    };
    const object = policy({ name: 'reader' }, 'owner', rego);
    await lab.create(object);
    const failed = await lab.reaches(object, 'Error');
    assert.equal(failed.status?.reason, 'KindNotServed');
    assert.match(failed.status.message, /reads example\.com\/v1\/Widget .* the cluster does not serve it/);
    const schema = { openAPIV3Schema: { type: 'object' } };
    const definition = await lab.create({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: { ...widget, versions: [{ name: 'v1', served: true, storage: true, schema }] },
    });
    await lab.reaches(object, 'Active');
    await remove(object);
    await lab.cluster.admin.delete(kind(definition.apiVersion, definition.kind), keyOf(definition));
  });

  it('restores webhook configurations that a user edited or deleted', async () => {
    const object = policy({ name: 'tampered' }, 'owner');
    const key = CONFIGURATION;
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const { webhooks } = (await lab.find(VALIDATING, key))!;
    const isRight = (found: { webhooks: unknown } | undefined): boolean =>
      JSON.stringify(found?.webhooks) === JSON.stringify(webhooks);
    const [webhook] = webhooks;
    for (const edited of [
      { webhooks: [{ ...webhook, failurePolicy: 'Ignore' }] },
      { webhooks: [{ ...webhook, objectSelector: { matchLabels: { only: 'these' } } }] },
      { webhooks: [{ ...webhook, namespaceSelector: { matchLabels: { only: 'these' } } }] },
      { webhooks: [{ ...webhook, matchConditions: [{ name: 'never', expression: 'false' }] }] },
      { webhooks: [webhook, { ...webhook, name: 'another.example.com' }] },
      { webhooks: [] },
      { metadata: { labels: null } },
    ]) {
      const { metadata } = (await lab.find(VALIDATING, key))!;
      await lab.merge(VALIDATING, key, edited);
      const found = await lab.sees(
        VALIDATING,
        key,
        (now) =>
          isRight(now) &&
          now?.metadata.labels?.['app.kubernetes.io/managed-by'] === 'portcullis' &&
          now.metadata.labels['portcullis.dev/policy-server'] === 'default',
      );
      assert.equal(found?.metadata.uid, metadata.uid, JSON.stringify(edited));
    }
    await lab.cluster.admin.delete(VALIDATING, key);
    await lab.sees(VALIDATING, key, isRight);
    await remove(object);
  });

  it('widens and narrows a webhook with the rules and selectors of its policy', async () => {
    const object = policy({ name: 'widened' }, 'owner', {
      objectSelector: { matchLabels: { checked: 'yes' } },
      namespaceSelector: { matchLabels: { checked: 'yes' } },
    });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const [before] = (await lab.find(VALIDATING, CONFIGURATION))!.webhooks;
    assert.deepEqual(before?.['objectSelector'], { matchLabels: { checked: 'yes' } });
    await lab.merge(typeOf(object), keyOf(object), { spec: { objectSelector: null, namespaceSelector: null } });
    await lab.sees(VALIDATING, CONFIGURATION, (found) => {
      const [webhook] = found?.webhooks ?? [];
      return (
        JSON.stringify(webhook?.['objectSelector']) === '{}' &&
        !Object.hasOwn(webhook?.['namespaceSelector'] as object, 'matchLabels')
      );
    });
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    await lab.merge(typeOf(object), keyOf(object), {
      spec: { objectSelector: { matchLabels: { checked: 'yes' } }, rules: [{ ...RULES[0], operations: ['UPDATE'] }] },
    });
    await lab.sees(VALIDATING, CONFIGURATION, (found) => {
      const [{ rules } = {}] = found?.webhooks ?? [];
      return (rules as { operations: string[] }[] | undefined)?.[0]?.operations.join() === 'UPDATE';
    });
    await remove(object);
  });

  it('moves a policy between webhook configurations when `mutating` changes', async () => {
    const object = policy({ name: 'mutant' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.merge(typeOf(object), keyOf(object), { spec: { mutating: true } });
    await lab.sees(MUTATING, CONFIGURATION, (found) => found !== undefined);
    await lab.sees(VALIDATING, CONFIGURATION, (found) => found === undefined);
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    await lab.merge(typeOf(object), keyOf(object), { spec: { mutating: false } });
    await lab.sees(VALIDATING, CONFIGURATION, (found) => found !== undefined);
    await lab.sees(MUTATING, CONFIGURATION, (found) => found === undefined);
    await remove(object);
  });

  it('creates and removes a webhook of its own by the annotation', async () => {
    const object = policy({ name: 'alone' }, 'owner');
    const other = policy({ name: 'shares' }, 'team');
    const annotate = (value: string | null): Promise<void> =>
      lab.merge(typeOf(object), keyOf(object), { metadata: { annotations: { [ANNOTATIONS.webhook]: value } } });
    const has = (...names: readonly string[]): Promise<unknown> =>
      lab.sees(
        VALIDATING,
        CONFIGURATION,
        (found) =>
          found?.webhooks.map(({ name }) => name).join() === names.map((one) => `${one}.portcullis.dev`).join(),
      );
    const shared = 'validating.fail.equivalent.cluster.v1';
    await lab.create(object);
    await lab.create(other);
    await lab.reaches(object, 'Active');
    await lab.reaches(other, 'Active');
    await has(shared);
    await annotate('Own');
    await has('kw.cap.alone', shared);
    await lab.sees(
      typeOf(object),
      keyOf(object),
      (found) => found?.status?.phase === 'Active' && found.status.desiredRevision === 2,
    );
    assert.match((await refusal('shop', { team: 'red' })) ?? '', /owner/);
    assert.match((await refusal('shop', { owner: 'me' })) ?? '', /team/);
    await annotate(null);
    await has(shared);
    await lab.sees(
      typeOf(object),
      keyOf(object),
      (found) => found?.status?.phase === 'Active' && found.status.desiredRevision === 3,
    );
    assert.match((await refusal('shop')) ?? '', /2 policies: cap\/alone.*cap\/shares/);
    await annotate('Own');
    await has('kw.cap.alone', shared);
    await remove(object);
    await has(shared);
    await remove(other);
    await lab.sees(VALIDATING, CONFIGURATION, (found) => found === undefined);
  });

  it('reports the error of the API server when it refuses the webhook of a policy', async () => {
    const object = policy({ name: 'refused' }, 'owner', {
      sideEffects: 'Some',
    });
    await lab.create(object);
    const { status } = await lab.reaches(object, 'Error');
    assert.equal(status?.reason, 'WebhookRefused');
    assert.match(status.message, /sideEffects/);
    await lab.merge(typeOf(object), keyOf(object), { spec: { sideEffects: null } });
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    await remove(object);
  });

  for (const [code, reason, abnormal] of [
    [403, 'Forbidden', 'Reconciling'],
    [409, 'AlreadyExists', 'Reconciling'],
    [422, 'Invalid', 'Stalled'],
    [500, 'InternalError', 'Reconciling'],
  ] as const) {
    it(`reports that a revision cannot be created (${code}), and continues when it can`, async () => {
      const object = policy({ name: 'held-up' }, 'owner');
      lab.refusal = (verb, { resource }) =>
        verb === 'create' && resource === POLICY_REVISIONS.resource
          ? new ApiError(code, reason, 'no revision today')
          : undefined;
      try {
        await lab.create(object);
        const found = await lab.sees(typeOf(object), keyOf(object), (now) => now?.status?.reason === 'ReconcileFailed');
        assert.match(found?.status?.message ?? '', /no revision today/);
        assert.deepEqual(
          found?.status?.conditions.slice(-2).map(({ type, status }) => [type, status]),
          [
            ['Ready', 'False'],
            [abnormal, 'True'],
          ],
        );
      } finally {
        lab.refusal = () => undefined;
      }
      await lab.reaches(object, 'Active');
      await remove(object);
    });
  }

  it('reconciles no policy for the reports of replicas of another PolicyServer', async () => {
    const object = policy({ name: 'reported-elsewhere' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.quiet();
    const id = policyId(object);
    const before = lab.reportFrom('another', id);
    await lab.quiet();
    assert.equal(lab.reportFrom('default', id), before);
    await until(() => lab.reportFrom('another', id) > before);
    await remove(object);
  });

  it('serves no revision that somebody else wrote and that is not what its name says, and removes it', async () => {
    const object = policy({ name: 'forged' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const id = policyId(object);
    const {
      items: [genuine],
    } = await lab.cluster.admin.list(POLICY_REVISIONS, { labelSelector: 'portcullis.dev/policy-server=default' });
    assert.ok(genuine);
    const { labels = {}, namespace = '' } = genuine.metadata;
    const forge = async (name: string, changes: object, more: Readonly<Record<string, string>> = {}): Promise<void> => {
      await lab.cluster.admin.create(POLICY_REVISIONS, {
        apiVersion: genuine.apiVersion,
        kind: genuine.kind,
        metadata: { name, namespace, labels: { ...labels, ...more } },
        spec: { ...genuine.spec, snapshot: { module: 'builtin:cel', rules: RULES, mutating: false }, ...changes },
      });
      await lab.cluster.admin
        .patch(
          POLICY_REVISIONS,
          { namespace, name },
          { type: 'merge', body: { status: { state: 'Serving', order: 1_000_000 } } },
          { subresource: 'status' },
        )
        // The controller may have removed it already.
        .catch((error: unknown) => assert.ok(error instanceof ApiError && error.code === 404, String(error)));
    };
    const kindOf = { ...genuine.spec.policy, kind: 'AdmissionPolicy', namespace: 'shop' };
    await forge(`${id}-1-forged`, {});
    await forge(`${id}-2`, { revision: 2, policy: kindOf });
    await forge(`${id}-3`, { revision: 3 }, { 'portcullis.dev/policy-server': 'another' });
    // Of a deleted policy of this name, as its uid says.
    await forge(`${id}-4`, { revision: 4, policy: { ...genuine.spec.policy, uid: 'another' } });
    await until(async () => (await lab.cluster.admin.list(POLICY_REVISIONS)).items.length === 1);
    await lab.reconciles(id);
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    await remove(object);
  });

  it('keeps policies of one name in two namespaces apart', async () => {
    const shop = policy({ namespace: 'shop', name: 'twin' }, 'owner');
    const bank = policy({ namespace: 'bank', name: 'twin' }, 'team');
    await lab.create(shop);
    await lab.create(bank);
    await lab.reaches(shop, 'Active');
    await lab.reaches(bank, 'Active');
    const found = await lab.find(VALIDATING, CONFIGURATION);
    assert.deepEqual(
      found?.webhooks.map((webhook) => webhook['namespaceSelector']),
      [{ matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['bank', 'shop'] }] }],
    );
    assert.match((await refusal('shop', { team: 'red' })) ?? '', /owner/);
    assert.match((await refusal('bank', { owner: 'me' })) ?? '', /team/);
    await remove(shop);
    assert.equal(await refusal('shop'), undefined);
    assert.match((await refusal('bank')) ?? '', /team/);
    await remove(bank);
  });

  it('reaches the right state after many concurrent changes', async () => {
    const all = Array.from({ length: 24 }, (_, index) =>
      policy({ ...(index % 2 === 0 ? {} : { namespace: 'shop' }), name: `many-${index}` }, 'owner'),
    );
    await Promise.all(
      all.map(async (object, index) => {
        await lab.create(object);
        const change = { spec: { mutating: index % 3 === 0, settings: { labels: ['team'] } } };
        await lab.merge(typeOf(object), keyOf(object), change);
        if (index % 4 >= 2) {
          await lab.cluster.admin.delete(typeOf(object), keyOf(object));
        }
      }),
    );
    const left = all.filter((_, index) => index % 4 < 2);
    for (const object of left) {
      await lab.reaches(object, 'Active');
    }
    await lab.quiet();
    const names = async (type: typeof VALIDATING): Promise<readonly string[]> =>
      (await lab.cluster.admin.list(type)).items.map(({ metadata }) => metadata.name ?? '');
    const ids = left.map((object) => policyId(object)).toSorted();
    assert.deepEqual(
      [...(await names(VALIDATING)), ...(await names(MUTATING))],
      [CONFIGURATION.name, `namespaced-${CONFIGURATION.name}`, CONFIGURATION.name],
    );
    assert.deepEqual(
      lab.server.server
        .policies()
        .policies.map(({ id }) => id)
        .toSorted(),
      ids,
    );
    for (const object of left) {
      await lab.cluster.admin.delete(typeOf(object), keyOf(object));
    }
    await until(async () => (await names(VALIDATING)).length + (await names(MUTATING)).length === 0);
    await until(() => lab.server.server.policies().policies.length === 0);
  });

  it('continues after a restart: removes deleted policies, keeps others serving, and repeats no write', async () => {
    const stays = policy({ name: 'stays' }, 'owner');
    const goes = policy({ name: 'goes' }, 'owner');
    await lab.create(stays);
    await lab.create(goes);
    await lab.reaches(stays, 'Active');
    await lab.reaches(goes, 'Active');
    await lab.quiet();
    const before = await lab.find(typeOf(stays), keyOf(stays));
    const webhook = await lab.find(VALIDATING, CONFIGURATION);
    await lab.stopControllers();
    await lab.cluster.admin.delete(typeOf(goes), keyOf(goes));
    await lab.startControllers();
    await until(() => lab.server.server.policy(policyId(goes)) === undefined);
    assert.match((await refusal('shop')) ?? '', /owner/);
    await lab.reconciles(policyId(stays));
    await lab.quiet();
    assert.deepEqual(await lab.find(typeOf(stays), keyOf(stays)), before);
    assert.deepEqual(await lab.find(VALIDATING, CONFIGURATION), webhook);
    await remove(stays);
  });

  it('makes at most eight writes for each of fifty new policies, and none afterwards or after a restart', async () => {
    const all = Array.from({ length: 50 }, (_, index) => policy({ name: `load-${index}` }, 'owner'));
    const before = await lab.quiet();
    await Promise.all(all.map((object) => lab.create(object)));
    for (const object of all) {
      await lab.reaches(object, 'Active');
    }
    const done = await lab.quiet();
    const writes = (done - before) / all.length;
    assert.ok(writes > 4 && writes <= 8, `${writes} writes for each policy`);
    await lab.stopControllers();
    await lab.startControllers();
    for (const object of all) {
      await lab.reconciles(policyId(object));
    }
    assert.equal(await lab.quiet(), done);
    await Promise.all(all.map((object) => remove(object)));
    assert.deepEqual((await lab.cluster.admin.list(POLICY_REVISIONS)).items, []);
  });

  it('rolls back to a revision, and pins and unpins one', async () => {
    const object = policy({ name: 'back' }, 'owner');
    const annotate = (name: string, value: string | null): Promise<void> =>
      lab.merge(typeOf(object), keyOf(object), { metadata: { annotations: { [name]: value } } });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.merge(typeOf(object), keyOf(object), { spec: { settings: { labels: ['team'] } } });
    await lab.reaches(object, 'Active');

    await annotate(ANNOTATIONS.rollbackTo, 'previous');
    const rolledBack = await lab.sees(typeOf(object), keyOf(object), (found) => found?.status?.desiredRevision === 3);
    assert.equal(rolledBack?.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
    assert.match(JSON.stringify(rolledBack?.spec), /@sha256:[0-9a-f]{64}.*"owner"/);
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    const third = await lab.find(POLICY_REVISIONS, { namespace: 'portcullis', name: `${policyId(object)}-3` });
    assert.equal(third?.spec.rollbackOf, 1);

    await annotate(ANNOTATIONS.rollbackTo, '99');
    await lab.sees(
      typeOf(object),
      keyOf(object),
      (found) => found?.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined,
    );
    await annotate(ANNOTATIONS.pin, '2');
    await lab.reaches(object, 'RolledBack');
    assert.match((await refusal('shop')) ?? '', /team/);
    await annotate(ANNOTATIONS.pin, null);
    await lab.reaches(object, 'Active');
    assert.match((await refusal('shop')) ?? '', /owner/);
    await annotate(ANNOTATIONS.progressDeadline, 'soon');
    await lab.reconciles(policyId(object));
    await lab.reconciles(policyId(object));
    await lab.quiet();
    const events = new Set(await lab.events('back'));
    for (const event of ['RolledBack 1', 'RollbackFailed 1', 'Pinned 1', 'InvalidAnnotation 1']) {
      assert.ok(events.has(event), `${event} in ${[...events].join()}`);
    }
    await remove(object);
  });

  it('starts over with a policy that was deleted and recreated while no controller ran', async () => {
    const object = policy({ name: 'again' }, 'owner');
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.stopControllers();
    await lab.cluster.admin.delete(typeOf(object), keyOf(object));
    const again = policy({ name: 'again' }, 'team');
    const { metadata } = await lab.create(again);
    await lab.startControllers();
    await lab.reaches(again, 'Active');
    assert.match((await refusal('shop')) ?? '', /team/);
    const { items } = await lab.cluster.admin.list(POLICY_REVISIONS);
    assert.deepEqual(
      items.map(({ spec }) => spec.policy.uid),
      [metadata.uid],
    );
    await remove(again);
  });

  it('keeps the serving revision and its webhook when the API server refuses the next webhook', async () => {
    const object = policy({ name: 'kept' }, 'owner', { matchConditions: [{ name: 'a', expression: 'true' }] });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await lab.merge(typeOf(object), keyOf(object), {
      spec: { settings: { labels: ['team'] }, matchConditions: [{ name: 'a', expression: 'nonsense(' }] },
    });
    const { status } = await lab.reaches(object, 'Degraded');
    assert.equal(status?.reason, 'WebhookRefused');
    assert.match((await refusal('shop')) ?? '', /owner/);
    const found = await lab.find(VALIDATING, CONFIGURATION);
    assert.equal(found?.webhooks.length, 1);
    await remove(object);
  });
});
