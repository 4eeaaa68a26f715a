// Runs the tests: `npm test [-- unit|integration|e2e] [-- FILE...]`.
//   unit         src/**/*.test.ts in one process: they share nothing but the runner and take seconds
//   integration  test/**/*.test.ts, a process each: they start servers, browsers and API servers
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const chosen = process.argv.slice(2);

interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  readonly flags: readonly string[];
}

const suites: readonly Suite[] = [
  { name: 'unit', files: globSync('src/**/*.test.ts', { cwd: root }).toSorted(), flags: ['--test-isolation=none'] },
  // Two at a time: each starts processes of its own, and the smallest machine of the project has two cores.
  {
    name: 'integration',
    files: globSync('test/**/*.test.ts', { cwd: root }).toSorted(),
    flags: ['--test-concurrency=2', '--test-timeout=480000'],
  },
];

/** The suites to run: all, those that were named, or the files that were named under the flags of their suite. */
function selected(): readonly Suite[] {
  if (chosen.length === 0) {
    return suites;
  }
  return suites
    .map((suite) => ({
      ...suite,
      files: suite.files.filter((file) => chosen.includes(suite.name) || chosen.some((part) => file.includes(part))),
    }))
    .filter((suite) => suite.files.length > 0);
}

let failed = false;
for (const suite of selected()) {
  process.stdout.write(`\n${suite.name}: ${suite.files.length} files\n`);
  const run = spawnSync(
    process.execPath,
    ['--test', '--test-reporter=./tools/test-reporter.ts', ...suite.flags, ...suite.files],
    { cwd: root, stdio: 'inherit' },
  );
  failed ||= run.status !== 0;
}
process.exit(failed ? 1 : 0);
