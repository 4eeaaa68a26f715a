import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../cluster/index.ts';
import { deleteOptions, isWatchRequest, listOptions, watchOptions, writeOptions } from './request-options.ts';

const query = (text: string): URLSearchParams => new URLSearchParams(text);
const AGENT = 'kubectl/v1.34.4 (linux/amd64)';

/** Messages of an API server (recorded from 1.34). */
const refused: readonly (readonly [string, () => unknown, number, string])[] = [
  [
    'dryRun',
    () => writeOptions(query('dryRun=foo'), 'CreateOptions', AGENT),
    422,
    'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["foo"]: supported values: "All"',
  ],
  [
    'fieldValidation',
    () => writeOptions(query('fieldValidation=foo'), 'CreateOptions', AGENT),
    422,
    'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "foo": supported values: "", "Ignore", "Strict", "Warn"',
  ],
  [
    'a long fieldManager',
    () => writeOptions(query(`fieldManager=${'x'.repeat(129)}`), 'CreateOptions', AGENT),
    422,
    'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
  ],
  [
    'a fieldManager that cannot be printed',
    () => writeOptions(query('fieldManager=a%01b'), 'CreateOptions', AGENT),
    422,
    'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\\x01b": invalid character U+0001 (at position 1)',
  ],
  [
    'an apply without fieldManager',
    () => writeOptions(query(''), 'PatchOptions', AGENT, 'apply'),
    422,
    'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
  ],
  [
    'force without apply',
    () => writeOptions(query('force=true'), 'PatchOptions', AGENT, 'merge'),
    422,
    'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  ],
  ['limit', () => listOptions(query('limit=abc')), 400, 'strconv.ParseInt: parsing "abc": invalid syntax'],
  [
    'a match without a version',
    () => listOptions(query('resourceVersionMatch=Exact')),
    422,
    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  ],
  [
    'an unknown match',
    () => listOptions(query('resourceVersionMatch=foo&resourceVersion=1')),
    422,
    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", ""',
  ],
  [
    'initial events of a list',
    () => listOptions(query('sendInitialEvents=true')),
    422,
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
  ],
  [
    'initial events without a match',
    () => watchOptions(query('watch=1&sendInitialEvents=true')),
    422,
    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
  ],
  [
    'propagationPolicy',
    () => deleteOptions(query('propagationPolicy=x'), undefined),
    422,
    'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
  ],
  [
    'gracePeriodSeconds',
    () => deleteOptions(query('gracePeriodSeconds=x'), undefined),
    400,
    'strconv.ParseInt: parsing "x": invalid syntax',
  ],
];

describe('options of requests', () => {
  for (const [what, parse, code, message] of refused) {
    it(`are refused as an API server does: ${what}`, () => assert.throws(parse, { name: 'ApiError', code, message }));
  }

  it('of writes', () => {
    assert.deepEqual(writeOptions(query('dryRun=All&fieldValidation=Strict'), 'CreateOptions', AGENT), {
      dryRun: true,
      fieldManager: 'kubectl',
      fieldValidation: 'Strict',
    });
    assert.deepEqual(writeOptions(query('fieldManager=me&force=1'), 'PatchOptions', undefined, 'apply'), {
      fieldManager: 'me',
      force: true,
    });
    assert.equal(writeOptions(query(''), 'UpdateOptions', undefined).fieldManager, 'unknown');
  });

  it('of lists and watches', () => {
    assert.deepEqual(listOptions(query('limit=5&continue=abc&labelSelector=a%3Db&fieldSelector=&resourceVersion=')), {
      limit: 5,
      continue: 'abc',
      labelSelector: 'a=b',
    });
    assert.deepEqual(
      watchOptions(
        query(
          'watch=1&resourceVersion=7&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=9',
        ),
      ),
      { resourceVersion: '7', allowBookmarks: true, sendInitialEvents: true, timeoutSeconds: 9 },
    );
    assert.deepEqual(
      ['watch=1', 'watch=true', 'watch', 'watch=0', 'watch=False', ''].map((q) => isWatchRequest(query(q))),
      [true, true, true, false, false, false],
    );
  });

  it('of deletions come from the body, if any', () => {
    const body = {
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
      dryRun: ['All'],
      preconditions: { uid: 'u', resourceVersion: '3' },
    };
    assert.deepEqual(deleteOptions(query('propagationPolicy=Orphan'), body), { ...body, dryRun: true });
    assert.deepEqual(deleteOptions(query('propagationPolicy=Orphan&gracePeriodSeconds=3'), undefined), {
      propagationPolicy: 'Orphan',
      gracePeriodSeconds: 3,
    });
    assert.deepEqual(deleteOptions(query(''), { orphanDependents: true }), { propagationPolicy: 'Orphan' });
    assert.throws(() => deleteOptions(query(''), { gracePeriodSeconds: 'x' }), { code: 400 });
    assert.throws(() => deleteOptions(query(''), { kind: 'Pod' }), { code: 400 });
    for (const odd of [{ dryRun: 'All' }, { dryRun: [true] }, { preconditions: 'u' }, { preconditions: ['u'] }]) {
      assert.throws(() => deleteOptions(query(''), odd), { code: 400 });
    }
  });

  it('of watches have no longer timeout than timers can wait', () => {
    assert.deepEqual(watchOptions(query('timeoutSeconds=9999999999')), { timeoutSeconds: 2_147_483 });
  });

  it('are parsed or rejected, for arbitrary queries', () => {
    const names = [
      'dryRun',
      'fieldManager',
      'fieldValidation',
      'force',
      'limit',
      'continue',
      'resourceVersion',
      'resourceVersionMatch',
      'sendInitialEvents',
      'timeoutSeconds',
      'propagationPolicy',
      'gracePeriodSeconds',
    ];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.string()), fc.jsonValue(), (values, body) => {
        const search = new URLSearchParams(values);
        const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
        for (const parse of [
          () => writeOptions(search, 'PatchOptions', values['force'], 'apply'),
          () => listOptions(search),
          () => watchOptions(search),
          () => deleteOptions(search, isObject ? (body as never) : undefined),
        ]) {
          try {
            parse();
          } catch (error) {
            assert.ok(error instanceof ApiError, String(error));
          }
        }
      }),
    );
  });
});
