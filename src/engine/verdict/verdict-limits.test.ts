import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  boundedAnswer,
  boundedText,
  boundedVerdict,
  MAX_MUTATED_OBJECT,
  MAX_VERDICT_TEXT,
  MAX_VERDICT_TEXTS,
} from './verdict-limits.ts';

const NOTHING = { auditAnnotations: null, warnings: null };
const LONG = 'x'.repeat(MAX_VERDICT_TEXT + 1);

describe('the texts of a verdict', () => {
  it('stay as they are within the limits', () => {
    const verdict = { accepted: false, message: 'no', ...NOTHING };
    assert.equal(boundedAnswer(verdict), verdict);
    const longest = { accepted: true, message: LONG.slice(1), warnings: [LONG.slice(1)], auditAnnotations: null };
    assert.deepEqual(boundedAnswer(longest), longest);
  });

  it('control no terminal, and keep line breaks', () => {
    const hostile = 'one\n\ttwo\u001b[2J\u009b31m\u202e\u0000';
    const inert = 'one\n\ttwo\ufffd[2J\ufffd31m\ufffd\ufffd';
    assert.deepEqual(
      boundedAnswer({ accepted: false, message: hostile, warnings: [hostile], auditAnnotations: { key: hostile } }),
      { accepted: false, message: inert, warnings: [inert], auditAnnotations: { key: inert } },
    );
    assert.equal(boundedText(hostile), inert);
  });

  it('are bounded together, the message first', () => {
    const causes = Array.from({ length: 64 }, (_, index) => ({
      message: LONG.slice(1),
      field: `spec.policies.m${index}`,
    }));
    const bounded = boundedVerdict({
      allowed: false,
      message: 'no',
      causes,
      warnings: ['w'],
      auditAnnotations: { a: 'b' },
    });
    assert.ok(JSON.stringify(bounded).length < MAX_VERDICT_TEXTS + 5_000);
    assert.equal(bounded.message, 'no');
    assert.deepEqual(bounded.causes?.[0], causes[0]);
    assert.deepEqual(bounded.causes?.at(-1), { message: `… and ${65 - (bounded.causes?.length ?? 0)} more` });
    assert.deepEqual(bounded.auditAnnotations, {});
  });

  it('count by number as well: many empty ones are left out', () => {
    const warnings = Array.from({ length: 1_000_000 }, () => '');
    const bounded = boundedAnswer({ accepted: true, warnings, auditAnnotations: null });
    assert.ok((bounded.warnings?.length ?? 0) < MAX_VERDICT_TEXTS / 8);
    const entries = Array.from({ length: 100_000 }, (_, index) => [`k${index}`, ''] as const);
    const annotated = boundedAnswer({ accepted: true, warnings: null, auditAnnotations: Object.fromEntries(entries) });
    assert.match(annotated.warnings?.[0] ?? '', /^… \d+ audit annotations are missing/);
  });
});

describe('the patch of a guest', () => {
  it('is not larger than an object may be', () => {
    const patch = `[{"op":"add","path":"/a","value":"${'x'.repeat(MAX_MUTATED_OBJECT)}"}]`;
    assert.throws(() => boundedAnswer({ accepted: true, patch, ...NOTHING }), /the patch of the policy is too large/);
  });
});
