import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RefusedReport } from '../../control/index.ts';
import { readPolicyDefinition } from '../../engine/index.ts';
import type { LastValidEntry } from './last-valid-record.ts';
import type { LoadRequest, RefusedNamespace, WatchedObject } from '../../evaluation/index.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';
import { ParameterChecks, type ParameterChecksOptions } from './parameter-checks.ts';

const PROFILE = { apiVersion: 'example.com/v1', kind: 'ToolProfile' };
const KEY = { namespace: 'a', name: 'profile' };

function serving(version: string, parameters?: object): LoadedRevision {
  const { definition } = readPolicyDefinition('p', { module: 'm.wasm', ...(parameters && { parameters }) });
  assert.ok(definition !== undefined);
  const revision = { name: `p-${version}`, uid: version, number: 1 };
  return { id: 'p', definition, digests: {}, version, since: '', order: 0, revision } as unknown as LoadedRevision;
}

const PARAMETERS = {
  from: { resource: { ...PROFILE, name: 'profile' } },
  overridable: ['a'],
  settingsExpression: "{'a': params.a}",
};

describe('the checks of parameters', () => {
  let checks: ParameterChecks;
  let policy: LoadedRevision;
  let reports: (readonly [string, RefusedReport | undefined])[];
  /** Namespaces of each trial. */
  let trials: (readonly string[])[];
  /** Namespaces of the objects that the loader gets for the last trial. */
  let given: readonly (string | undefined)[];
  let invalid: Set<string>;
  /** Objects of the last trial. */
  let tried: readonly WatchedObject[];
  /** Ends the load that runs; undefined: loads end at once. */
  let release: (() => void)[] | undefined;
  /** Namespaces of one trial. */
  let most: number;
  let options: ParameterChecksOptions;
  let recorded: readonly LastValidEntry[];
  let written: readonly LastValidEntry[];
  beforeEach(() => {
    [release, most] = [undefined, Infinity];
    [policy, reports, trials, invalid] = [serving('1', PARAMETERS), [], [], new Set()];
    [recorded, written] = [[], []];
    options = {
      serving: () => [['p', policy]],
      load: (requests, done) => {
        const outcomes = new Map(requests.map((one) => [one, outcome(one)] as const));
        if (release === undefined) {
          done(outcomes);
        } else {
          release.push(() => done(outcomes));
        }
      },
      record: { read: () => recorded, changed: (current) => (written = [...current()]) },
      checked: (revision, refused) => reports.push([revision, refused]),
      delayMs: 1,
    };
    checks = new ParameterChecks(options);
  });
  afterEach(() => checks.stop());

  function outcome({ trial }: LoadRequest) {
    const namespaces = (trial?.namespaces ?? []).slice(0, most);
    tried = trial?.objects[0]?.objects ?? [];
    trials.push(namespaces);
    given = trial?.objects.flatMap(({ objects }) => objects.map(([key]) => key.namespace)) ?? [];
    const refused: RefusedNamespace[] = namespaces
      .filter((namespace) => invalid.has(namespace))
      .map((namespace) => ({ namespace, unit: 'p', message: `no ${namespace}` }));
    return { ok: true, digests: {}, modules: [], refused: { tried: namespaces.length, refused } } as const;
  }
  const change = (...namespaces: readonly string[]): void =>
    void checks.apply({
      ...PROFILE,
      isAll: false,
      objects: namespaces.map((namespace) => [{ namespace, name: 'profile' }, '{}'] as const),
    });
  const checked = async (count: number): Promise<void> => {
    while (trials.length < count) {
      await sleep(1);
    }
  };

  it('are made once for the changes of a moment, and then for changed namespaces only', async () => {
    invalid = new Set(['b']);
    change('a', 'b');
    change('c');
    await checked(1);
    assert.deepEqual(reports, [['p-1', { count: 1, tried: 3, first: [{ namespace: 'b', message: 'no b' }] }]]);
    invalid = new Set(['a', 'b']);
    change('a');
    await checked(2);
    assert.deepEqual(trials, [['a', 'b', 'c'], ['a']]);
    assert.equal(reports.at(-1)?.[1]?.count, 2);
    invalid = new Set();
    change('a', 'b');
    await checked(3);
    assert.deepEqual(reports.at(-1), ['p-1', undefined]);
  });

  it('are made for all namespaces when another version serves', async () => {
    change('a', 'b');
    await checked(1);
    policy = serving('2', PARAMETERS);
    checks.schedule();
    await checked(2);
    assert.deepEqual(trials, [
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('are the same for another revision that evaluates the same', async () => {
    invalid = new Set(['b']);
    change('a', 'b');
    await checked(1);
    policy = { ...policy, revision: { name: 'p-undone', uid: 'u', number: 2 } };
    checks.schedule();
    while (reports.at(-1)?.[0] !== 'p-undone') {
      await sleep(1);
    }
    assert.deepEqual(reports.at(-1)?.[1], { count: 1, tried: 2, first: [{ namespace: 'b', message: 'no b' }] });
    assert.equal(trials.length, 1);
  });

  it('report the first ten of many', async () => {
    const namespaces = Array.from({ length: 30 }, (_, index) => `n${index + 10}`);
    invalid = new Set(namespaces);
    change(...namespaces.toReversed());
    await checked(1);
    const [, refused] = reports[0] ?? [];
    assert.deepEqual([refused?.count, refused?.first.length, refused?.first[0]?.namespace], [30, 10, 'n10']);
  });

  it('count many that turn invalid at once, and none when they are valid again', async () => {
    const namespaces = Array.from({ length: 1_000 }, (_, index) => `n${index + 1_000}`);
    change(...namespaces);
    await checked(1);
    invalid = new Set(namespaces);
    change(...namespaces);
    await checked(2);
    const [, refused] = reports.at(-1) ?? [];
    assert.deepEqual([refused?.count, refused?.tried, refused?.first.length], [1_000, 1_000, 10]);
    invalid = new Set(['n1007']);
    change(...namespaces);
    await checked(3);
    assert.deepEqual(reports.at(-1), [
      'p-1',
      { count: 1, tried: 1_000, first: [{ namespace: 'n1007', message: 'no n1007' }] },
    ]);
    invalid = new Set();
    change('n1007');
    await checked(4);
    assert.deepEqual(reports.at(-1), ['p-1', undefined]);
  });

  it('are made one after the other, so that a late result of an earlier one does not count', async () => {
    release = [];
    invalid = new Set(['a']);
    change('a');
    await checked(1);
    invalid = new Set();
    change('a');
    await sleep(20);
    assert.equal(trials.length, 1);
    release.shift()?.();
    await checked(2);
    assert.equal(reports.at(-1)?.[1]?.count, 1);
    release.shift()?.();
    assert.deepEqual(reports.at(-1), ['p-1', undefined]);
  });

  it('go on with the namespaces for which a check had no time', async () => {
    most = 2;
    invalid = new Set(['a', 'c', 'e']);
    change('a', 'b', 'c', 'd', 'e');
    await checked(3);
    assert.deepEqual(trials, [['a', 'b'], ['c', 'd'], ['e']]);
    assert.equal(reports.at(-1)?.[1]?.count, 3);
  });

  describe('of a policy with KeepLast', () => {
    const put = (text: string, apply = checks): unknown =>
      apply.apply({ ...PROFILE, isAll: false, objects: [[KEY, text]] }).objects[0]?.[3];
    beforeEach(() => {
      policy = serving('1', { ...PARAMETERS, onInvalid: 'KeepLast' });
    });

    it('are made without the last valid parameters, which would hide the invalid ones', async () => {
      put('valid');
      await checked(1);
      invalid.add('a');
      put('invalid');
      await checked(2);
      assert.deepEqual(tried, [[KEY, 'invalid', undefined]]);
      assert.equal(reports.at(-1)?.[1]?.count, 1);
    });

    it('let workers have the last valid parameters after any number of invalid ones', async () => {
      put('valid');
      await checked(1);
      invalid.add('a');
      assert.equal(put('invalid'), undefined, 'workers know what the change replaces');
      for (let round = 2; round < 5; round += 1) {
        await checked(round);
        assert.equal(put(`invalid ${round}`), 'valid');
      }
      // Also before it is checked.
      assert.equal(put('invalid soon after'), 'valid');
      await checked(5);
      invalid.clear();
      put('valid again');
      await checked(6);
      invalid.add('a');
      assert.equal(put('invalid at last'), undefined);
    });

    it('keep them for a restart while others are invalid', async () => {
      put('valid');
      await checked(1);
      assert.deepEqual(written, []);
      invalid.add('a');
      put('invalid');
      await checked(2);
      assert.deepEqual(written, [[{ ...PROFILE, ...KEY }, 'valid']]);
      recorded = written;
      const restarted = new ParameterChecks({ ...options, record: { read: () => recorded, changed: () => undefined } });
      assert.equal(put('invalid', restarted), 'valid');
      restarted.stop();
      const elsewhere = new ParameterChecks({ ...options, record: { read: () => recorded, changed: () => undefined } });
      elsewhere.apply({ ...PROFILE, isAll: true, objects: [] });
      assert.equal(put('invalid', elsewhere), undefined, 'the object was deleted meanwhile');
      elsewhere.stop();
    });

    it('forget them with the object', async () => {
      put('valid');
      await checked(1);
      invalid.add('a');
      put('invalid');
      await checked(2);
      checks.apply({ ...PROFILE, isAll: false, objects: [[KEY, undefined]] });
      assert.equal(put('invalid'), undefined);
    });
  });

  it('give the loader the objects of changed namespaces alone', async () => {
    change('a', 'b', 'c');
    await checked(1);
    assert.deepEqual(given, ['a', 'b', 'c']);
    change('b');
    await checked(2);
    assert.deepEqual([trials[1], given], [['b'], ['b']]);
  });

  it('give the loader an object that all namespaces share', async () => {
    const resource = { ...PROFILE, name: 'profile', namespace: 'shared' };
    policy = serving('1', { ...PARAMETERS, from: { resource } });
    change('shared', 'other');
    await checked(1);
    change('other');
    await checked(2);
    assert.deepEqual(given, ['shared', 'other']);
  });

  it('are made for namespaces with listed keys only', async () => {
    const from = { namespace: { annotations: ['uid'], labels: ['tier'] } };
    policy = serving('1', { ...PARAMETERS, from });
    const view = (labels: Readonly<Record<string, string>>, uid: string | null) =>
      JSON.stringify({ metadata: { labels, annotations: { uid } } });
    invalid.add('a');
    checks.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      isAll: true,
      objects: [
        [{ name: 'a' }, view({}, '1')],
        [{ name: 'b' }, view({ tier: 'gold' }, null)],
        [{ name: 'c' }, view({ other: 'x' }, null)],
      ],
    });
    await checked(1);
    assert.deepEqual(trials, [['a', 'b']]);
    assert.deepEqual(reports, [['p-1', { count: 1, tried: 2, first: [{ namespace: 'a', message: 'no a' }] }]]);
  });

  it('are not made for policies without parameters', async () => {
    policy = serving('1');
    change('a');
    await sleep(20);
    assert.deepEqual([trials, reports], [[], []]);
  });
});
