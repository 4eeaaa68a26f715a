import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { unifiedDiff } from './unified-diff.ts';

function diff(from: readonly string[], to: readonly string[]): string {
  const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`;
  return stripVTControlCharacters(unifiedDiff({ name: 'old', text: text(from) }, { name: 'new', text: text(to) }));
}

const NUMBERS = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`);

const hasPatch = spawnSync('patch', ['--version']).status === 0;

describe('unifiedDiff', () => {
  it('is empty for equal texts', () => {
    assert.equal(diff(NUMBERS, NUMBERS), '');
  });

  it('has hunks with three lines around each change, as diff -u', () => {
    assert.equal(
      diff(NUMBERS, NUMBERS.with(9, 'ten').toSpliced(20, 1)),
      [
        '--- old',
        '+++ new',
        '@@ -7,7 +7,7 @@',
        ' line 7',
        ' line 8',
        ' line 9',
        '-line 10',
        '+ten',
        ' line 11',
        ' line 12',
        ' line 13',
        '@@ -18,7 +18,6 @@',
        ' line 18',
        ' line 19',
        ' line 20',
        '-line 21',
        ' line 22',
        ' line 23',
        ' line 24',
        '',
      ].join('\n'),
    );
  });

  it('can be applied by patch', { skip: hasPatch ? false : 'there is no patch program' }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-diff-'));
    try {
      const changed = ['first', ...NUMBERS.slice(0, 12), 'more', 'and more', ...NUMBERS.slice(14), 'last'];
      for (const [from, to] of [
        [NUMBERS, changed],
        [changed, NUMBERS],
        [['only'], ['other']],
      ] as const) {
        const file = join(folder, 'text');
        writeFileSync(file, `${from.join('\n')}\n`);
        execFileSync('patch', ['--quiet', file], { input: diff(from, to) });
        assert.equal(readFileSync(file, 'utf8'), `${to.join('\n')}\n`);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has no control characters of a policy', () => {
    assert.ok(!/\p{Cc}/u.test(diff(['a\u001b[2Jb\u0007'], ['c\r']).replaceAll('\n', '')));
  });
});
