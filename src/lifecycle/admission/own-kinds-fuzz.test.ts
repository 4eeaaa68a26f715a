import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseReview } from './own-kinds-review.ts';
import { randomNumbers } from './testing/own-kinds-objects.ts';
import { group, validated, type Kind, KINDS, object, review, server, SPEC } from './testing/validation-cases.ts';

describe('random documents', () => {
  it('are validated without throwing', () => {
    const random = randomNumbers(7);
    for (let round = 0; round < 1500; round += 1) {
      const kinds = Object.keys(KINDS) as Kind[];
      const kind = kinds[Math.floor(random() * kinds.length)] ?? 'cap';
      const base = kind === 'ps' ? server({}) : kind === 'capg' || kind === 'apg' ? group('first()') : SPEC;
      const spec = mutated(base, random) as object;
      const next = mutated(object(kind, spec), random);
      const old = random() < 0.3 ? mutated(object(kind, base), random) : undefined;
      const { group: name, ...request } = review(kind, {});
      const body = { ...request, kind: { group: name, kind: request.kind }, object: next, oldObject: old };
      const parsed = parseReview(Buffer.from(JSON.stringify({ request: body })));
      const { errors, warnings } = validated(parsed);
      assert.ok(
        [...errors, ...warnings].every((text) => !text.endsWith('?')),
        JSON.stringify([next, errors, warnings]),
      );
    }
  });
});

/** A copy with some parts replaced. */
function mutated(value: unknown, random: () => number, depth = 0): unknown {
  if (random() < 0.06) {
    return STRANGE[Math.floor(random() * STRANGE.length)];
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => mutated(item, random, depth + 1));
    return random() < 0.1 ? [...items, ...items] : items;
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const entries = Object.entries(value).map(([key, item]) => [key, mutated(item, random, depth + 1)] as const);
  const name = STRANGE_NAMES[Math.floor(random() * STRANGE_NAMES.length)] ?? 'x';
  return Object.fromEntries(
    random() < 0.15 ? [...entries, [name, STRANGE[Math.floor(random() * STRANGE.length)]]] : entries,
  );
}

const STRANGE_NAMES = [
  'matchConditions',
  'objectSelector',
  'namespaceSelector',
  'sideEffects',
  '__proto__',
  'constructor',
  'annotations',
  'env',
  'limits',
  'minAvailable',
  'sourceAuthorities',
  'insecureSources',
];
const STRANGE: readonly unknown[] = [
  null,
  undefined,
  0,
  -1,
  1e300,
  '',
  '*',
  '*/*',
  '((((',
  'a'.repeat(300),
  '\u0000\uD800',
  true,
  [],
  [[]],
  ['', '*'],
  {},
  { a: { b: [null] } },
  [{ name: 'x', expression: '((' }],
  { matchExpressions: [{ key: '', operator: 'In' }], matchLabels: { '/': '/' } },
  'https://[::1',
  'file://../x',
  'builtin:',
];
