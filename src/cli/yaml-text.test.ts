import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from 'js-yaml';
import { yamlText } from './yaml-text.ts';

describe('yamlText', () => {
  it('has no character that turns the direction of text, and the same value', () => {
    const value = { plain: 'a: b', '\u202Ekey': ['\u2066x\n"y"', { deep: '\u200Fz' }], ok: 'ünïcödé', none: null };
    const text = yamlText(value);
    assert.doesNotMatch(text, /\p{Bidi_Control}/u);
    assert.deepEqual(load(text), value);
    assert.match(text, /^ok: ünïcödé$/m);
  });

  it('keeps texts that look like the marks of others', () => {
    assert.deepEqual(load(yamlText(['text-0.', '\u202E'])), ['text-0.', '\u202E']);
  });
});
