// Scenarios 1 to 4 and 9: updates of policies, and their effects on requests.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeMetadata } from '../../src/modules/index.ts';
import type { JsonObject } from '../../src/resources/index.ts';
import { example, moduleBytes } from '../server/harness.ts';
import { kind, labelOf, type Policy, requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { RELAXED_PAUSE_MS, ReviewStream } from './scenario-stream.ts';

/** Creates a policy for a new namespace, and waits until it is enforced. */
export async function enforced(lab: RolloutLab, policy: Policy, label: string): Promise<void> {
  const name = policy.metadata.name ?? '';
  await lab.namespace(name);
  await lab.create(policy);
  await lab.reaches(name, 'Active', ({ readyReplicas, totalReplicas }) => readyReplicas === totalReplicas);
  await refuses(lab, name, label);
}

/** Waits until the API server rejects objects without this label: it learns of webhooks a moment late. */
export async function refuses(lab: RolloutLab, name: string, label: string): Promise<void> {
  await lab.eventually(
    async () => assert.equal(labelOf(await lab.refusal(name)), label),
    () => `objects without the label ${label} to be rejected`,
  );
}

/** An invalid change. */
interface BadUpdate {
  readonly name: string;
  readonly spec: (lab: RolloutLab) => Promise<JsonObject>;
  /** Reverts it, besides the module and settings; not always by a change of the policy. */
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
    reason: /^ModuleNotFound$/,
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

/** Scenario 1. Returns the longest time until the status showed a reason. Milliseconds. */
export async function badUpdatesChangeNothing(lab: RolloutLab): Promise<readonly number[]> {
  const module = await lab.module('updates.wasm');
  await enforced(lab, requiresLabel('updates', module, 'old'), 'old');
  await enforced(lab, requiresLabel('bystander', await lab.module('bystander.wasm'), 'mine'), 'mine');
  const bystander = await lab.policy('bystander');
  const pids = lab.replicas.map(({ process }) => process);
  await using stream = new ReviewStream(lab, 'updates', { pauseMs: RELAXED_PAUSE_MS });
  await using beside = new ReviewStream(lab, 'bystander', { pauseMs: RELAXED_PAUSE_MS });
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
  // Without a change of the policy: the source now has the module.
  await lab.change('updates', { module: lab.web.put('late.wasm', { kind: 'status', status: 503 }) });
  const waiting = await lab.reaches('updates', 'Degraded');
  assert.ok(waiting.status?.nextRetry !== undefined, 'the next retry is in the status');
  await lab.module('late.wasm');
  await lab.reaches('updates', 'Active');
  await stream.end();
  await beside.end();
  assert.deepEqual(stream.other('old').slice(0, 3), []);
  assert.deepEqual(beside.other('mine').slice(0, 3), []);
  assert.ok(stream.verdicts.length > 50 && beside.verdicts.length > 50, 'reviews never stopped');
  const after = await lab.policy('bystander');
  assert.equal(after.metadata.resourceVersion, bystander.metadata.resourceVersion, 'the other policy was not written');
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
    const enforced = status.conditions?.find(({ type }) => type === 'Enforced');
    assert.deepEqual([enforced?.status, enforced?.reason], ['False', 'NotServedYet']);
    assert.match(status.message ?? '', /the policy is not enforced yet$/);
    // Longer than it takes to write webhook configurations.
    await sleep(300);
    assert.equal(await lab.refusal(name), undefined);
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
  // Either replica may pre-validate it; the other one cannot reach the source.
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

/** Scenario 3, without a peer or a controller that has the module: a new replica that cannot load it retries until it can. */
export async function backoffWithoutPeers(lab: RolloutLab): Promise<void> {
  const module = await lab.module('backoff.wasm');
  await enforced(lab, requiresLabel('backoff', module, 'old'), 'old');
  await using stream = new ReviewStream(lab, 'backoff', { isApiServerOnly: true, pauseMs: RELAXED_PAUSE_MS });
  const [, second] = lab.replicas;
  assert.ok(second);
  await second.process.end('SIGTERM');
  lab.balance();
  await Promise.all(lab.replicas.map(({ folder }) => rm(join(folder, 'data', 'modules'), { recursive: true })));
  await Promise.all(lab.copies.map((folder) => rm(folder, { recursive: true })));
  await rm(join(second.folder, 'data'), { recursive: true, force: true });
  second.road.isBlocked = true;
  await lab.restartReplica(second);
  // It gets no connections, like a pod that is not ready; its failurePolicy answers.
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
    // After the first new verdict, the status says that the policy is updating, or has been updated.
    const { status } = await lab.policy('load');
    const isTold = status?.phase !== 'Active' || status.observedGeneration === metadata.generation;
    assert.ok(
      isTold,
      `verdicts mix while the status is ${JSON.stringify(status)} of generation ${metadata.generation}`,
    );
    await lab.reaches('load', 'Active', ({ servingRevision }) => servingRevision === change + 1);
    const activeAt = performance.now();
    await sleep(150);
    const stale = stream.verdicts.filter(({ sentAt, what }) => sentAt > activeAt && what !== label);
    assert.deepEqual(stale.slice(0, 3), [], `once it is Active, only ${label} answers`);
  }
  const verdicts = await stream.end();
  const failed = verdicts.filter(({ what }) => !/^v\d+$/.test(what));
  assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${verdicts.length} reviews failed`);
}

/** Scenario 9, with the module cache. All processes stop; first the sources, then also the API server, are down. */
export async function restartsFromDisk(lab: RolloutLab): Promise<void> {
  await enforced(lab, requiresLabel('restart', await lab.module('restart.wasm'), 'kept'), 'kept');
  await lab.endProcesses('SIGTERM');
  lab.web.isDown = true;
  lab.proxy.cutOff.add('replica');
  try {
    await Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica)));
    await refuses(lab, 'restart', 'kept');
  } finally {
    // Restored for later scenarios, even after a failure.
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

/** Scenario 9, for a policy in monitor mode, and beside it one that protects; no other policy of the lab matches Secrets. */
export async function monitorRejectsNothing(lab: RolloutLab): Promise<void> {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE'] }];
  const create = (namespace: string): Promise<unknown> =>
    lab.cluster.create(
      kind('v1', 'Secret'),
      { apiVersion: 'v1', kind: 'Secret', metadata: { generateName: 'probe-', namespace } },
      { dryRun: true },
    );
  for (const mode of ['monitor', 'protect']) {
    await lab.namespace(mode);
    await lab.create(requiresLabel(mode, await lab.module(`${mode}.wasm`), 'kept', { mode, rules }));
    // A replica that has just started may not count yet, and gets reviews.
    await lab.reaches(mode, 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
    if (mode === 'monitor') {
      await create('monitor');
      await lab.endProcesses('SIGKILL');
      await create('monitor');
      await Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica)));
      lab.controllers.length = 0;
      await lab.addController();
    } else {
      await assert.rejects(create('protect'), /has no label "kept"/);
      await create('monitor');
    }
  }
}

/** Scenario 9, with an empty cache: the module is unavailable until its source is back. */
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
    // Restored for later scenarios, even after a failure.
    lab.web.isDown = false;
  }
  const processes = lab.replicas.map(({ process }) => process);
  await lab.reaches('empty', 'Active', ({ readyReplicas }) => readyReplicas === lab.replicas.length);
  await refuses(lab, 'empty', 'kept');
  assert.ok(processes.every(({ isRunning }) => isRunning));
}
