import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasPart, indexOfPart, lastIndexOfPart, positionsOf, splitAtParts } from './text-search.ts';

/** Numbers that look random, the same in each run. */
function* numbers(): Generator<number, never, undefined> {
  for (let state = 1; ;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

const random = numbers();
const below = (limit: number): number => Math.floor(random.next().value * limit);
const textOf = (length: number, letters: string): string =>
  Array.from({ length }, () => letters[below(letters.length)] ?? '').join('');

describe('a search of a text', () => {
  it('finds what that of the language finds', () => {
    for (let round = 0; round < 20_000; round++) {
      const letters = ['a', 'ab', 'abc', 'aé', '😀a'][round % 5] ?? 'a';
      const text = textOf(below(60), letters);
      const from = below(text.length);
      const part = round % 3 === 0 ? textOf(1 + below(14), letters) : text.slice(from, from + 1 + below(20));
      if (part === '') {
        continue;
      }
      const shown = JSON.stringify([text, part, from]);
      assert.equal(hasPart(text, part), text.includes(part), shown);
      assert.equal(indexOfPart(text, part, from), text.indexOf(part, from), shown);
      assert.equal(lastIndexOfPart(text, part), text.lastIndexOf(part), shown);
      assert.equal(lastIndexOfPart(text, part, from), text.lastIndexOf(part, from), shown);
      assert.deepEqual(splitAtParts(text, part), text.split(part), shown);
      const positions = Array.from({ length: text.length }, (_, at) => at).filter((at) => text.startsWith(part, at));
      assert.deepEqual([...positionsOf(text, part)], positions, shown);
    }
  });

  it('ends soon for texts that nearly match', { timeout: 60_000 }, () => {
    // Some minutes each by the search of V8.
    const near = 'a'.repeat(3_000_000);
    const part = `${'a'.repeat(400_000)}b${'a'.repeat(400_000)}`;
    assert.equal(hasPart(near, part), false);
    assert.equal(lastIndexOfPart(near, part), -1);
    assert.deepEqual(splitAtParts(near, part).length, 1);
    assert.deepEqual(splitAtParts(near, 'a'.repeat(1_000_000)), ['', '', '', '']);
  });
});
