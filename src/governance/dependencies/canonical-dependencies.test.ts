import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GOVERNANCE_GROUP, MAX_DEPENDENCIES } from '../../resources/index.ts';
import { canonicalDependencies, policySetsOf } from './canonical-dependencies.ts';
import { type Dependency, readDependencies, requirementOf } from './dependency.ts';
import { CLUSTER, dependency } from './testing/dependency-scene.ts';

const SET = { apiVersion: `${GOVERNANCE_GROUP}/v1beta1`, kind: 'PolicySet' };
const set = (name: string, namespace: string, compliance = 'Compliant'): Dependency =>
  dependency(name, compliance, { ...SET, namespace });
const SETS: Readonly<Record<string, readonly string[]>> = {
  'default/foo': ['one', 'two'],
  'other-ns/bar': ['three', 'four', 'five'],
  'sentinel/own': ['six'],
  'default/empty': [],
};
const canonical = (...input: readonly Dependency[]): readonly Dependency[] =>
  canonicalDependencies(input, 'sentinel', ({ namespace, name }) => SETS[`${namespace}/${name}`]);

describe('canonicalDependencies', () => {
  const unusual = dependency('foo', 'Auditing', {
    apiVersion: 'something.com/v4beta7',
    kind: 'WeirdPolicy',
    namespace: 'bar',
  });
  const cases: readonly (readonly [string, readonly Dependency[], readonly Dependency[]])[] = [
    ['no dependencies', [], []],
    ['a set', [set('foo', 'default')], [dependency('default.one'), dependency('default.two')]],
    [
      'two sets that need different states',
      [set('foo', 'default'), set('bar', 'other-ns', 'NonCompliant')],
      [
        dependency('default.one'),
        dependency('default.two'),
        dependency('other-ns.three', 'NonCompliant'),
        dependency('other-ns.four', 'NonCompliant'),
        dependency('other-ns.five', 'NonCompliant'),
      ],
    ],
    [
      'policies with namespaces',
      [dependency('red', 'Compliant', { namespace: 'colors' }), dependency('1.2', 'Pending', { namespace: 'colors' })],
      [dependency('colors.red'), dependency('colors.1.2', 'Pending')],
    ],
    [
      'policies without namespaces',
      [dependency('magikarp'), dependency('gyarados', 'NonCompliant')],
      [dependency('sentinel.magikarp'), dependency('sentinel.gyarados', 'NonCompliant')],
    ],
    ['canonical names', [dependency('legendary.ho-oh', 'Terminating')], [dependency('legendary.ho-oh', 'Terminating')]],
    ['other kinds', [unusual], [unusual]],
    ['a set without a namespace', [set('own', '')], [dependency('sentinel.six')]],
    ['a set without policies', [set('empty', 'default')], []],
    ['a set that does not exist', [set('gone', 'default')], [set('gone', 'default')]],
  ];
  for (const [name, input, expected] of cases) {
    it(`takes ${name}`, () => {
      assert.deepEqual(canonical(...input), expected);
      assert.deepEqual(canonical(...canonical(...input)), expected, 'canonical names stay');
    });
  }

  it('refuses sets that expand to too many dependencies', () => {
    const many = Array.from({ length: MAX_DEPENDENCIES / 2 }, () => set('foo', 'default'));
    assert.equal(canonical(...many).length, MAX_DEPENDENCIES);
    assert.throws(() => canonical(...many, dependency('one')), { code: 'too-many-dependencies' });
  });
});

describe('policySetsOf', () => {
  const sets = (...keys: readonly string[]) =>
    keys.map((key) => ({ namespace: key.split('/')[0], name: key.split('/')[1] }));
  const cases: readonly (readonly [string, readonly Dependency[], ReturnType<typeof sets>])[] = [
    ['no dependencies', [], []],
    ['a set', [set('foo', 'default')], sets('default/foo')],
    ['a set that needs a violation', [set('foo', 'default', 'NonCompliant')], sets('default/foo')],
    ['sets of both lists', [set('foo', 'default'), set('bar', 'default')], sets('default/foo', 'default/bar')],
    ['a policy', [dependency('mypolicy', 'Compliant', { namespace: 'mynamespace' })], []],
    ['a set beside a policy', [set('foo', 'default'), dependency('mypolicy')], sets('default/foo')],
    ['a set without a namespace', [set('foo', '')], sets('testns/foo')],
    ['a set twice', [set('foo', ''), set('foo', 'testns', 'NonCompliant')], sets('testns/foo')],
  ];
  for (const [name, input, expected] of cases) {
    it(`finds the PolicySets of ${name}`, () => {
      assert.deepEqual(policySetsOf(input, 'testns'), expected);
    });
  }
});

describe('the namespace of a requirement', () => {
  const cases: readonly (readonly [string, string, string, string])[] = [
    ['v1beta1', 'OperatorPolicy', '', CLUSTER],
    ['v1beta1', 'OperatorPolicy', 'something', CLUSTER],
    ['v1', 'ConfigurationPolicy', '', CLUSTER],
    ['v1', 'ConfigurationPolicy', 'something', CLUSTER],
    ['v1', 'PolicySet', 'something', 'something'],
  ];
  for (const [version, kind, namespace, expected] of cases) {
    it(`of kind ${kind} in '${namespace}' is ${expected}`, () => {
      const written = dependency('a', 'Compliant', { apiVersion: `${GOVERNANCE_GROUP}/${version}`, kind, namespace });
      assert.equal(requirementOf(written, CLUSTER).namespace, expected);
    });
  }

  it('of other groups is the written one', () => {
    const written = dependency('a', 'Compliant', { apiVersion: 'example.com/v1', kind: 'APolicy', namespace: 'ns' });
    assert.equal(requirementOf(written, CLUSTER).namespace, 'ns');
  });
});

describe('readDependencies', () => {
  it('keeps what is malformed, with empty fields', () => {
    const empty = { apiVersion: '', kind: '', name: '', namespace: '', compliance: '' };
    assert.deepEqual(readDependencies([null, 7, { name: 'a', compliance: {} }]), [
      empty,
      empty,
      { ...empty, name: 'a' },
    ]);
    assert.deepEqual(readDependencies('a'), []);
    assert.deepEqual(readDependencies(undefined), []);
  });
});
