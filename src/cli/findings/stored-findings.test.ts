import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { OpenReport, ReportResult } from '../../resources/index.ts';
import { type FindingFilter, isWanted, sortedFindings, storedFindings } from './stored-findings.ts';

const reference = (kind: string, name: string, apiVersion = 'v1') => ({ apiVersion, kind, name });

function reportOf(namespace: string, results: readonly ReportResult[], more: Partial<OpenReport> = {}): OpenReport {
  return {
    apiVersion: 'openreports.io/v1alpha1',
    kind: 'Report',
    metadata: { name: 'a', namespace },
    results,
    ...more,
  };
}

const seen = (firstSeen: string, lastSeen: string) => ({ properties: { firstSeen, lastSeen } });

const FOUND = [
  reportOf('shop', [
    {
      policy: 'cap/labels',
      result: 'fail',
      severity: 'high',
      resources: [reference('Pod', 'web')],
      ...seen('2026-01-01T00:00:00Z', '2026-01-05T00:00:00Z'),
    },
    {
      policy: 'ap/shop/images',
      result: 'warn',
      severity: 'low',
      resources: [reference('Deployment', 'web', 'apps/v1')],
      ...seen('2026-01-02T00:00:00Z', '2026-01-02T00:00:00Z'),
    },
  ]),
  reportOf('bank', [
    {
      policy: 'cap/labels',
      result: 'error',
      resources: [reference('Pod', 'web')],
      ...seen('2026-01-03T00:00:00Z', '2026-01-03T00:00:00Z'),
    },
  ]),
].flatMap(storedFindings);

const POD = { group: '', kind: 'Pod' };

const FILTERS: readonly (readonly [string, FindingFilter, readonly number[]])[] = [
  ['nothing', {}, [0, 1, 2]],
  ['the name of a policy', { policies: ['cap/labels'] }, [0, 2]],
  ['the end of a name', { policies: ['images', 'labels'] }, [0, 1, 2]],
  ['a part of a name', { policies: ['label', 'mages'] }, []],
  ['kinds', { kinds: [POD] }, [0, 2]],
  ['a kind of another group', { kinds: [{ group: 'extensions', kind: 'Deployment' }] }, []],
  ['results', { results: ['warn', 'error'] }, [1, 2]],
  ['a severity or a higher one', { severity: 'medium' }, [0]],
  ['the lowest severity', { severity: 'info' }, [0, 1]],
  ['a time', { since: Date.parse('2026-01-03T00:00:00Z') }, [0, 2]],
  ['an object', { kinds: [POD], object: { namespace: 'bank', name: 'web' } }, [2]],
  ['an object of no namespace', { kinds: [POD], object: { name: 'web' } }, []],
];

for (const [what, filter, wanted] of FILTERS) {
  it(`findings are filtered by ${what}`, () => {
    assert.deepEqual(
      FOUND.flatMap((finding, index) => (isWanted(finding, filter) ? [index] : [])),
      wanted,
    );
  });
}

it('findings are sorted by policy, namespace and age', () => {
  const order = (by: Parameters<typeof sortedFindings>[1]): readonly number[] =>
    sortedFindings(FOUND.toReversed(), by).map((finding) => FOUND.indexOf(finding));
  assert.deepEqual(order('policy'), [1, 2, 0]);
  assert.deepEqual(order('namespace'), [2, 1, 0]);
  assert.deepEqual(order('age'), [0, 1, 2]);
});

it('results of other products are about the scope of their report, if they name no object', () => {
  const [found] = storedFindings(
    reportOf('shop', [{ policy: 'theirs', result: 'fail', timestamp: { seconds: 1_767_225_600, nanos: 0 } }], {
      source: 'kyverno',
      scope: reference('Pod', 'web'),
    }),
  );
  assert.deepEqual(found, {
    source: 'kyverno',
    policy: 'theirs',
    result: 'fail',
    object: { ...reference('Pod', 'web'), namespace: 'shop' },
    lastSeen: '2026-01-01T00:00:00Z',
  });
});

it('passes, and results about no object, are no findings', () => {
  const passes = reportOf('shop', [
    { policy: 'a', result: 'pass', resources: [reference('Pod', 'web')] },
    { policy: 'a', result: 'fail' },
  ]);
  assert.deepEqual(storedFindings(passes), []);
});
