// Who may except from policies, on a real API server, and which exceptions are in force.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import {
  ApiError,
  type Cluster,
  type Connection,
  connectionAs,
  KubernetesCluster,
  tokenCredentials,
} from '../../src/cluster/index.ts';
import { ExceptionFeed } from '../../src/evaluation/object-feeds/index.ts';
import type { WatchedChange } from '../../src/evaluation/index.ts';
import { AUDITOR_RULES } from '../../src/audit/access-rules/index.ts';
import { exceptionGuards } from '../../src/installation/objects/exception-guards.ts';
import { withoutComments } from '../../src/installation/objects/comments.ts';
import { CLUSTER_RULES } from '../../src/lifecycle/access-rules/index.ts';
import { ExceptionController } from '../../src/lifecycle/index.ts';
import { REPLICA_CLUSTER_RULES } from '../../src/control/access-rules/index.ts';
import {
  customResourceDefinition,
  type JsonObject,
  kubernetesKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_EXCEPTIONS,
  type PolicyException,
} from '../../src/resources/index.ts';
import { EventRecorder, SharedCaches } from '../../src/runtime/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster as Server, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const kind = (apiVersion: string, name: string) =>
  kubernetesKind(apiVersion, name) ?? OWN_KINDS.find((own) => own.kind === name) ?? assert.fail(name);
const NAMESPACE = 'portcullis';
const CONTROLLER = `system:serviceaccount:${NAMESPACE}:portcullis-controller`;
const AUDITOR = `system:serviceaccount:${NAMESPACE}:portcullis-auditor`;
const RBAC = 'rbac.authorization.k8s.io';
const log = pino({ level: 'silent' });
const DAY_MS = 86_400_000;

const inUtc = (instant: number): string => `${new Date(instant).toISOString().slice(0, -5)}Z`;

function exception(name: string, spec: Partial<PolicyException['spec']> = {}): PolicyException {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyException',
    metadata: { namespace: 'shop', name },
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned' }],
      objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['importer'] },
      reason: 'until the next release',
      expiresAt: inUtc(Date.now() + 30 * DAY_MS),
      ...spec,
    },
  };
}

describe('exceptions on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Server;
  let admin: KubernetesCluster;
  let connection: Connection;
  const clients: KubernetesCluster[] = [];
  /** What a replica gives its workers, by name. */
  const inForce = new Map<string, JsonObject>();
  let feed: ExceptionFeed;
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];
  let atGuard = 0;

  const as = (user: string): KubernetesCluster => {
    const client = new KubernetesCluster(connectionAs(connection, { user, groups: ['system:authenticated'] }));
    clients.push(client);
    return client;
  };
  const grant = async (
    user: string,
    rules: readonly object[],
    name = user.replaceAll(/[^a-z]/g, '-'),
  ): Promise<void> => {
    const metadata = { name };
    const ref = { apiGroup: RBAC, kind: 'ClusterRole', name };
    await create({ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules });
    await create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: ref,
      subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
    });
  };
  const create = (object: object, by: Cluster = admin): Promise<KubernetesObject> => {
    const whole = object as KubernetesObject;
    return by.create(kind(whole.apiVersion, whole.kind), whole);
  };
  const policy = async (name: string): Promise<string> => {
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    const { metadata } = await create({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: { module: 'builtin:cel', settings: {}, mutating: false, rules },
    });
    return metadata.uid ?? assert.fail();
  };
  const reaches = (name: string, state: string): Promise<PolicyException> =>
    eventually(
      async () => {
        const found = await admin.get(POLICY_EXCEPTIONS, { namespace: 'shop', name });
        assert.deepEqual(
          [found.status?.state, found.status?.observedGeneration],
          [state, found.metadata.generation],
          JSON.stringify(found.status),
        );
        return found;
      },
      { timeoutMs: 20_000 },
    );
  const refused = (attempt: Promise<unknown>, code: number, message: RegExp): Promise<void> =>
    assert.rejects(attempt, (error) => error instanceof ApiError && error.code === code && message.test(error.message));
  const patched = (by: Cluster, name: string, body: JsonObject, subresource?: string): Promise<PolicyException> =>
    by.patch(
      POLICY_EXCEPTIONS,
      { namespace: 'shop', name },
      { type: 'merge', body },
      subresource === undefined ? {} : { subresource },
    );

  before(async () => {
    server = await startCluster();
    connection = {
      server: server.url,
      ca: readFileSync(server.caFile, 'utf8'),
      credentials: tokenCredentials(server.adminToken),
    };
    admin = new KubernetesCluster(connection);
    for (const one of OWN_KINDS) {
      await create(customResourceDefinition(one));
    }
    await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await eventually(async () => void (await admin.list(POLICY_EXCEPTIONS)));
    await create(exception('early'));
    for (const guard of withoutComments(exceptionGuards({ namespace: NAMESPACE }))) {
      await create(guard);
    }
    atGuard = Date.now();
    await grant(CONTROLLER, CLUSTER_RULES, 'controller');
    await grant('replica', REPLICA_CLUSTER_RULES);
    await grant(AUDITOR, AUDITOR_RULES, 'auditor');
    const all = ['get', 'list', 'create', 'update', 'patch', 'delete'];
    const kinds = ['policyexceptions', 'policyexceptions/status'];
    await grant('tenant', [{ apiGroups: ['portcullis.dev'], resources: kinds, verbs: all }]);
    await grant('exempter', [
      { apiGroups: ['portcullis.dev'], resources: kinds, verbs: all },
      {
        apiGroups: ['policies.kubewarden.io'],
        resources: ['clusteradmissionpolicies'],
        resourceNames: ['pinned'],
        verbs: ['exempt'],
      },
    ]);
    const controller = as(CONTROLLER);
    const events = new EventRecorder({ cluster: controller, component: 'portcullis-controller', log });
    const caches = new SharedCaches({ cluster: controller, log });
    const policies = new SharedCaches({ cluster: controller, log });
    const controllers = new ExceptionController({
      cluster: controller,
      caches,
      policies,
      events,
      registry: new Registry(),
      log,
    });
    feed = new ExceptionFeed({
      cluster: as('replica'),
      publish: ({ objects }: WatchedChange) =>
        objects.forEach(([{ name }, text]) =>
          text === undefined ? inForce.delete(name) : inForce.set(name, JSON.parse(text) as JsonObject),
        ),
      log,
    });
    const { signal } = stop;
    running.push(caches.start(signal), policies.start(signal), events.start(signal), controllers.start(signal));
    running.push(feed.start(signal));
    feed.want(new Map([['kw.cap.pinned', await policy('pinned')]]), true);
    await policy('other');
    // API servers ask some seconds after the creation of the guard, and the controller counts on it from then on.
    await new Promise((resolve) => setTimeout(resolve, atGuard + 11_000 - Date.now()));
  });

  after(async () => {
    stop.abort();
    await Promise.all(running);
    [...clients, admin].forEach((client) => client?.close());
    await server?.stop();
  });

  it('refuses a user without the verb, and says which right is missing', async () => {
    await refused(
      create(exception('bold'), as('tenant')),
      403,
      /user tenant needs the verb exempt on clusteradmissionpolicies\.policies\.kubewarden\.io "pinned"/,
    );
    const both = [
      { kind: 'ClusterAdmissionPolicy', name: 'pinned' },
      { kind: 'ClusterAdmissionPolicy', name: 'other' },
    ] as const;
    await refused(create(exception('bold', { policies: both }), as('exempter')), 403, /"other"/);
    const own = [{ kind: 'AdmissionPolicy', name: 'pinned' }] as const;
    await refused(
      create(exception('bold', { policies: own }), as('exempter')),
      403,
      / admissionpolicies\.policies\.kubewarden\.io "pinned"/,
    );
  });

  it('asks as many policies as an exception may have', async () => {
    const many = Array.from({ length: 16 }, (_, index) => ({
      kind: 'ClusterAdmissionPolicy' as const,
      name: `p${index}`,
    }));
    await create(exception('many', { policies: many }));
    await refused(create(exception('bold', { policies: many }), as('tenant')), 403, /"p0"/);
    const more = [...many, { kind: 'ClusterAdmissionPolicy' as const, name: 'p16' }];
    await refused(create(exception('more', { policies: more })), 422, /must have at most 16 items/);
    await reaches('many', 'Pending');
  });

  for (const [what, spec, message] of [
    ['no selector', { objects: { kinds: [{ apiGroup: '', kind: 'Pod' }] } }, /expected names, labelSelector, or both/],
    [
      'an empty selector',
      { objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], labelSelector: {} } },
      /an empty selector matches nothing/,
    ],
    ['a star alone', { objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['*'] } }, /should match/],
    ['an offset', { expiresAt: '2027-01-31T12:00:00+01:00' }, /should match/],
    ['a leap second', { expiresAt: '2027-06-30T23:59:60Z' }, /should match/],
    ['a fraction', { expiresAt: '2027-01-31T12:00:00.5Z' }, /should match/],
    ['a policy with a line break', { policies: [{ kind: 'ClusterAdmissionPolicy', name: 'a\nb' }] }, /should match/],
    [
      'the same policy twice',
      {
        policies: [
          { kind: 'ClusterAdmissionPolicy', name: 'a' },
          { kind: 'ClusterAdmissionPolicy', name: 'a', members: ['b'] },
        ],
      },
      /Duplicate value/,
    ],
    [
      'members of a single policy',
      { policies: [{ kind: 'ClusterAdmissionPolicy', name: 'a', members: ['b'] }] },
      /only groups have members/,
    ],
  ] as const) {
    it(`refuses ${what}`, () => refused(create(exception('odd', spec)), 422, message));
  }

  it('is in force once the controller has accepted it, as it is', async () => {
    await create(exception('importer'), as('exempter'));
    const { metadata, status } = await reaches('importer', 'Active');
    assert.deepEqual([status?.accepted?.uid, status?.accepted?.generation], [metadata.uid, 1]);
    await eventually(async () => assert.ok(inForce.has('importer')));
    await refused(patched(as('tenant'), 'importer', { spec: { reason: 'mine' } }), 403, /needs the verb exempt/);
    const widened = { spec: { objects: { names: ['importer', 'web-*'] } } };
    await patched(as('exempter'), 'importer', widened);
    await eventually(async () => {
      const { objects } = (inForce.get('importer') ?? {}) as { readonly objects?: { readonly names?: unknown } };
      assert.deepEqual(objects?.names, ['importer', 'web-*']);
    });
    // Whoever may not except may still label it.
    await patched(as('tenant'), 'importer', { metadata: { labels: { team: 'shop' } } });
  });

  it('lets nobody but the controller write its status', async () => {
    const forged = { status: { state: 'Active', accepted: { uid: 'u', generation: 1, policies: [] } } };
    for (const by of [as('tenant'), as('exempter'), admin]) {
      await refused(
        patched(by, 'importer', forged, 'status'),
        422,
        /only the controller of Portcullis writes the status/,
      );
    }
  });

  it('lets the auditor write how many objects it is for, and nothing else of the status', async () => {
    const key = { namespace: 'shop', name: 'importer' };
    const apply = (status: JsonObject): Promise<PolicyException> => {
      const body = { apiVersion: 'portcullis.dev/v1', kind: 'PolicyException', metadata: key, status };
      const options = { subresource: 'status', fieldManager: 'portcullis-auditor' };
      return as(AUDITOR).patch(POLICY_EXCEPTIONS, key, { type: 'apply', body, force: true }, options);
    };
    const matched = { summary: '2', count: 2, observedGeneration: 1 };
    const before = await admin.get(POLICY_EXCEPTIONS, key);
    const { status } = await apply({ matched });
    assert.deepEqual(status, { ...before.status, matched });
    for (const forged of [{ state: 'Expired' }, { used: 1 }, { accepted: { uid: 'u', generation: 1, policies: [] } }]) {
      await refused(apply({ matched, ...forged }), 422, /only the controller of Portcullis writes the status/);
    }
    await refused(patched(as('tenant'), 'importer', { status: { matched } }, 'status'), 422, /only the controller/);
  });

  it('takes nothing from a copy with a status', async () => {
    const { status, spec } = await admin.get(POLICY_EXCEPTIONS, { namespace: 'shop', name: 'importer' });
    const copy = { ...exception('copy'), spec, status };
    await refused(create(copy, as('tenant')), 403, /needs the verb exempt/);
    const stored = (await create(copy, as('exempter'))) as PolicyException;
    assert.equal(stored.status?.accepted, undefined);
    const { metadata, status: own } = await reaches('copy', 'Active');
    assert.equal(own?.accepted?.uid, metadata.uid);
  });

  it('does not accept what was created before API servers asked', async () => {
    const { status } = await reaches('early', 'Refused');
    assert.equal(status?.conditions?.[0]?.reason, 'CreatedUnguarded');
    assert.equal(inForce.has('early'), false);
  });

  it('does not accept a time that is too far, or past', async () => {
    await create(exception('long', { expiresAt: inUtc(Date.now() + 400 * DAY_MS) }));
    await create(exception('late', { expiresAt: '2020-01-31T12:00:00Z' }));
    await reaches('long', 'Refused');
    await reaches('late', 'Expired');
    assert.deepEqual([inForce.has('long'), inForce.has('late')], [false, false]);
  });

  it('says by itself that it has ended, not before the second in which it does', async () => {
    await create(exception('short', { expiresAt: inUtc(Date.now() + DAY_MS) }));
    await reaches('short', 'ExpiringSoon');
    const end = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
    await patched(as('exempter'), 'short', { spec: { expiresAt: inUtc(end) } });
    await reaches('short', 'Expired');
    assert.ok(Date.now() >= end, `${end - Date.now()} ms before the end`);
    const { stdout } = await server.kubectl(['get', 'pex', '-n', 'shop', 'short']);
    assert.match(stdout, /^NAME +POLICY +STATE +EXPIRES +OBJECTS +USED +LAST-USED +AGE\nshort +pinned +Expired +\S+Z /);
  });

  it('is orphaned when its policy is another one, of which it excepts nothing', async () => {
    await admin.delete(kind('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy'), { name: 'pinned' });
    const uid = await policy('pinned');
    const { status } = await reaches('importer', 'Orphaned');
    assert.notEqual(status?.accepted?.policies[0]?.uid, uid);
    feed.want(new Map([['kw.cap.pinned', uid]]), false);
    assert.deepEqual([...inForce.keys()], []);
    await patched(as('exempter'), 'importer', { spec: { reason: 'for the new one, too' } });
    await reaches('importer', 'Active');
    await eventually(async () => assert.ok(inForce.has('importer')));
  });
});
