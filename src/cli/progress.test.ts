import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { terminalOutput } from '../values/index.ts';
import { Progress, type Terminal } from './progress.ts';

const CLEARED = '\u001B[2K';

async function eventually(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries += 1) {
    assert.ok(tries < 1_000, 'it never came');
    await sleep(10);
  }
}

/** A stream that says whether it is a terminal, and what was written to it. */
function stream(isTTY: boolean): { readonly stream: Terminal; readonly written: () => string } {
  const through = new PassThrough({ encoding: 'utf8' });
  let written = '';
  through.on('data', (text: string) => (written += text));
  return {
    stream: Object.assign(through, { isTTY, columns: 20 }),
    written: () => terminalOutput(written),
  };
}

describe('progress', () => {
  it('says on a terminal what takes long, in one line, and cleans up', async () => {
    const { stream: terminal, written } = stream(true);
    const progress = new Progress(terminal, 'xterm');
    const result = await progress.during('compiling', async (update) => {
      await eventually(() => written().includes('compiling'));
      update('a label that is longer than the terminal');
      await eventually(() => written().includes('a label'));
      progress.line('a note');
      return 1;
    });
    assert.equal(result, 1);
    assert.ok(written().includes(`${CLEARED}a note\n`));
    const lines = stripVTControlCharacters(written().replaceAll(CLEARED, '\n')).split('\n');
    assert.ok(lines.every((line) => line.length < 20));
    assert.ok(written().endsWith('\n') || written().endsWith(CLEARED), 'the line is left clean');
  });

  it('says nothing of what is done at once, and nothing where no terminal is', async () => {
    for (const isTTY of [true, false]) {
      const { stream: target, written } = stream(isTTY);
      assert.equal(await new Progress(target, 'xterm').during('quick', async () => 'done'), 'done');
      assert.equal(written(), '');
    }
  });

  it('cleans up after work that fails', async () => {
    const { stream: terminal, written } = stream(true);
    const failing = new Progress(terminal, 'xterm').during('failing', async () => {
      await eventually(() => written() !== '');
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.ok(written().endsWith(CLEARED));
  });
});
