import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { EngineError } from '../values/errors.ts';
import {
  parseGatekeeperVerdict,
  parseGuestVerdict,
  parseOpaVerdict,
  parseSettingsVerdict,
  VIOLATION_WITHOUT_TEXT,
} from './guest-verdict.ts';

const NO_EXTRAS = { auditAnnotations: null, warnings: null };

test('reads a full verdict, and ignores unknown keys', () => {
  const answer = {
    accepted: false,
    message: 'no',
    code: 418,
    mutated_object: { a: 1 },
    audit_annotations: { k: 'v' },
    warnings: ['careful'],
    other: 1,
  };
  const expected = {
    accepted: false,
    message: 'no',
    code: 418,
    mutatedObject: { a: 1 },
    auditAnnotations: { k: 'v' },
    warnings: ['careful'],
  };
  assert.deepEqual(parseGuestVerdict(Buffer.from(JSON.stringify(answer))), expected);
  assert.deepEqual(parseGuestVerdict(JSON.stringify(answer)), expected);
});

test('null counts as missing', () => {
  const answer =
    '{"accepted":true,"message":null,"code":null,"mutated_object":null,"audit_annotations":null,"warnings":null}';
  assert.deepEqual(parseGuestVerdict(answer), { accepted: true, ...NO_EXTRAS });
});

for (const answer of [
  '',
  'accepted',
  'null',
  '[]',
  '{}',
  '{"accepted":"true"}',
  '{"accepted":true,"message":1}',
  '{"accepted":true,"code":"418"}',
  '{"accepted":true,"code":70000}',
  '{"accepted":true,"code":1.5}',
  '{"accepted":true,"warnings":"w"}',
  '{"accepted":true,"warnings":[1]}',
  '{"accepted":true,"audit_annotations":{"a":1}}',
  '{"accepted":true,"audit_annotations":[]}',
  `{"accepted":true,"mutated_object":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
]) {
  test(`an answer that is ${JSON.stringify(answer.slice(0, 50))} is an error of the guest`, () => {
    assert.throws(() => parseGuestVerdict(answer), { name: 'EngineError', code: 'guest-error' });
  });
}

test('an answer that is not UTF-8 is an error of the guest', () => {
  assert.throws(() => parseGuestVerdict(Buffer.from('{"accepted":true,"message":"\xff"}', 'latin1')), /expected UTF-8/);
});

test('reads a settings verdict', () => {
  assert.deepEqual(parseSettingsVerdict('{"valid":true,"message":"ignored"}'), { valid: true });
  assert.deepEqual(parseSettingsVerdict('{"valid":false,"message":"no key"}'), { valid: false, message: 'no key' });
  assert.match((parseSettingsVerdict('{"valid":false}') as { message: string }).message, /does not say why/);
  assert.throws(() => parseSettingsVerdict('{"accepted":true}'), { code: 'guest-error' });
});

test('reads an AdmissionResponse of a Rego policy in OPA mode', () => {
  const answer = (response: unknown): string => JSON.stringify([{ result: { response } }]);
  const patch = '[{"op":"remove","path":"/a"}]';
  assert.deepEqual(
    parseOpaVerdict(
      answer({
        uid: 'x',
        allowed: false,
        status: { message: 'no', code: 403 },
        patchType: 'JSONPatch',
        patch: btoa(patch),
        warnings: ['w'],
        auditAnnotations: { a: 'b' },
      }),
    ),
    { accepted: false, message: 'no', code: 403, patch, warnings: ['w'], auditAnnotations: { a: 'b' } },
  );
  assert.deepEqual(parseOpaVerdict(answer({ allowed: true })), { accepted: true, ...NO_EXTRAS });
  for (const response of [
    undefined,
    null,
    'x',
    {},
    { allowed: 1 },
    { allowed: true, patch: 'e30=' },
    { allowed: true, patch: '%' },
    { allowed: false, status: 'no' },
  ]) {
    assert.throws(() => parseOpaVerdict(answer(response)), { code: 'guest-error' }, JSON.stringify(response));
  }
});

test('an undefined result of a Rego policy is an error, never an approval', () => {
  for (const parse of [parseOpaVerdict, parseGatekeeperVerdict]) {
    for (const answer of ['[]', '[{}]', '{}', 'null', '[{"result":null}]', '[{"result":{}}]']) {
      assert.throws(() => parse(answer), { code: 'guest-error' }, answer);
    }
  }
});

test('Gatekeeper violations deny with their messages joined', () => {
  assert.deepEqual(parseGatekeeperVerdict('[{"result":[]}]'), { accepted: true, ...NO_EXTRAS });
  assert.deepEqual(parseGatekeeperVerdict('[{"result":[{"msg":"a","details":{}},{"msg":"b"}]}]'), {
    accepted: false,
    message: 'a, b',
    ...NO_EXTRAS,
  });
});

test('Gatekeeper violations whose msg is not text deny with a message that says so (Kubewarden allows them)', () => {
  for (const violation of [{ msg: 5 }, {}, null, 'text', { msg: { a: 1 } }]) {
    const verdict = parseGatekeeperVerdict(JSON.stringify([{ result: [{ msg: 'a' }, violation] }]));
    assert.deepEqual(verdict, { accepted: false, message: `a, ${VIOLATION_WITHOUT_TEXT}`, ...NO_EXTRAS });
  }
});

test('the parsers throw only EngineError for any answer', () => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (answer) => {
      for (const parse of [parseGuestVerdict, parseSettingsVerdict, parseOpaVerdict, parseGatekeeperVerdict]) {
        try {
          parse(answer);
        } catch (error) {
          assert.ok(error instanceof EngineError && error.code === 'guest-error', String(error));
        }
      }
    }),
    { numRuns: 500 },
  );
});
