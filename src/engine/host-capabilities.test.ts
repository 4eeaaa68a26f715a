import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostCapabilities, isGranted, MAX_HOST_CALLS, MAX_LOG_LINES } from './host-capabilities.ts';
import type { CapabilityHolder } from './host-capabilities.ts';
import type { HostCaller, PolicyLogEntry } from './capabilities/host-port.ts';
import type { JsonObject } from './values/json-text.ts';

const LIMITS = { fuel: 1, answerBytes: 1 };

/** Calls the host as a guest of a policy with these grants. */
function calling(grants: Partial<CapabilityHolder> = {}, userInfo?: JsonObject) {
  const hostCalls: [string, string][] = [];
  const log: PolicyLogEntry[] = [];
  const callers: (HostCaller | undefined)[] = [];
  const port = {
    request: (capability: string, payload: string, caller?: HostCaller): string => {
      hostCalls.push([capability, payload]);
      callers.push(caller);
      return '{"ok":true}';
    },
  };
  const holder = { id: 'p', hostCapabilities: [], contextAwareResources: [], ...grants };
  const context = new HostCapabilities(port, (entry) => log.push(entry)).context(holder, LIMITS, {
    timeoutMs: 2_000,
    review: { userInfo: () => userInfo },
  });
  const call = (capability: string, payload: unknown, binding = 'kubewarden'): string => {
    const slash = capability.indexOf('/');
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const answer = context.hostCall(
      binding,
      capability.slice(0, slash),
      capability.slice(slash + 1),
      Buffer.from(text),
    );
    return Buffer.from(answer).toString();
  };
  return { call, hostCalls, callers, log, context };
}

for (const [patterns, capability, expected] of [
  [[], 'net/v1/dns_lookup_host', false],
  [['*'], 'net/v1/dns_lookup_host', true],
  [['net/*'], 'net/v1/dns_lookup_host', true],
  [['net/v1/*'], 'net/v1/dns_lookup_host', true],
  [['net/v2/*'], 'net/v1/dns_lookup_host', false],
  [['net/v1/dns_lookup_host'], 'net/v1/dns_lookup_host', true],
  [['net/v1/dns'], 'net/v1/dns_lookup_host', false],
  [['n/*'], 'net/v1/dns_lookup_host', false],
  [['oci/*', 'kubernetes/can_i'], 'kubernetes/can_i', true],
] as const) {
  test(`hostCapabilities ${JSON.stringify(patterns)} ${expected ? 'grant' : 'do not grant'} ${capability}`, () => {
    assert.equal(isGranted(capability, patterns), expected);
    const { call, hostCalls } = calling({ hostCapabilities: patterns });
    if (expected) {
      assert.equal(call(capability, 'host'.length), '{"ok":true}');
      assert.deepEqual(hostCalls, [[capability, '4']]);
    } else {
      assert.throws(() => call(capability, {}), {
        code: 'capability-refused',
        message: new RegExp(`add "${capability}" to its hostCapabilities`),
      });
      assert.deepEqual(hostCalls, []);
    }
  });
}

for (const [id, tenant] of [
  ['kw.ap.shop.p', 'shop'],
  ['kw.apg.shop.g/member', 'shop'],
  ['kw.cap.p', undefined],
  ['p', undefined],
] as const) {
  test(`a call of ${id} says for whom it is made, and how much time is left`, () => {
    const { call, callers } = calling({ id, hostCapabilities: ['*'] });
    call('oci/v1/manifest_digest', 'image'.length);
    const [caller] = callers;
    assert.equal(caller?.tenant, tenant);
    assert.ok(caller !== undefined && caller.leftMs > 0 && caller.leftMs <= 2_000);
  });
}

test('the error for a policy of a namespace names the place where host capabilities are granted', () => {
  assert.throws(
    () => calling({ id: 'kw.ap.shop.p' }).call('net/v1/dns_lookup_host', 'host'.length),
    /add "net\/v1\/dns_lookup_host" to spec.namespacedPoliciesCapabilities of its PolicyServer/,
  );
});

const ALICE = { username: 'alice', uid: '7', groups: ['dev', 'system:authenticated'], extra: { scopes: ['a'] } };

for (const [name, review, userInfo, refusal] of [
  ['its user', { user: 'alice' }, ALICE, undefined],
  ['its user with some groups', { user: 'alice', groups: ['dev'], uid: null }, ALICE, undefined],
  ['all of its user', { user: 'alice', groups: ALICE.groups, uid: '7', extra: { scopes: ['a'] } }, ALICE, undefined],
  ['another user', { user: 'bob', groups: ['dev'] }, ALICE, /expected user to be "alice", got "bob"/],
  ['no user', { groups: ['dev'] }, ALICE, /expected user to be "alice", got null/],
  ['other groups', { user: 'alice', groups: ['dev', 'system:masters'] }, ALICE, /groups of this user, got "system:mas/],
  ['groups that are none', { user: 'alice', groups: 'dev' }, { username: 'alice' }, /groups of this user, got "dev"/],
  ['another uid', { user: 'alice', uid: '8' }, ALICE, /that of this user, got "8"/],
  ['another extra', { user: 'alice', extra: { scopes: ['b'] } }, ALICE, /expected no extra, or that of this user/],
  ['somebody without a request', { user: 'alice' }, undefined, /expected a request that has a user/],
  ['nobody', { user: '' }, { username: '' }, /expected user to be "", got ""/],
] as const) {
  for (const id of ['kw.ap.shop.p', 'kw.apg.shop.g/member', 'kw.cap.p']) {
    const isRefused = refusal !== undefined && id !== 'kw.cap.p';
    test(`${id} ${isRefused ? 'may not' : 'may'} ask can_i about ${name}`, () => {
      const { call, hostCalls } = calling({ id, hostCapabilities: ['*'] }, userInfo);
      const payload = { subject_access_review: { ...review, resource_attributes: { verb: 'get', resource: 'pods' } } };
      if (isRefused) {
        assert.throws(() => call('kubernetes/can_i', payload), { code: 'capability-refused', message: refusal });
      } else {
        call('kubernetes/can_i', payload);
      }
      assert.equal(hostCalls.length, isRefused ? 0 : 1);
    });
  }
}

test('reads of Kubernetes need the kind in contextAwareResources, can_i does not', () => {
  const contextAwareResources = [{ apiVersion: 'v1', kind: 'Namespace' }];
  const { call, hostCalls } = calling({ hostCapabilities: ['*'], contextAwareResources });
  call('kubernetes/get_resource', { api_version: 'v1', kind: 'Namespace', name: 'x' });
  call('kubernetes/can_i', { subject_access_review: {} });
  assert.equal(hostCalls.length, 2);
  for (const operation of [
    'get_resource',
    'list_resources_all',
    'list_resources_by_namespace',
    'get_resource_plural_name',
  ]) {
    assert.throws(
      () => call(`kubernetes/${operation}`, { api_version: 'v1', kind: 'Secret', namespace: 'x' }),
      /may not read Kubernetes v1\/Secret resources: add \{apiVersion: v1, kind: Secret\} to its contextAwareResources/,
    );
    assert.throws(() => call(`kubernetes/${operation}`, 'text'.length), /expected the texts api_version and kind/);
  }
  assert.equal(hostCalls.length, 2);
});

test('tracing needs no grant, and writes a log entry', () => {
  const { call, log } = calling();
  assert.equal(call('tracing/log', { level: 'WARN', message: 'careful', pod: 'nginx', count: 2 }), '');
  assert.deepEqual(log, [{ policy: 'p', level: 'warn', message: 'careful', fields: { pod: 'nginx', count: '2' } }]);
  call('tracing/log', { level: 'trace' });
  call('tracing/log', [1]);
  assert.deepEqual(
    log.slice(1).map(({ level, message }) => [level, message]),
    [
      ['debug', '""'],
      ['info', '[1]'],
    ],
  );
  assert.throws(() => call('tracing/other', {}), /unknown host capability/);
});

test('log lines are limited in length and number', () => {
  const { call, log, context } = calling();
  call('tracing/log', { message: 'x'.repeat(10_000), big: 'y'.repeat(10_000) });
  assert.ok(log[0]!.message.length < 5_000 && String(log[0]!.fields.big).length < 5_000);
  for (let line = 0; line < MAX_LOG_LINES * 2; line++) {
    context.log('line');
  }
  assert.equal(log.length, MAX_LOG_LINES + 1);
  assert.match(log.at(-1)!.message, /logs too much/);
});

test('other bindings, payloads that are not JSON, and too many calls are refused', () => {
  const { call } = calling({ hostCapabilities: ['*'] });
  assert.throws(() => call('net/v1/dns_lookup_host', {}, 'other'), /expected "kubewarden", got "other"/);
  assert.throws(() => call('net/v1/dns_lookup_host', '{'), /expected a payload of JSON/);
  for (let count = 2; count < MAX_HOST_CALLS; count++) {
    call('net/v1/dns_lookup_host', {});
  }
  assert.throws(() => call('net/v1/dns_lookup_host', {}), /too many host calls/);
});
