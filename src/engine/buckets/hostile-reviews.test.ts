import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { bytes, podReview } from '../testing/reviews.ts';
import { ScriptedGuest } from '../testing/scripted-guest.ts';
import { createPolicy } from '../loaded-policy.ts';
import { parsePolicies } from '../definition/policies-file.ts';
import { admit } from './admit.ts';
import { readReview } from '../evaluate.ts';
import { ReviewError } from '../review/review-body.ts';
import type { PolicyTable } from './policy-table.ts';

const ROUNDS = 1_500;
const RULES = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['v1'], resources: ['*/*'], scope: '*' }];
const HOSTILE: readonly string[] = [
  'null',
  '0',
  '-1e999',
  '123456789012345678901234567890',
  '""',
  '"\\ud800"',
  '"__proto__"',
  '[]',
  '[[[[{}]]]]',
  '{}',
  '{"__proto__":{"labels":{"a":"b"}}}',
  '{"constructor":null,"metadata":null}',
  '{"metadata":{"labels":[]}}',
  '{"metadata":{"labels":{"team":{"toString":1}}}}',
  '{"metadata":[]}',
  'true',
];

/** Replaces a random value of a review, or damages its JSON. */
function damaged(text: string, random: (count: number) => number): string {
  const places = [...text.matchAll(/(?<=":)(?:"[^"]*"|null|true|false|\[\]|\{[^{}]*\})/g)];
  const place = places[random(places.length)];
  if (place === undefined || random(6) === 0) {
    const at = random(text.length);
    return text.slice(0, at) + String.fromCodePoint(random(128)) + text.slice(at + random(3));
  }
  return text.slice(0, place.index) + HOSTILE[random(HOSTILE.length)] + text.slice(place.index + place[0].length);
}

function hostileTable(): TestTable {
  const table = new TestTable();
  const spec: JsonObject = {
    rules: RULES,
    objectSelector: { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['red'] }] },
    namespaceSelector: { matchLabels: { team: 'red' } },
    matchConditions: [
      { name: 'c', expression: 'object.metadata.labels.team != "x" || request.userInfo.username.size() > 0' },
      { name: 'd', expression: '!has(oldObject.spec) || oldObject.spec.size() < 3' },
    ],
  };
  table.add({ name: 'a', spec, answer: () => ({ accepted: false, message: 'no' }) });
  table.add({ name: 'b', spec: { rules: RULES } });
  const answers: JsonValue[] = [null, 5, [], {}, { metadata: {} }, { metadata: { labels: { team: 'red' } } }];
  for (const [index, mutated_object] of answers.entries()) {
    const answer = ({ object }: JsonObject): unknown => ({
      accepted: true,
      mutated_object: index % 2 === 0 ? mutated_object : { ...(object as JsonObject), extra: mutated_object },
    });
    table.add({ name: `m${index}`, spec: { ...(index > 3 ? spec : { rules: RULES }), mutating: true }, answer });
  }
  return table;
}

test('reviews of any shape are answered without an exception', () => {
  let state = 99;
  const random = (count: number): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % count;
  };
  const table = hostileTable();
  const outcomes = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    let text = JSON.stringify(podReview({ oldObject: { metadata: { name: 'x' }, spec: {} }, subResource: 'exec' }));
    for (let damages = 1 + random(3); damages > 0; damages--) {
      text = damaged(text, random);
    }
    for (const bucket of [VALIDATING, MUTATING]) {
      const outcome = outcomeOf(table.table, bucket, bytes(text));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  }
  assert.deepEqual([...outcomes.keys()].toSorted(), ['review-malformed', 'review-wrong-shape', 'verdict']);
  assert.ok((outcomes.get('verdict') ?? 0) > ROUNDS / 4, JSON.stringify([...outcomes]));
});

/** The kind of the admission, or the code of the ReviewError. */
function outcomeOf(table: PolicyTable, bucket: string, body: Uint8Array): string {
  try {
    return admit(table, bucket, readReview('validate', body), {}).kind;
  } catch (error) {
    assert.ok(error instanceof ReviewError, String(error));
    return error.code;
  }
}

test('a patch from a guest is visible to the next policies, and one that does not apply denies', () => {
  const table = new TestTable();
  const opa = (operations: JsonValue): void => {
    const { policies } = parsePolicies(
      JSON.stringify({ 'kw.cap.a': { module: 'm.wasm', allowedToMutate: true } }),
      'policies.yml',
    );
    const guest = new ScriptedGuest(() => ({ accepted: true }), { mode: 'opa' });
    guest.validate = () => ({
      accepted: true,
      patch: JSON.stringify(operations),
      auditAnnotations: null,
      warnings: null,
    });
    const { match } = table.add({ name: 'a', spec: { mutating: true } });
    table.table.set(
      createPolicy(policies[0]!, () => guest, table.options),
      match,
    );
  };
  let seen: JsonValue | undefined;
  table.add({
    name: 'b',
    spec: { mutating: true, rules: [POD_RULE] },
    answer: ({ object }) => {
      seen = (object as JsonObject).extra;
      return { accepted: true };
    },
  });
  opa([{ op: 'add', path: '/extra', value: 1 }]);
  const { verdict } = table.evaluate(MUTATING);
  assert.deepEqual([seen, verdict.patch], [1, JSON.stringify([{ op: 'add', path: '/extra', value: 1 }])]);
  opa([{ op: 'remove', path: '/nothing/there' }]);
  assert.match(
    JSON.stringify(reasonOf(table.evaluate(MUTATING).verdict)),
    /cap\/a: internal server error: the policy made the object/,
  );
});
