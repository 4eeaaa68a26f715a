import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { definitionHash, type PolicyDefinition, settingsHash } from '../../engine/index.ts';
import { isNamespacedPolicyId, namespaceOfPolicyId } from '../../resources/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import { memoryBudget, PolicyMemory } from '../../evaluation/index.ts';
import type {
  CompiledPolicyModule,
  DeclaredPolicy,
  LoadOutcome,
  LoadRequest,
  ReadPolicy,
  TableChange,
} from '../../evaluation/index.ts';
import type { ServedPolicyStatus } from '../status/served-policy-status.ts';
import type { RevisionReport } from '../../control/index.ts';
import { RevisionReports } from '../replica/revision-reports.ts';
import { PolicyRegistry } from './policy-registry.ts';
import type { PinnedPolicy } from './serving-record.ts';
import { LINGER_MS } from './published-policy.ts';
import type { WantedChanges, WantedPolicy, WantedRevision } from './wanted-policy.ts';
import { versioned } from './testing/policy-definitions.ts';

const digestOf = (version: string): string => `sha256:${version}`;
const MODULE = 'file:///policy.wasm';

/** The parsed spec of this version. */
function declared(id: string, version: string, enforcement: object = {}): DeclaredPolicy {
  const definition = { ...versioned(id, MODULE, version), ...enforcement };
  return { definition, hash: definitionHash(definition), settingsHash: settingsHash(definition) };
}

/** Revision `number` of a policy; its module is named after the number by default. */
function revision(id: string, number: number, module = String(number)): WantedRevision {
  return {
    name: `${id}-${number}`,
    uid: `uid-${id}-${number}`,
    revision: number,
    snapshot: { version: String(number) },
    order: 0,
    modules: [{ name: id, module: MODULE, digest: digestOf(module) }],
  };
}

const serving = (one: WantedRevision, ...staged: WantedRevision[]): WantedPolicy => ({ serving: one, staged });

/** A policy that served before the restart. */
function recorded(id: string, number: number): PinnedPolicy {
  return {
    ...declared(id, String(number)),
    digests: { [MODULE]: digestOf(String(number)) },
    since: '2026-01-01T00:00:00.000Z',
    revision: { name: `${id}-${number}`, uid: `uid-${id}-${number}`, number },
  };
}

interface Pending {
  readonly request: LoadRequest;
  readonly end: (outcome: LoadOutcome) => void;
}

interface Scene {
  readonly registry: PolicyRegistry;
  readonly view: RevisionReports;
  readonly loads: Pending[];
  readonly changes: TableChange[];
  readonly staged: ReadonlyMap<string, readonly PolicyDefinition[]>[];
  readonly ended: string[];
  /** Ends the oldest load successfully. */
  readonly good: () => Promise<void>;
  readonly bad: (message: string, transient?: boolean) => Promise<void>;
  readonly want: (changes: Readonly<Record<string, WantedPolicy | undefined>>, isFirst?: boolean) => Promise<void>;
  /** Every worker has applied the change. */
  readonly reach: () => Promise<void>;
  readonly status: (id: string) => ServedPolicyStatus;
  /** State by revision. */
  readonly reports: () => Record<string, string>;
}

const flush = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns += 1) {
    await Promise.resolve();
  }
};

function setUp({
  record = [],
  holds = false,
  memory,
}: { record?: readonly PinnedPolicy[]; holds?: boolean; memory?: PolicyMemory } = {}): Scene {
  const loads: Pending[] = [];
  const changes: TableChange[] = [];
  const staged: ReadonlyMap<string, readonly PolicyDefinition[]>[] = [];
  const ended: string[] = [];
  let publishing: (() => void)[] = [];
  const view: RevisionReports = new RevisionReports(() => registry.entries());
  const registry: PolicyRegistry = new PolicyRegistry(
    {
      read: async (policies) =>
        policies.map(({ id, spec }): ReadPolicy => {
          const { version, ...enforcement } = (spec ?? {}) as { version?: string };
          return version === undefined ? { id, problems: ['no spec'] } : declared(id, version, enforcement);
        }),
      load: (requests, done) =>
        loads.push(
          ...requests.map((request) => ({ request, end: (one: LoadOutcome) => done(new Map([[request, one]])) })),
        ),
      publish: (change, beside) => {
        changes.push(change);
        staged.push(beside);
        return holds ? new Promise((resolve) => publishing.push(resolve)) : Promise.resolve();
      },
      phaseChanged: () => undefined,
      changeEnded: (result) => ended.push(result),
      servingChanged: () => undefined,
      isForTenant: isNamespacedPolicyId,
      namespaceOf: namespaceOfPolicyId,
      ...(memory === undefined ? {} : { memory }),
      changed: (entries, removed, isSynced) => view.update(entries, removed, isSynced),
    },
    new Map(record.map((one) => [one.definition.id, one])),
  );
  const next = (): Pending => loads.shift() ?? assert.fail('nothing is being loaded');
  return {
    registry,
    view,
    loads,
    changes,
    staged,
    ended,
    good: async () => {
      const { request, end } = next();
      const digests = request.digests ?? {};
      // The registry reads only the digest.
      const modules = Object.values(digests).map((digest) => ({ digest }) as CompiledPolicyModule);
      end({ ok: true, digests, modules });
      await flush();
    },
    bad: async (message, transient = false) => {
      next().end({ ok: false, reason: transient ? 'FetchFailed' : 'InvalidModule', message, transient });
      await flush();
    },
    want: async (wanted, isFirst = false) => {
      const all: WantedChanges = new Map(Object.entries(wanted));
      registry.apply(all, isFirst);
      await flush();
    },
    reach: async () => {
      const reached = publishing;
      publishing = [];
      for (const resolve of reached) {
        resolve();
      }
      await flush();
    },
    status: (id) => registry.status(id) ?? assert.fail(`${id} is unknown`),
    reports: () => Object.fromEntries([...view.reports()].map(({ name, state }) => [name, state])),
  };
}

const upsertIds = (change: TableChange | undefined): string[] => (change?.upserts ?? []).map(({ id }) => id);
const isSettled = async (promise: Promise<void>): Promise<boolean> => {
  let isOver = false;
  void promise.then(() => (isOver = true));
  await flush();
  return isOver;
};

describe('a revision', () => {
  it('is recorded with what verified its modules, and loaded by it after a restart', async () => {
    const before = setUp();
    await before.want({ p: serving(revision('p', 1)) }, true);
    const digests = { [MODULE]: digestOf('1') };
    const verified = { [MODULE]: 'sha256:v' };
    before.loads.shift()?.end({ ok: true, digests, verified, modules: [] });
    await flush();
    const record = before.registry.lastGood();
    assert.deepEqual(record[0]?.verified, verified);
    before.registry.stop();
    const after = setUp({ record });
    after.registry.restore();
    assert.deepEqual(after.loads[0]?.request.verified, verified);
    after.registry.stop();
  });

  it('is loaded with the verification that it was recorded with, also when that changes between attempts', async () => {
    const { registry, want, bad, loads } = setUp();
    const verified = (by: string): WantedRevision => {
      const one = revision('p', 1);
      return { ...one, modules: (one.modules ?? []).map((module) => ({ ...module, verifiedBy: by })) };
    };
    await want({ p: { staged: [verified('sha256:1')] } }, true);
    assert.deepEqual(loads[0]?.request.verified, { [MODULE]: 'sha256:1' });
    await bad('the registry is down', true);
    await want({ p: { staged: [verified('sha256:2')] } });
    registry.retryNow();
    assert.deepEqual(loads[0]?.request.verified, { [MODULE]: 'sha256:2' });
    registry.stop();
  });

  it('needs no load where another one that evaluates the same is loaded', async () => {
    const { want, good, loads, changes, reports } = setUp();
    await want({ p: serving(revision('p', 1, 'm')) }, true);
    await good();
    const ignoring = { ...revision('p', 2, 'm'), snapshot: { version: '1', failurePolicy: 'Ignore' } };
    const monitored = { ...revision('p', 3, 'm'), snapshot: { version: '1', mode: 'monitor' } };
    await want({ p: serving(revision('p', 1, 'm'), ignoring, monitored) });
    assert.deepEqual([loads, reports()], [[], { 'p-1': 'Serving', 'p-2': 'Staged', 'p-3': 'Staged' }]);
    await want({ p: serving(ignoring) });
    assert.deepEqual(reports(), { 'p-2': 'Serving' });
    const [upsert] = changes.at(-1)?.upserts ?? [];
    assert.equal(upsert !== undefined && 'definition' in upsert && upsert.definition.failurePolicy, 'Ignore');
    await want({ p: serving(ignoring, revision('p', 4, 'm'), { ...monitored, modules: [] }) });
    assert.equal(loads.length, 1, 'other settings are loaded');
    await want({ p: serving(ignoring, revision('p', 1, 'other')) });
    assert.equal(loads.length, 2, 'and another module');
  });

  it('fails when its module would exceed the memory of policies, while the last good version serves', async () => {
    const memory = new PolicyMemory(memoryBudget(0, 2, 10), () => '');
    const { registry, want, loads, status, reports } = setUp({ memory });
    const end = async (number: number, instanceBytes: number): Promise<void> => {
      const module = { digest: digestOf(String(number)), instanceBytes } as CompiledPolicyModule;
      loads.shift()?.end({ ok: true, digests: { [MODULE]: module.digest }, modules: [module] });
      await flush();
    };
    await want({ p: serving(revision('p', 1)) }, true);
    await end(1, 1);
    await want({ p: serving(revision('p', 1), revision('p', 2)) });
    await end(2, 4);
    assert.deepEqual(reports(), { 'p-1': 'Serving', 'p-2': 'Failed' });
    assert.equal(status('p').serving?.revision, 1);
    assert.equal(memory.bytes, 3);
    await want({ p: serving(revision('p', 3)) });
    await end(3, 2);
    assert.equal(status('p').serving?.revision, 3);
    assert.equal(memory.bytes, 6);
    registry.stop();
  });

  it('is not loaded again before its quarantine ends', async () => {
    const { registry, want, loads, view } = setUp();
    await want({ p: serving(revision('p', 1)) }, true);
    const retryAfterMs = 500_000;
    loads.shift()?.end({ ok: false, reason: 'Quarantined', message: 'it ended', transient: true, retryAfterMs });
    await flush();
    const { state, reason, nextRetry = '' } = view.report('p-1') ?? {};
    assert.deepEqual([state, reason], ['Failed', 'Quarantined']);
    assert.ok(Date.parse(nextRetry) > Date.now() + retryAfterMs - 60_000);
    registry.stop();
  });

  it('is loaded with its pins, staged with its module, and swapped without one', async () => {
    const { want, good, loads, changes, staged, status, reports } = setUp();
    await want({ p: { staged: [revision('p', 1)] } }, true);
    assert.deepEqual(reports(), { 'p-1': 'Loading' });
    assert.deepEqual(loads[0]?.request.digests, { [MODULE]: digestOf('1') });
    assert.equal(loads[0]?.request.from, undefined);
    await good();
    assert.deepEqual(reports(), { 'p-1': 'Staged' });
    assert.deepEqual([upsertIds(changes[0]), changes[0]?.modules.map(({ digest }) => digest)], [[], [digestOf('1')]]);
    assert.equal(staged[0]?.get('p')?.length, 1);
    assert.equal(status('p').phase, 'Pending');

    await want({ p: serving(revision('p', 1)) });
    assert.equal(loads.length, 0);
    assert.deepEqual([upsertIds(changes[1]), changes[1]?.modules], [['p'], []]);
    assert.equal(staged[1]?.get('p')?.length, 0);
    assert.deepEqual(reports(), { 'p-1': 'Serving' });
    assert.deepEqual([status('p').phase, status('p').serving?.revision], ['Active', 1]);
  });

  it('is reported as serving only when every worker has it, and its predecessor until then', async () => {
    const { want, good, reach, reports, status } = setUp({ holds: true });
    await want({ p: serving(revision('p', 1)) }, true);
    await good();
    assert.deepEqual([reports(), status('p').phase], [{ 'p-1': 'Staged' }, 'Updating']);
    await reach();
    assert.deepEqual([reports(), status('p').phase], [{ 'p-1': 'Serving' }, 'Active']);
    await want({ p: serving(revision('p', 1), revision('p', 2)) });
    await good();
    await reach();
    await want({ p: serving(revision('p', 2)) });
    assert.deepEqual(reports(), { 'p-1': 'Serving', 'p-2': 'Staged' });
    await reach();
    assert.deepEqual(reports(), { 'p-2': 'Serving' });
  });

  it('replaces its predecessor only when it is loaded, whatever that one’s state', async () => {
    const { want, good, bad, status, reports, registry, changes, view } = setUp();
    await want({ p: serving(revision('p', 1)) }, true);
    await good();
    await want({ p: serving(revision('p', 2)) });
    assert.deepEqual(reports(), { 'p-1': 'Serving', 'p-2': 'Loading' });
    assert.deepEqual(
      [...view.deviations()].map(({ revision: number, state }) => [number, state]),
      [[2, 'Stale']],
    );
    const published = changes.length;
    await bad('broken');
    assert.equal(changes.length, published);
    const { phase, reason, message, serving: now, desired } = status('p');
    assert.deepEqual([phase, reason, message], ['Degraded', 'InvalidModule', 'broken']);
    assert.deepEqual([now?.revision, desired?.revision], [1, 2]);
    assert.deepEqual(
      [...view.served()].map(({ policy, revision: number }) => [policy, number]),
      [['p', 1]],
    );
    assert.deepEqual(
      [...view.deviations()].map(({ state, message: text }) => [state, text]),
      [['Failed', 'broken']],
    );
    assert.equal(registry.lastGood()[0]?.revision?.number, 1);
  });

  it('keeps its module only while it serves or is staged', async () => {
    const { want, good, changes, registry, view } = setUp();
    await want({ p: serving(revision('p', 1), revision('p', 2)) }, true);
    await good();
    await good();
    assert.equal(registry.modules().length, 2);
    await want({ p: serving(revision('p', 2)) });
    assert.deepEqual(changes.at(-1)?.retired, [digestOf('1')]);
    await want({ p: undefined });
    assert.deepEqual([changes.at(-1)?.removals, changes.at(-1)?.retired], [['p'], [digestOf('2')]]);
    assert.deepEqual([registry.statuses(), registry.lastGood(), [...view.reports()]], [[], [], []]);
  });

  it('that still serves is not loaded again when it is wanted again', async () => {
    const { want, good, loads, status } = setUp();
    await want({ p: serving(revision('p', 1)) }, true);
    await good();
    await want({ p: serving(revision('p', 2)) });
    await want({ p: serving(revision('p', 1)) });
    assert.equal(loads.length, 1, 'only the other one');
    await good();
    assert.deepEqual([status('p').phase, status('p').serving?.revision], ['Active', 1]);
  });

  it('with other modules than before is loaded again', async () => {
    const { want, good, loads } = setUp();
    await want({ p: { staged: [revision('p', 1)] } }, true);
    await good();
    await want({ p: { staged: [revision('p', 1, 'other')] } });
    assert.deepEqual(loads[0]?.request.digests, { [MODULE]: digestOf('other') });
  });

  it('that is no longer wanted ignores a late load', async () => {
    const { want, loads, good, status } = setUp();
    await want({ p: serving(revision('p', 1)) }, true);
    const late = loads.shift();
    await want({ p: serving(revision('p', 2)) });
    await good();
    late?.end({ ok: false, reason: 'InvalidModule', message: 'late', transient: false });
    late?.end({ ok: true, digests: { [MODULE]: digestOf('1') }, modules: [] });
    await flush();
    assert.deepEqual([status('p').phase, status('p').serving?.revision], ['Active', 2]);
  });

  it('without a digest of its module, or without a spec, fails without a fetch', async () => {
    const { want, loads, registry } = setUp();
    await want(
      {
        p: serving({ ...revision('p', 1), modules: [] }),
        q: serving({ ...revision('q', 1), snapshot: undefined }),
      },
      true,
    );
    assert.equal(loads.length, 0);
    assert.deepEqual(
      registry.statuses().map(({ phase, reason }) => [phase, reason]),
      [
        ['Error', 'InvalidDefinition'],
        ['Error', 'InvalidDefinition'],
      ],
    );
  });

  it('that a worker cannot activate is reported as failed, not as serving', async () => {
    const { want, good, reach, registry, status, view } = setUp({ holds: true });
    await want({ p: serving(revision('p', 1)) }, true);
    await good();
    registry.activationFailed('p', 'no memory');
    await reach();
    const report = view.report('p-1') as RevisionReport;
    assert.deepEqual([report.state, report.reason, report.message], ['Failed', 'ActivationFailed', 'no memory']);
    assert.equal(status('p').phase, 'Error');
    assert.deepEqual([...view.served()], []);
    registry.stop();
  });

  it('that a worker could not activate is published again, until all have it', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { want, good, reach, registry, status, changes, reports, view } = setUp({ holds: true });
      await want({ p: serving(revision('p', 1)) }, true);
      await good();
      registry.activationFailed('p', 'no memory');
      registry.activationFailed('p', 'no memory, says another worker');
      await reach();
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        const before = changes.length;
        const { nextRetry = '' } = view.report('p-1') ?? {};
        mock.timers.tick(Date.parse(nextRetry) - Date.now());
        assert.deepEqual([changes.length, upsertIds(changes.at(-1))], [before + 1, ['p']]);
        assert.equal(reports()['p-1'], 'Failed', 'it does not flicker while it is tried');
        if (attempt < 3) {
          registry.activationFailed('p', 'no memory');
        }
        await reach();
      }
      assert.deepEqual([reports(), status('p').phase], [{ 'p-1': 'Serving' }, 'Active']);
      mock.timers.tick(1_000_000);
      assert.equal(changes.length, 4, 'and then no more');
      registry.activationFailed('p', 'no memory in a worker that was replaced');
      registry.retryNow();
      assert.equal(changes.length, 5);
      registry.activationFailed('p', 'no memory');
      await want({ p: undefined });
      const ended = changes.length;
      mock.timers.tick(1_000_000);
      assert.equal(changes.length, ended, 'a policy that is gone is not tried again');
    } finally {
      mock.timers.reset();
    }
  });

  it('that returns while its successor is loading is reported as serving when every worker has it again', async () => {
    const { want, good, reach, reports } = setUp({ holds: true });
    await want({ p: serving(revision('p', 1), revision('p', 2)) }, true);
    await good();
    await good();
    await reach();
    await want({ p: { serving: revision('p', 2), staged: [revision('p', 1)] } });
    await want({ p: serving(revision('p', 1), revision('p', 2)) });
    assert.deepEqual(reports(), { 'p-1': 'Staged', 'p-2': 'Staged' });
    await reach();
    assert.deepEqual(reports(), { 'p-1': 'Serving', 'p-2': 'Staged' });
  });

  it("of a policy of a namespace is loaded with a tenant's rights and in its turn, also after a restart", async () => {
    const { want, registry, loads } = setUp({ record: [recorded('kw.apg.team.q', 1)] });
    registry.restore();
    await want({ 'kw.ap.team.p': serving(revision('kw.ap.team.p', 1)), 'kw.cap.p': serving(revision('kw.cap.p', 1)) });
    assert.deepEqual(
      loads.map(({ request: { id, isForTenant, namespace } }) => [id, isForTenant, namespace]),
      [
        ['kw.apg.team.q', true, 'team'],
        ['kw.ap.team.p', true, 'team'],
        ['kw.cap.p', false, undefined],
      ],
    );
  });

  it('is reported as serving with its own order', async () => {
    const { want, good, reach, view } = setUp({ holds: true });
    const ordered = (number: number, order: number): WantedRevision => ({ ...revision('p', number), order });
    const order = (number: number): unknown => view.report(`p-${number}`)?.order;
    await want({ p: { staged: [revision('p', 1)] } }, true);
    await good();
    assert.equal(order(1), undefined, 'it does not serve');
    await want({ p: serving(ordered(1, 1)) });
    await reach();
    assert.equal(order(1), 1);
    await want({ p: serving(ordered(2, 2)) });
    assert.equal(order(1), 1, 'the next one is being loaded');
    await want({ p: serving(ordered(1, 3)) });
    assert.equal(order(1), 3, 'it is meant again');
    await want({ p: serving(ordered(1, 3), revision('p', 2)) });
    await good();
    await good();
    await want({ p: serving(ordered(2, 4)) });
    assert.deepEqual([order(1), order(2)], [3, undefined], 'some workers may answer by either');
    await reach();
    assert.deepEqual([order(1), order(2)], [undefined, 4]);
  });

  it('that was validated but failed on this server is retried; an invalid one is not', async () => {
    const { want, loads, registry, view } = setUp();
    await want({ p: serving(revision('p', 1)), q: serving(revision('q', 1)) }, true);
    for (const [reason, isTriedAgain] of [
      ['SettingsCheckFailed', true],
      ['InvalidSettings', false],
    ] as const) {
      const { request, end } = loads.shift() ?? assert.fail();
      end({ ok: false, reason, message: 'it did not end', transient: false });
      assert.equal(view.report(`${request.id}-1`)?.nextRetry !== undefined, isTriedAgain, reason);
    }
    registry.stop();
  });
});

describe('revisions of several policies', () => {
  it('that begin to serve at the same time are swapped by one change', async () => {
    const { want, good, changes } = setUp();
    const ids = ['a', 'b', 'c'];
    await want(Object.fromEntries(ids.map((id) => [id, { staged: [revision(id, 1)] }])), true);
    for (const _ of ids) {
      await good();
    }
    const before = changes.length;
    await want(Object.fromEntries(ids.map((id) => [id, serving(revision(id, 1))])));
    assert.equal(changes.length, before + 1);
    assert.deepEqual(upsertIds(changes.at(-1)), ids);
  });

  it('share a module: posted once, retired with the last', async () => {
    const { want, good, changes } = setUp();
    await want({ a: serving(revision('a', 1, 'm')), b: serving(revision('b', 1, 'm')) }, true);
    await good();
    await good();
    assert.deepEqual(
      changes.map(({ modules }) => modules.length),
      [1, 0],
    );
    await want({ a: undefined });
    assert.deepEqual(changes.at(-1)?.retired, []);
    await want({ b: undefined });
    assert.deepEqual(changes.at(-1)?.retired, [digestOf('m')]);
  });
});

const matchIn = (bucket: string): PolicyMatch => ({ bucket, failurePolicy: 'Ignore' }) as PolicyMatch;

describe('a policy without a revision to serve', () => {
  const failed = {
    staged: [],
    failed: { name: 'p-2x', uid: '2', revision: 2, message: 'bad settings', failurePolicy: 'Ignore' },
  } as const;

  it('follows the failurePolicy of the failed revision, even if another one served', async () => {
    const { want, good, changes, status } = setUp();
    await want({ p: failed, q: serving(revision('q', 1)) }, true);
    await good();
    assert.deepEqual(changes[0]?.upserts, [{ id: 'p', failed: { message: 'bad settings', failurePolicy: 'Ignore' } }]);
    assert.deepEqual([status('p').phase, status('p').reason], ['Error', 'RevisionFailed']);
    await want({ q: failed });
    assert.equal(status('q').serving, null);
    assert.equal(changes.at(-1)?.retired.length, 1);
  });

  it('is reported with what requests get, by which revision', async () => {
    const { want, good, bad, view } = setUp();
    const answers = (): Record<string, string | undefined> =>
      Object.fromEntries([...view.reports()].map(({ name, answers: answer }) => [name, answer]));
    await want({ p: { ...serving(revision('p', 1)), staged: [revision('p', 2)] } }, true);
    await bad('no route', true);
    await bad('no route', true);
    assert.deepEqual(answers(), { 'p-1': 'Nothing', 'p-2': 'Nothing' }, 'rules that match no request');
    const match = matchIn('d');
    await want({ p: { ...serving({ ...revision('p', 1), match }), staged: [revision('p', 2)] } });
    assert.deepEqual(answers(), { 'p-1': 'Fail', 'p-2': 'Nothing' });
    await want({ q: { ...failed, failed: { ...failed.failed, match } } });
    assert.deepEqual(answers(), { 'p-1': 'Fail', 'p-2': 'Nothing', 'p-2x': 'Ignore' });
    await want({ p: undefined, q: serving({ ...revision('q', 3), match }) });
    assert.deepEqual(answers(), { 'p-2x': 'Ignore', 'q-3': 'Nothing' }, 'what answered still does');
    await good();
    assert.deepEqual(answers(), { 'q-3': 'Verdict' });
  });

  it('keeps the published revision while the next one is loading', async () => {
    const { want, good, changes, status } = setUp();
    await want({ p: serving(revision('p', 1)), q: failed }, true);
    await good();
    const before = changes.length;
    await want({ p: { staged: [] }, q: { staged: [revision('q', 3)] } });
    await good();
    assert.deepEqual(changes.slice(before).flatMap(upsertIds), []);
    assert.equal(status('p').serving?.revision, 1);
    await want({ q: serving(revision('q', 3)) });
    assert.equal(status('q').phase, 'Active');
  });

  it('that failed on this server reports it, and is retried after a transient failure', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { want, bad, good, loads, status, changes, view } = setUp();
      await want({ p: serving(revision('p', 1)) }, true);
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await bad('the source is down', true);
        const { nextRetry = '' } = view.report('p-1') ?? {};
        const wait = Date.parse(nextRetry) - Date.now();
        assert.ok(wait >= 100 && wait <= 1000 * 2 ** (attempt - 1), `attempt ${attempt} waits ${wait} ms`);
        assert.deepEqual(upsertIds(changes[0]), ['p']);
        assert.equal(changes.length, 1, 'the same is not published again');
        mock.timers.tick(wait);
        assert.equal(view.report('p-1')?.state, 'Failed', 'it does not flicker while it is tried');
      }
      await good();
      assert.deepEqual([status('p').phase, status('p').nextRetry], ['Active', null]);
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0);
      await want({ p: serving(revision('p', 2)) });
      await bad('down', true);
      await want({ p: serving(revision('p', 1)) });
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0, 'an unwanted revision is not retried');
    } finally {
      mock.timers.reset();
    }
  });

  it('is retried immediately by retryNow, and not after stop', async () => {
    const { want, bad, loads, registry } = setUp();
    await want({ p: serving(revision('p', 1)) }, true);
    await bad('down', true);
    registry.retryNow();
    assert.equal(loads.length, 1);
    registry.retryNow();
    assert.equal(loads.length, 1, 'once is enough');
    await bad('down', true);
    registry.stop();
    registry.retryNow();
    assert.equal(loads.length, 0);
  });
});

describe('what served before a restart', () => {
  it('serves again, as the revision that the cluster has', async () => {
    const { registry, good, want, loads, status, reports } = setUp({ record: [recorded('p', 1)] });
    assert.equal(registry.restore(), 1);
    assert.deepEqual(loads[0]?.request.digests, { [MODULE]: digestOf('1') });
    await good();
    assert.deepEqual([status('p').phase, status('p').reason], ['Updating', 'ServingFromRecord']);
    assert.deepEqual(reports(), { 'p-1': 'Serving' });
    await want({ p: serving(revision('p', 1)) }, true);
    assert.equal(loads.length, 0);
    assert.equal(status('p').phase, 'Active');
    assert.equal(status('p').serving?.since, '2026-01-01T00:00:00.000Z', 'it served all the time');
  });

  it('is the stand-in of a revision that is loading, and is removed with its policy', async () => {
    const { registry, good, bad, want, status } = setUp({ record: [recorded('p', 1), recorded('gone', 1)] });
    registry.restore();
    await want({ p: serving(revision('p', 2)) }, true);
    assert.equal(registry.status('gone'), undefined);
    await good();
    assert.equal(status('p').serving?.revision, 1);
    await bad('ignored: it is of a policy that is gone');
    await bad('the source is down', true);
    assert.deepEqual([status('p').phase, status('p').serving?.revision], ['Degraded', 1]);
    assert.deepEqual(
      registry.lastGood().map(({ revision: one }) => one?.number),
      [1],
    );
  });

  it('is not lost when it loads after its successor failed', async () => {
    const { registry, loads, good, bad, want, status, changes } = setUp({ record: [recorded('p', 1)] });
    registry.restore();
    await want({ p: serving(revision('p', 2)) }, true);
    const [first] = loads.splice(0, 1);
    assert.ok(first);
    await bad('broken');
    assert.deepEqual(changes.flatMap(upsertIds), [], 'nothing is rejected that may be judged in a moment');
    loads.push(first);
    await good();
    assert.deepEqual([status('p').phase, status('p').serving?.revision], ['Degraded', 1]);
  });

  it('that cannot be loaded reports why, and stays in the record', async () => {
    const { registry, bad, status, changes } = setUp({ record: [recorded('p', 1)] });
    registry.restore();
    await bad('the cache is empty, the source is down', true);
    assert.deepEqual([status('p').phase, status('p').reason], ['Error', 'FetchFailed']);
    assert.deepEqual(upsertIds(changes[0]), ['p']);
    assert.deepEqual(registry.lastGood(), [recorded('p', 1)]);
    registry.stop();
  });
});

describe('a registry of revisions', () => {
  it('is settled when the cluster has been read and every revision has loaded or failed once', async () => {
    const { registry, want, good, bad } = setUp({ record: [recorded('p', 1)] });
    registry.restore();
    const settled = registry.settled();
    const restored = registry.restored();
    assert.equal(await isSettled(restored), false);
    await good();
    assert.deepEqual([await isSettled(restored), await isSettled(settled)], [true, false]);
    await want({ p: serving(revision('p', 1)), q: serving(revision('q', 1)) }, true);
    assert.equal(await isSettled(settled), false);
    await bad('down', true);
    assert.equal(await isSettled(settled), true);
    registry.stop();
  });

  it('is settled when it is stopped', async () => {
    const { registry, want } = setUp();
    await want({ p: serving(revision('p', 1)) });
    const before = registry.settled();
    assert.equal(await isSettled(before), false);
    registry.stop();
    assert.deepEqual([await isSettled(before), await isSettled(registry.settled())], [true, true]);
  });

  it('reports changes, and that it has read the cluster', async () => {
    const { want, good, view } = setUp();
    const reported: (readonly string[])[] = [];
    const end = view.subscribe((names) => reported.push(names));
    await want({}, true);
    assert.deepEqual([reported, view.isSynced], [[[]], true]);
    await want({ p: serving(revision('p', 1)) });
    await good();
    await want({ p: undefined });
    assert.deepEqual(reported, [[], ['p-1'], ['p-1'], ['p-1'], ['p-1']]);
    assert.equal(view.report('p-1'), undefined);
    end();
    await want({ q: serving(revision('q', 1)) });
    assert.equal(reported.length, 5);
  });
});

describe('the match rules of a policy', () => {
  const matching = (number: number, bucket: string): WantedRevision => ({
    ...revision('p', number),
    snapshot: { version: String(number), failurePolicy: 'Ignore' },
    match: matchIn(bucket),
  });
  const published = ({ changes }: Scene): unknown => {
    const entry = changes.at(-1)?.upserts[0];
    const state =
      entry === undefined
        ? 'nothing'
        : 'definition' in entry
          ? 'serves'
          : entry.isLoading === true
            ? 'loading'
            : 'failed';
    return [state, entry?.match?.bucket, entry?.alsoIn ?? []];
  };

  it('are published before it is loaded, and when it fails', async () => {
    const scene = setUp();
    await scene.want({ p: serving(matching(1, 'b')) }, true);
    assert.deepEqual(published(scene), ['loading', 'b', []]);
    assert.equal(scene.status('p').phase, 'Pending');
    assert.deepEqual(scene.reports(), { 'p-1': 'Loading' });
    await scene.bad('no such module');
    assert.deepEqual(published(scene), ['failed', 'b', []]);
    await scene.want({ p: serving(matching(2, 'c')) });
    assert.deepEqual(published(scene), ['failed', 'c', ['b']], 'by the rules of what is to serve now');
    await scene.good();
    assert.deepEqual(published(scene), ['serves', 'c', ['b']]);
    scene.registry.stop();
  });

  it('are those of the serving revision, also in the bucket of its successor, until that one serves', async () => {
    const scene = setUp();
    await scene.want({ p: serving(matching(1, 'b')) }, true);
    await scene.good();
    assert.deepEqual(published(scene), ['serves', 'b', []]);
    await scene.want({ p: serving(matching(2, 'c')) });
    assert.deepEqual(published(scene), ['serves', 'b', ['c']], 'API servers may use only the new bucket');
    await scene.good();
    assert.deepEqual(published(scene), ['serves', 'c', ['b']]);
    scene.registry.stop();
  });

  it('do not affect what serves when other buckets are published', async () => {
    const scene = setUp({ holds: true });
    await scene.want({ p: serving(matching(1, 'b')) }, true);
    await scene.good();
    await scene.reach();
    await scene.reach();
    assert.deepEqual(scene.reports(), { 'p-1': 'Serving' });
    await scene.want({ p: serving(matching(1, 'b'), matching(2, 'c')) });
    assert.deepEqual(published(scene), ['serves', 'b', ['c']]);
    assert.deepEqual(scene.reports(), { 'p-1': 'Serving', 'p-2': 'Loading' });
    scene.registry.stop();
  });

  it('include the bucket of the successor, also for what served before a restart', async () => {
    const scene = setUp({ record: [{ ...recorded('p', 1), match: matchIn('b') }] });
    scene.registry.restore();
    await scene.good();
    await scene.want({ p: serving(matching(2, 'c')) }, true);
    assert.deepEqual(published(scene), ['serves', 'b', ['c']]);
    scene.registry.stop();
  });

  it('include buckets of revisions that may serve on other replicas, and former buckets for a while', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const scene = setUp();
      await scene.want({ p: { ...serving(matching(1, 'b'), matching(2, 'c')), buckets: ['b', 'c'] } }, true);
      await scene.good();
      assert.deepEqual(published(scene), ['serves', 'b', ['c']]);
      await scene.good();
      await scene.want({ p: { ...serving(matching(2, 'c')), buckets: ['b', 'c'] } });
      assert.deepEqual(published(scene), ['serves', 'c', ['b']]);
      await scene.want({ p: serving(matching(2, 'c')) });
      mock.timers.tick(LINGER_MS - 1);
      assert.deepEqual(published(scene), ['serves', 'c', ['b']], 'an API server may still use the former bucket');
      mock.timers.tick(1);
      assert.deepEqual(published(scene), ['serves', 'c', []]);
      await scene.want({
        p: {
          staged: [],
          failed: { name: 'p-3', uid: '3', revision: 3, message: 'no', failurePolicy: 'Ignore', match: matchIn('d') },
        },
      });
      assert.deepEqual(published(scene), ['failed', 'd', ['c']]);
      scene.registry.stop();
    } finally {
      mock.timers.reset();
    }
  });

  it('are published for a stand-in while it is loading, so that its bucket does not allow without it', async () => {
    const definition = { ...declared('p', '1').definition, failurePolicy: 'Ignore' } as const;
    const scene = setUp({ record: [{ ...recorded('p', 1), definition, match: matchIn('b') }] });
    scene.registry.restore();
    assert.deepEqual(published(scene), ['loading', 'b', []]);
    const entry = scene.changes.at(-1)?.upserts[0] ?? assert.fail();
    assert.equal('failed' in entry && entry.failed.failurePolicy, 'Ignore');
    assert.deepEqual([scene.status('p').phase, scene.status('p').serving], ['Pending', null]);
    assert.equal(scene.registry.lastGood()[0]?.match?.bucket, 'b');
    await scene.want({ p: serving(matching(2, 'c')) }, true);
    assert.deepEqual(published(scene), ['loading', 'c', ['b']], 'whichever is loaded first');
    await scene.bad('no such module');
    assert.deepEqual(published(scene), ['loading', 'c', ['b']], 'the other one may still come');
    await scene.bad('no such module');
    assert.deepEqual(published(scene), ['failed', 'c', ['b']]);
    scene.registry.stop();
  });

  it('are published for a stand-in if the record has them', async () => {
    const scene = setUp({ record: [{ ...recorded('p', 1), match: matchIn('b') }] });
    scene.registry.restore();
    await scene.good();
    assert.deepEqual(published(scene), ['serves', 'b', []]);
    assert.equal(scene.registry.lastGood()[0]?.match?.bucket, 'b');
    const older = setUp({ record: [recorded('p', 1)] });
    older.registry.restore();
    await older.good();
    assert.deepEqual(published(older), ['serves', undefined, []]);
    await older.want({ p: serving(matching(1, 'b')) }, true);
    assert.deepEqual(published(older), ['serves', 'b', []], 'the cluster says it');
  });
});
