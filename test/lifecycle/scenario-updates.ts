// Scenarios 1 to 4 and 9 of the lifecycle: what happens to a policy, and what of it anybody notices.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeMetadata } from '../../src/modules/index.ts';
import type { JsonObject } from '../../src/resources/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { example, moduleBytes } from '../server/harness.ts';
import { labelOf, type Policy, requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { ReviewStream } from './scenario-stream.ts';

/** Makes a policy in a namespace of its own, and waits until it is enforced. */
export async function enforced(lab: RolloutLab, policy: Policy, label: string): Promise<void> {
  const name = policy.metadata.name ?? '';
  await lab.namespace(name);
  await lab.create(policy);
  await lab.reaches(name, 'Active', ({ readyReplicas, totalReplicas }) => readyReplicas === totalReplicas);
  await refuses(lab, name, label);
}

/** Waits until the API server refuses what has no such label: it learns of webhooks a moment late. */
export async function refuses(lab: RolloutLab, name: string, label: string): Promise<void> {
  await eventually(async () => assert.equal(labelOf(await lab.refusal(name)), label));
}

/** A change that cannot be served. */
interface BadUpdate {
  readonly name: string;
  readonly spec: (lab: RolloutLab) => Promise<JsonObject>;
  /** What undoes it, beside the old module and settings; maybe not by a change of the policy. */
  readonly reason: RegExp;
  readonly message: RegExp;
}

const MODULE = (): Promise<Buffer> => moduleBytes(example('required-labels'));

const BAD_UPDATES: readonly BadUpdate[] = [
  {
    name: 'bad settings',
    spec: async () => ({ settings: { labels: 7 } }),
    reason: /^InvalidSettings$/,
    message: /labels: expected a list/,
  },
  {
    name: 'a missing module',
    spec: async (lab) => ({ module: lab.web.put('missing.wasm', { kind: 'status', status: 404 }) }),
    reason: /^FetchFailed$/,
    message: /missing\.wasm answered 404/,
  },
  {
    name: 'a wrong digest',
    spec: async (lab) => ({
      module: `${lab.web.put('other.wasm', { kind: 'serve', bytes: await MODULE() })}@sha256:${'0'.repeat(64)}`,
    }),
    reason: /Digest|FetchFailed/,
    message: /sha256:000/,
  },
  {
    name: 'a source that cannot be reached',
    spec: async () => ({ module: 'http://127.0.0.1:1/gone.wasm' }),
    reason: /^FetchFailed$/,
    message: /gone\.wasm/,
  },
  {
    name: 'a protocol that is too new',
    spec: async (lab) => ({ module: await annotated(lab, 'protocol.wasm', { protocolVersion: 'v9' }) }),
    reason: /Invalid|Unsupported/,
    message: /protocol/i,
  },
  {
    name: 'a version that is too new',
    spec: async (lab) => ({ module: await annotated(lab, 'version.wasm', { minimumKubewardenVersion: '99.1.0' }) }),
    reason: /^UnsupportedVersion$/,
    message: /99\.1/,
  },
];

async function annotated(lab: RolloutLab, name: string, metadata: JsonObject): Promise<string> {
  const described = {
    protocolVersion: 'v1',
    mutating: false,
    rules: [],
    executionMode: 'kubewarden-wapc',
    ...metadata,
  };
  const bytes = writeMetadata(await MODULE(), described as never);
  return lab.web.put(name, { kind: 'serve', bytes });
}

/** Scenario 1. The longest that a reason took to be shown is returned. Milliseconds. */
export async function badUpdatesChangeNothing(lab: RolloutLab): Promise<readonly number[]> {
  const module = await lab.module('updates.wasm');
  await enforced(lab, requiresLabel('updates', module, 'old'), 'old');
  await enforced(lab, requiresLabel('bystander', await lab.module('bystander.wasm'), 'mine'), 'mine');
  const bystander = await lab.policy('bystander');
  const pids = lab.replicas.map(({ process }) => process);
  await using stream = new ReviewStream(lab, 'updates');
  await using beside = new ReviewStream(lab, 'bystander');
  const times: number[] = [];
  for (const bad of BAD_UPDATES) {
    const spec = await bad.spec(lab);
    const began = performance.now();
    await lab.change('updates', spec);
    const { status } = await lab.reaches('updates', 'Degraded', ({ reason }) => bad.reason.test(reason ?? ''));
    times.push(performance.now() - began);
    assert.match(status?.message ?? '', bad.message, bad.name);
    assert.ok((status?.desiredRevision ?? 0) > (status?.servingRevision ?? 0), `${bad.name}: an older one serves`);
    await sleep(50);
    assert.deepEqual(stream.other('old').slice(0, 3), [], `${bad.name}: the old version answers`);
    await lab.change('updates', { module, settings: { labels: ['old'] } });
    await lab.reaches('updates', 'Active');
  }
  // Also without a change of the policy: the source has the module after all.
  await lab.change('updates', { module: lab.web.put('late.wasm', { kind: 'status', status: 503 }) });
  const waiting = await lab.reaches('updates', 'Degraded');
  assert.ok(waiting.status?.nextRetry !== undefined, 'the next try is told');
  await lab.module('late.wasm');
  await lab.reaches('updates', 'Active');
  await stream.end();
  await beside.end();
  assert.deepEqual(stream.other('old').slice(0, 3), []);
  assert.deepEqual(beside.other('mine').slice(0, 3), []);
  assert.ok(stream.verdicts.length > 50 && beside.verdicts.length > 50, 'they were asked all the time');
  const after = await lab.policy('bystander');
  assert.equal(after.metadata.resourceVersion, bystander.metadata.resourceVersion, 'nothing was written about another');
  assert.ok(pids.every(({ isRunning }) => isRunning));
  return times;
}

/** Scenario 2. */
export async function neverLoads(lab: RolloutLab): Promise<void> {
  for (const [name, failurePolicy] of [
    ['never-fail', 'Fail'],
    ['never-ignore', 'Ignore'],
  ] as const) {
    await lab.namespace(name);
    const module = await lab.module(`${name}.wasm`);
    await lab.create(requiresLabel(name, module, 'x', { settings: { labels: 7 }, failurePolicy }));
    const { status } = await lab.reaches(name, 'Error');
    assert.equal(status?.reason, 'InvalidSettings');
    assert.equal(status.servingRevision ?? 0, 0);
    if (failurePolicy === 'Fail') {
      await eventually(async () => assert.match((await lab.refusal(name)) ?? 'admitted', /labels: expected a list/));
    } else {
      await sleep(300);
      assert.equal(await lab.refusal(name), undefined);
    }
    assert.ok(
      lab.replicas.every(({ process }) => process.isRunning),
      'the servers live',
    );
    await lab.change(name, { settings: { labels: ['fine'] } });
    await lab.reaches(name, 'Active');
    await refuses(lab, name, 'fine');
  }
}

/** Scenario 3, with a peer that has the module. */
export async function peersServeModules(lab: RolloutLab): Promise<void> {
  const [first, second] = lab.replicas;
  assert.ok(first && second);
  await enforced(lab, requiresLabel('peers', await lab.module('peers-1.wasm'), 'old'), 'old');
  // Whichever is asked to try it, the other one has no way to the source.
  for (const [blocked, label] of [
    [first, 'one'],
    [second, 'two'],
  ] as const) {
    blocked.road.isBlocked = true;
    const name = `peers-${label}.wasm`;
    const bytes = writeMetadata(await MODULE(), described(name));
    await lab.change('peers', { module: lab.web.put(name, { kind: 'serve', bytes }), settings: { labels: [label] } });
    await lab.reaches('peers', 'Active', ({ readyReplicas }) => readyReplicas === 2);
    await refuses(lab, 'peers', label);
    blocked.road.isBlocked = false;
  }
}

function described(title: string): never {
  const annotations = { 'io.kubewarden.policy.title': title };
  return { protocolVersion: 'v1', mutating: false, rules: [], executionMode: 'kubewarden-wapc', annotations } as never;
}

/** Scenario 3, with no peer that has the module: a replica that comes and cannot load it tries again until it can. */
export async function backoffWithoutPeers(lab: RolloutLab): Promise<void> {
  const module = await lab.module('backoff.wasm');
  await enforced(lab, requiresLabel('backoff', module, 'old'), 'old');
  await using stream = new ReviewStream(lab, 'backoff', { isApiServerOnly: true });
  const [, second] = lab.replicas;
  assert.ok(second);
  await second.process.end('SIGTERM');
  lab.balance();
  await Promise.all(lab.replicas.map(({ folder }) => rm(join(folder, 'data', 'modules'), { recursive: true })));
  await rm(join(second.folder, 'data'), { recursive: true, force: true });
  second.road.isBlocked = true;
  await lab.restartReplica(second);
  // No connection reaches it: it is a pod that is not ready, which answers by the failurePolicy.
  await lab.reaches(
    'backoff',
    'Degraded',
    ({ readyReplicas, totalReplicas }) => readyReplicas === 1 && totalReplicas === 2,
  );
  second.road.isBlocked = false;
  await lab.reaches('backoff', 'Active', ({ readyReplicas }) => readyReplicas === 2);
  assert.deepEqual(
    (await stream.end()).filter(({ what }) => what === 'admitted'),
    [],
  );
}

/** Scenario 4. */
export async function changesUnderLoad(lab: RolloutLab, changes = 8): Promise<void> {
  const module = await lab.module('load.wasm');
  await enforced(lab, requiresLabel('load', module, 'v0'), 'v0');
  await using stream = new ReviewStream(lab, 'load', { width: 4, pauseMs: 2 });
  for (let change = 1; change <= changes; change += 1) {
    const label = `v${change}`;
    const { metadata } = await lab.change('load', { settings: { labels: [label] } });
    const from = stream.verdicts.length;
    const isNew = (): boolean => stream.verdicts.slice(from).some(({ what }) => what === label);
    await lab.eventually(
      async () => assert.ok(isNew()),
      () => `a verdict of ${label}`,
    );
    // Whoever asks after the first new verdict is told that the policy is being updated, or that all of it is done.
    const { status } = await lab.policy('load');
    const isTold = status?.phase !== 'Active' || status.observedGeneration === metadata.generation;
    assert.ok(
      isTold,
      `verdicts mix while the policy says ${JSON.stringify(status)} of generation ${metadata.generation}`,
    );
    await lab.reaches('load', 'Active', ({ servingRevision }) => servingRevision === change + 1);
    const activeAt = performance.now();
    await sleep(150);
    const stale = stream.verdicts.filter(({ sentAt, what }) => sentAt > activeAt && what !== label);
    assert.deepEqual(stale.slice(0, 3), [], `once it says Active, only ${label} answers`);
  }
  const verdicts = await stream.end();
  const failed = verdicts.filter(({ what }) => !/^v\d+$/.test(what));
  assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${verdicts.length} reviews failed`);
}

/** Scenario 9, with the module cache in place. Everything is ended; no source, then not even an API server, answers. */
export async function restartsFromDisk(lab: RolloutLab): Promise<void> {
  await enforced(lab, requiresLabel('restart', await lab.module('restart.wasm'), 'kept'), 'kept');
  await lab.endProcesses('SIGTERM');
  lab.web.isDown = true;
  lab.proxy.cutOff.add('replica');
  try {
    await Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica)));
    await refuses(lab, 'restart', 'kept');
  } finally {
    // Also for the scenarios after this one, when it fails.
    lab.proxy.cutOff.clear();
    lab.controllers.length = 0;
    await lab.addController();
  }
  try {
    await lab.reaches('restart', 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
    await refuses(lab, 'restart', 'kept');
  } finally {
    lab.web.isDown = false;
  }
}

/** Scenario 9, with an empty cache: nobody has the module any more, until the source is back. */
export async function recoversWithoutCache(lab: RolloutLab): Promise<void> {
  await enforced(lab, requiresLabel('empty', await lab.module('empty.wasm'), 'kept'), 'kept');
  await lab.endProcesses('SIGTERM');
  lab.web.isDown = true;
  await Promise.all(lab.replicas.map(({ folder }) => rm(join(folder, 'data'), { recursive: true, force: true })));
  await Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica)));
  lab.controllers.length = 0;
  await lab.addController();
  try {
    const { status } = await lab.reaches('empty', 'Error');
    assert.match(status?.message ?? '', /empty\.wasm/);
    assert.match((await lab.refusal('empty')) ?? 'admitted', /empty\.wasm|denied|failed/);
  } finally {
    // Also for the scenarios after this one, when it fails.
    lab.web.isDown = false;
  }
  const processes = lab.replicas.map(({ process }) => process);
  await lab.reaches('empty', 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
  await refuses(lab, 'empty', 'kept');
  assert.ok(processes.every(({ isRunning }) => isRunning));
}
