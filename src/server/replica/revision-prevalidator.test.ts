import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, it, mock } from 'node:test';
import { faultText, readPolicyDefinition } from '../../engine/index.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { LoadOutcome, LoadRequest } from '../../evaluation/index.ts';
import type { PrevalidationRequest } from '../../control/index.ts';
import { KEEP_MS, RevisionPrevalidator } from './revision-prevalidator.ts';
import { RevisionReader } from './revision-reader.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

function request(name: string, spec: object = {}): PrevalidationRequest {
  const whole = { module: 'file://./policy.wasm', settings: {}, mutating: false, rules: [], ...spec };
  return { kind: 'ClusterAdmissionPolicy', metadata: { name }, spec: whole as unknown as PrevalidationRequest['spec'] };
}

function setUp(): {
  prevalidator: RevisionPrevalidator;
  /** One per call of the loader. */
  loads: { readonly requests: readonly LoadRequest[]; readonly end: (outcome: LoadOutcome) => void }[];
  held: number[];
} {
  const loads: ReturnType<typeof setUp>['loads'] = [];
  const held: number[] = [];
  const readEntries: ConstructorParameters<typeof RevisionReader>[0] = async (entries) =>
    entries.map(({ id, spec }) => {
      const { definition, faults = [] } = readPolicyDefinition(id, spec);
      return definition === undefined
        ? { id, problems: faults.map(faultText) }
        : { definition, hash: '', settingsHash: '' };
    });
  const reader = new RevisionReader(readEntries, { modulesUrl: new URL('file:///modules/') });
  const prevalidator = new RevisionPrevalidator({
    read: (policies) => reader.read(policies),
    load: (requests, done) =>
      loads.push({ requests, end: (outcome) => done(new Map(requests.map((one) => [one, outcome]))) }),
    kinds: {
      isServed: async ({ kind }) => kind !== 'Missing',
      forbiddenRead: async ({ kind }) =>
        kind === 'Secret' ? { message: 'User "replica" cannot list', rights: 'get, list, watch secrets' } : undefined,
    },
    memory: {
      refusal: (id) => (id === 'kw.cap.large' ? 'it would hold too much' : undefined),
      warning: () => undefined,
    },
    parameters: { read: async () => ({ objects: [], namespacesOf: () => ['a', 'b'] }) },
    serving: () => undefined,
    modulesChanged: () => held.push(prevalidator.modules().length),
  });
  return { prevalidator, loads, held };
}

const good: LoadOutcome = {
  ok: true,
  digests: { 'file:///modules/policy.wasm': DIGEST },
  modules: [{ digest: DIGEST } as CompiledPolicyModule],
};

/** Waits until specs were read. */
async function read(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) {
    await turn();
  }
}

describe('pre-validation', () => {
  it('combines concurrent requests, and returns digests by the references in the policies', async () => {
    const { prevalidator, loads } = setUp();
    const results = [prevalidator.prevalidate(request('a')), prevalidator.prevalidate(request('b'))];
    await read();
    assert.equal(loads.length, 1);
    assert.deepEqual(
      loads[0]?.requests.map(({ id, digests, from }) => [id, digests, from]),
      [
        ['kw.cap.a', undefined, 'source'],
        ['kw.cap.b', undefined, 'source'],
      ],
    );
    loads[0]?.end(good);
    assert.deepEqual(
      await Promise.all(results),
      ['a', 'b'].map((name) => ({ ok: true, modules: [{ name, module: 'file://./policy.wasm', digest: DIGEST }] })),
    );
    prevalidator.stop();
  });

  it('fails when the module could not be held beside those that serve', async () => {
    const { prevalidator, loads } = setUp();
    const result = prevalidator.prevalidate(request('large'));
    await read();
    loads[0]?.end(good);
    const failure = { reason: 'MemoryExceeded', message: 'it would hold too much', isTransient: true };
    assert.deepEqual(await result, { ok: false, ...failure });
    assert.deepEqual(prevalidator.modules(), []);
    prevalidator.stop();
  });

  it('returns what verified the signatures of a module', async () => {
    const { prevalidator, loads } = setUp();
    const result = prevalidator.prevalidate(request('a'));
    await read();
    const by = (text: string): Record<string, string> => ({ 'file:///modules/policy.wasm': text });
    loads[0]?.end({ ...good, manifests: by('sha256:m'), verified: by('sha256:v') });
    const pins = { digest: DIGEST, manifest: 'sha256:m', verifiedBy: 'sha256:v' };
    assert.deepEqual(await result, { ok: true, modules: [{ name: 'a', module: 'file://./policy.wasm', ...pins }] });
    prevalidator.stop();
  });

  it('fails while the cluster does not serve a kind that the policy reads for every request', async () => {
    const { prevalidator, loads } = setUp();
    const resource = (kind: string): object => ({ contextAwareResources: [{ apiVersion: 'example.com/v1', kind }] });
    for (const [mode, kind, isOk] of [
      ['opa', 'Missing', false],
      ['gatekeeper', 'Missing', false],
      ['builtin', 'Missing', false],
      ['opa', 'Served', true],
      ['kubewarden-wapc', 'Missing', true],
    ] as const) {
      const result = prevalidator.prevalidate(request('a', resource(kind)));
      await read();
      loads.pop()?.end({ ...good, modules: [{ digest: DIGEST, mode } as CompiledPolicyModule] });
      const failure = { reason: 'KindNotServed', isTransient: true };
      assert.partialDeepStrictEqual(await result, isOk ? { ok: true } : { ok: false, ...failure }, `${mode} ${kind}`);
    }
    prevalidator.stop();
  });

  it('fails while the policy server may not read a kind that the policy or a member of a group declares', async () => {
    const { prevalidator, loads } = setUp();
    const declare = (kind: string): object => ({ contextAwareResources: [{ apiVersion: 'v1', kind }] });
    const member = { module: 'file://./policy.wasm' };
    const group = {
      ...request('g', {
        expression: 'a() || b()',
        message: 'no',
        policies: { a: { ...member, ...declare('Pod') }, b: { ...member, ...declare('Secret') } },
      }),
      kind: 'ClusterAdmissionPolicyGroup',
    };
    for (const [mode, asked, isOk] of [
      ['opa', request('a', declare('Secret')), false],
      ['builtin', request('a', declare('Secret')), false],
      ['kubewarden-wapc', request('a', declare('Secret')), false],
      ['kubewarden-wapc', group, false],
      ['kubewarden-wapc', request('a', declare('Pod')), true],
    ] as const) {
      const result = prevalidator.prevalidate(asked);
      await read();
      loads.pop()?.end({ ...good, modules: [{ digest: DIGEST, mode } as CompiledPolicyModule] });
      const expected = isOk
        ? { ok: true }
        : {
            ok: false,
            reason: 'KindNotReadable',
            message:
              'the policy may read v1/Secret, and the policy server may not: let the controller grant get, list, watch secrets, by a ClusterRole with the label rbac.portcullis.dev/aggregate-to-context-aware: "true" (User "replica" cannot list)',
            isTransient: true,
          };
      assert.partialDeepStrictEqual(await result, expected, `${mode} ${asked.metadata.name}`);
    }
    prevalidator.stop();
  });

  it('reports a failed load, whatever the policy reads', async () => {
    const { prevalidator, loads } = setUp();
    const resource = { apiVersion: 'v1', kind: 'Secret' };
    const result = prevalidator.prevalidate(request('a', { contextAwareResources: [resource] }));
    await read();
    loads.pop()?.end({ ok: false, reason: 'FetchFailed', message: 'down', transient: true });
    assert.partialDeepStrictEqual(await result, { ok: false, reason: 'FetchFailed' });
    prevalidator.stop();
  });

  it('marks policies of a namespace as those of a tenant', async () => {
    const { prevalidator, loads } = setUp();
    const group = { expression: 'm()', message: 'no', policies: { m: { module: 'https://example.com/p.wasm' } } };
    const own = [
      request('a'),
      { ...request('b'), kind: 'AdmissionPolicy', metadata: { name: 'b', namespace: 'team' } },
    ];
    const grouped = {
      ...request('c', group),
      kind: 'AdmissionPolicyGroup',
      metadata: { name: 'c', namespace: 'team' },
    };
    const results = Promise.allSettled([...own, grouped].map((one) => prevalidator.prevalidate(one)));
    await read();
    assert.deepEqual(
      loads[0]?.requests.map(({ id, isForTenant }) => [id, isForTenant]),
      [
        ['kw.cap.a', false],
        ['kw.ap.team.b', true],
        ['kw.apg.team.c', true],
      ],
    );
    prevalidator.stop();
    await results;
  });

  it('reports why it failed, and whether that is transient', async () => {
    const { prevalidator, loads, held } = setUp();
    const unread = prevalidator.prevalidate(request('a', { settings: 'text' }));
    const unreachable = prevalidator.prevalidate(request('b'));
    await read();
    loads[0]?.end({ ok: false, reason: 'FetchFailed', message: 'down', transient: true });
    const first = await unread;
    assert.ok(!first.ok);
    assert.deepEqual([first.reason, first.isTransient], ['InvalidDefinition', false]);
    assert.match(first.message, /settings: expected a mapping/);
    assert.deepEqual(await unreachable, { ok: false, reason: 'FetchFailed', message: 'down', isTransient: true });
    assert.deepEqual(prevalidator.modules(), []);
    assert.deepEqual(held, [0], 'a module that was loaded for it is not kept either');
  });

  it('keeps compiled modules for a while', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const { prevalidator, loads, held } = setUp();
      const result = prevalidator.prevalidate(request('a'));
      await read();
      loads[0]?.end(good);
      await result;
      assert.deepEqual(
        prevalidator.modules().map(({ digest }) => digest),
        [DIGEST],
      );
      mock.timers.tick(KEEP_MS);
      assert.deepEqual(prevalidator.modules(), []);
      assert.deepEqual(held, [1, 0]);
    } finally {
      mock.timers.reset();
    }
  });

  it('ends with the signal of the request, and with the server', async () => {
    const { prevalidator } = setUp();
    const patience = new AbortController();
    const given = prevalidator.prevalidate(request('a'), patience.signal);
    const waiting = prevalidator.prevalidate(request('b'));
    patience.abort(new Error('no patience'));
    await assert.rejects(given, /no patience/);
    prevalidator.stop();
    await assert.rejects(waiting, { status: 503 });
    await assert.rejects(prevalidator.prevalidate(request('c')), { status: 503 });
  });
});
