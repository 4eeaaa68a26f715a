// All processes are killed, modules are lost, and their source is down. Requests of each policy are sent all the time, and what the
// status says is compared with what they get.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type CommandResult, portcullis } from '../cli/command.ts';
import { type Change, type Disaster, type DisasterPolicy, expectedEffect } from './disaster-cases.ts';
import { kind, POLICIES, requiresLabel, type RolloutLab } from './rollout-lab.ts';
import type { Effect } from './status-claims.ts';
import { type ProbedPolicy, StatusProbe } from './status-probe.ts';

const CONTROLLERS = ['controller-a', 'controller-b'] as const;

/** A policy in the namespaces of one disaster. */
interface Subject extends ProbedPolicy {
  readonly policy: DisasterPolicy;
  /** All changes of it so far. */
  readonly changes: Change[];
}

/** Loses everything while policies serve, starts it again, and compares statuses with what requests get. */
export async function recovers(
  lab: RolloutLab,
  disaster: Disaster,
  policies: readonly DisasterPolicy[],
  id: string,
): Promise<void> {
  const subjects = policies.map((policy) => subjectOf(policy, id));
  await startMissing(lab);
  await Promise.all(subjects.map((subject) => serve(lab, subject, disaster)));
  await using probe = new StatusProbe(lab, subjects);
  await probe.settle(effectsOf({ ...disaster, left: 'caches' }, subjects));
  await lab.endProcesses('SIGKILL');
  lab.web.isDown = true;
  try {
    await probe.forget();
    await loseModules(lab, disaster);
    await changeAll(lab, subjects, ({ whileDown = [] }) => whileDown);
    await startAgain(lab, disaster);
    await probe.settle(effectsOf(disaster, subjects));
    await assertCommandAgrees(lab, effectsOf(disaster, subjects));
    await changeAll(lab, subjects, ({ later = [] }) => later);
    await probe.settle(effectsOf(disaster, subjects));
  } finally {
    // Restored for later cases, even after a failure.
    lab.web.isDown = false;
  }
  await startMissing(lab);
  await probe.settle(effectsOf({ ...disaster, left: 'caches' }, subjects));
  await probe[Symbol.asyncDispose]();
  probe.assertTrue();
  await Promise.all(subjects.filter(isKept).map(({ name }) => lab.cluster.delete(POLICIES, { name })));
}

function subjectOf(policy: DisasterPolicy, id: string): Subject {
  const { kind: kindName, apiVersion = 'v1', object = {} } = policy;
  const name = `${policy.name}-${id}`;
  const metadata = { generateName: 'probe-', namespace: name };
  return { name, policy, changes: [], object: { apiVersion, kind: kindName, metadata, ...object } };
}

/** Creates a policy, and waits until it serves, with copies of its module where some are to be left. */
async function serve(lab: RolloutLab, { name, policy }: Subject, { left }: Disaster): Promise<void> {
  const { group, version, resource } = kind(policy.apiVersion ?? 'v1', policy.kind);
  await lab.namespace(name);
  const rules = [{ apiGroups: [group], apiVersions: [version], resources: [resource], operations: ['CREATE'] }];
  await lab.create(requiresLabel(name, await lab.module(`${name}.wasm`), 'kept', { ...policy.spec, rules }));
  await lab.reaches(name, 'Active', ({ readyReplicas, copies }) => {
    const isCopied = left !== 'copies' || copies?.controllers === CONTROLLERS.length;
    return readyReplicas === lab.replicas.length && isCopied;
  });
}

function effectsOf(disaster: Disaster, subjects: readonly Subject[]): ReadonlyMap<string, Effect> {
  return new Map(subjects.map(({ name, policy, changes }) => [name, expectedEffect(disaster, policy, changes)]));
}

async function loseModules(lab: RolloutLab, { left }: Disaster): Promise<void> {
  const keeping = left === 'caches' ? lab.replicas.length : left === 'one cache' ? 1 : 0;
  const caches = lab.replicas.slice(keeping).map(({ folder }) => join(folder, 'data'));
  const lost = [...caches, ...(left === 'copies' ? [] : lab.copies)];
  await Promise.all(lost.map((folder) => rm(folder, { recursive: true, force: true })));
}

async function changeAll(
  lab: RolloutLab,
  subjects: readonly Subject[],
  changesOf: (policy: DisasterPolicy) => readonly Change[],
): Promise<void> {
  await Promise.all(
    subjects.map(async ({ name, policy, changes }) => {
      for (const change of changesOf(policy)) {
        await apply(lab, name, change);
        changes.push(change);
      }
    }),
  );
}

async function apply(lab: RolloutLab, name: string, change: Change): Promise<void> {
  switch (change) {
    case 'delete':
      await lab.cluster.delete(POLICIES, { name });
      break;
    case 'disarm':
    case 'rearm':
      await breakGlass(lab, change, name);
      break;
    default:
      await lab.change(name, change.spec);
  }
}

/** Runs the command, which waits for a controller for a moment only. */
async function breakGlass(lab: RolloutLab, verb: 'disarm' | 'rearm', name: string): Promise<void> {
  const flags = ['--timeout', '1s', ...(verb === 'disarm' ? ['--reason', 'a test'] : [])];
  const { code, stdout, stderr } = await command(lab, 'break-glass', verb, `cap/${name}`, ...flags);
  assert.equal(code, 0, stdout + stderr);
}

/** What `rollout status` says about requests of the first policy is what they get. */
async function assertCommandAgrees(lab: RolloutLab, effects: ReadonlyMap<string, Effect>): Promise<void> {
  const [[name, effect] = assert.fail()] = effects;
  const { stdout, stderr } = await command(lab, 'rollout', 'status', `cap/${name}`, '--timeout', '1s');
  assert.notEqual(stdout + stderr, '');
  assertSays(stdout + stderr, effect, 'rollout status');
}

/** Rejections by a failurePolicy are said. Other effects need not be, but no text says another one. */
function assertSays(text: string, effect: Effect, who: string): void {
  const said = [...text.matchAll(/requests are (rejected|admitted)/g)].map(([, one]) => one);
  const isSaid = effect === 'rejected' ? said.length > 0 : true;
  assert.ok(isSaid && said.every((one) => one === effect), `${who}: ${text}; requests are ${effect}`);
}

async function command(lab: RolloutLab, ...args: readonly string[]): Promise<CommandResult> {
  return await portcullis(args, { env: { KUBECONFIG: await lab.kubeconfig('admin') } });
}

async function startAgain(lab: RolloutLab, { order, degraded }: Disaster): Promise<void> {
  const controller = (index: number) => () => startController(lab, index, [`--degraded-policies=${degraded}`]);
  const server = (index: number) => () => startServer(lab, index);
  const starts = {
    'controllers first': [controller(0), controller(1), server(0), server(1)],
    'servers first': [server(0), server(1), controller(0), controller(1)],
    interleaved: [server(0), controller(0), server(1), controller(1)],
    'one controller': [controller(0), server(0), server(1)],
    'one server': [controller(0), controller(1), server(0)],
  };
  for (const start of starts[order]) {
    await start();
  }
}

/** Starts what does not run. */
async function startMissing(lab: RolloutLab): Promise<void> {
  const running = new Set(lab.controllers.filter(({ isRunning }) => isRunning).map(({ name }) => name));
  await Promise.all([
    ...CONTROLLERS.flatMap((name, index) => (running.has(name) ? [] : [startController(lab, index)])),
    ...lab.replicas.flatMap(({ process }, index) => (process.isRunning ? [] : [startServer(lab, index)])),
  ]);
}

async function startController(lab: RolloutLab, index: number, flags: readonly string[] = []): Promise<void> {
  const name = CONTROLLERS[index] ?? assert.fail();
  lab.controllers.splice(0, Infinity, ...lab.controllers.filter((one) => one.isRunning && one.name !== name));
  await lab.startController(name, true, flags);
}

async function startServer(lab: RolloutLab, index: number): Promise<void> {
  await lab.restartReplica(lab.replicas[index] ?? assert.fail());
}

function isKept({ changes }: Subject): boolean {
  return !changes.includes('delete');
}
