// The effect of an endless loop in one policy on the others: their times with and without it, in the same run.
// Usage: npm run bench -- loop [SECONDS]
import { load, machine, printTable } from './processes.ts';
import { EXAMPLES, GUESTS, Setting } from './setting.ts';

const seconds = Number(process.argv[2] ?? 10);
/** Requests per second that one worker can answer, so that no queue forms. */
const RATE = 500;
const setting = new Setting();
try {
  const { admission } = await setting.serve(
    `good:\n  module: file://${EXAMPLES}/required-labels/policy.wasm\n  settings: {labels: [app.kubernetes.io/name]}\n` +
      `loop:\n  module: file://${GUESTS}/loop-in-validate.wasm\n`,
  );
  const bodyFile = setting.reviewFile;
  const good = { url: `${admission}/validate/good`, bodyFile, connections: 8, rate: RATE };
  console.log(`\nloop: ${RATE} requests/s to a good policy, two connections to one that loops; ${machine()}`);
  await load({ ...good, seconds: 2 });
  const alone = await load({ ...good, seconds });
  const loops = load({ url: `${admission}/validate/loop`, bodyFile, connections: 2, seconds: seconds + 6 });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const beside = await load({ ...good, seconds });
  await loops;
  printTable(
    ['good policy', 'requests/s', 'p50 ms', 'p99 ms', 'failed'],
    [
      ['alone', alone.perSecond.toFixed(0), alone.p50.toFixed(1), alone.p99.toFixed(1), String(alone.failed)],
      [
        'beside the loop',
        beside.perSecond.toFixed(0),
        beside.p50.toFixed(1),
        beside.p99.toFixed(1),
        String(beside.failed),
      ],
    ],
  );
} finally {
  await setting.close();
}
