// A candidate for leadership, started by runtime.test.ts. While it leads, it prints a line every few milliseconds.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { LeaderElector } from '../../src/runtime/index.ts';

const [server = '', caFile = '', token = '', identity = ''] = process.argv.slice(2);

/** The monotonic clock, which all processes of a machine share. Milliseconds. */
const now = (): number => Number(process.hrtime.bigint() / 1_000_000n);

const cluster = new KubernetesCluster({
  server,
  ca: readFileSync(caFile, 'utf8'),
  credentials: tokenCredentials(token),
});
const elector = new LeaderElector({
  cluster,
  namespace: 'default',
  name: 'contest',
  identity,
  leaseDurationMs: 2000,
  renewDeadlineMs: 1500,
  retryPeriodMs: 200,
  log: pino({ level: 'silent' }),
});
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
// Nothing else keeps this process alive between two requests.
const alive = setInterval(() => undefined, 1000);
await elector.run(stop.signal, async (signal) => {
  while (!signal.aborted) {
    process.stdout.write(`${now()}\n`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
});
clearInterval(alive);
cluster.close();
