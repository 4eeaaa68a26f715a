// Runs the tests: `npm test [-- unit|integration|full] [-- FILE...]`.
//   unit         src/**/*.test.ts in one process: they share nothing but the runner and take seconds
//   integration  test/**/*.test.ts, a process each: they start servers, browsers and API servers
//   full         test/**/*.full.test.ts, likewise: only `npm run test:full` runs them, or their own name
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const chosen = process.argv.slice(2);

/** The suites of `npm test`. */
const DEFAULT_SUITES = ['unit', 'integration'];

interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  readonly flags: readonly string[];
}

// Two files at a time: each starts processes of its own, and the smallest machine of the project has two cores.
const processes = ['--test-concurrency=2', '--test-timeout=480000'];

const suites: readonly Suite[] = [
  { name: 'unit', files: find('src/**/*.test.ts'), flags: ['--test-isolation=none'] },
  { name: 'integration', files: find('test/**/*.test.ts', ['test/**/*.full.test.ts']), flags: processes },
  { name: 'full', files: find('test/**/*.full.test.ts'), flags: processes },
];

function find(pattern: string, exclude: readonly string[] = []): readonly string[] {
  return globSync(pattern, { cwd: root, exclude }).toSorted();
}

/** The suites to run: those that were named, or the files that were named under the flags of their suite. */
function selected(): readonly Suite[] {
  const names = chosen.length === 0 ? DEFAULT_SUITES : chosen;
  return suites
    .map((suite) => ({
      ...suite,
      files: suite.files.filter((file) => names.includes(suite.name) || chosen.some((part) => file.includes(part))),
    }))
    .filter((suite) => suite.files.length > 0);
}

let failed = false;
for (const suite of selected()) {
  process.stdout.write(`\n${suite.name}: ${suite.files.length} files\n`);
  const run = spawnSync(
    process.execPath,
    ['--test', '--test-reporter=./tools/test-reporter.ts', ...suite.flags, ...suite.files],
    {
      cwd: root,
      stdio: 'inherit',
      // Test files, commands and workers load the same sources again and again: each file is compiled once.
      env: { ...process.env, NODE_COMPILE_CACHE: join(root, '.cache', 'node') },
    },
  );
  failed ||= run.status !== 0;
}
process.exit(failed ? 1 : 0);
