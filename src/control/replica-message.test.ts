import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { ReplicaMessage } from './replica-protocol.ts';
import { parseReplicaMessage } from './replica-message.ts';
import { prevalidationResult } from './prevalidation-result.ts';

const REVISION = { name: 'kw.cap.a-1', uid: 'u', policy: 'kw.cap.a', revision: 1, state: 'Failed' };
const TIME = '2026-01-01T00:00:00.000Z';
const report = (revision: object): string =>
  JSON.stringify({ type: 'report', revisions: [revision], gone: [], isComplete: true });

/** Checks that a message has known fields only, of bounded size. */
function assertKnown(message: ReplicaMessage | undefined): void {
  if (message?.type === 'report') {
    for (const { name, uid, policy, reason = 'x', message: text = '' } of message.revisions) {
      assert.ok([name, uid, policy, reason].every((one) => typeof one === 'string' && one !== '' && one.length <= 512));
      assert.ok(text.length <= MAX_REPORT_TEXT);
    }
  }
}

describe('parseReplicaMessage', () => {
  it('parses messages of replicas', () => {
    const messages: ReplicaMessage[] = [
      { type: 'hello', protocol: 1, replica: 'r', instance: 'i', version: '1.0.0' },
      {
        type: 'report',
        revisions: [
          { ...REVISION, state: 'Failed', reason: 'FetchFailed', message: 'no', nextRetry: '2030-01-01T00:00:00.000Z' },
          { ...REVISION, state: 'Serving', answers: 'Verdict', order: 7 },
          { ...REVISION, state: 'Serving', monitored: { since: TIME, count: 12, last: [{ time: TIME, name: 'web' }] } },
        ],
        gone: ['b'],
        isComplete: false,
      },
      { type: 'exceptions', uses: [{ uid: 'u', since: TIME, count: 3, last: TIME }] },
      { type: 'alive' },
      { type: 'alive', time: TIME },
    ];
    assert.deepEqual(
      messages.map((message) => parseReplicaMessage(JSON.stringify(message))),
      messages,
    );
  });

  it('ignores unknown types and fields', () => {
    assert.equal(parseReplicaMessage('{"type":"later"}'), undefined);
    const read = parseReplicaMessage(
      report({ ...REVISION, more: 1, answers: 'Later', nextRetry: 'soon', __proto__: { a: 1 } }),
    );
    assert.deepEqual(read?.type === 'report' && read.revisions, [REVISION]);
  });

  it('cuts long messages', () => {
    const read = parseReplicaMessage(report({ ...REVISION, message: 'x'.repeat(10_000) }));
    assert.equal(read?.type === 'report' && read.revisions[0]?.message?.length, MAX_REPORT_TEXT);
  });

  it('bounds what monitor mode would have rejected', () => {
    const long = 'x'.repeat(10_000);
    const request = { time: TIME, operation: long, kind: long, namespace: long, name: long, user: long, message: long };
    const last = Array.from({ length: 100 }, () => ({ ...request, object: { secret: 1 } }));
    const read = parseReplicaMessage(report({ ...REVISION, monitored: { since: TIME, count: 100, last } }));
    const { last: kept = [] } = (read?.type === 'report' && read.revisions[0]?.monitored) || {};
    assert.equal(kept.length, 10);
    for (const one of kept) {
      assert.deepEqual(Object.keys(one), Object.keys(request));
      assert.ok(Object.values(one).every((text) => text.length <= 256));
    }
  });

  const use = (rest: object): string =>
    JSON.stringify({ type: 'exceptions', uses: [{ uid: 'u', since: TIME, count: 1, last: TIME, ...rest }] });
  const wrong: readonly [string, RegExp][] = [
    ['{"type":"alive","time":"soon"}', /expected time: a time/],
    ['{"type":"exceptions"}', /expected uses: a list, got nothing/],
    [use({ uid: 'x'.repeat(65) }), /expected uid: a text of 1 to 64 characters/],
    [use({ count: 1.5 }), /expected count: a whole number/],
    [use({ last: 'soon' }), /expected last: a time/],
    [report({ ...REVISION, monitored: 7 }), /expected monitored: an object, got 7/],
    [report({ ...REVISION, monitored: { since: 'soon', count: 1, last: [] } }), /expected since: a time .* got "soon"/],
    [report({ ...REVISION, monitored: { since: TIME, count: -1, last: [] } }), /expected count: a whole number/],
    [report({ ...REVISION, monitored: { since: TIME, count: 1, last: [{ time: TIME, name: 1 }] } }), /name: a text/],
    ['', /expected a line of JSON, got ""/],
    ['null', /expected a JSON object, got null/],
    ['{}', /expected type/],
    ['{"__proto__":{"type":"alive"}}', /expected type/],
    ['{"type":"hello","protocol":"1"}', /expected protocol: a whole number .* got "1"/],
    ['{"type":"report","revisions":{},"gone":[]}', /expected revisions: a list, got an object/],
    ['{"type":"report","revisions":[],"gone":[1],"isComplete":true}', /expected gone: names, got 1/],
    ['{"type":"report","revisions":[],"gone":[]}', /expected isComplete: true or false, got nothing/],
    [report({ ...REVISION, name: '' }), /expected name/],
    [report({ ...REVISION, policy: 'x'.repeat(600) }), /expected policy: a text of 1 to 512 characters/],
    [report({ ...REVISION, revision: 1.5 }), /expected revision/],
    [report({ ...REVISION, state: 'constructor' }), /expected state/],
    [report({ ...REVISION, reason: 'two words' }), /expected reason: one word, got "two words"/],
    [report({ ...REVISION, message: 1 }), /expected message: a text, got 1/],
  ];
  for (const [line, message] of wrong) {
    it(`rejects ${line.slice(0, 60) || 'an empty line'}`, () => {
      assert.throws(() => parseReplicaMessage(line), { name: 'TypeError', message });
    });
  }

  it('returns a valid message or rejects, for any input', () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('report', 'hello', 'alive', 1, true, [], 'Serving', 'x', [REVISION]),
    );
    const keys = fc.constantFrom('type', 'revisions', 'gone', 'isComplete', 'name', 'state', 'protocol', '__proto__');
    const revision = fc.dictionary(fc.constantFrom(...Object.keys(REVISION), 'reason', 'message', 'nextRetry'), value);
    const line = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.dictionary(keys, value).map((one) => JSON.stringify({ type: 'report', ...one })),
      revision.map((one) => report({ ...REVISION, ...one })),
    );
    fc.assert(
      fc.property(line, (text) => {
        try {
          assertKnown(parseReplicaMessage(text));
        } catch (error) {
          assert.ok(error instanceof TypeError && error.message.length < 300, String(error));
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** Values that other programs than ours send: of wrong types, too large, and with names of inherited properties. */
const HOSTILE: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, -1, 0, 1, 1.5, 2 ** 53, 1e308, '', 'Serving', TIME, 'x'.repeat(5_000)),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 12 }),
    fc.dictionary(
      fc.constantFrom(
        '__proto__',
        'constructor',
        'toString',
        'name',
        'since',
        'count',
        'tried',
        'last',
        'first',
        'time',
      ),
      tie('value'),
      { noNullPrototype: true },
    ),
  ),
})).value;

/** Checks that a parsed value has known fields, safe numbers, and texts and lists of bounded size. */
function assertBounded(value: unknown, known: ReadonlySet<string>): void {
  if (typeof value === 'string') {
    assert.ok(value.length <= 8_192 && value.isWellFormed());
  } else if (typeof value === 'number') {
    assert.ok(Number.isSafeInteger(value));
  } else if (Array.isArray(value)) {
    for (const one of value) {
      assertBounded(one, known);
    }
  } else if (typeof value === 'object' && value !== null) {
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    for (const [field, one] of Object.entries(value)) {
      assert.ok(known.has(field), field);
      assertBounded(one, known);
    }
  }
}

describe('what a compromised replica sends', () => {
  const fields = [...Object.keys(REVISION), 'order', 'reason', 'message', 'nextRetry', 'refused', 'monitored'];
  const others =
    'type revisions gone isComplete since count tried last first time operation kind namespace user ' +
    'ok modules module digest manifest verifiedBy warnings isTransient';
  const known = new Set([...fields, ...others.split(' ')]);
  const parsed = (parse: () => unknown): unknown => {
    try {
      return parse();
    } catch (error) {
      assert.ok(error instanceof TypeError && error.message.length < 300, String(error));
      return undefined;
    }
  };
  const last = fc.array(fc.record({ time: fc.constant(TIME), name: HOSTILE, message: HOSTILE, other: HOSTILE }));
  const monitored = fc.record({ since: fc.constant(TIME), count: fc.constantFrom(1, 2 ** 53 - 1, 2 ** 53), last });
  const first = fc.array(fc.record({ namespace: HOSTILE, message: HOSTILE }));
  const refused = fc.record({ count: fc.constantFrom(1, 1e300), tried: fc.constant(1), first });

  it('is a report of known fields and bounded size, or is rejected', () => {
    const changes = fc.oneof(
      fc.record({ monitored, refused }, { requiredKeys: [] }),
      fc.dictionary(fc.constantFrom(...fields), HOSTILE, { maxKeys: 2 }),
    );
    fc.assert(
      fc.property(changes, (change) => {
        assertBounded(
          parsed(() => parseReplicaMessage(report({ ...REVISION, ...change }))),
          known,
        );
      }),
      { numRuns: 300 },
    );
    assert.deepEqual(Object.keys(Object.prototype), []);
  });

  it('is a result of pre-validation of known fields and bounded size, or is rejected', () => {
    const module = { name: 'p', module: 'builtin:cel', digest: 'builtin:cel@1' };
    const modules = fc.array(
      fc.dictionary(fc.constantFrom(...Object.keys(module), 'manifest', '__proto__'), HOSTILE, { maxKeys: 1 }),
    );
    const result = fc.oneof(
      fc.record({ ok: fc.boolean(), modules: HOSTILE, reason: HOSTILE, message: HOSTILE, isTransient: HOSTILE }),
      fc.record({ ok: fc.constant(true), warnings: fc.array(HOSTILE), modules: fc.constant([module]) }),
      modules.map((changes) => ({ ok: true, modules: changes.map((one) => ({ ...module, ...one })) })),
    );
    fc.assert(
      fc.property(result, (one) => {
        assertBounded(
          parsed(() => prevalidationResult(JSON.stringify(one))),
          known,
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe('prevalidationResult', () => {
  const digest = `sha256:${'0'.repeat(64)}`;

  it('parses results', () => {
    const plain = { name: 'p', module: 'registry://m', digest };
    const good = { ok: true, modules: [plain, { ...plain, manifest: digest, verifiedBy: digest }] };
    const bad = { ok: false, reason: 'FetchFailed', message: 'no', isTransient: true };
    assert.deepEqual(prevalidationResult(JSON.stringify(good)), good);
    const warned = { ...good, warnings: ['the module changes objects'] };
    assert.deepEqual(prevalidationResult(JSON.stringify(warned)), warned);
    const many = prevalidationResult(
      JSON.stringify({ ...good, warnings: Array.from({ length: 99 }, () => 'x'.repeat(9_999)) }),
    );
    assert.deepEqual(
      many.ok && many.warnings,
      Array.from({ length: 8 }, () => 'x'.repeat(500)),
    );
    assert.deepEqual(prevalidationResult(JSON.stringify(bad)), bad);
  });

  for (const text of [
    'x',
    '[]',
    '{"ok":true}',
    '{"ok":true,"modules":[{"name":"p","module":"m","digest":"sha256:1"}]}',
    `{"ok":true,"modules":[{"name":"p","digest":"${digest}"}]}`,
    `{"ok":true,"modules":[{"name":"p","module":"m","digest":"${digest}","verifiedBy":"yes"}]}`,
    '{"ok":true,"modules":[],"warnings":[1]}',
    '{"ok":false,"reason":"a b","isTransient":true}',
    '{"ok":false,"reason":"FetchFailed"}',
  ]) {
    it(`rejects ${text}`, () => {
      assert.throws(() => prevalidationResult(text), TypeError);
    });
  }
});
