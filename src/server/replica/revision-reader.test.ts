import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePolicies } from '../../engine/index.ts';
import { EvaluationError } from '../../evaluation/index.ts';
import type { Declared } from '../../evaluation/index.ts';
import { MAX_BATCH_LENGTH, RevisionReader, type RevisionReaderOptions } from './revision-reader.ts';

const spec = (rest: object = {}): object => ({
  module: 'builtin:cel',
  settings: {},
  mutating: false,
  rules: [],
  ...rest,
});

function setUp(
  fails: (text: string) => Error | undefined = () => undefined,
  options: RevisionReaderOptions = {},
): {
  reader: RevisionReader;
  texts: string[];
} {
  const texts: string[] = [];
  const parse = async (text: string, name: string): Promise<Declared> => {
    texts.push(text);
    const error = fails(text);
    if (error !== undefined) {
      throw error;
    }
    const { policies, problems } = parsePolicies(text, name);
    return { policies: policies.map((definition) => ({ definition, hash: 'h', settingsHash: 's' })), problems };
  };
  return { reader: new RevisionReader(parse, options), texts };
}

describe('specs', () => {
  it('are read together, in order, and each id once in a text', async () => {
    const { reader, texts } = setUp();
    const read = await reader.read([
      { id: 'a', spec: spec() },
      { id: 'b', spec: spec({ mode: 'monitor' }) },
      { id: 'a', spec: spec({ message: 'second' }) },
    ]);
    assert.deepEqual(
      read.map(
        (policy) => 'definition' in policy && [policy.definition.id, policy.definition.mode, policy.definition.message],
      ),
      [
        ['a', 'protect', undefined],
        ['b', 'monitor', undefined],
        ['a', 'protect', 'second'],
      ],
    );
    assert.equal(texts.length, 2);
  });

  it('of policies of a namespace may use what the policy server allows them', async () => {
    const { reader } = setUp(undefined, { namespacedPoliciesCapabilities: ['net/*'] });
    const ids = ['kw.cap.a', 'kw.capg.a', 'kw.ap.shop.a', 'kw.apg.shop.a'];
    const group = { expression: 'm()', message: 'no', policies: { m: { module: 'builtin:cel', settings: {} } } };
    const read = await reader.read(ids.map((id) => ({ id, spec: spec(id.includes('pg.') ? group : {}) })));
    const capabilities = read.map((policy) => {
      assert.ok('definition' in policy, JSON.stringify(policy));
      const { definition } = policy;
      return (definition.kind === 'group' ? definition.members[0] : definition)?.hostCapabilities;
    });
    assert.deepEqual(capabilities, [['*'], ['*'], ['net/*'], ['net/*']]);
  });

  it('that are wrong fail alone, without places in a text that nobody knows', async () => {
    const { reader } = setUp();
    const read = await reader.read([
      { id: 'a', spec: spec({ settings: 'text' }) },
      { id: 'b', spec: null },
      { id: 'c', spec: { policies: null } },
      { id: '__proto__', spec: spec() },
      { id: 'd', spec: spec() },
    ]);
    assert.deepEqual(
      read.map((policy) => 'problem' in policy),
      [true, true, true, false, false],
    );
    const [first] = read;
    assert.ok(first !== undefined && 'problem' in first);
    assert.match(first.problem, /^settings: expected a mapping/);
    assert.equal(first.isTransient, false);
  });

  it('that no parser survives fail alone', async () => {
    const { reader } = setUp((text) => (text.includes('poison') ? new Error('too deep') : undefined));
    const read = await reader.read([
      { id: 'a', spec: spec() },
      { id: 'b', spec: spec({ message: 'poison' }) },
      { id: 'c', spec: spec() },
    ]);
    assert.deepEqual(
      read.map((policy) => ('problem' in policy ? policy.problem : 'read')),
      ['read', 'too deep', 'read'],
    );
  });

  it('are tried again when the thread ended that read them', async () => {
    const { reader } = setUp(() => new EvaluationError('thread-ended', 'the loader ended'));
    assert.deepEqual(await reader.read([{ id: 'a', spec: spec() }]), [
      { problem: 'the loader ended', isTransient: true },
    ]);
  });

  it('that are large are not read together', async () => {
    const { reader, texts } = setUp();
    const message = 'x'.repeat(MAX_BATCH_LENGTH * 0.6);
    await reader.read(['a', 'b', 'c'].map((id) => ({ id, spec: spec({ message }) })));
    assert.equal(texts.length, 3);
  });
});
