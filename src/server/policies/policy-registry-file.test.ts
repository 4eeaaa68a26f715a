import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { definitionHash, settingsHash, type SinglePolicyDefinition } from '../../engine/index.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange } from '../../evaluation/index.ts';
import { FileEntries } from './file-policies.ts';
import { PolicyRegistry, STAND_IN_MS } from './policy-registry.ts';
import type { PinnedPolicy } from './serving-record.ts';
import type { DeclaredPolicy, LoadOutcome, LoadRequest, ReadPolicy } from '../../evaluation/index.ts';
import type { ServedPolicyStatus } from '../status/served-policy-status.ts';
import type { WantedChanges } from './wanted-policy.ts';

/** A policy whose module is named like its version; settings distinguish versions of one module. */
function policy(id: string, version: string, rest: Partial<SinglePolicyDefinition> = {}): DeclaredPolicy {
  const definition: SinglePolicyDefinition = {
    kind: 'policy',
    id,
    mode: 'protect',
    allowedToMutate: false,
    module: `file:///${version}.wasm`,
    settingsJson: JSON.stringify({ version }),
    contextAwareResources: [],
    hostCapabilities: [],
    failurePolicy: 'Fail',
    ...rest,
  };
  return { definition, hash: definitionHash(definition), settingsHash: settingsHash(definition) };
}

const digestOf = (version: string): string => `sha256:${version}`;
const moduleOf = ({ definition }: { definition: LoadRequest['definition'] }): string =>
  definition.kind === 'policy' ? definition.module : '';

function good(request: LoadRequest, version: string, sourceError?: string): LoadOutcome {
  const digest = digestOf(version);
  // The registry reads only the digest.
  const module = { digest, mode: 'kubewarden-wapc', compiled: {} } as CompiledPolicyModule;
  return {
    ok: true,
    digests: { [moduleOf(request)]: digest },
    modules: [module],
    ...(sourceError === undefined ? {} : { sourceError }),
  };
}

const failed = (message: string, transient = false): LoadOutcome => ({
  ok: false,
  reason: transient ? 'FetchFailed' : 'InvalidModule',
  message,
  transient,
});

const pinned = (id: string, version: string): PinnedPolicy => ({
  ...policy(id, version),
  digests: { [`file:///${version}.wasm`]: digestOf(version) },
  since: '2026-01-01T00:00:00.000Z',
});

const problem = (id: string, ...problems: string[]): ReadPolicy => ({ id, problems });

interface Pending {
  readonly request: LoadRequest;
  /** Ends this load; every worker applies the change. */
  readonly end: (outcome: LoadOutcome) => Promise<void>;
}

/** A registry whose collaborators record their calls. */
function setUp(lastGood: readonly PinnedPolicy[] = []): {
  registry: PolicyRegistry;
  loads: Pending[];
  /** Number of loads that started together, for each call. */
  batches: number[];
  changes: TableChange[];
  phases: string[];
  ended: string[];
  /** Returns the oldest load. */
  next: () => Pending;
  status: (id: string) => ServedPolicyStatus;
  /** The file is read with these entries. */
  declare: (...entries: ReadPolicy[]) => Promise<void>;
} {
  const loads: Pending[] = [];
  const batches: number[] = [];
  const changes: TableChange[] = [];
  const phases: string[] = [];
  const ended: string[] = [];
  let isFirst = true;
  const entries = new FileEntries();
  const registry = new PolicyRegistry(
    {
      read: async (policies) => policies.map(({ spec }) => spec as ReadPolicy),
      load: (requests, done) => {
        batches.push(requests.length);
        loads.push(
          ...requests.map((request) => ({
            request,
            end: async (outcome: LoadOutcome) => {
              done(new Map([[request, outcome]]));
              await flush();
            },
          })),
        );
      },
      publish: async (change) => void changes.push(change),
      phaseChanged: (id, change) => phases.push(`${id} ${change?.phase ?? 'gone'}`),
      changeEnded: (result) => ended.push(result),
      servingChanged: () => undefined,
    },
    new Map(lastGood.map((entry) => [entry.definition.id, entry])),
  );
  return {
    registry,
    loads,
    batches,
    changes,
    phases,
    ended,
    next: () => loads.shift() ?? assert.fail('nothing is being loaded'),
    status: (id) => registry.statuses().find((status) => status.id === id) ?? assert.fail(`${id} is unknown`),
    declare: async (...declared) => {
      registry.apply(entries.changes(declared), isFirst);
      isFirst = false;
      await flush();
    },
  };
}

const flush = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns += 1) {
    await Promise.resolve();
  }
};

async function isSettled(registry: PolicyRegistry): Promise<boolean> {
  let settled = false;
  void registry.settled().then(() => (settled = true));
  await flush();
  return settled;
}

describe('thousands of changes', async () => {
  const thousands = (): WantedChanges =>
    new FileEntries().changes(Array.from({ length: 1_200 }, (_, index) => policy(`p${index}`, 'a')));

  it('are applied in several turns, and their loads start together', async () => {
    const { registry, declare, batches } = setUp();
    await declare();
    const applied = registry.applyInTurns(thousands());
    assert.ok(registry.statuses().length < 1_200);
    assert.equal(await isSettled(registry), false);
    await applied;
    await flush();
    assert.equal(registry.statuses().length, 1_200);
    assert.deepEqual(batches, [1_200]);
  });

  it('are not applied further when the registry stops', async () => {
    const { registry, declare, batches, phases } = setUp();
    await declare();
    const applied = registry.applyInTurns(thousands());
    const { length } = phases;
    registry.stop();
    await applied;
    await flush();
    assert.deepEqual([phases.length, batches], [length, []]);
  });
});

describe('a declared policy', async () => {
  it('names the modules of a version that was fetched and then failed', async () => {
    const { declare, next, status } = setUp();
    await declare(policy('a', 'v1'));
    const digests = { 'file:///v1.wasm': digestOf('v1') };
    await next().end({ ok: false, reason: 'InvalidSettings', message: 'no', transient: false, digests });
    assert.deepEqual(status('a').desired?.modules, digests);
    assert.equal(typeof status('a').desired?.version, 'string');
    assert.equal(status('a').serving, null);
  });

  it('is pending, then active with its digest, and published with its module', async () => {
    const { declare, next, status, changes, phases, registry } = setUp();
    await declare(policy('p', 'a'));
    assert.deepEqual([status('p').phase, status('p').serving, status('p').desired?.version], ['Pending', null, null]);
    const { request, end } = next();
    assert.equal(request.digests, undefined);
    await end(good(request, 'a'));
    const { phase, reason, serving, desired, attempts } = status('p');
    assert.deepEqual({ phase, reason, attempts }, { phase: 'Active', reason: 'Serving', attempts: 1 });
    assert.equal(serving?.version, desired?.version);
    assert.deepEqual(serving?.modules, { 'file:///a.wasm': digestOf('a') });
    assert.deepEqual(phases, ['p Pending', 'p Updating', 'p Active']);
    const [change] = changes;
    assert.deepEqual(
      change?.upserts.map((entry) => 'definition' in entry && entry.id),
      ['p'],
    );
    assert.deepEqual(
      change?.modules.map(({ digest }) => digest),
      [digestOf('a')],
    );
    assert.deepEqual(
      registry.modules().map(({ digest }) => digest),
      [digestOf('a')],
    );
  });

  it('that is unchanged is not loaded again', async () => {
    const { declare, next, loads } = setUp();
    await declare(policy('p', 'a'));
    const { request, end } = next();
    await declare(policy('p', 'a'));
    await end(good(request, 'a'));
    await declare(policy('p', 'a'));
    assert.equal(loads.length, 0);
  });

  it('with a new version serves the old one until the new one is loaded, and then keeps only the new module', async () => {
    const { declare, next, status, changes } = setUp();
    await declare(policy('p', 'a'));
    const first = next();
    await first.end(good(first.request, 'a'));
    await declare(policy('p', 'b'));
    assert.deepEqual(
      [status('p').phase, status('p').serving?.modules],
      ['Updating', { 'file:///a.wasm': digestOf('a') }],
    );
    const second = next();
    await second.end(good(second.request, 'b'));
    assert.equal(status('p').phase, 'Active');
    assert.deepEqual(
      changes.at(-1)?.modules.map(({ digest }) => digest),
      [digestOf('b')],
    );
    assert.deepEqual(changes.at(-1)?.retired, [digestOf('a')]);
  });

  it('shares its module with others: posted once, retired with the last', async () => {
    const { declare, next, changes } = setUp();
    const shared = { module: 'file:///shared.wasm' };
    await declare(policy('p', '1', shared), policy('q', '2', shared));
    for (const { request, end } of [next(), next()]) {
      await end(good(request, 'shared'));
    }
    assert.deepEqual(
      changes.map(({ modules }) => modules.length),
      [1, 0],
    );
    await declare(policy('p', '1', shared));
    assert.deepEqual([changes.at(-1)?.removals, changes.at(-1)?.retired], [['q'], []]);
    await declare();
    assert.deepEqual([changes.at(-1)?.removals, changes.at(-1)?.retired], [['p'], [digestOf('shared')]]);
  });

  it('ignores the load of an older declaration', async () => {
    const { declare, next, status, changes } = setUp();
    await declare(policy('p', 'a'));
    const stale = next();
    await declare(policy('p', 'b'));
    const current = next();
    await current.end(good(current.request, 'b'));
    const published = changes.length;
    await stale.end(failed('too late'));
    await stale.end(good(stale.request, 'a'));
    assert.deepEqual(
      [status('p').phase, Object.values(status('p').serving?.modules ?? {})],
      ['Active', [digestOf('b')]],
    );
    assert.equal(changes.length, published);
  });

  it('that changes and changes back ignores loads of the first time', async () => {
    const { declare, next, status } = setUp();
    await declare(policy('p', 'a'));
    const stale = next();
    await declare(policy('p', 'b'));
    const between = next();
    await declare(policy('p', 'a'));
    await stale.end(failed('stale'));
    await between.end(good(between.request, 'b'));
    assert.equal(status('p').phase, 'Pending');
    const last = next();
    await last.end(good(last.request, 'a'));
    assert.equal(status('p').phase, 'Active');
  });

  it('that was removed ignores its load', async () => {
    const { declare, next, registry, phases, changes } = setUp();
    await declare(policy('p', 'a'));
    const late = next();
    await declare();
    await late.end(good(late.request, 'a'));
    assert.deepEqual([registry.statuses(), registry.lastGood()], [[], []]);
    assert.equal(phases.at(-1), 'p gone');
    assert.ok(changes.every(({ upserts }) => upserts.length === 0));
  });
});

describe('a version that fails', async () => {
  it('leaves the last good one serving, and the status has both', async () => {
    const { declare, next, status, changes, registry } = setUp();
    await declare(policy('p', 'a'));
    const first = next();
    await first.end(good(first.request, 'a'));
    await declare(policy('p', 'b'));
    await next().end(failed('it is broken'));
    const { phase, reason, message, serving, desired, nextRetry } = status('p');
    assert.deepEqual([phase, reason, message, nextRetry], ['Degraded', 'InvalidModule', 'it is broken', null]);
    assert.deepEqual(Object.values(serving?.modules ?? {}), [digestOf('a')]);
    assert.equal(desired?.version, null);
    assert.notEqual(desired?.settingsHash, serving?.settingsHash);
    assert.deepEqual(changes.at(-1)?.retired, []);
    assert.equal(registry.lastGood()[0]?.definition.id, 'p');
  });

  it('as the first one is published as failed, with its failurePolicy', async () => {
    const { declare, next, status, changes } = setUp();
    await declare(policy('p', 'a', { failurePolicy: 'Ignore' }));
    await next().end(failed('it is broken'));
    assert.equal(status('p').phase, 'Error');
    assert.deepEqual(changes.at(-1)?.upserts, [
      { id: 'p', failed: { message: 'it is broken', failurePolicy: 'Ignore' } },
    ]);
  });

  it('in the file is reported with all mistakes and their positions, and the others load', async () => {
    const { declare, next, status } = setUp();
    await declare(policy('q', 'a'), problem('p', 'line 3, column 5: one', 'line 3, column 5: two'));
    const { phase, reason, message, desired } = status('p');
    assert.deepEqual(
      { phase, reason, message, desired },
      {
        phase: 'Error',
        reason: 'InvalidDefinition',
        message: 'line 3, column 5: one; line 3, column 5: two',
        desired: null,
      },
    );
    const { request, end } = next();
    await end(good(request, 'a'));
    assert.equal(status('q').phase, 'Active');
  });

  it('is not retried after a permanent failure', async () => {
    const { declare, next, loads, registry } = setUp();
    await declare(policy('p', 'a'));
    await next().end(failed('broken'));
    registry.retryNow();
    assert.equal(loads.length, 0);
  });

  it('is retried with backoff, until it succeeds or changes', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { declare, next, loads, status } = setUp();
      await declare(policy('p', 'a'));
      for (let attempt = 1; attempt <= 4; attempt += 1) {
        await next().end(failed('the source is down', true));
        const wait = Date.parse(status('p').nextRetry ?? '') - Date.now();
        assert.ok(wait >= 100 && wait <= 1000 * 2 ** (attempt - 1), `attempt ${attempt} waits ${wait} ms`);
        assert.equal(status('p').attempts, attempt);
        mock.timers.tick(wait - 1);
        assert.equal(loads.length, 0);
        mock.timers.tick(1);
        assert.equal(loads.length, 1);
        assert.equal(status('p').nextRetry, null);
      }
      const { request, end } = next();
      await end(good(request, 'a'));
      assert.equal(status('p').phase, 'Active');
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0);

      await declare(policy('p', 'b'));
      await next().end(failed('down', true));
      await declare(policy('p', 'c'));
      assert.equal(moduleOf(next().request), 'file:///c.wasm');
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0, 'the retry of the older declaration is off');

      await declare();
      await declare(policy('p', 'd'));
      await next().end(failed('down', true));
      await declare();
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0, 'the retry of a removed policy is off');
    } finally {
      mock.timers.reset();
    }
  });

  it('is retried immediately by retryNow', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { declare, next, loads, registry } = setUp();
      await declare(policy('p', 'a'));
      await next().end(failed('down', true));
      registry.retryNow();
      assert.equal(loads.length, 1);
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 1);
    } finally {
      mock.timers.reset();
    }
  });

  it('is not retried after stop', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { declare, next, loads, registry } = setUp();
      await declare(policy('p', 'a'), policy('q', 'a'));
      await next().end(failed('down', true));
      registry.stop();
      await next().end(failed('down', true));
      mock.timers.tick(1_000_000);
      assert.equal(loads.length, 0);
    } finally {
      mock.timers.reset();
    }
  });

  it('is fetched again when it came from the cache because its source failed', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { declare, next, status } = setUp();
      await declare(policy('p', 'a'));
      const first = next();
      await first.end(good(first.request, 'a', 'the source is down'));
      const { phase, reason, message, nextRetry, serving } = status('p');
      assert.deepEqual([phase, reason], ['Active', 'ServingFromCache']);
      assert.match(message, /the source is down/);
      assert.ok(nextRetry !== null);
      mock.timers.tick(1_000);
      const second = next();
      await second.end(good(second.request, 'a'));
      assert.deepEqual([status('p').reason, status('p').nextRetry], ['Serving', null]);
      assert.equal(status('p').serving?.since, serving?.since, 'it is the version that served all the time');
    } finally {
      mock.timers.reset();
    }
  });
});

describe('what served before a restart', async () => {
  it('is the stand-in of a version that fails, pinned to its digests', async () => {
    const { declare, next, status, registry } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'new'));
    await next().end(failed('broken'));
    const { request, end } = next();
    assert.deepEqual(request.digests, { 'file:///old.wasm': digestOf('old') });
    await end(good(request, 'old'));
    const { phase, reason, message, serving, desired } = status('p');
    assert.deepEqual([phase, reason, message], ['Degraded', 'InvalidModule', 'broken']);
    assert.deepEqual(Object.values(serving?.modules ?? {}), [digestOf('old')]);
    assert.equal(serving?.since, pinned('p', 'old').since);
    assert.equal(desired?.version, null);
    assert.deepEqual(registry.lastGood(), [pinned('p', 'old')]);
  });

  it('as stand-in of a failed version counts as one failed change', async () => {
    const { declare, next, ended, phases } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'new'));
    await next().end(failed('broken'));
    const { request, end } = next();
    await end(good(request, 'old'));
    assert.deepEqual(phases, ['p Pending', 'p Error', 'p Degraded']);
    assert.deepEqual(ended, ['failed']);
  });

  it('is the stand-in of a version that takes long, until that one serves or fails', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    try {
      const { declare, next, status, loads, ended, changes, registry } = setUp([
        pinned('p', 'old'),
        pinned('q', 'old'),
      ]);
      await declare(policy('p', 'new'), policy('q', 'new'));
      const [p, q] = [next(), next()];
      mock.timers.tick(STAND_IN_MS - 1);
      assert.equal(loads.length, 0);
      mock.timers.tick(1);
      const [standIn, missing] = [next(), next()];
      await standIn.end(good(standIn.request, 'old'));
      const { phase, reason, serving } = status('p');
      assert.deepEqual([phase, reason], ['Updating', 'Loading']);
      assert.deepEqual(Object.values(serving?.modules ?? {}), [digestOf('old')]);
      // The failure of a stand-in does not affect the version that is loading.
      const before = changes.length;
      await missing.end(failed('not in the cache'));
      assert.deepEqual([status('q').phase, changes.length], ['Pending', before]);
      assert.equal(await isSettled(registry), false);
      assert.deepEqual(ended, []);
      await p.end(failed('broken'));
      assert.deepEqual([status('p').phase, status('p').message], ['Degraded', 'broken']);
      await q.end(good(q.request, 'new'));
      assert.equal(status('q').phase, 'Active');
      assert.equal(await isSettled(registry), true);
      assert.deepEqual([ended, loads.length], [['failed', 'served'], 0]);
    } finally {
      mock.timers.reset();
    }
  });

  it('is the stand-in of an invalid entry', async () => {
    const { declare, next, status } = setUp([pinned('p', 'old')]);
    await declare(problem('p', 'what is this'));
    const { request, end } = next();
    await end(good(request, 'old'));
    assert.deepEqual([status('p').phase, status('p').reason], ['Degraded', 'InvalidDefinition']);
  });

  it('is not loaded when the declared version loads', async () => {
    const { declare, next, loads, status } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'new'));
    const { request, end } = next();
    await end(good(request, 'new'));
    assert.equal(loads.length, 0);
    assert.equal(status('p').phase, 'Active');
  });

  it('serves for a change that arrives while it is loading', async () => {
    const { declare, next, status } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'bad1'));
    await next().end(failed('broken'));
    const late = next();
    await declare(policy('p', 'bad2'));
    await late.end(good(late.request, 'old'));
    await next().end(failed('broken as well'));
    assert.equal(status('p').phase, 'Degraded');
    assert.equal(status('p').message, 'broken as well');
    assert.notEqual(status('p').serving, null);
  });

  it('is tried once, and stays in the record when it fails', async () => {
    const { declare, next, loads, status, registry } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'new'));
    await next().end(failed('broken'));
    await next().end(failed('not in the cache'));
    assert.equal(loads.length, 0);
    assert.equal(status('p').phase, 'Error');
    assert.equal(status('p').message, 'broken; and the version from before the restart cannot serve: not in the cache');
    assert.deepEqual(registry.lastGood(), [pinned('p', 'old')]);
  });

  it('does not serve when the declared version loaded in the meantime', async () => {
    const { declare, next, status, registry } = setUp([pinned('p', 'old')]);
    await declare(policy('p', 'new'));
    await next().end(failed('down', true));
    const standIn = next();
    registry.retryNow();
    const retry = next();
    await retry.end(good(retry.request, 'new'));
    await standIn.end(good(standIn.request, 'old'));
    assert.deepEqual(
      [status('p').phase, Object.values(status('p').serving?.modules ?? {})],
      ['Active', [digestOf('new')]],
    );
    await standIn.end(failed('not in the cache'));
    assert.equal(status('p').phase, 'Active');
  });

  it('is removed with its policy', async () => {
    const { declare, registry, next, loads } = setUp([pinned('p', 'old'), pinned('q', 'old')]);
    await declare(policy('p', 'new'));
    await declare();
    await declare(policy('p', 'new'));
    next();
    await next().end(failed('broken'));
    assert.equal(loads.length, 0);
    assert.deepEqual(registry.lastGood(), []);
  });

  it('serves while the policies file is invalid', async () => {
    const { registry, declare, next, status } = setUp([pinned('p', 'old'), pinned('q', 'old')]);
    registry.restore('line 1 is not YAML');
    assert.deepEqual([status('p').phase, status('p').reason], ['Pending', 'PoliciesFileUnusable']);
    for (const { request, end } of [next(), next()]) {
      assert.ok(request.digests);
      await end(good(request, 'old'));
    }
    for (const id of ['p', 'q']) {
      const { phase, reason, message } = status(id);
      assert.deepEqual([phase, reason], ['Degraded', 'PoliciesFileUnusable']);
      assert.match(message, /line 1 is not YAML/);
    }
    // The same version, now declared, is loaded like any other.
    await declare(policy('p', 'old'));
    const { request, end } = next();
    assert.equal(request.digests, undefined);
    await end(good(request, 'old'));
    assert.equal(status('p').phase, 'Active');
    assert.deepEqual(
      registry.statuses().map(({ id }) => id),
      ['p'],
    );
  });
});

describe('settled', async () => {
  it('waits for every policy to serve or fail once, its stand-in included', async () => {
    const { registry, declare, next } = setUp([pinned('q', 'old')]);
    assert.ok(!(await isSettled(registry)), 'the file has not been read');
    await declare(policy('p', 'a'), policy('q', 'a'));
    const p = next();
    const q = next();
    await p.end(good(p.request, 'a'));
    assert.ok(!(await isSettled(registry)));
    await q.end(failed('broken'));
    assert.ok(!(await isSettled(registry)));
    const standIn = next();
    await standIn.end(good(standIn.request, 'old'));
    assert.ok(await isSettled(registry));
  });

  it('does not wait for loads after stop', async () => {
    const { registry, declare } = setUp();
    await declare(policy('p', 'a'));
    const before = registry.settled();
    registry.stop();
    await before;
    assert.ok(await isSettled(registry));
  });

  it('does not wait for retries, removed policies or stale loads', async () => {
    const { registry, declare, next } = setUp();
    await declare(policy('p', 'a'), policy('q', 'a'));
    await next().end(failed('down', true));
    await declare(policy('p', 'a'));
    assert.ok(await isSettled(registry));
    await declare(policy('p', 'b'));
    await declare(policy('p', 'c'));
    next();
    next();
    const last = next();
    assert.ok(!(await isSettled(registry)));
    await last.end(good(last.request, 'c'));
    assert.ok(await isSettled(registry));
    registry.stop();
  });

  it('waits for immediate retries', async () => {
    const { registry, declare, next } = setUp();
    await declare(policy('p', 'a'));
    await next().end(failed('down', true));
    registry.retryNow();
    assert.ok(!(await isSettled(registry)));
    await next().end(failed('still down', true));
    assert.ok(await isSettled(registry));
    registry.stop();
  });
});

describe('an activation that fails', async () => {
  it('is reported', async () => {
    const { registry, declare, next, status } = setUp();
    await declare(policy('p', 'a'));
    const { request, end } = next();
    await end(good(request, 'a'));
    registry.activationFailed('p', 'no memory');
    registry.activationFailed('unknown', 'no memory');
    assert.deepEqual(
      [status('p').phase, status('p').reason, status('p').message],
      ['Error', 'ActivationFailed', 'no memory'],
    );
  });
});
