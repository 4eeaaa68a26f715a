import assert from 'node:assert/strict';
import { it } from 'node:test';
import { escapedControls, inertTexts, ownSequence, styled, terminalOutput, withoutControls } from './terminal-text.ts';

const HOSTILE = 'a\u001B[31mred\u009B2J\u007F\u0085 \u202Etxt.exe\u2066\u200F\u061C\tä\n';

it('text for terminals has no characters that control them or turn the direction', () => {
  assert.equal(withoutControls(HOSTILE), 'a[31mred2J txt.exe\tä\n');
});

it('JSON text without such characters has the same value', () => {
  const json = escapedControls(JSON.stringify({ [HOSTILE]: HOSTILE }, null, 2));
  assert.doesNotMatch(json, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  assert.deepEqual(JSON.parse(json), { [HOSTILE]: HOSTILE });
});

it('output of a terminal keeps our own sequences, and those only', () => {
  const colour = '\u001B[31m';
  const text = styled('red', `a${colour}b\r\n`, { validateStream: false });
  assert.equal(terminalOutput(text), `${colour}a\u{fffd}[31mb\n\u001B[39m`);
  assert.equal(terminalOutput(`${ownSequence('\u001B[2K')}\u001B[2K\r`), '\u001B[2K\u{fffd}[2K\u{fffd}');
  assert.equal(
    terminalOutput(styled(['bold', 'cyan'], 'a', { validateStream: false })),
    '\u001B[1m\u001B[36ma\u001B[39m\u001B[22m',
  );
  assert.doesNotMatch(terminalOutput(HOSTILE), /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u);
});

it('texts of a status are inert, wherever they are', () => {
  const status = { count: 1n, list: [{ message: 'a\u202Eb' }, null, true], text: '\u001B[2J' };
  assert.deepEqual(inertTexts(status), {
    count: 1n,
    list: [{ message: 'a\u{fffd}b' }, null, true],
    text: '\u{fffd}[2J',
  });
});
