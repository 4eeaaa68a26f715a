// Refreshes of policies whose tag moves in a real registry.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  ANNOTATIONS,
  type KubernetesObject,
  type RefreshedStatus,
  type ResourceType,
} from '../../src/resources/index.ts';
import { EVENTS } from '../../src/runtime/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { kind, type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import { guest, moduleBytes, moduleVariant } from '../server/harness.ts';
import { Registry } from './registry-lab.ts';

const accept = await moduleBytes(guest('accept'));

/** A module that behaves alike and has other bytes. */
function variant(name: string): Buffer {
  return moduleVariant(accept, name);
}

type EventObject = KubernetesObject & { readonly reason: string; readonly message: string };

const EVENT_OBJECTS = EVENTS as ResourceType<EventObject>;

describe('a refresh', { skip: skipWithoutRegistry(), timeout: 300_000 }, () => {
  const CAP = kind<Policy>('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy');
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }];
  let registry: Registry;
  let lab: PolicyLab;

  before(async () => {
    registry = await Registry.start();
    lab = await PolicyLab.start({ sources: await registry.sources(registry) });
  });
  after(async () => {
    await lab?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  const apply = async (name: string): Promise<Policy> => {
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: { module: `registry://${registry.host}/policies/${name}:v1`, mutating: false, rules },
    };
    await lab.create(policy);
    return await lab.reaches(policy, 'Active');
  };
  const annotate = async (name: string, annotations: Record<string, string | null>): Promise<void> =>
    lab.merge(CAP, { name }, { metadata: { annotations } });
  const refreshed = async (
    name: string,
    value: string,
  ): Promise<Policy & { status: { refreshed: RefreshedStatus } }> => {
    await annotate(name, { [ANNOTATIONS.refresh]: value });
    const policy = await lab.sees(CAP, { name }, (one) => one?.status?.refreshed?.value === value);
    return policy as Policy & { status: { refreshed: RefreshedStatus } };
  };
  const serves = async (name: string, revision: number): Promise<Policy> =>
    (await lab.sees(
      CAP,
      { name },
      (one) => one?.status?.phase === 'Active' && one.status.desiredRevision === revision,
    )) as Policy;
  const revisions = async (name: string): Promise<string[]> => {
    const { items } = await lab.cluster.admin.list(kind('portcullis.dev/v1', 'PolicyRevision'));
    return items.map(({ metadata }) => metadata.name ?? '').filter((one) => one.startsWith(`kw.cap.${name}-`));
  };
  const events = async (name: string): Promise<string[]> => {
    const { items } = await lab.cluster.admin.list(EVENT_OBJECTS, {
      fieldSelector: `involvedObject.name=${name}`,
    });
    return items.filter(({ reason }) => reason === 'Refreshed').map(({ message }) => message);
  };

  it('makes a revision of a tag that has moved, and undo brings back the one before', async () => {
    const first = await registry.push('policies/moving', 'v1', variant('first'));
    await apply('moving');
    const second = await registry.push('policies/moving', 'v1', variant('second'));
    await lab.reconciles('kw.cap.moving');
    assert.deepEqual(await revisions('moving'), ['kw.cap.moving-1'], 'nothing changes until asked');

    const { status } = await refreshed('moving', 'now');
    const message = `revision 2 has new modules: moving: ${second} instead of ${first}`;
    assert.deepEqual(status.refreshed, { value: 'now', result: 'Changed', message });
    await serves('moving', 2);
    assert.deepEqual(await events('moving'), [message]);

    await annotate('moving', { [ANNOTATIONS.rollbackTo]: 'previous' });
    const back = await serves('moving', 3);
    assert.equal((back.spec as { module: string }).module, `registry://${registry.host}/policies/moving:v1@${first}`);
    const again = await refreshed('moving', 'after the rollback');
    assert.equal(again.status.refreshed.result, 'Unchanged');
    assert.equal((await revisions('moving')).length, 3);
  });

  it('makes no revision while the tag is where it was, and each value is handled once', async () => {
    await registry.push('policies/still', 'v1', variant('still'));
    await apply('still');
    const { status } = await refreshed('still', 'one');
    assert.deepEqual(status.refreshed, {
      value: 'one',
      result: 'Unchanged',
      message: 'the modules of revision 1 have not changed',
    });
    assert.deepEqual(await events('still'), [status.refreshed.message]);
    await lab.stopControllers();
    await lab.startControllers();
    const writes = await lab.quiet();
    await lab.reconciles('kw.cap.still');
    await annotate('still', { [ANNOTATIONS.refresh]: null });
    await lab.reconciles('kw.cap.still');
    assert.equal(await lab.quiet(), writes);
    assert.deepEqual(await revisions('still'), ['kw.cap.still-1']);
  });

  it('while the registry is down leaves the revision that serves, and is completed when it is back', async () => {
    await registry.push('policies/down', 'v1', variant('up'));
    const policy = await apply('down');
    const moved = await registry.push('policies/down', 'v1', variant('moved'));
    await registry.stop();
    try {
      const { status } = await refreshed('down', 'now');
      assert.deepEqual(status.refreshed, {
        value: 'now',
        result: 'Unresolved',
        message: 'revision 2 cannot serve: FetchFailed',
      });
      const degraded = await lab.reaches(policy, 'Degraded');
      assert.match(degraded.status?.message ?? '', /revision 1 serves/);
    } finally {
      await registry.resume();
    }
    const { status } = await serves('down', 2);
    assert.equal(status?.refreshed?.result, 'Changed');
    assert.match(status?.refreshed?.message ?? '', new RegExp(moved));
  });

  it('with an invalid value does nothing, and an event says so', async () => {
    await registry.push('policies/odd', 'v1', variant('odd'));
    await apply('odd');
    await annotate('odd', { [ANNOTATIONS.refresh]: 'x'.repeat(65) });
    await lab.reconciles('kw.cap.odd');
    const { items } = await lab.cluster.admin.list(EVENT_OBJECTS, { fieldSelector: 'involvedObject.name=odd' });
    assert.ok(items.some(({ message }) => message.includes(ANNOTATIONS.refresh)));
    assert.deepEqual(await revisions('odd'), ['kw.cap.odd-1']);
  });
});
