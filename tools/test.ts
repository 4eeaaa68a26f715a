// Runs the tests: `npm test [-- [unit|integration|full...] [NAME...]]`. With names, only files whose path contains one of them.
//   unit         src/**/*.test.ts in one process; takes seconds
//   integration  test/**/*.test.ts, one process for each file: they start servers and API servers
//   full         test/**/*.full.test.ts, likewise; only with `npm run test:full`, or by name
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import reporter from './test-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const SUITES = ['unit', 'integration', 'full'];
/** The suites of `npm test` without arguments. With names, a file of any suite may be meant. */
const DEFAULT_SUITES = ['unit', 'integration'];
const chosen = process.argv.slice(2);
const names = chosen.filter((one) => !SUITES.includes(one));
const chosenSuites = chosen.filter((one) => SUITES.includes(one));
const suites = chosenSuites.length > 0 ? chosenSuites : names.length > 0 ? SUITES : DEFAULT_SUITES;

// The smallest machine of the project has two cores, and a file uses half of one or more: it waits for processes and rollouts.
// With more files, some reviews take longer than policies may.
const FILES_AT_ONCE = 3;
/** Of a test, or of a suite with its tests. */
const TIMEOUT_MS = 480_000;
/** Forty disasters, each of which takes half a minute or more. */
const FULL_TIMEOUT_MS = 3_600_000;
/** Flags of the processes of tests. */
const LOADED = ['--import', pathToFileURL(join(root, 'tools/test-process-end.ts')).href];
/** The longest files start first, in this order: otherwise some core would have nothing to do while one of them ends alone. */
const LONGEST = [
  'test/lifecycle/scenarios.test.ts',
  'test/walk/walk.test.ts',
  'test/cli/install.test.ts',
  'test/cli/preview.test.ts',
  'test/cli/rollout.test.ts',
  'test/cli/start.test.ts',
  'test/work/work.test.ts',
  'test/e2e/install.test.ts',
  'test/cli/run.test.ts',
  'test/e2e/audit-agreement.test.ts',
  'test/cli/documentation.test.ts',
];

/** The selected files of a suite: all, or those whose path contains a name. */
function filesOf(suite: string, pattern: string, exclude: readonly string[] = []): readonly string[] {
  if (!suites.includes(suite)) {
    return [];
  }
  const files = globSync(pattern, { cwd: root, exclude }).toSorted();
  return files.filter((file) => names.length === 0 || names.some((name) => file.includes(name)));
}

/** Runs test files in one process. Resolves with whether all tests passed. */
async function inOneProcess(files: readonly string[]): Promise<boolean> {
  if (files.length === 0) {
    return true;
  }
  const flags = [...LOADED, '--test', '--test-isolation=none', '--test-reporter=./tools/test-reporter.ts'];
  const runner = spawn(process.execPath, [...flags, ...files], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(runner, 'exit')) as [number | null];
  return code === 0;
}

/** Runs each test file in its own process, in this order, which the command line of Node would sort. */
async function inProcesses(files: readonly string[]): Promise<boolean> {
  if (files.length === 0) {
    return true;
  }
  let hasPassed = true;
  const paths = files.map((file) => join(root, file));
  const timeout = files.some((file) => full.includes(file)) ? FULL_TIMEOUT_MS : TIMEOUT_MS;
  const events = run({ files: paths, concurrency: FILES_AT_ONCE, timeout, execArgv: [...LOADED] });
  events.on('test:fail', () => (hasPassed = false));
  await pipeline(events, reporter, process.stdout, { end: false });
  return hasPassed;
}

function longestFirst(files: readonly string[]): readonly string[] {
  const rank = (file: string): number => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);
  return files.toSorted((a, b) => rank(a) - rank(b));
}

// Test files, commands and workers load the same sources: each file is compiled once.
process.env['NODE_COMPILE_CACHE'] = join(root, '.cache', 'node');
const unit = filesOf('unit', 'src/**/*.test.ts');
const integration = filesOf('integration', 'test/**/*.test.ts', ['test/**/*.full.test.ts']);
const full = filesOf('full', 'test/**/*.full.test.ts');
process.stdout.write(`${unit.length} unit, ${integration.length} integration, ${full.length} full test files\n`);
if (unit.length + integration.length + full.length === 0) {
  process.stderr.write(`error: no test file of ${suites.join(', ')} has a path that contains ${names.join(' or ')}\n`);
  process.exit(1);
}
// Concurrently, because unit tests use one core only, for a minute.
const passed = await Promise.all([inOneProcess(unit), inProcesses(longestFirst([...integration, ...full]))]);
process.exit(passed.every(Boolean) ? 0 : 1);
