import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { wrapParagraphs } from './help-text.ts';

describe('wrapParagraphs', () => {
  it('fills paragraphs that are too wide, and leaves others and indented lines as they are', () => {
    const wide = `${'word '.repeat(12).trim()}\nshort`;
    assert.equal(
      wrapParagraphs(`\nExamples:\n  ${'x'.repeat(60)}\n\n${wide}\n\nnot\nwide\n`, 40),
      `\nExamples:\n  ${'x'.repeat(60)}\n\nword word word word word word word word\nword word word word short\n\nnot\nwide\n`,
    );
  });
});
