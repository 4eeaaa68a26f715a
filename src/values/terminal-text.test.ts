import assert from 'node:assert/strict';
import { it } from 'node:test';
import { escapedControls, withoutControls } from './terminal-text.ts';

const HOSTILE = 'a\u001B[31mred\u009B2J\u007F\u0085 \u202Etxt.exe\u2066\u200F\u061C\tä\n';

it('text for terminals has no characters that control them or turn the direction', () => {
  assert.equal(withoutControls(HOSTILE), 'a[31mred2J txt.exe\tä\n');
});

it('JSON text without such characters has the same value', () => {
  const json = escapedControls(JSON.stringify({ [HOSTILE]: HOSTILE }, null, 2));
  assert.doesNotMatch(json, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  assert.deepEqual(JSON.parse(json), { [HOSTILE]: HOSTILE });
});
