import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import { selectNamespaces } from './select-namespaces.ts';
import type { NamespaceSelector, TerminatingInclusion } from './select-namespaces.ts';

function namespace(name: string, tier?: string, isTerminating = false): Pick<KubernetesObject, 'metadata'> {
  return {
    metadata: {
      name,
      ...(tier === undefined ? {} : { labels: { tier } }),
      ...(isTerminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
  };
}

const NAMESPACES = [
  namespace('web', 'front'),
  namespace('shop', 'front'),
  namespace('api', 'back'),
  namespace('api-test', 'back', true),
  namespace('database', 'data'),
  namespace('default'),
  namespace('old-web', 'front', true),
  namespace('unlabelled', undefined, true),
];
const ALL = ['api', 'api-test', 'database', 'default', 'old-web', 'shop', 'unlabelled', 'web'];
const RUNNING = ['api', 'database', 'default', 'shop', 'web'];

interface Case {
  readonly when: string;
  readonly selector: NamespaceSelector;
  readonly setting?: TerminatingInclusion;
  readonly selected: readonly string[];
}

/** First the nine cases of config-policy-controller, whose exclude lists contain an empty pattern. */
const CASES: readonly Case[] = [
  { when: 'a star includes everything', selector: { include: ['*'], exclude: [''] }, selected: ALL },
  { when: 'an empty pattern includes nothing', selector: { include: [''], exclude: [''] }, selected: [] },
  {
    when: 'several patterns include',
    selector: { include: ['api*', '*web'], exclude: [''] },
    selected: ['api', 'api-test', 'old-web', 'web'],
  },
  {
    when: 'several patterns exclude',
    selector: { include: ['*'], exclude: ['*a*', 's*'] },
    selected: ['old-web', 'web'],
  },
  {
    when: 'labels and patterns both hold',
    selector: { matchLabels: { tier: 'front' }, include: ['*'], exclude: [''] },
    selected: ['old-web', 'shop', 'web'],
  },
  {
    when: 'an expression selects',
    selector: { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['front'] }], include: ['*'] },
    selected: ['api', 'api-test', 'database', 'default', 'unlabelled'],
  },
  {
    when: 'the controller excludes terminating namespaces',
    selector: { include: ['*'], terminatingInclusion: 'Default' },
    setting: 'Never',
    selected: RUNNING,
  },
  {
    when: 'IfMatch overrides the controller',
    selector: { include: ['*'], terminatingInclusion: 'IfMatch' },
    setting: 'Never',
    selected: ALL,
  },
  {
    when: 'Never overrides the controller',
    selector: { include: ['*'], terminatingInclusion: 'Never' },
    setting: 'IfMatch',
    selected: RUNNING,
  },
  { when: 'nothing is set', selector: {}, selected: [] },
  { when: 'only exclude is set', selector: { exclude: ['x'] }, selected: [] },
  { when: 'the include list is empty', selector: { include: [] }, selected: [] },
  { when: 'labels are present but empty', selector: { matchLabels: {} }, selected: ALL },
  {
    when: 'expressions are present but empty',
    selector: { matchExpressions: [], exclude: ['*a*'] },
    selected: ['old-web', 'shop', 'web'],
  },
  { when: 'only labels are set', selector: { matchLabels: { tier: 'data' } }, selected: ['database'] },
  { when: 'labels and include differ', selector: { matchLabels: { tier: 'back' }, include: ['web'] }, selected: [] },
  { when: 'exclude wins', selector: { include: ['web', 'api'], exclude: ['web'] }, selected: ['api'] },
];

describe('selecting namespaces', () => {
  for (const { when, selector, setting, selected } of CASES) {
    it(when, () => assert.deepEqual(selectNamespaces(selector, NAMESPACES, setting), selected));
  }

  for (const [selector, message] of [
    [{ include: ['kube-[system'] }, "error parsing 'include' pattern 'kube-[system': syntax error in pattern"],
    [{ include: ['*'], exclude: ['*[*'] }, "error parsing 'exclude' pattern '*[*': syntax error in pattern"],
    [
      { matchExpressions: [{ key: 'tier', operator: 'In', values: [] }] },
      /^error parsing namespace LabelSelector: values: Invalid value: .*for 'in', 'notin' operators, values set can't be empty$/,
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(selector)}`, () => {
      assert.throws(() => selectNamespaces(selector, NAMESPACES), { code: 'invalid-selector', message });
    });
  }

  it('ends with an error for patterns that take too long', () => {
    const namespaces = Array.from({ length: 2_000 }, (_, index) => ({
      metadata: { name: `${'a'.repeat(55)}${index}` },
    }));
    const message = /^the patterns of the namespaceSelector take too long/;
    for (const include of [
      Array.from({ length: 100_000 }, () => '?'),
      Array.from({ length: 1_400 }, () => `*${'a'.repeat(30)}b${'a'.repeat(900)}`),
    ]) {
      assert.throws(() => selectNamespaces({ include }, namespaces), { code: 'invalid-selector', message });
    }
    assert.equal(selectNamespaces({ include: ['kube-*', 'a*a*a*'], exclude: ['*9'] }, namespaces).length, 1_800);
  });
});
