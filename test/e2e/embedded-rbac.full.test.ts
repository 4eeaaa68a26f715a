// Compares RBAC of the embedded cluster with a real kube-apiserver: roles, bindings, reviews and error messages.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Authenticator } from '../../src/apiserver/embedded/authentication/authenticator.ts';
import { userInfoObject } from '../../src/apiserver/embedded/request/identities.ts';
import { impersonate } from '../../src/apiserver/embedded/authentication/impersonation.ts';
import type { Impersonation } from '../../src/apiserver/embedded/authentication/impersonation.ts';
import { Reviews } from '../../src/apiserver/embedded/authentication/reviews.ts';
import { SigningKey } from '../../src/apiserver/embedded/authentication/signing-key.ts';
import { aggregatedRules } from '../../src/apiserver/embedded/authorization/aggregation.ts';
import { BOOTSTRAP_RBAC } from '../../src/apiserver/embedded/authorization/bootstrap-rbac.ts';
import { checkEscalation } from '../../src/apiserver/embedded/authorization/escalation.ts';
import { forbidden } from '../../src/apiserver/embedded/authorization/forbidden.ts';
import { RbacAuthorizer } from '../../src/apiserver/embedded/authorization/rbac-authorizer.ts';
import type { AccessAttributes, UserInfo } from '../../src/apiserver/embedded/request/request.ts';
import { ListedState } from '../../src/apiserver/embedded/testing/listed-state.ts';
import { ApiError } from '../../src/cluster/index.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const RBAC = 'rbac.authorization.k8s.io';
const API_VERSION = `${RBAC}/v1`;
const AUTHENTICATED = 'system:authenticated';

type Rule = Readonly<Record<string, readonly string[]>>;

function rule(verbs: string, group: string, resources: string, names?: string): Rule {
  return {
    verbs: verbs.split(','),
    apiGroups: [group],
    resources: resources.split(','),
    ...(names === undefined ? {} : { resourceNames: names.split(',') }),
  };
}

function role(name: string, rules: readonly Rule[], namespace?: string, labels = {}): KubernetesObject {
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'ClusterRole' : 'Role',
    metadata: { name, labels, ...(namespace === undefined ? {} : { namespace }) },
    rules,
  };
}

function aggregated(name: string, label: string, labels = {}): KubernetesObject {
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] };
  return { ...role(name, [], undefined, labels), aggregationRule };
}

/** Subjects as `user:x`, `group:x`, `sa:namespace/x`. */
function binding(name: string, roleName: string, subjects: readonly string[], namespace?: string): KubernetesObject {
  const [kind, target] = roleName.includes('/')
    ? ['Role', roleName.slice(roleName.indexOf('/') + 1)]
    : ['ClusterRole', roleName];
  return {
    apiVersion: API_VERSION,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    subjects: subjects.map(subject),
    roleRef: { apiGroup: RBAC, kind, name: target },
  };
}

function subject(text: string): object {
  const colon = text.indexOf(':');
  const name = text.slice(colon + 1);
  switch (text.slice(0, colon)) {
    case 'user':
      return { kind: 'User', apiGroup: RBAC, name };
    case 'group':
      return { kind: 'Group', apiGroup: RBAC, name };
    default: {
      const [namespace, account] = name.split('/');
      return { kind: 'ServiceAccount', name: account, namespace };
    }
  }
}

const CORPUS: readonly KubernetesObject[] = [
  role('pod-reader', [rule('get,list,watch', '', 'pods')]),
  role('pod-status', [rule('get,patch', '', 'pods/status,pods/log')]),
  role('scaler', [rule('update', 'apps', '*/scale')]),
  role('everything-apps', [rule('*', 'apps', '*')]),
  role('any-group', [rule('get', '*', 'deployments')]),
  role('one-map', [rule('get,update', '', 'configmaps', 'settings,other')]),
  role('paths', [{ verbs: ['get'], nonResourceURLs: ['/metrics', '/logs/*', '/debug*'] }]),
  role('all-paths', [{ verbs: ['post'], nonResourceURLs: ['*'] }]),
  role('odd "name"', [rule('get', '', 'nodes')]),
  role('local', [rule('list', '', 'secrets'), rule('create', 'batch', 'jobs')], 'shop'),
  role('part-a', [rule('get', '', 'services')], undefined, { 'example.com/monitor': 'true' }),
  role('part-b', [rule('list', '', 'endpoints')], undefined, { 'example.com/monitor': 'true' }),
  aggregated('monitor', 'example.com/monitor', { 'example.com/outer': 'true' }),
  aggregated('outer', 'example.com/outer'),
  binding('readers', 'pod-reader', ['user:jane', 'group:devs']),
  binding('status', 'pod-status', ['user:sam']),
  binding('scalers', 'scaler', ['group:ops']),
  binding('apps', 'everything-apps', ['sa:shop/robot'], 'shop'),
  binding('any', 'any-group', ['user:any']),
  binding('maps', 'one-map', ['user:mapper'], 'shop'),
  binding('pathers', 'paths', ['user:pather']),
  binding('all-pathers', 'all-paths', ['user:poster']),
  binding('odd', 'odd "name"', ['user:we "ird"']),
  binding('locals', 'Role/local', ['user:local', 'group:locals'], 'shop'),
  binding('lost', 'no-such-role', ['user:lost']),
  binding('lost-too', 'Role/nor-this', ['user:lost'], 'shop'),
  binding('cluster-account', 'pod-reader', ['sa:shop/reader']),
  binding('viewers', 'view', ['user:viewer'], 'shop'),
  binding('editors', 'edit', ['user:editor'], 'shop'),
  binding('admins', 'admin', ['user:boss'], 'shop'),
  binding('monitors', 'monitor', ['user:monitor']),
  binding('outers', 'outer', ['user:outer']),
  binding('no-subjects', 'cluster-admin', []),
];

const user = (username: string, ...groups: readonly string[]): UserInfo => ({ username, groups });
const account = (name: string): UserInfo =>
  user(`system:serviceaccount:shop:${name}`, 'system:serviceaccounts', 'system:serviceaccounts:shop', AUTHENTICATED);

/** Users with requests: `verb group/resource/subresource namespace name`, where `-` means none, or `verb /path`. */
const ACCESS_CHECKS: readonly (readonly [UserInfo, string])[] = [
  [user('jane'), 'list /pods - -'],
  [user('jane'), 'get /pods shop web'],
  [user('jane'), 'delete /pods shop web'],
  [user('jane'), 'get /pods/status shop web'],
  [user('x', 'a', 'devs'), 'watch /pods shop -'],
  [user('sam'), 'patch /pods/status shop web'],
  [user('sam'), 'get /pods shop web'],
  [user('sam'), 'get /pods/logs shop web'],
  [user('x', 'ops'), 'update apps/deployments/scale shop web'],
  [user('x', 'ops'), 'update apps/deployments shop web'],
  [user('x', 'ops'), 'update /replicationcontrollers/scale shop web'],
  [account('robot'), 'create apps/deployments shop -'],
  [account('robot'), 'create apps/deployments other -'],
  [account('robot'), 'create apps/deployments - -'],
  [account('robot'), 'update apps/deployments/status shop web'],
  [account('other'), 'create apps/deployments shop -'],
  [account('reader'), 'list /pods other -'],
  [user('any'), 'get extensions/deployments shop web'],
  [user('any'), 'get /deployments shop web'],
  [user('mapper'), 'get /configmaps shop settings'],
  [user('mapper'), 'get /configmaps shop else'],
  [user('mapper'), 'list /configmaps shop -'],
  [user('mapper'), 'get /configmaps other settings'],
  [user('pather'), 'get /metrics'],
  [user('pather'), 'get /metrics/slis'],
  [user('pather'), 'get /logs/a/b'],
  [user('pather'), 'get /logs'],
  [user('pather'), 'get /debug'],
  [user('pather'), 'get /debugger'],
  [user('pather'), 'post /metrics'],
  [user('poster'), 'post /anything'],
  [user('poster'), 'post /pods - -'],
  [user('we "ird"'), 'get /nodes - n'],
  [user('local'), 'list /secrets shop -'],
  [user('local'), 'list /secrets other -'],
  [user('x', 'locals'), 'create batch/jobs shop -'],
  [user('lost'), 'get /pods shop x'],
  [user('lost'), 'get /pods - -'],
  [user('lost'), 'get /version'],
  [user('lost', AUTHENTICATED), 'get /apis'],
  [user('anyone', AUTHENTICATED), 'get /api/v1'],
  [user('anyone', AUTHENTICATED), 'get /openapi/v3'],
  [user('anyone', AUTHENTICATED), 'create authorization.k8s.io/selfsubjectaccessreviews - -'],
  [user('anyone', AUTHENTICATED), 'create authorization.k8s.io/subjectaccessreviews - -'],
  [user('system:anonymous', 'system:unauthenticated'), 'get /healthz'],
  [user('root', 'system:masters'), 'delete /nodes - n'],
  [user('root', 'system:masters'), 'put /x'],
  [user('viewer'), 'list apps/deployments shop -'],
  [user('viewer'), 'get /secrets shop s'],
  [user('viewer'), 'get /pods/log shop p'],
  [user('viewer'), 'list apps/deployments other -'],
  [user('editor'), 'get /secrets shop s'],
  [user('editor'), 'list apps/deployments shop -'],
  [user('editor'), 'create apps/deployments/scale shop d'],
  [user('editor'), `create ${RBAC}/roles shop -`],
  [user('boss'), `create ${RBAC}/roles shop -`],
  [user('boss'), 'get /secrets shop s'],
  [user('boss'), 'patch /namespaces shop shop'],
  [user('monitor'), 'get /services - -'],
  [user('monitor'), 'list /endpoints shop -'],
  [user('monitor'), 'list /services shop -'],
  [user('outer'), 'list /endpoints shop -'],
  [user('nobody'), 'get /pods shop web'],
];

function attributes(asker: UserInfo, text: string): AccessAttributes {
  const [verb = '', target = '', namespace, name] = text.split(' ');
  if (namespace === undefined) {
    return { user: asker, verb, path: target };
  }
  const [group = '', resource = '', subresource = ''] = target.split('/');
  const orNothing = (one: string | undefined): string => (one === undefined || one === '-' ? '' : one);
  return {
    user: asker,
    verb,
    group,
    resource,
    subresource,
    namespace: orNothing(namespace),
    name: orNothing(name),
  };
}

function reviewOf({ user: { username, groups }, path, verb, ...resource }: AccessAttributes): object {
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: username,
      groups,
      ...(path === undefined
        ? { resourceAttributes: { verb, ...resource } }
        : { nonResourceAttributes: { verb, path } }),
    },
  };
}

/** A seeded generator of pseudo-random numbers (xorshift). */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

describe('roles and bindings', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let state: ListedState;
  let authorizer: RbacAuthorizer;

  const collection = ({ kind, metadata }: KubernetesObject): string =>
    `/apis/${API_VERSION}${metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`}/${kind.toLowerCase()}s`;

  const objectPath = (object: KubernetesObject): string =>
    `${collection(object)}/${encodeURIComponent(object.metadata.name ?? '')}`;

  async function ask(asked: AccessAttributes): Promise<{ allowed: boolean; reason: string }> {
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const { status } = await cluster.expect('POST', path, reviewOf(asked));
    const { allowed, reason = '' } = status as { allowed: boolean; reason?: string };
    return { allowed, reason };
  }

  before(async () => {
    cluster = await startCluster({ users: { jane: { groups: ['devs'] }, giver: { groups: ['givers'] } } });
    await cluster.createNamespace('shop');
    await cluster.createNamespace('other');
    state = new ListedState([...BOOTSTRAP_RBAC, ...CORPUS]);
    authorizer = new RbacAuthorizer(state);
    for (const object of CORPUS) {
      await cluster.expect('POST', collection(object), object);
    }
    // No controller runs in this cluster, so the test aggregates the roles.
    for (const object of state.list({ group: RBAC, resource: 'clusterroles' })) {
      if (object.aggregationRule !== undefined) {
        const rules = aggregatedRules(state, object).map((one) =>
          Object.fromEntries(Object.entries(one).filter(([, list]) => list.length > 0)),
        );
        await cluster.expect('PATCH', objectPath(object), { rules });
      }
    }
    await eventually(async () => {
      const { allowed } = await ask(attributes(user('outer'), 'list /endpoints shop -'));
      assert.ok(allowed, 'the API server knows the last role');
    });
  });
  after(() => cluster.stop());

  it('decide as the API server does, for the same reasons', async () => {
    for (const [asker, text] of ACCESS_CHECKS) {
      const asked = attributes(asker, text);
      assert.deepEqual(authorizer.authorize(asked), await ask(asked), `${asker.username}: ${text}`);
    }
  });

  it('that every cluster has are those of the API server', async () => {
    for (const object of BOOTSTRAP_RBAC) {
      const real = await cluster.expect('GET', objectPath(object));
      const { labels, annotations } = object.metadata;
      assert.deepEqual(real.metadata.labels, labels);
      assert.deepEqual(real.metadata.annotations, annotations);
      for (const field of ['subjects', 'roleRef', 'aggregationRule']) {
        assert.deepEqual(real[field], object[field], `${field} of ${object.metadata.name}`);
      }
      if (object.aggregationRule === undefined) {
        assert.deepEqual(real.rules, object.rules, `rules of ${object.metadata.name}`);
      }
    }
  });

  it('made at random allow the same', async () => {
    const next = numbers(20_260);
    const oneOf = <T>(list: readonly T[]): T => list[next(list.length)] as T;
    const some = (list: readonly string[]): string[] => list.filter(() => next(3) === 0);
    const groups = ['', 'apps', 'batch'];
    const resources = ['pods', 'pods/status', 'deployments', 'deployments/scale', 'jobs', '*/scale', '*/status'];
    const verbs = ['get', 'list', 'create', 'delete'];
    const names = ['a', 'b'];
    const users = ['u1', 'u2', 'u3'];
    for (let index = 0; index < 40; index += 1) {
      const namespace = oneOf([undefined, 'shop', 'other']);
      const rules = Array.from({ length: 1 + next(2) }, () => ({
        verbs: next(8) === 0 ? ['*'] : [...some(verbs), oneOf(verbs)],
        apiGroups: next(8) === 0 ? ['*'] : [oneOf(groups)],
        resources: next(10) === 0 ? ['*'] : [...some(resources), oneOf(resources)],
        ...(next(3) === 0 ? { resourceNames: [oneOf(names)] } : {}),
      }));
      const made = role(`random-${index}`, rules, namespace);
      const roleName = namespace === undefined ? `random-${index}` : `Role/random-${index}`;
      const subjects = [oneOf(users.map((one) => `user:${one}`)), ...(next(4) === 0 ? ['group:g'] : [])];
      const bound = binding(`random-${index}`, roleName, subjects, namespace ?? oneOf([undefined, 'shop']));
      for (const object of [made, bound]) {
        await cluster.expect('POST', collection(object), object);
        state.put(object);
      }
    }
    const marker = binding('marker', 'cluster-admin', ['user:marker']);
    await cluster.expect('POST', collection(marker), marker);
    await eventually(async () => assert.ok((await ask(attributes(user('marker'), 'get /pods - -'))).allowed));
    let allowed = 0;
    for (let index = 0; index < 400; index += 1) {
      const asker = user(oneOf(users), ...(next(3) === 0 ? ['g'] : []));
      const resource = oneOf(['pods', 'pods/status', 'deployments', 'deployments/scale', 'jobs', 'jobs/status']);
      const text = `${oneOf(verbs)} ${oneOf(groups)}/${resource} ${oneOf(['-', 'shop', 'other'])} ${oneOf(['-', 'a', 'b', 'c'])}`;
      const asked = attributes(asker, text);
      const [own, real] = [authorizer.authorize(asked), await ask(asked)];
      assert.equal(own.allowed, real.allowed, `${asker.username} ${asker.groups.join()}: ${text}`);
      allowed += own.allowed ? 1 : 0;
    }
    assert.ok(allowed > 50 && allowed < 350, `questions of both kinds, got ${allowed} that are allowed`);
  });

  it('refuse requests in the words of the API server', async () => {
    const cases: readonly (readonly [method: string, path: string, asked: string])[] = [
      ['GET', '/api/v1/namespaces/shop/secrets', 'list /secrets shop -'],
      ['GET', '/api/v1/nodes', 'list /nodes - -'],
      ['DELETE', '/apis/apps/v1/namespaces/shop/deployments/web', 'delete apps/deployments shop web'],
      ['GET', '/api/v1/namespaces/shop/pods/web/log', 'get /pods/log shop web'],
      ['GET', '/metrics', 'get /metrics'],
      ['GET', '/a%3Cb%3E&c', 'get /a<b>&c'],
    ];
    for (const [method, path, text] of cases) {
      const real = await cluster.request(method, path, undefined, { user: 'jane' });
      const asked = attributes(user('jane', 'devs', AUTHENTICATED), text);
      const own = forbidden(asked, authorizer.authorize(asked).reason).toStatus();
      assert.deepEqual(own, real.body, `${method} ${path}`);
    }
  });

  it('say who may be taken for whom', async () => {
    const actors = role('actors', [
      rule('impersonate', '', 'users', 'sam'),
      rule('impersonate', '', 'groups', 'staff'),
      rule('impersonate', 'authentication.k8s.io', 'userextras/scopes', 'x'),
    ]);
    for (const object of [actors, binding('actors', 'actors', ['user:jane'])]) {
      await cluster.expect('POST', collection(object), object);
      state.put(object);
    }
    await eventually(async () => {
      const { code } = await cluster.kubectl(['auth', 'whoami', '--as', 'sam'], { user: 'jane' });
      assert.equal(code, 0);
    });
    const jane = user('jane', 'devs', AUTHENTICATED);
    const cases: readonly (readonly [args: readonly string[], wanted: Partial<Impersonation>])[] = [
      [['--as', 'sam'], { username: 'sam' }],
      [['--as', 'sam', '--as-group', 'staff'], { username: 'sam', groups: ['staff'] }],
      [['--as', 'sam', '--as-group', 'staff', '--as-group', 'root'], { username: 'sam', groups: ['staff', 'root'] }],
      [['--as', 'root'], { username: 'root' }],
      [['--as', 'sam', '--as-uid', '1'], { username: 'sam', uid: '1' }],
      [['--as', 'system:serviceaccount:shop:robot'], { username: 'system:serviceaccount:shop:robot' }],
      [['--as', 'system:anonymous'], { username: 'system:anonymous' }],
    ];
    for (const [args, wanted] of cases) {
      const real = await cluster.kubectl(['auth', 'whoami', '-o', 'json', ...args], { user: 'jane' });
      const impersonation = { username: '', uid: '', groups: [], extra: {}, ...wanted };
      let own: unknown;
      try {
        own = userInfoObject(impersonate(jane, impersonation, authorizer));
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        own = `Error from server (Forbidden): ${error.message}\n`;
      }
      // `kubectl auth whoami` does not print the reason.
      const expected =
        real.code === 0
          ? (JSON.parse(real.stdout) as { status: { userInfo: object } }).status.userInfo
          : (await cluster.kubectl(['get', '--raw', '/version', ...args], { user: 'jane' })).stderr;
      assert.deepEqual(own, expected, args.join(' '));
    }
  });

  it('are given only by who holds what they give', async () => {
    const grants: readonly KubernetesObject[] = [
      role('givers', [
        rule('create,update,patch', RBAC, 'roles,rolebindings,clusterroles,clusterrolebindings'),
        rule('get,list', '', 'pods'),
      ]),
      role('binders', [rule('bind', RBAC, 'clusterroles', 'pod-reader'), rule('escalate', RBAC, 'roles')]),
      binding('givers', 'givers', ['user:giver']),
      binding('binders', 'binders', ['user:giver'], 'other'),
    ];
    for (const object of grants) {
      await cluster.expect('POST', collection(object), object);
      state.put(object);
    }
    const giver = user('giver', 'givers', AUTHENTICATED);
    const attempts: readonly KubernetesObject[] = [
      role('g1', [rule('get', '', 'pods')], 'shop'),
      role('g2', [rule('get,watch', '', 'pods,secrets')], 'shop'),
      role('g3', [rule('*', '*', '*')], 'shop'),
      role('g4', [rule('get', '', 'configmaps', 'a,b'), rule('delete', '', 'configmaps', 'b')], 'shop'),
      role('g5', [{ verbs: ['get', 'put'], nonResourceURLs: ['/version', '/metrics'] }]),
      role('g6', [rule('get', '', 'secrets')], 'other'),
      aggregated('g7', 'example.com/monitor'),
      binding('g8', 'pod-reader', ['user:x'], 'shop'),
      binding('g9', 'pod-reader', ['user:x'], 'other'),
      binding('g10', 'pod-reader', ['user:x']),
      binding('g11', 'cluster-admin', ['user:x']),
      binding('g12', 'no-such', ['user:x'], 'shop'),
      binding('g13', 'Role/local', ['user:x'], 'shop'),
    ];
    await eventually(async () => {
      const first = attempts[0] as KubernetesObject;
      const { status } = await cluster.request('POST', `${collection(first)}?dryRun=All`, first, { user: 'giver' });
      assert.equal(status, 201, 'the API server knows the new bindings');
    });
    for (const object of attempts) {
      const { name = '', namespace } = object.metadata;
      const real = await cluster.request('POST', `${collection(object)}?dryRun=All`, object, { user: 'giver' });
      const definition = { group: RBAC, resource: `${object.kind.toLowerCase()}s` };
      let own: unknown;
      try {
        checkEscalation(authorizer, { user: giver, definition, namespace, object, oldObject: null });
      } catch (error) {
        assert.ok(error instanceof ApiError);
        own = error.toStatus();
      }
      assert.deepEqual(own, real.status < 400 ? undefined : real.body, name);
    }
  });

  it('are reviewed as the API server does', async () => {
    const authenticator = new Authenticator({
      state,
      authorizer,
      key: SigningKey.open({ load: () => undefined, save: () => undefined }),
    });
    const reviews = new Reviews({ state, rbac: authorizer, authenticator });
    const jane: UserInfo = { username: 'jane', uid: 'jane', groups: ['devs', AUTHENTICATED] };
    const access = 'authorization.k8s.io';
    const authentication = 'authentication.k8s.io';
    const pods = { verb: 'get', resource: 'pods' };
    const cases: readonly (readonly [
      group: string,
      kind: string,
      spec: object | undefined,
      metadata?: object,
      namespace?: string,
    ])[] = [
      [access, 'SelfSubjectAccessReview', { resourceAttributes: { ...pods, namespace: 'shop' } }],
      [access, 'SelfSubjectAccessReview', { nonResourceAttributes: { verb: 'get', path: '/apis' } }],
      [access, 'SelfSubjectAccessReview', { resourceAttributes: { ...pods, labelSelector: { rawSelector: 'a==!' } } }],
      [access, 'SelfSubjectAccessReview', { resourceAttributes: { ...pods, fieldSelector: {} } }],
      [
        access,
        'SelfSubjectAccessReview',
        { resourceAttributes: pods, nonResourceAttributes: { verb: 'get', path: '/' } },
      ],
      [access, 'SelfSubjectAccessReview', {}],
      [access, 'SubjectAccessReview', { user: 'jane', resourceAttributes: pods }],
      [access, 'SubjectAccessReview', { user: 'lost', resourceAttributes: { ...pods, namespace: 'shop' } }],
      [
        access,
        'SubjectAccessReview',
        { groups: ['system:masters'], nonResourceAttributes: { verb: 'get', path: '/' } },
      ],
      [access, 'SubjectAccessReview', {}],
      [
        access,
        'LocalSubjectAccessReview',
        { user: 'local', resourceAttributes: { verb: 'list', resource: 'secrets', namespace: 'shop' } },
        { namespace: 'shop' },
        'shop',
      ],
      [
        access,
        'LocalSubjectAccessReview',
        { user: 'x', resourceAttributes: { ...pods, namespace: 'other' } },
        { namespace: 'shop' },
        'shop',
      ],
      [
        access,
        'LocalSubjectAccessReview',
        { user: 'x', nonResourceAttributes: { verb: 'get', path: '/' } },
        { namespace: 'shop' },
        'shop',
      ],
      [access, 'SelfSubjectRulesReview', {}],
      [authentication, 'SelfSubjectReview', undefined],
      [authentication, 'TokenReview', {}],
      [authentication, 'TokenReview', { token: 'nonsense' }],
    ];
    // All users may create all reviews, so that only the responses are compared.
    const open = role('asker', [rule('create', access, '*'), rule('create', authentication, '*')]);
    for (const object of [open, binding('asker', 'asker', ['user:jane'])]) {
      await cluster.expect('POST', collection(object), object);
      state.put(object);
    }
    const plural = (kind: string): string => `${kind.toLowerCase()}s`;
    await eventually(async () =>
      assert.ok((await ask(attributes(jane, `create ${access}/subjectaccessreviews - -`))).allowed),
    );
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot', namespace: 'shop' } };
    const { metadata: made } = await cluster.expect('POST', '/api/v1/namespaces/shop/serviceaccounts', account);
    state.put({ ...account, metadata: { ...account.metadata, uid: String(made.uid) } });
    const tokenRequests: readonly (readonly [spec: object, metadata?: object, name?: string])[] = [
      [{ audiences: ['a'] }],
      [
        { audiences: ['a'], expirationSeconds: 700 },
        { name: 'robot', namespace: 'shop' },
      ],
      [{ expirationSeconds: 10 }],
      [{ expirationSeconds: 5_000_000_000 }],
      [{}, { name: 'other' }],
      [{}, { uid: 'other' }],
      [{ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'none' } }],
      [{ boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'none' } }],
      [{}, {}, 'none'],
    ];
    for (const [spec, metadata = {}, name = 'robot'] of tokenRequests) {
      const object = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata, spec };
      const real = await cluster.request('POST', `/api/v1/namespaces/shop/serviceaccounts/${name}/token`, object);
      let own: unknown;
      try {
        const question = { group: '', resource: 'serviceaccounts', subresource: 'token', namespace: 'shop', name };
        own = reviews.handle({ ...question, user: jane, object });
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        own = error.toStatus();
      }
      assert.deepEqual(withoutTimes(own), withoutTimes(real.body), `TokenRequest ${JSON.stringify([spec, metadata])}`);
    }
    for (const [group, kind, spec, metadata = {}, namespace] of cases) {
      const object = {
        apiVersion: `${group}/v1`,
        kind,
        metadata,
        ...(spec === undefined ? {} : { spec }),
      } as KubernetesObject;
      const scope = namespace === undefined ? '' : `/namespaces/${namespace}`;
      const real = await cluster.request('POST', `/apis/${group}/v1${scope}/${plural(kind)}`, object, { user: 'jane' });
      let own: unknown;
      try {
        own = reviews.handle({ group, resource: plural(kind), namespace, user: jane, object });
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        own = error.toStatus();
      }
      assert.deepEqual(withoutTimes(own), withoutTimes(real.body), `${kind} ${JSON.stringify(spec)}`);
    }
  });
});

function withoutTimes(value: unknown): unknown {
  const { managedFields: _fields, creationTimestamp: _time, ...metadata } = (value as KubernetesObject).metadata;
  const { token, expirationTimestamp, ...status } = ((value as KubernetesObject).status ?? {}) as Record<
    string,
    unknown
  >;
  const hasToken = typeof token === 'string' && typeof expirationTimestamp === 'string';
  return { ...(value as object), metadata, ...(hasToken ? { status } : {}) };
}
