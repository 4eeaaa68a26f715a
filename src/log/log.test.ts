import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, it } from 'node:test';
import { createLog, type LogFormat } from './log.ts';

/** Colours, a cleared screen, a forged line, and a file name whose direction turns. */
const HOSTILE = '\u001B[2J\u009B31mred\u007F\u0085\r\n2026 ERROR forged \u202Efdp.exe\u2066';

/** What the log writes about texts of a tenant. */
function written(format: LogFormat, color = false): string {
  let text = '';
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const log = createLog({ format, color, destination });
  log.info({ policy: HOSTILE, [HOSTILE]: 1, nested: { [HOSTILE]: [HOSTILE] }, err: new Error(HOSTILE) }, HOSTILE);
  return text;
}

describe('the log', () => {
  for (const [name, format, color] of [
    ['JSON', 'json', false],
    ['text', 'text', false],
    ['coloured text', 'text', true],
  ] as const) {
    it(`writes one line without characters that control terminals, as ${name}`, () => {
      const text = written(format, color);
      const [line = '', ...more] = (color ? stripVTControlCharacters(text) : text).split('\n');
      assert.deepEqual(more, ['']);
      assert.doesNotMatch(line, /[\p{Cc}\p{Bidi_Control}]/u);
      assert.match(line, /forged/);
      assert.ok(!text.includes('\u001B[2J'));
    });
  }

  it('has the same values in JSON', () => {
    const { msg, policy } = JSON.parse(written('json')) as Record<string, unknown>;
    assert.deepEqual([msg, policy], [HOSTILE, HOSTILE]);
  });
});
