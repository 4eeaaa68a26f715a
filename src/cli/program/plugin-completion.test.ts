import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pluginCompletion } from './plugin-completion.ts';

describe('pluginCompletion', () => {
  it('answers as cobra does: a word and its description a line, then a directive', async () => {
    assert.equal(
      await pluginCompletion(['vers']),
      'version\tprint the versions of this program and of the cluster\n:4\n',
    );
    assert.match(await pluginCompletion(['rollout', 'un']), /^undo\trestore .*\nunpin\tlet .*\n:4\n$/);
    assert.match(await pluginCompletion(['get', '--all']), /^--all-namespaces\t.*\n:4\n$/);
  });

  it('leaves files to the shell', async () => {
    for (const line of [
      ['apply', '-f', ''],
      ['inspect', ''],
      ['test', './'],
    ]) {
      assert.equal(await pluginCompletion(line), ':0\n', line.join(' '));
    }
  });

  it('offers nothing where nothing is known', async () => {
    for (const line of [['nothing', ''], ['rollout', 'history', '-n', ''], ['__proto__', ''], []]) {
      const answer = await pluginCompletion(line);
      assert.ok(line.length === 0 ? answer.endsWith(':4\n') : answer === ':4\n', line.join(' '));
    }
  });
});
