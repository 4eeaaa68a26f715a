// Loaded into each process of a test run: ends it when it goes on after its tests, with all processes that it started, and says what
// was left. The runner's time limit fails a test, but ends neither its function nor its process: the run would wait for ever.
import { readdirSync, readFileSync } from 'node:fs';
import { after } from 'node:test';

/** Time for what ends by itself after the tests, such as idle connections. Milliseconds. */
const GRACE_MS = Number(new URL(import.meta.url).searchParams.get('graceMs') ?? 60_000);
/** Time for all tests of a process and the hooks of suites, which have no limit of their own. Milliseconds. */
const LIMIT_MS = 3_600_000;
/** The same of a long suite. Milliseconds. */
const FULL_LIMIT_MS = 4 * 3_600_000;

/** None of a process that has ended. */
function childrenOf(parent: number): readonly number[] {
  try {
    const tasks = `/proc/${parent}/task`;
    const lists = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/children`, 'utf8'));
    return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
  } catch {
    return [];
  }
}

function descendantsOf(parent: number): readonly number[] {
  return childrenOf(parent).flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Kills a process. Returns its command. */
function killed(id: number): string {
  try {
    const command = readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ');
    process.kill(id, 'SIGKILL');
    return command;
  } catch {
    return 'a process that has ended';
  }
}

function end(why: string): void {
  const open = process.getActiveResourcesInfo().filter((resource) => resource !== 'PipeWrap');
  const left = descendantsOf(process.pid).map((id) => killed(id));
  process.stderr.write(`${process.argv[1]} ${why}, and is ended: ${[...open, ...left].join(', ')}\n`);
  process.exit(1);
}

// Not in the processes that a test starts, which may inherit the flag.
const [, file = ''] = process.argv;
if (file.endsWith('.test.ts')) {
  const limit = setTimeout(end, file.endsWith('.full.test.ts') ? FULL_LIMIT_MS : LIMIT_MS, 'takes too long').unref();
  after(() => {
    clearTimeout(limit);
    setTimeout(end, GRACE_MS, 'goes on after its tests').unref();
  });
}
