// Twenty minutes of network failures between a reflector and a real API server with 10,000 changing objects.
// Usage: npm run bench -- soak [MINUTES] [OBJECTS] [SEED]
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { startCluster } from '../test/cluster/cluster.ts';
import { runFaults } from '../test/cluster-port/fault-run.ts';
import type { FaultRound } from '../test/cluster-port/fault-run.ts';
import { machine, median, printTable } from './processes.ts';

const minutes = Number(process.argv[2] ?? 20);
const objects = Number(process.argv[3] ?? 10_000);
const seed = Number(process.argv[4] ?? Math.floor(Math.random() * 2 ** 31));
const CHANGES_PER_SECOND = 200;
/** The longest allowed time until the reflector is current again after a failure. Milliseconds. */
const PROMISED_MS = 2_000;

const available = clusterAvailable();
if (!available.available) {
  console.log(`soak: skipped, ${available.reason}`);
  process.exit(0);
}

await using server = await startCluster();
const result = await runFaults(server, {
  objects,
  durationMs: minutes * 60_000,
  changesPerSecond: CHANGES_PER_SECOND,
  seed,
  onRound: ({ fault, faultMs, recoveryMs }, report) => {
    if (recoveryMs > PROMISED_MS) {
      console.log(`${fault} for ${faultMs.toFixed(0)} ms: equal after ${recoveryMs.toFixed(0)} ms`);
    }
    if (recoveryMs === Infinity) {
      console.log(report);
    }
  },
});

const byFault = Map.groupBy(result.rounds, ({ fault }) => fault);
const times = (rounds: readonly FaultRound[]): number[] => rounds.map(({ recoveryMs }) => recoveryMs);
const row = (name: string, rounds: readonly FaultRound[]): string[] => [
  name,
  String(rounds.length),
  `${median(times(rounds)).toFixed(0)} ms`,
  `${Math.max(...times(rounds)).toFixed(0)} ms`,
  String(times(rounds).filter((time) => time > PROMISED_MS).length),
];
console.log(
  `\nsoak: ${objects} objects, ${CHANGES_PER_SECOND} changes a second, ${minutes} minutes, seed ${seed}; ${machine()}`,
);
printTable(
  ['fault', 'times', 'equal after (median)', 'longest', `over ${PROMISED_MS} ms`],
  [...Array.from(byFault, ([name, rounds]) => row(name, rounds)), row('all', result.rounds)],
);
const { report, lists, brokenLists, expiries, watches, changes } = result;
console.log(
  `${changes} changes, ${report.events} events, ${watches} watches; ${report.relists} full lists after the first for ${expiries} versions that expired, and ${brokenLists} that faults broke off`,
);
const isBad =
  report.relists !== expiries ||
  lists > 1 + expiries + brokenLists ||
  result.rounds.some(({ recoveryMs }) => recoveryMs > PROMISED_MS);
process.exitCode = isBad ? 1 : 0;
