// The event-loop delay of a server's main thread while thousands of small policies are applied.
// Usage: npm run bench -- apply [POLICIES]
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { machine, printTable } from './processes.ts';
import { Setting } from './setting.ts';

const count = Number(process.argv[2] ?? 10_000);
/** Interval between reads of the metrics; each read starts a new measurement of the event loop. Milliseconds. */
const READ_INTERVAL_MS = 1_000;
/** Time until all policies serve. Milliseconds. */
const LIMIT_MS = 300_000;

function policiesFile(policies: number): string {
  return Array.from(
    { length: policies },
    (_, index) =>
      `tenant-${index}:\n  module: builtin:cel\n  settings: {validations: [{expression: "object.metadata.name != 'forbidden-${index}'"}]}\n`,
  ).join('');
}

/** The value of a metric without labels, or the sum over its labels that match. */
function valueOf(metrics: string, name: string, labels = ''): number {
  return metrics
    .split('\n')
    .filter((line) => line.startsWith(name) && !line.startsWith('#') && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const setting = new Setting();
try {
  const { operations } = await setting.serve(policiesFile(1));
  const metrics = async (): Promise<string> => (await fetch(`${operations}/metrics`)).text();
  const started = performance.now();
  writeFileSync(setting.policiesFile, policiesFile(count));
  const p99: number[] = [];
  const longest: number[] = [];
  let active = 0;
  await metrics();
  while (active < count && performance.now() - started < LIMIT_MS) {
    await sleep(READ_INTERVAL_MS);
    const text = await metrics();
    active = valueOf(text, 'portcullis_policy_phase{', 'phase="Active"');
    p99.push(valueOf(text, 'nodejs_eventloop_lag_p99_seconds') * 1_000);
    longest.push(valueOf(text, 'nodejs_eventloop_lag_max_seconds') * 1_000);
  }
  console.log(`\napply: ${count} policies by expressions in one change of the file, two workers; ${machine()}`);
  printTable(
    ['what', 'figure'],
    [
      ['policies that serve', String(active)],
      ['change of the file to all of them serving', `${((performance.now() - started) / 1_000).toFixed(1)} s`],
      ['event-loop delay of the main thread, p99, worst second', `${Math.max(...p99).toFixed(0)} ms`],
      ['event-loop delay, longest', `${Math.max(...longest).toFixed(0)} ms`],
    ],
  );
} finally {
  await setting.close();
}
