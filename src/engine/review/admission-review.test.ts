import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseAdmissionReview, parseRawReview } from './admission-review.ts';
import { MAX_REVIEW_BYTES } from '../definition/limits.ts';
import { ReviewError } from './review-body.ts';
import type { JsonObject } from '../values/json-text.ts';
import { bytes, podReview } from '../testing/reviews.ts';

function failureOf(body: Uint8Array, parse: (body: Uint8Array) => unknown = parseAdmissionReview): ReviewError {
  try {
    parse(body);
  } catch (error) {
    assert.ok(error instanceof ReviewError, String(error));
    return error;
  }
  return assert.fail('expected the body to be refused');
}

test('a review gives its facts and the request as text, with only the fields that Kubewarden passes on', () => {
  const review = podReview({ unknown: { a: 1 }, subResource: null });
  const { uid, requestJson, object, admission } = parseAdmissionReview(bytes(review));
  const request = review.request as JsonObject;
  const { unknown: _unknown, subResource: _subResource, oldObject: _oldObject, ...kept } = request;
  assert.deepEqual(JSON.parse(String(requestJson)), kept);
  assert.equal(uid, request.uid);
  assert.deepEqual(object, request.object);
  assert.deepEqual(admission, {
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    namespace: 'default',
  });
});

test('a request with only kept fields is passed on byte for byte', () => {
  const { oldObject: _oldObject, ...request } = podReview().request as JsonObject;
  const text = JSON.stringify(request, undefined, 2).replace('"a"', '"\\u0061é💥", "n": 1.0e2');
  const { requestJson } = parseAdmissionReview(
    bytes(`{"apiVersion":"admission.k8s.io/v1","request":${text},"kind":"AdmissionReview"}`),
  );
  assert.equal(String(requestJson).trim(), text);
});

test('the kind is that of the client’s request', () => {
  const requestKind = { group: 'apps', version: 'v1', kind: 'Deployment' };
  assert.deepEqual(parseAdmissionReview(bytes(podReview({ requestKind }))).admission?.kind, requestKind);
  assert.equal(parseAdmissionReview(bytes(podReview({ requestKind: null }))).admission?.kind.kind, 'Pod');
});

test('a DELETE has no object to compare with', () => {
  const { object, requestJson } = parseAdmissionReview(
    bytes(podReview({ operation: 'DELETE', object: null, oldObject: {} })),
  );
  assert.equal(object, undefined);
  assert.equal(Object.hasOwn(JSON.parse(String(requestJson)) as object, 'object'), false);
});

test('guests and engine read repeated and escaped keys alike', () => {
  const request = JSON.stringify(podReview().request).slice(1, -1);
  for (const text of [
    `{"request":{${request},"namespace":"other"}}`,
    `{"request":{"namesp\\u0061ce":"first",${request},"n\\u0061mespace":"other"}}`,
    `{"request":{"uid":"x"},"request":{${request},"namespace":"other"}}`,
    `{"request":{${request},"namespace":"first"},"req\\u0075est":{${request},"namespace":"other"}}`,
  ]) {
    const { requestJson, admission } = parseAdmissionReview(bytes(text));
    assert.equal(admission?.namespace, 'other', text);
    assert.equal((JSON.parse(String(requestJson)) as JsonObject).namespace, 'other');
    assert.equal(String(requestJson).match(/"namespace"/g)?.length, 1);
  }
});

for (const [name, body, code, message] of [
  ['empty', '', 'review-malformed', /the body is empty/],
  ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'review-malformed', /not UTF-8/],
  ['not JSON', '{"request": {,}}', 'review-malformed', /not JSON: unexpected "," at line 1, column 14/],
  ['cut off', '{"request":\n{"uid":"secret', 'review-malformed', /not JSON: unexpected "\\"" at line 2, column 8/],
  ['JSON with something behind it', '{} x', 'review-malformed', /unexpected "x" at line 1, column 4/],
  ['a list', '[]', 'review-wrong-shape', /expected an object, got a list/],
  ['null', 'null', 'review-wrong-shape', /got null/],
  [
    'without a request',
    { kind: 'AdmissionReview' },
    'review-wrong-shape',
    /expected request to be an object, got nothing/,
  ],
  [
    'of another kind',
    { ...podReview(), kind: 'Pod' },
    'review-wrong-shape',
    /expected kind to be "AdmissionReview", got "Pod"/,
  ],
  [
    'of another version',
    { ...podReview(), apiVersion: 'admission.k8s.io/v1beta1' },
    'review-wrong-shape',
    /expected apiVersion/,
  ],
  ['without a uid', podReview({ uid: null }), 'review-wrong-shape', /expected request\.uid to be a value, got null/],
  [
    'with a number as uid',
    podReview({ uid: 5 }),
    'review-wrong-shape',
    /expected request\.uid to be text, got a value of type number/,
  ],
  ['without a kind', podReview({ kind: null }), 'review-wrong-shape', /request\.kind/],
  [
    'with an incomplete kind',
    podReview({ kind: { group: '', kind: 'Pod' } }),
    'review-wrong-shape',
    /texts group, version and kind/,
  ],
  [
    'with an incomplete resource',
    podReview({ requestResource: {} }),
    'review-wrong-shape',
    /request\.requestResource.*version and resource/,
  ],
  ['without an operation', podReview({ operation: null }), 'review-wrong-shape', /request\.operation/],
  ['without a user', podReview({ userInfo: null }), 'review-wrong-shape', /request\.userInfo/],
  [
    'with a list as object',
    podReview({ object: [] }),
    'review-wrong-shape',
    /expected request\.object to be an object, got a list/,
  ],
  [
    'with text as dryRun',
    podReview({ dryRun: 'yes' }),
    'review-wrong-shape',
    /expected request\.dryRun to be true or false, got "yes"/,
  ],
] as const) {
  test(`a body that is ${name} is refused: ${code}`, () => {
    const error = failureOf(body instanceof Uint8Array ? body : bytes(body));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.ok(!error.message.includes('secret'), 'the message does not quote the body');
  });
}

test('a body over the limit is refused', () => {
  assert.equal(failureOf(new Uint8Array(MAX_REVIEW_BYTES + 1)).code, 'review-too-large');
});

test('nesting 100,000 deep is refused with 422 at any place', () => {
  const tower = '['.repeat(100_000) + ']'.repeat(100_000);
  for (const text of [
    tower,
    `{"a":${tower}}`,
    `{"request":${tower}}`,
    `{"request":{"object":{"a":${tower}}}}`,
    `  {"a":1,"request":{"object":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}}`,
    '{"request":{"object":'.repeat(100_000),
    '['.repeat(MAX_REVIEW_BYTES),
  ]) {
    assert.equal(failureOf(bytes(text)).code, 'nested-too-deep', text.slice(0, 40));
    assert.equal(failureOf(bytes(text), parseRawReview).code, 'nested-too-deep');
  }
  const fine = podReview({ object: JSON.parse(`{"a":${'['.repeat(900)}${']'.repeat(900)}}`) as JsonObject });
  assert.equal(parseAdmissionReview(bytes(fine)).uid, (fine.request as JsonObject).uid);
});

for (const request of [{ uid: 'x', a: [1] }, {}, [], 'text', 5, null, true]) {
  test(`a raw request may be ${JSON.stringify(request)}`, () => {
    const review = parseRawReview(bytes({ other: { request: 1 }, request }));
    assert.deepEqual(JSON.parse(String(review.requestJson)), request);
    assert.deepEqual(review.object, request);
    assert.equal(review.admission, undefined);
    assert.equal(review.uid, typeof request === 'object' && request !== null && 'uid' in request ? 'x' : '');
  });
}

test('a raw body needs a request', () => {
  assert.match(failureOf(bytes({}), parseRawReview).message, /expected request to be a value, got nothing/);
});

test('any JSON as request reaches guests unchanged', () => {
  const space = fc.constantFrom('', ' ', '\n\t');
  fc.assert(
    fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue()), space, (request, others, gap) => {
      const text = JSON.stringify({ ...others, request, z: 1 }, undefined, gap);
      const review = parseRawReview(bytes(text));
      assert.deepEqual(JSON.parse(String(review.requestJson)), JSON.parse(JSON.stringify(request)));
    }),
    { numRuns: 300 },
  );
});

test('guests get exactly the kept fields of any review', () => {
  const field = fc.constantFrom(
    'name',
    'namespace',
    'subResource',
    'requestSubResource',
    'object',
    'oldObject',
    'options',
    'extra',
    '',
    'ключ',
  );
  const value = (name: string): fc.Arbitrary<unknown> =>
    name.toLowerCase().includes('object') || name === 'options'
      ? fc.option(fc.dictionary(fc.string(), fc.jsonValue()))
      : fc.option(fc.string());
  const fields = fc
    .uniqueArray(field)
    .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, value(name)]))));
  fc.assert(
    fc.property(fields, fc.constantFrom(undefined, 1), (extra, indent) => {
      const review = podReview(extra as JsonObject);
      const { requestJson } = parseAdmissionReview(bytes(JSON.stringify(review, undefined, indent)));
      const kept = Object.entries(review.request as JsonObject).filter(
        ([name, content]) => content !== null && !['extra', '', 'ключ'].includes(name),
      );
      assert.deepEqual(JSON.parse(String(requestJson)), JSON.parse(JSON.stringify(Object.fromEntries(kept))));
    }),
    { numRuns: 300 },
  );
});

test('the parsers throw only ReviewError for any body', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"request"',
    '"uid"',
    '"x"',
    '"',
    '\\',
    'null',
    '1',
    ' ',
    'é',
  );
  const soup = fc.array(token, { maxLength: 20 }).map((tokens) => bytes(tokens.join('')));
  const cut = fc.tuple(fc.nat(800), fc.nat(800)).map(([from, to]) => {
    const text = JSON.stringify(podReview());
    return bytes(text.slice(0, from) + text.slice(to));
  });
  fc.assert(
    fc.property(fc.oneof(soup, cut, fc.uint8Array(), fc.json().map(bytes)), (body) => {
      for (const parse of [parseAdmissionReview, parseRawReview]) {
        try {
          const { requestJson } = parse(body);
          JSON.parse(String(requestJson));
        } catch (error) {
          assert.ok(error instanceof ReviewError, String(error));
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test('the engine reads the same values as JSON.parse from any review', () => {
  const text = fc.oneof(fc.constantFrom('Pod', 'Pox', 'pods', 'a\\b', '"', 'é💥'), fc.string({ unit: 'binary' }));
  const [some, other] = [fc.constantFrom('v1', 'v2'), fc.constantFrom('pods', 'podx')];
  const id = fc.oneof(
    fc.record({ group: text, version: text, kind: text, resource: text }),
    fc.record({ group: some, version: some, kind: other, resource: other }),
  );
  const review = fc.record({
    uid: text,
    namespace: text,
    operation: text,
    subResource: text,
    requestKind: id,
    kind: id,
  });
  const resources = fc.record({ resource: id, requestResource: fc.option(id) });
  fc.assert(
    fc.property(review, resources, fc.boolean(), (facts, ids, hasEscapes) => {
      const written = JSON.stringify(podReview({ ...facts, ...ids, dryRun: true }));
      const body = hasEscapes ? written.replaceAll('o', String.raw`\u006f`) : written;
      const { uid, admission, target } = parseAdmissionReview(bytes(body));
      const { group, version } = facts.requestKind;
      assert.equal(uid, facts.uid);
      assert.deepEqual(admission?.kind, { group, version, kind: facts.requestKind.kind });
      assert.deepEqual([admission?.namespace, admission?.operation], [facts.namespace, facts.operation]);
      const named = ({ kind: _kind, ...rest }: typeof facts.kind): object => rest;
      assert.deepEqual(target?.resource, named(ids.resource));
      assert.deepEqual(target?.requestResource, named(ids.requestResource ?? ids.resource));
      assert.equal(target?.subresource, facts.subResource);
    }),
    { numRuns: 500 },
  );
});
