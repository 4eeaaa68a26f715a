// Times of a rollout: from apply until two replicas enforce the change, until the status has the reason of a bad change, and
// after the loss of a replica; and the requests to the API server. Usage: npm run bench -- rollout [embedded|real] [CHANGES]
// [POLICIES]. `real` needs the programs of the test cluster (npm run cluster:build). Default: both, if those exist.
import { setTimeout as sleep } from 'node:timers/promises';
import { clusterAvailable } from '../test/cluster/binaries.ts';
import { labelOf, requiresLabel, RolloutLab } from '../test/lifecycle/rollout-lab.ts';
import { embeddedTarget, type LabTarget, realTarget } from '../test/lifecycle/rollout-lab-target.ts';
import { applyMany, idleRequests, quiet } from '../test/lifecycle/scenario-scale.ts';
import { ReviewStream } from '../test/lifecycle/scenario-stream.ts';
import { enforced } from '../test/lifecycle/scenario-updates.ts';
import { machine, printTable } from './processes.ts';

const TARGETS: Readonly<Record<string, () => Promise<LabTarget>>> = { embedded: embeddedTarget, real: realTarget };
const [, , only, changesText = '50', policiesText = '1000'] = process.argv;
const changes = Number(changesText);
const policies = Number(policiesText);
/** How often a replica is ended and started. */
const LOSSES = 5;
/** How long idle requests are counted. */
const IDLE_SECONDS = 10;
/** Reviews per second while policies change, and the interval of the changes. */
const LOAD_PER_SECOND = 2_000;
const LOADED_CHANGES = 20;
const NAME = 'measured';

type Row = readonly [what: string, figure: string];

/** Median, 95th percentile and maximum, in milliseconds. */
function times(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(0);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms`;
}

/** Waits until the condition holds. Returns the milliseconds since `began`. */
async function took(began: number, isSo: () => Promise<boolean> | boolean, pauseMs = 2): Promise<number> {
  while (!(await isSo())) {
    await sleep(pauseMs);
  }
  return performance.now() - began;
}

/** The time from the answer to apply until every replica, and the API server, reject by the new version. */
async function changesOf(lab: RolloutLab): Promise<readonly Row[]> {
  const newest = new Map<string, string>();
  await using stream = new ReviewStream(lab, NAME, {
    pauseMs: 2,
    onVerdict: ({ via, what }) => newest.set(via, what),
  });
  const enforcedAfter: number[] = [];
  const activeAfter: number[] = [];
  for (let change = 1; change <= changes; change += 1) {
    const label = `v${change}`;
    const began = performance.now();
    await lab.change(NAME, { settings: { labels: [label] } });
    enforcedAfter.push(await took(began, () => [...newest.values()].every((what) => what === label)));
    await lab.reaches(NAME, 'Active');
    activeAfter.push(performance.now() - began);
    // Like changes of a user: all writes for the last one are done.
    await sleep(200);
  }
  const verdicts = await stream.end();
  const failed = verdicts.filter(({ what }) => !/^v\d+$/.test(what)).length;
  return [
    ['apply to enforced on both replicas and the API server', times(enforcedAfter)],
    ['apply to Active', times(activeAfter)],
    [`failed of ${verdicts.length} reviews meanwhile`, String(failed)],
  ];
}

/** The same under load, which goes directly to the replicas. */
async function changesUnderLoad(lab: RolloutLab): Promise<readonly Row[]> {
  const newest = new Map<string, string>();
  await using stream = new ReviewStream(lab, NAME, {
    perSecond: LOAD_PER_SECOND,
    onVerdict: ({ via, what }) => newest.set(via, what),
  });
  const began = performance.now();
  const enforcedAfter: number[] = [];
  for (let change = 1; change <= LOADED_CHANGES; change += 1) {
    const label = `w${change}`;
    const applied = performance.now();
    await lab.change(NAME, { settings: { labels: [label] } });
    enforcedAfter.push(await took(applied, () => [...newest.values()].every((what) => what === label)));
    await lab.reaches(NAME, 'Active');
    await sleep(200);
  }
  const verdicts = await stream.end();
  const seconds = (performance.now() - began) / 1000;
  const failed = verdicts.filter(({ what }) => !/^[vw]\d+$/.test(what)).length;
  return [
    [`reviews per second meanwhile, asked ${LOAD_PER_SECOND}`, (verdicts.length / seconds).toFixed(0)],
    [`apply to enforced under that load, ${LOADED_CHANGES} changes`, times(enforcedAfter)],
    [`failed of these ${verdicts.length} reviews`, String(failed)],
  ];
}

/** The time from apply until the policy's status has the reason. */
async function badChangesOf(lab: RolloutLab): Promise<Row> {
  const figures: number[] = [];
  for (let change = 0; change < 20; change += 1) {
    const began = performance.now();
    await lab.change(NAME, { settings: { labels: change + 7 } });
    await lab.reaches(NAME, 'Degraded');
    figures.push(performance.now() - began);
    await lab.change(NAME, { settings: { labels: ['v0'] } });
    await lab.reaches(NAME, 'Active');
    await sleep(200);
  }
  return ['bad settings to the reason in the status', times(figures)];
}

async function lossesOf(lab: RolloutLab): Promise<readonly Row[]> {
  const lost: number[] = [];
  const come: number[] = [];
  const [, second] = lab.replicas;
  for (let loss = 0; loss < LOSSES && second !== undefined; loss += 1) {
    const began = performance.now();
    await second.process.end('SIGKILL');
    lost.push(await took(began, async () => (await lab.policy(NAME)).status?.readyReplicas === 1));
    await lab.restartReplica(second);
    const answers = performance.now();
    come.push(
      await took(answers, async () => {
        const { status } = await lab.policy(NAME);
        return status?.phase === 'Active' && status.readyReplicas === 2;
      }),
    );
  }
  return [
    ['a replica is killed to the status says so', times(lost)],
    ['a replica is ready to the status says so', times(come)],
  ];
}

async function measure(target: string, open: () => Promise<LabTarget>): Promise<void> {
  await using lab = await RolloutLab.start(open);
  await enforced(lab, requiresLabel(NAME, await lab.module('measured.wasm'), 'v0'), 'v0');
  console.log(`\nrollout: ${target} API server, two policy servers and a controller as processes; ${machine()}`);
  const rows: Row[] = [
    ...(await changesOf(lab)),
    ...(await changesUnderLoad(lab)),
    await badChangesOf(lab),
    ...(await lossesOf(lab)),
  ];
  printTable(['what', 'figure'], rows);
  await quiet(lab);
  const idleFew = await idleRequests(lab, IDLE_SECONDS);
  const many = await applyMany(lab, policies, 'many');
  const idleMany = await idleRequests(lab, IDLE_SECONDS);
  const perSecond = (requests: readonly string[]): string => (requests.length / IDLE_SECONDS).toFixed(2);
  printTable(
    [],
    [
      [`${policies} policies applied at once, all Active`, `${many.seconds.toFixed(1)} s`],
      ['writes of the controller for each of them', many.writesPerPolicy.toFixed(2)],
      ['writes of webhook configurations for all of them', String(many.configurationWrites)],
      ['idle requests per second, one policy', perSecond(idleFew)],
      [`idle requests per second, ${policies + 1} policies`, perSecond(idleMany)],
    ],
  );
  const refusal = labelOf(await lab.refusal(NAME));
  if (refusal === undefined) {
    throw new Error('the policy is not enforced any more');
  }
}

for (const [target, open] of Object.entries(TARGETS)) {
  const isPossible = target !== 'real' || clusterAvailable().available;
  if ((only === undefined || only === target) && isPossible) {
    await measure(target, open);
  }
}
