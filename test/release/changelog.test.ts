import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changelog, parseCommits } from '../../tools/release/changelog.ts';

const log = (...commits: readonly string[]): string => commits.map((text) => `${text}\x1e\n`).join('');

describe('the changelog of a release', () => {
  it('lists what users notice, by scope, and breaking changes of any type first', () => {
    const commits = parseCommits(
      log(
        'feat(server): serve faster\0',
        'fix(cli): end with the right code\0a body\nof two lines\n',
        'docs: say how\0',
        'feat(cli): print a table\0',
        'perf: start at once\0',
        'refactor(cel)!: refuse what is wrong\0',
        'fix(oci): read more\0The reason.\n\nBREAKING CHANGE: less is read\n',
        'Merge branch of somebody\0',
      ),
    );
    assert.equal(
      changelog('1.2.0', '2026-11-24', commits),
      `# 1.2.0 (2026-11-24)

## Breaking changes

- **cel**: refuse what is wrong
- **oci**: read more

## Features

- **cli**: print a table
- **server**: serve faster

## Fixes

- **cli**: end with the right code

## Performance

- start at once
`,
    );
  });

  it('says that there is nothing to notice', () => {
    const commits = parseCommits(log('test: more of them\0'));
    assert.equal(changelog('1.2.1', '2026-11-24', commits), '# 1.2.1 (2026-11-24)\n\nNo changes that users notice.\n');
  });
});
