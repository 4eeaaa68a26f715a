// Runs the tests: `npm test [-- [unit|integration|full...] [NAME...]]`. With names, only files whose path contains one of them.
//   unit         src/**/*.test.ts in one process; takes seconds
//   integration  test/**/*.test.ts, one process for each file: they start servers and API servers
//   full         test/**/*.full.test.ts, likewise; only with `npm run test:full`, or by name
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const SUITES = ['unit', 'integration', 'full'];
/** The suites of `npm test` without arguments. With names, a file of any suite may be meant. */
const DEFAULT_SUITES = ['unit', 'integration'];
const chosen = process.argv.slice(2);
const names = chosen.filter((one) => !SUITES.includes(one));
const chosenSuites = chosen.filter((one) => SUITES.includes(one));
const suites = chosenSuites.length > 0 ? chosenSuites : names.length > 0 ? SUITES : DEFAULT_SUITES;

const IN_ONE_PROCESS = ['--test-isolation=none'];
// Three files at a time: the smallest machine of the project has two cores, and files wait half of their time.
const IN_PROCESSES = ['--test-concurrency=3', '--test-timeout=480000'];

/** The selected files of a suite: all, or those whose path contains a name. */
function filesOf(suite: string, pattern: string, exclude: readonly string[] = []): readonly string[] {
  if (!suites.includes(suite)) {
    return [];
  }
  const files = globSync(pattern, { cwd: root, exclude }).toSorted();
  return files.filter((file) => names.length === 0 || names.some((name) => file.includes(name)));
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
if (unit.length + integration.length + full.length === 0) {
  process.stderr.write(`error: no test file of ${suites.join(', ')} has a path that contains ${names.join(' or ')}\n`);
  process.exit(1);
}
// Concurrently, because unit tests use one core only, for a minute.
const passed = await Promise.all([pass(IN_ONE_PROCESS, unit), pass(IN_PROCESSES, [...integration, ...full])]);
process.exit(passed.every(Boolean) ? 0 : 1);
