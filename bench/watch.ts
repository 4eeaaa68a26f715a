// Speed and memory of the Kubernetes client, a reflector and a shared cache that follow thousands of pods.
// Usage: npm run bench -- watch [PODS] [EVENTS]
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { KubernetesCluster } from '../src/cluster/index.ts';
import { ObjectCache } from '../src/runtime/index.ts';
import { createLoopbackCertificate } from '../test/cluster/loopback-certificate.ts';
import { LineProcess, machine, median, printTable } from './processes.ts';

const pods = Number(process.argv[2] ?? 10_000);
const events = Number(process.argv[3] ?? 100_000);
const ROUNDS = 3;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

interface Round {
  /** Time until the cache has all pods. Milliseconds. */
  readonly listMs: number;
  readonly eventsPerSecond: number;
  /** Processor time of this process for one change. Microseconds. */
  readonly cpuUs: number;
  /** Heap of the cached pods. Bytes. */
  readonly heap: number;
}

async function usedHeap(): Promise<number> {
  await sleep(50);
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Lists once, then follows `changes`. */
async function round(certificate: { cert: string; key: string }, changes: number): Promise<Round & { bytes: number }> {
  const options = { ...certificate, pods, events: changes };
  const server = new LineProcess('./watch-server.ts', [JSON.stringify(options)]);
  const { url, bytes } = JSON.parse(await server.line()) as { url: string; bytes: number };
  const before = await usedHeap();
  const cluster = new KubernetesCluster({ server: url, ca: certificate.cert });
  const cache = new ObjectCache({
    cluster,
    type: { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true },
    log: pino({ level: 'silent' }),
  });
  const stop = new AbortController();
  const begun = performance.now();
  const running = cache.start(stop.signal);
  await cache.synced;
  const synced = performance.now();
  const cpuBefore = process.cpuUsage();
  while (cache.report.events < changes) {
    await sleep(1);
  }
  const followedMs = performance.now() - synced;
  const cpu = process.cpuUsage(cpuBefore);
  const heap = (await usedHeap()) - before;
  if (cache.size !== pods) {
    throw new Error(`expected ${pods} pods in the cache, got ${cache.size}`);
  }
  stop.abort();
  await running;
  cluster.close();
  await server.end();
  return {
    listMs: synced - begun,
    eventsPerSecond: (changes / followedMs) * 1000,
    cpuUs: (cpu.user + cpu.system) / changes,
    heap,
    bytes,
  };
}

const certificate = await createLoopbackCertificate();
const rounds: Round[] = [];
let bytes = 0;
for (let index = 0; index < ROUNDS; index += 1) {
  const result = await round(certificate, events);
  rounds.push(result);
  ({ bytes } = result);
}
console.log(
  `\nwatch: ${pods} pods of ${bytes} bytes over TLS, ${events} changes, client + reflector + cache, median of ${ROUNDS}; ${machine()}`,
);
printTable(
  ['what', 'figure', 'promised'],
  [
    ['all pods listed and kept', `${median(rounds.map(({ listMs }) => listMs)).toFixed(0)} ms`, ''],
    ['changes applied', `${median(rounds.map(({ eventsPerSecond }) => eventsPerSecond)).toFixed(0)} /s`, '15000 /s'],
    ['processor time of one', `${median(rounds.map(({ cpuUs }) => cpuUs)).toFixed(0)} µs`, ''],
    [
      'heap of the pods, after the changes',
      `${(median(rounds.map(({ heap }) => heap)) / 1e6).toFixed(1)} MB`,
      '90 MB for 10,000',
    ],
  ],
);
