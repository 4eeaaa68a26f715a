import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from './line-splitter.ts';

describe('LineSplitter', () => {
  it('returns the same lines for any chunks', () => {
    const lines = fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' ')));
    fc.assert(
      fc.property(lines, fc.array(fc.nat({ max: 12 })), (texts, sizes) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
        const splitter = new LineSplitter();
        const got: string[] = [];
        let start = 0;
        for (const size of sizes) {
          got.push(...splitter.push(bytes.subarray(start, start + size)));
          start = Math.min(bytes.length, start + size);
        }
        got.push(...splitter.push(bytes.subarray(start)));
        assert.deepEqual(
          got,
          texts.filter((text) => text !== ''),
        );
        assert.equal(splitter.pendingBytes, 0);
      }),
    );
  });

  it('keeps an incomplete line', () => {
    const splitter = new LineSplitter();
    assert.deepEqual(splitter.push(Buffer.from('one\ntw')), ['one']);
    assert.equal(splitter.pendingBytes, 2);
    assert.deepEqual(splitter.push(Buffer.from('o\n')), ['two']);
  });

  it('rejects lines over the limit in any chunks', () => {
    assert.throws(() => new LineSplitter(4).push(Buffer.from('12345\n')), RangeError);
    const splitter = new LineSplitter(4);
    splitter.push(Buffer.from('123'));
    assert.throws(() => splitter.push(Buffer.from('45')), RangeError);
  });
});
