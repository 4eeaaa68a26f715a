// The registry with events in random order: invariants, and the final state.
import assert from 'node:assert/strict';
import { it, mock } from 'node:test';
import fc from 'fast-check';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange, TableEntry } from '../../evaluation/index.ts';
import type { DeclaredPolicy, LoadOutcome, LoadRequest } from '../../evaluation/index.ts';
import { RevisionReports } from '../replica/revision-reports.ts';
import { PolicyRegistry } from './policy-registry.ts';
import type { PinnedPolicy } from './serving-record.ts';
import type { WantedPolicy, WantedRevision } from './wanted-policy.ts';
import { versioned } from './testing/policy-definitions.ts';

const MODULE = 'file:///policy.wasm';
const POLICY = 'p';
const digestOf = (module: number): string => `sha256:${module}`;

/** Revision `number` of one incarnation of the policy: a recreated policy has the same names and other uids. */
function revision(life: number, number: number): WantedRevision {
  // Two revisions share a module.
  const modules = [{ name: POLICY, module: MODULE, digest: digestOf(Math.min(number, 2)) }];
  return {
    name: `${POLICY}-${number}`,
    uid: `${life}/${number}`,
    revision: number,
    snapshot: { version: `${life}/${number}` },
    order: number,
    modules,
  };
}

function declared(version: string): DeclaredPolicy {
  const definition = versioned(POLICY, MODULE, version);
  return { definition, hash: version, settingsHash: version };
}

const RECORDED: PinnedPolicy = {
  ...declared('0/1'),
  digests: { [MODULE]: digestOf(1) },
  since: '2026-01-01T00:00:00.000Z',
  revision: { name: `${POLICY}-1`, uid: '0/1', number: 1 },
};

/** One worker thread: applies changes in order, with any delay. */
class Worker {
  readonly #inbox: TableChange[] = [];
  readonly #modules = new Set<string>();
  published: TableEntry | undefined;
  applied = 0;

  post(change: TableChange): void {
    this.#inbox.push(change);
  }

  /** Applies the next change. Returns whether there was one. */
  step(): boolean {
    const change = this.#inbox.shift();
    if (change === undefined) {
      return false;
    }
    for (const { digest } of change.modules) {
      this.#modules.add(digest);
    }
    this.published = change.removals.length > 0 ? undefined : this.published;
    for (const entry of change.upserts) {
      for (const digest of 'digests' in entry ? Object.values(entry.digests) : []) {
        assert.ok(this.#modules.has(digest), `${digest} is handed over before it is used`);
      }
      this.published = entry;
    }
    for (const digest of change.retired) {
      this.#modules.delete(digest);
    }
    for (const digest of this.published !== undefined && 'digests' in this.published
      ? Object.values(this.published.digests)
      : []) {
      assert.ok(this.#modules.has(digest), `${digest} is kept while it serves`);
    }
    this.applied += 1;
    return true;
  }

  get version(): unknown {
    const settings =
      this.published !== undefined && 'definition' in this.published ? this.published.definition : undefined;
    return settings?.kind === 'policy'
      ? (JSON.parse(settings.settingsJson) as { version: unknown }).version
      : undefined;
  }
}

const flush = async (): Promise<void> => {
  for (let turns = 0; turns < 12; turns += 1) {
    await Promise.resolve();
  }
};

type Event =
  | { readonly type: 'want'; readonly life: number; readonly serving: number; readonly staged: readonly number[] }
  | { readonly type: 'failed' | 'gone' | 'good' | 'unreachable' | 'broken' | 'tick' }
  | { readonly type: 'step' | 'refuse'; readonly worker: number };

const number = fc.integer({ min: 0, max: 3 });
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    type: fc.constant('want' as const),
    life: fc.integer({ min: 0, max: 1 }),
    serving: number,
    staged: fc.array(number, { maxLength: 2 }),
  }),
  fc.record({ type: fc.constantFrom('good', 'good', 'unreachable', 'broken', 'tick', 'failed', 'gone' as const) }),
  fc.record({ type: fc.constantFrom('step', 'step', 'refuse' as const), worker: fc.integer({ min: 0, max: 1 }) }),
);

async function run(events: readonly Event[], hasRecord: boolean): Promise<void> {
  const workers = [new Worker(), new Worker()];
  const waiting: { readonly version: number; readonly resolve: () => void }[] = [];
  const loads: { readonly request: LoadRequest; readonly done: (outcome: LoadOutcome) => void }[] = [];
  let published = 0;
  let wanted: WantedPolicy | undefined;
  let mayEnd = true;
  const view: RevisionReports = new RevisionReports(() => registry.entries());
  const registry: PolicyRegistry = new PolicyRegistry(
    {
      read: async (policies) => policies.map(({ spec }) => declared((spec as { version: string }).version)),
      load: (requests, done) =>
        loads.push(
          ...requests.map((request) => ({ request, done: (one: LoadOutcome) => done(new Map([[request, one]])) })),
        ),
      publish: (change) => {
        published += 1;
        for (const entry of change.upserts) {
          // Only a loaded version replaces the serving one, unless none is wanted.
          assert.ok('definition' in entry || mayEnd, 'what serves goes on');
          mayEnd = !('definition' in entry) || wanted?.failed !== undefined;
        }
        for (const worker of workers) {
          worker.post(change);
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.push({ version: published, resolve });
        return promise;
      },
      phaseChanged: () => undefined,
      changeEnded: () => undefined,
      servingChanged: () => undefined,
      changed: (entries, removed, isSynced) => view.update(entries, removed, isSynced),
    },
    new Map(hasRecord ? [[POLICY, RECORDED]] : []),
  );
  const step = (worker: Worker | undefined): boolean => {
    const isStep = worker?.step() ?? false;
    while (waiting[0] !== undefined && workers.every(({ applied }) => applied >= (waiting[0]?.version ?? 0))) {
      waiting.shift()?.resolve();
    }
    return isStep;
  };
  const want = (next: WantedPolicy | undefined, isFirst = false): void => {
    wanted = next;
    mayEnd ||= next === undefined || next.failed !== undefined;
    registry.apply(new Map([[POLICY, next]]), isFirst);
  };
  const load = (outcome: 'good' | 'unreachable' | 'broken'): boolean => {
    const next = loads.shift();
    const digests = next?.request.digests ?? {};
    // The registry reads only the digest.
    const modules = Object.values(digests).map((digest) => ({ digest }) as CompiledPolicyModule);
    next?.done(
      outcome === 'good'
        ? { ok: true, digests, modules }
        : outcome === 'unreachable'
          ? { ok: false, reason: 'FetchFailed', message: 'down', transient: true }
          : { ok: false, reason: 'InvalidSettings', message: 'broken', transient: false },
    );
    return next !== undefined;
  };
  const check = (): void => {
    for (const { state, uid, name } of view.reports()) {
      if (state === 'Serving' && wanted?.serving?.uid === uid) {
        assert.deepEqual(
          workers.map(({ version }) => version),
          [uid, uid],
          `${name} is said to serve, and does`,
        );
      }
    }
  };
  registry.restore();
  for (const [index, one] of events.entries()) {
    switch (one.type) {
      case 'want': {
        const { life, serving, staged } = one;
        const others = [...new Set(staged)].filter((other) => other !== serving && other > 0);
        const rest = { staged: others.map((other) => revision(life, other)) };
        want(serving === 0 ? rest : { serving: revision(life, serving), ...rest }, index === 0);
        break;
      }
      case 'failed':
        want(
          { staged: [], failed: { name: 'p-9', uid: '9', revision: 9, message: 'no', failurePolicy: 'Fail' } },
          index === 0,
        );
        break;
      case 'gone':
        want(undefined, index === 0);
        break;
      case 'tick':
        mock.timers.tick(300_000);
        break;
      case 'step':
        step(workers[one.worker]);
        break;
      case 'refuse':
        if (step(workers[one.worker]) && workers[one.worker]?.published !== undefined) {
          registry.activationFailed(POLICY, 'no memory');
        }
        break;
      default:
        load(one.type);
    }
    await flush();
    check();
  }
  // From here on everything succeeds: retries first, then the loads that they start.
  want({ serving: revision(2, 3), staged: [revision(2, 1)] }, events.length === 0);
  for (let round = 0; round < 50; round += 1) {
    await flush();
    while (load('good') || workers.some((worker) => step(worker))) {
      await flush();
      check();
    }
    mock.timers.tick(300_000);
  }
  const states = [...view.reports()].map(({ uid, state }) => `${uid} ${state}`).toSorted();
  assert.deepEqual(states, ['2/1 Staged', '2/3 Serving']);
  assert.deepEqual(
    workers.map(({ version }) => version),
    ['2/3', '2/3'],
  );
  assert.deepEqual([...view.deviations()], []);
  assert.equal(registry.modules().length, 2, 'nothing is kept of what was');
  want(undefined);
  assert.deepEqual([registry.modules(), registry.lastGood(), [...view.reports()]], [[], [], []]);
  registry.stop();
}

it('the wanted revisions serve in the end, after events in any order', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  try {
    await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 40 }), fc.boolean(), run), { numRuns: 300 });
  } finally {
    mock.timers.reset();
  }
});
