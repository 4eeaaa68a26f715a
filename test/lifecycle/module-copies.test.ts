// Copies of modules on controllers: policies serve again although all policy servers lost their caches and the source is down.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { CONTROL_NAME, type ControlTls } from '../../src/control/index.ts';
import { CONTROLLER_REPLICAS, type ControllerReplica, type AdmissionPolicyStatus } from '../../src/resources/index.ts';
import { embeddedTarget } from './rollout-lab-target.ts';
import { labelOf, NAMESPACE, requiresLabel, RolloutLab } from './rollout-lab.ts';

/** The disaster: every policy server ends without a chance to stop, and its disk is gone. */
async function loseAllServers(lab: RolloutLab): Promise<void> {
  await Promise.all(lab.replicas.map(({ process }) => process.end('SIGKILL')));
  await Promise.all(lab.replicas.map(({ folder }) => rm(join(folder, 'data'), { recursive: true })));
  lab.web.isDown = true;
}

async function startServers(lab: RolloutLab): Promise<void> {
  await Promise.all(lab.replicas.map((replica) => lab.restartReplica(replica)));
}

async function endOneController(lab: RolloutLab): Promise<void> {
  await lab.controllers[0]?.end('SIGKILL');
}

async function controllers(lab: RolloutLab): Promise<readonly ControllerReplica[]> {
  return (await lab.cluster.list(CONTROLLER_REPLICAS, { namespace: NAMESPACE })).items;
}

function keptOf(status: AdmissionPolicyStatus | undefined): readonly (string | undefined)[] {
  const { status: kept, reason, message } = status?.conditions?.find(({ type }) => type === 'ModulesKept') ?? {};
  return [kept, reason, message];
}

/** The status of an answer of a controller's control port. */
function ask(address: string, path: string, { certFile, keyFile, caFile }: ControlTls): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const [cert, key, ca] = [certFile, keyFile, caFile].map((file) => readFileSync(file));
  const url = `https://${address}${path}`;
  request(url, { cert, key, ca, servername: CONTROL_NAME, agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  })
    .on('error', reject)
    .end();
  return promise;
}

describe('copies of modules on controllers', () => {
  it('serve when all policy servers lost their modules, and the source is down', async ({ signal }) => {
    await using lab = await RolloutLab.start(embeddedTarget, { signal, controllers: 2 });
    const name = 'copies';
    await lab.namespace(name);
    await lab.create(requiresLabel(name, await lab.module('copies.wasm'), 'v0'));
    await lab.reaches(name, 'Active');
    await lab.reaches(name, 'Active', ({ copies }) => copies?.servers === 2 && copies.controllers === 2);
    const { status } = await lab.policy(name);
    assert.deepEqual(keptOf(status), ['True', 'Copied', '2 policy servers and 2 controllers have its modules']);

    await loseAllServers(lab);
    await startServers(lab);
    await lab.eventually(
      async () => assert.equal(labelOf(await lab.refusal(name)), 'v0'),
      () => 'requests to be judged',
    );

    // Again, with one controller only; and another PolicyServer gets nothing from it.
    await loseAllServers(lab);
    await endOneController(lab);
    await startServers(lab);
    await lab.eventually(
      async () => assert.equal(labelOf(await lab.refusal(name)), 'v0'),
      () => 'requests to be judged with one controller',
    );
    await lab.reaches(name, 'Active', ({ copies }) => copies?.servers === 2 && copies.controllers === 1);
    const digest = (await lab.revisions(name))[0]?.status?.modules?.[0]?.digest ?? '';
    assert.match(digest, /^sha256:/);
    const statuses = async (tls: ControlTls, path: string): Promise<readonly number[]> =>
      await Promise.all((await controllers(lab)).map(({ spec }) => ask(spec.controlAddress, path, tls).catch(() => 0)));
    const path = `/modules/${digest}`;
    assert.ok((await statuses(await lab.control.ofPolicyServer('default'), path)).includes(200));
    assert.ok(!(await statuses(await lab.control.ofPolicyServer('other'), path)).includes(200));
    assert.ok(!(await statuses(await lab.control.ofController(), path)).includes(200));
    assert.ok(!(await statuses(await lab.control.ofPolicyServer('default'), '/copies')).includes(200));
    // Certificates from before they named their holders.
    assert.ok(!(await statuses(await lab.control.ofNobody(), path)).includes(200));
    assert.ok(!(await statuses(await lab.control.ofNobody(), '/copies')).includes(200));
  });

  it('serve when policy servers are back before the controller, which has its disk', async ({ signal }) => {
    await using lab = await RolloutLab.start(embeddedTarget, { signal, replicas: 1 });
    await lab.namespace('order');
    await lab.create(requiresLabel('order', await lab.module('order.wasm'), 'v0'));
    await lab.reaches('order', 'Active', ({ copies }) => copies?.controllers === 1);
    await Promise.all(lab.controllers.map((controller) => controller.end('SIGKILL')));
    await loseAllServers(lab);
    await startServers(lab);
    assert.equal(labelOf(await lab.refusal('order')), undefined);
    await lab.addController(false, ['--module-copies-dir', lab.copies[0] ?? '']);
    await lab.eventually(
      async () => assert.equal(labelOf(await lab.refusal('order')), 'v0'),
      () => 'requests to be judged after the controller is back',
    );
    await lab.reaches('order', 'Active', ({ copies }) => copies?.servers === 1 && copies.controllers === 1);
  });

  it('are reported where they are too few', async ({ signal }) => {
    await using lab = await RolloutLab.start(embeddedTarget, { signal, replicas: 1 });
    await lab.namespace('few');
    await lab.create(requiresLabel('few', await lab.module('few.wasm'), 'v0'));
    const { status } = await lab.reaches('few', 'Active', ({ copies }) => copies?.controllers === 1);
    const [kept, reason, message] = keptOf(status);
    assert.deepEqual([kept, reason], ['False', 'TooFewCopies']);
    assert.match(message ?? '', /^1 policy server and 1 controller have its modules: when these are lost/);
    await lab.addReplica();
    await lab.reaches('few', 'Active', (seen) => keptOf(seen)[0] === 'True');
  });
});
