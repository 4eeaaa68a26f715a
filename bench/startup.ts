// The start of a server with thousands of policies that share a module. Usage: npm run bench -- startup [POLICIES]
import { machine, median, printTable } from './processes.ts';
import { EXAMPLES, Setting } from './setting.ts';

const count = Number(process.argv[2] ?? 3500);
const ROUNDS = 3;

const policies = Array.from(
  { length: count },
  (_, index) =>
    `tenant-${index}:\n  module: file://${EXAMPLES}/required-labels/policy.wasm\n  settings: {labels: [tenant-${index}, app.kubernetes.io/name]}\n`,
).join('');

console.log(`\nstartup: ${count} policies, one module, two workers, median of ${ROUNDS}; ${machine()}`);
const starts: { upMs: number; rss: number }[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const setting = new Setting();
  try {
    starts.push(await setting.serve(policies));
  } finally {
    await setting.close();
  }
}
printTable(
  ['what', 'figure'],
  [
    ['start of the process to all policies serving', `${median(starts.map(({ upMs }) => upMs)).toFixed(0)} ms`],
    ['resident memory', `${(median(starts.map(({ rss }) => rss)) / 2 ** 20).toFixed(0)} MiB`],
  ],
);
