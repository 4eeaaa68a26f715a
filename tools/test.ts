// Runs the tests: `npm test [-- unit|integration|full] [-- FILE...]`.
//   unit         src/**/*.test.ts in one process; takes seconds
//   integration  test/**/*.test.ts, one process for each file: they start servers and API servers
//   full         test/**/*.full.test.ts, likewise; only with `npm run test:full`, or by name
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const chosen = process.argv.slice(2);

/** The suites of `npm test`. */
const DEFAULT_SUITES = ['unit', 'integration'];

const IN_ONE_PROCESS = ['--test-isolation=none'];
// Three files at a time: the smallest machine of the project has two cores, and files wait half of their time.
const IN_PROCESSES = ['--test-concurrency=3', '--test-timeout=480000'];

/** The selected files of a suite: all, or those whose path contains a name. */
function filesOf(suite: string, pattern: string, exclude: readonly string[] = []): readonly string[] {
  const names = chosen.length === 0 ? DEFAULT_SUITES : chosen;
  const files = globSync(pattern, { cwd: root, exclude }).toSorted();
  return files.filter((file) => names.includes(suite) || chosen.some((part) => file.includes(part)));
}

/** Runs test files. Resolves with whether all tests passed. */
async function pass(flags: readonly string[], files: readonly string[]): Promise<boolean> {
  if (files.length === 0) {
    return true;
  }
  const runner = spawn(process.execPath, ['--test', '--test-reporter=./tools/test-reporter.ts', ...flags, ...files], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    // Test files, commands and workers load the same sources: each file is compiled once.
    env: { ...process.env, NODE_COMPILE_CACHE: join(root, '.cache', 'node') },
  });
  const [code] = (await once(runner, 'exit')) as [number | null];
  return code === 0;
}

const unit = filesOf('unit', 'src/**/*.test.ts');
const integration = filesOf('integration', 'test/**/*.test.ts', ['test/**/*.full.test.ts']);
const full = filesOf('full', 'test/**/*.full.test.ts');
process.stdout.write(`${unit.length} unit, ${integration.length} integration, ${full.length} full test files\n`);
// Concurrently, because unit tests use one core only, for a minute.
const passed = await Promise.all([pass(IN_ONE_PROCESS, unit), pass(IN_PROCESSES, [...integration, ...full])]);
process.exit(passed.every(Boolean) ? 0 : 1);
