import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { ClusterError } from '../../../cluster/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { RbacAuthorizer } from '../authorization/rbac-authorizer.ts';
import { ListedState } from '../testing/listed-state.ts';
import { Authenticator } from './authenticator.ts';
import type { AuthenticatorOptions } from './authenticator.ts';
import { impersonationOf } from './impersonation.ts';
import { Reviews } from './reviews.ts';
import { SigningKey, unverifiedClaims } from './signing-key.ts';

const ACCOUNT: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'robot', namespace: 'shop', uid: 'uid-1' },
};
const POD: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'shop', uid: 'uid-p' },
  spec: { serviceAccountName: 'robot' },
};
const ROLE: KubernetesObject = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'actors' },
  rules: [
    { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['sam'] },
    { verbs: ['impersonate'], apiGroups: [''], resources: ['groups', 'serviceaccounts'] },
    { verbs: ['impersonate'], apiGroups: ['authentication.k8s.io'], resources: ['userextras/scopes'] },
  ],
};
const BINDING: KubernetesObject = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'actors' },
  subjects: [{ kind: 'User', name: 'jane' }],
  roleRef: { kind: 'ClusterRole', name: 'actors' },
};

const HOUR_MS = 3_600_000;
const UNAUTHORIZED = { name: 'ApiError', code: 401, message: 'Unauthorized' };

describe('the authenticator', () => {
  const key = SigningKey.open({ load: () => undefined, save: () => undefined });
  let state: ListedState;
  let now: number;

  beforeEach(() => {
    state = new ListedState([ACCOUNT, POD, ROLE, BINDING]);
    now = Date.UTC(2030, 0, 1);
  });

  function authenticator(rest: Partial<AuthenticatorOptions> = {}): Authenticator {
    return new Authenticator({
      state,
      authorizer: new RbacAuthorizer(state),
      key,
      tokens: [{ token: 'secret', user: { username: 'jane', groups: ['devs'] } }],
      now: () => now,
      ...rest,
    });
  }

  function request(spec: object = {}, rest: Partial<AuthenticatorOptions> = {}): KubernetesObject {
    const own = authenticator(rest);
    const reviews = new Reviews({ state, rbac: new RbacAuthorizer(state), authenticator: own });
    return reviews.handle({
      group: '',
      resource: 'serviceaccounts',
      subresource: 'token',
      namespace: 'shop',
      name: 'robot',
      user: { username: 'x', groups: [] },
      object: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {}, spec },
    });
  }

  const issue = (spec: object = {}, rest: Partial<AuthenticatorOptions> = {}): string =>
    (request(spec, rest).status as { token: string }).token;
  const login = (token: string, own = authenticator()) => own.authenticate({ authorization: `Bearer ${token}` });

  it('knows static tokens, and puts their users into the group of all users', () => {
    assert.deepEqual(login('secret'), { username: 'jane', groups: ['devs', 'system:authenticated'] });
  });

  it('refuses requests without credentials, or with wrong ones', () => {
    for (const authorization of [undefined, '', 'Bearer', 'Bearer wrong', 'Basic c2VjcmV0', 'secret']) {
      assert.throws(() => authenticator().authenticate({ authorization }), UNAUTHORIZED, String(authorization));
    }
  });

  it('takes requests without credentials for anonymous ones where that is allowed, not those with wrong ones', () => {
    const open = authenticator({ isAnonymousAllowed: true });
    assert.deepEqual(open.authenticate({}), { username: 'system:anonymous', groups: ['system:unauthenticated'] });
    assert.throws(() => login('wrong', open), UNAUTHORIZED);
  });

  it('knows the tokens of service accounts', () => {
    const token = issue();
    const { jti } = unverifiedClaims(token) ?? {};
    assert.deepEqual(login(token), {
      username: 'system:serviceaccount:shop:robot',
      uid: 'uid-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${jti as string}`] },
    });
  });

  it('answers token requests as API servers do', () => {
    const { status, ...rest } = request({ expirationSeconds: 700, audiences: ['a'] });
    assert.deepEqual(rest, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'robot', namespace: 'shop', uid: 'uid-1', creationTimestamp: '2030-01-01T00:00:00Z' },
      spec: { audiences: ['a'], expirationSeconds: 700, boundObjectRef: null },
    });
    assert.equal((status as { expirationTimestamp: string }).expirationTimestamp, '2030-01-01T00:11:40Z');
    assert.throws(() => request({ expirationSeconds: 10 }), /may not specify a duration less than 10 minutes/u);
    assert.throws(() => request({ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'no' } }), {
      message: 'secrets "no" not found',
    });
    state.remove(ACCOUNT);
    assert.throws(() => request(), { message: 'serviceaccounts "robot" not found', code: 404 });
  });

  it('refuses tokens that have expired, or are for another audience', () => {
    const token = issue();
    now += HOUR_MS + 59_000;
    login(token);
    now += 2000;
    assert.throws(() => login(token), UNAUTHORIZED);
    assert.throws(() => login(issue({ audiences: ['other'] })), UNAUTHORIZED);
    assert.ok(!('error' in authenticator().authenticateToken(issue({ audiences: ['other'] }), ['other'])));
  });

  it('refuses tokens of service accounts that were deleted or recreated', () => {
    const token = issue();
    state.remove(ACCOUNT);
    assert.throws(() => login(token), UNAUTHORIZED);
    state.put({ ...ACCOUNT, metadata: { ...ACCOUNT.metadata, uid: 'uid-2' } });
    assert.throws(() => login(token), UNAUTHORIZED);
    state.put(ACCOUNT);
    login(token);
  });

  it('refuses tokens whose pod was deleted', () => {
    const token = issue({ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } });
    assert.deepEqual(login(token).extra?.['authentication.kubernetes.io/pod-name'], ['p']);
    state.remove(POD);
    assert.throws(() => login(token), UNAUTHORIZED);
  });

  it('refuses tokens of other clusters, and changed ones', () => {
    const other = SigningKey.open({ load: () => undefined, save: () => undefined });
    assert.throws(() => login(issue({}, { key: other })), UNAUTHORIZED);
    const [header = '', claims = '', signature = ''] = issue().split('.');
    const forged = Buffer.from(JSON.stringify({ ...unverifiedClaims(issue()), sub: 'root' })).toString('base64url');
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
    for (const token of [`${header}.${forged}.${signature}`, `${unsigned}.${claims}.`, `${header}.${claims}.`]) {
      assert.throws(() => login(token), UNAUTHORIZED);
    }
  });

  it('refuses invalid tokens', () => {
    const own = authenticator();
    const parts = fc.array(
      fc.oneof(
        fc.base64String(),
        fc.string(),
        fc.json().map((text) => Buffer.from(text).toString('base64url')),
      ),
      { maxLength: 4 },
    );
    fc.assert(fc.property(parts, (list) => 'error' in own.authenticateToken(list.join('.'))));
    const signed = issue().split('.').slice(0, 2);
    const signatures = fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes).toString('base64url'));
    fc.assert(
      fc.property(signatures, (signature) => 'error' in own.authenticateToken([...signed, signature].join('.'))),
    );
  });

  it('takes the common name and the organisations of a certificate', () => {
    const own = authenticator();
    const user = own.authenticate({
      certificate: { subject: { CN: 'sam', O: ['ops', 'devs'] }, fingerprint256: 'AB:CD' },
      authorization: 'Bearer wrong',
    });
    assert.deepEqual(user, {
      username: 'sam',
      groups: ['ops', 'devs', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=abcd'] },
    });
    assert.throws(() => own.authenticate({ certificate: { subject: { O: 'ops' } } }), UNAUTHORIZED);
  });

  it('lets users be taken for others where that is allowed', () => {
    const own = authenticator();
    const as = (headers: Record<string, string[]>) =>
      own.authenticate({ authorization: 'Bearer secret', impersonation: impersonationOf(headers) });
    assert.deepEqual(as({ accept: ['x'] }).username, 'jane');
    assert.deepEqual(as({ 'impersonate-user': ['sam'], 'impersonate-group': ['a', 'b'] }), {
      username: 'sam',
      groups: ['a', 'b', 'system:authenticated'],
    });
    assert.deepEqual(as({ 'impersonate-user': ['sam'], 'impersonate-extra-scopes': ['x'] }).extra, { scopes: ['x'] });
    assert.deepEqual(as({ 'impersonate-user': ['system:serviceaccount:shop:robot'] }).groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:shop',
      'system:authenticated',
    ]);
    const refused: readonly (readonly [headers: Record<string, string[]>, message: RegExp])[] = [
      [
        { 'impersonate-user': ['root'] },
        /^users "root" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope$/u,
      ],
      [
        { 'impersonate-user': ['sam'], 'impersonate-extra-a%2fb': ['x'] },
        /resource "userextras\/a\/b" in API group "authentication.k8s.io"/u,
      ],
      [{ 'impersonate-user': ['sam'], 'impersonate-uid': ['1'] }, /^uids.authentication.k8s.io "1" is forbidden/u],
      [{ 'impersonate-group': ['a'] }, /without impersonating a user/u],
    ];
    for (const [headers, message] of refused) {
      assert.throws(() => as(headers), { name: 'ApiError', message });
    }
  });

  it('reports the user of a token in TokenReviews', () => {
    const own = authenticator();
    const reviews = new Reviews({ state, rbac: new RbacAuthorizer(state), authenticator: own });
    const review = (token: string): unknown =>
      reviews.handle({
        group: 'authentication.k8s.io',
        resource: 'tokenreviews',
        user: { username: 'x', groups: [] },
        object: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } },
      }).status;
    assert.deepEqual(review('secret'), {
      authenticated: true,
      user: { username: 'jane', groups: ['devs', 'system:authenticated'] },
      audiences: own.audiences,
    });
    assert.deepEqual(review('wrong'), { user: {}, error: 'invalid bearer token' });
    const expired = issue();
    now += 2 * HOUR_MS;
    assert.deepEqual(review(expired), {
      user: {},
      error: '[invalid bearer token, service account token has expired]',
    });
  });
});

describe('the signing key', () => {
  it('is made once, and kept', () => {
    let kept: string | undefined;
    const store = { load: () => kept, save: (pem: string) => (kept = pem) };
    const first = SigningKey.open(store);
    const second = SigningKey.open(store);
    assert.equal(first.id, second.id);
    assert.deepEqual(second.verify(first.sign({ a: 1 })), { a: 1 });
  });

  it('may be an RSA key', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = SigningKey.of(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    const token = key.sign({ a: 1 });
    assert.match(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString(), /"alg":"RS256"/u);
    assert.deepEqual(key.verify(token), { a: 1 });
  });

  it('is refused when it cannot be read', () => {
    assert.throws(
      () => SigningKey.of('nonsense'),
      (error) => error instanceof ClusterError && error.code === 'credentials-failed',
    );
  });
});
