import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faultText, readPolicyDefinition } from '../../engine/index.ts';
import { EvaluationError } from '../../evaluation/index.ts';
import type { UnreadPolicy, ReadPolicy } from '../../evaluation/index.ts';
import { MAX_BATCH, RevisionReader, type RevisionReaderOptions } from './revision-reader.ts';

const spec = (rest: object = {}): object => ({
  module: 'builtin:cel',
  settings: {},
  mutating: false,
  rules: [],
  ...rest,
});

function setUp(
  fails: (entries: readonly UnreadPolicy[]) => Error | undefined = () => undefined,
  options: RevisionReaderOptions = {},
): {
  reader: RevisionReader;
  batches: (readonly UnreadPolicy[])[];
} {
  const batches: (readonly UnreadPolicy[])[] = [];
  const read = async (entries: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]> => {
    batches.push(entries);
    const error = fails(entries);
    if (error !== undefined) {
      throw error;
    }
    return structuredClone(entries).map(({ id, spec: source }) => {
      const { definition, faults = [] } = readPolicyDefinition(id, source);
      return definition === undefined
        ? { id, problems: faults.map(faultText) }
        : { definition, hash: 'h', settingsHash: 's' };
    });
  };
  return { reader: new RevisionReader(read, options), batches };
}

describe('specs', () => {
  it('are read together and in order', async () => {
    const { reader, batches } = setUp();
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
    assert.equal(batches.length, 1);
  });

  it('of policies of a namespace may use the host capabilities that the policy server allows', async () => {
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

  it('of policies of a namespace may use no host capabilities by default', async () => {
    const [policy] = await setUp().reader.read([{ id: 'kw.ap.shop.a', spec: spec() }]);
    assert.ok(policy !== undefined && 'definition' in policy && policy.definition.kind === 'policy');
    assert.deepEqual(policy.definition.hostCapabilities, []);
  });

  it('that are wrong fail alone', async () => {
    const { reader } = setUp();
    const read = await reader.read([
      { id: 'a', spec: spec({ settings: 'text' }) },
      { id: 'b', spec: null },
      { id: 'c', spec: { policies: null } },
      { id: 'list', spec: [] },
      { id: '__proto__', spec: spec() },
      { id: 'd', spec: spec() },
    ]);
    assert.deepEqual(
      read.map((policy) => 'problems' in policy),
      [true, true, true, true, false, false],
    );
    assert.deepEqual(read[0], { id: 'a', problems: ['settings: expected a mapping, got "text"'] });
    const problem =
      "the policy's spec cannot be read: expected a mapping with a module, or with policies that have one";
    assert.deepEqual(
      read.slice(1, 4),
      ['b', 'c', 'list'].map((id) => ({ id, problems: [problem], isTransient: false })),
    );
  });

  it('that are nested too deeply to be sent to a thread fail alone', async () => {
    const { reader } = setUp();
    const settings: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    const read = await reader.read([
      { id: 'a', spec: spec() },
      { id: 'b', spec: spec({ settings }) },
    ]);
    assert.deepEqual(
      read.map((policy) => ('problems' in policy ? policy.problems.join('; ') : 'read')),
      ['read', "the policy's spec cannot be read: it is nested too deeply"],
    );
  });

  it('that end the thread that reads them fail alone', async () => {
    const { reader } = setUp((entries) =>
      JSON.stringify(entries).includes('poison') ? new Error('the loader ended') : undefined,
    );
    const read = await reader.read([
      { id: 'a', spec: spec() },
      { id: 'b', spec: spec({ message: 'poison' }) },
      { id: 'c', spec: spec() },
    ]);
    assert.deepEqual(
      read.map((policy) => ('problems' in policy ? policy.problems.join('; ') : 'read')),
      ['read', 'the loader ended', 'read'],
    );
  });

  it('are retried when the reading thread ended', async () => {
    const { reader } = setUp(() => new EvaluationError('thread-ended', 'the loader ended'));
    assert.deepEqual(await reader.read([{ id: 'a', spec: spec() }]), [
      { id: 'a', problems: ['the loader ended'], isTransient: true },
    ]);
  });

  it('are sent in batches, one per turn of the event loop', async () => {
    const { reader, batches } = setUp();
    const ids = Array.from({ length: 2 * MAX_BATCH + 1 }, (_, index) => `p${index}`);
    const reading = reader.read(ids.map((id) => ({ id, spec: spec() })));
    await new Promise((resolve) => process.nextTick(resolve));
    assert.equal(batches.length, 1);
    const read = await reading;
    assert.deepEqual(
      batches.map(({ length }) => length),
      [MAX_BATCH, MAX_BATCH, 1],
    );
    assert.deepEqual(
      read.map((policy) => 'definition' in policy && policy.definition.id),
      ids,
    );
  });
});
