// Scenario 6: rollback by annotations and by the command.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ANNOTATIONS } from '../../src/resources/index.ts';
import { example, moduleBytes } from '../server/harness.ts';
import { LabProcess } from './rollout-lab-process.ts';
import { requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { ReviewStream } from './scenario-stream.ts';
import { enforced, refuses } from './scenario-updates.ts';

/** Runs `portcullis rollout …`, which must succeed. */
async function rollout(lab: RolloutLab, ...args: readonly string[]): Promise<void> {
  const process = new LabProcess(
    'rollout',
    ['rollout', ...args, '--kubeconfig', await lab.kubeconfig('admin')],
    lab.folder,
    {
      isLogging: false,
    },
  );
  assert.equal(await process.exit, 0, process.tail);
}

async function servesRevision(lab: RolloutLab, name: string, revision: number, label: string): Promise<void> {
  await lab.reaches(name, 'Active', ({ servingRevision }) => servingRevision === revision);
  await refuses(lab, name, label);
}

/** A revision serves the same code as before, although its module address leads elsewhere now. */
export async function undoesAndPins(lab: RolloutLab): Promise<void> {
  const name = 'back';
  const module = await lab.module('back.wasm');
  await enforced(lab, requiresLabel(name, module, 'one'), 'one');
  await lab.change(name, { settings: { labels: ['two'] } });
  await servesRevision(lab, name, 2, 'two');
  await using stream = new ReviewStream(lab, name);

  // The address has another module now, which would reject these settings.
  lab.web.put('back.wasm', { kind: 'serve', bytes: await moduleBytes(example('namespace-owner')) });
  await lab.annotate(name, { [ANNOTATIONS.rollbackTo]: 'previous' });
  await servesRevision(lab, name, 3, 'one');
  const undone = await lab.policy(name);
  assert.match(String(undone.spec['module']), /back\.wasm@sha256:[0-9a-f]{64}$/);
  assert.equal(undone.metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
  const [, , third] = await lab.revisions(name);
  assert.equal(third?.spec.rollbackOf, 1);

  await rollout(lab, 'undo', `cap/${name}`, '--to-revision', '2');
  await servesRevision(lab, name, 4, 'two');
  assert.equal((await lab.revisions(name))[3]?.spec.rollbackOf, 2);

  await pins(lab, name);
  await unknownRevision(lab, name);
  const verdicts = await stream.end();
  assert.deepEqual(verdicts.filter(({ what }) => !['one', 'two', 'three'].includes(what)).slice(0, 3), []);
}

async function pins(lab: RolloutLab, name: string): Promise<void> {
  await rollout(lab, 'pin', `cap/${name}`, '--revision', '3');
  await lab.reaches(name, 'RolledBack', ({ servingRevision }) => servingRevision === 3);
  await refuses(lab, name, 'one');
  // A GitOps controller keeps applying its spec.
  const applied = { settings: { labels: ['three'] } };
  await lab.change(name, applied);
  await lab.reaches(name, 'RolledBack', ({ servingRevision }) => servingRevision === 3);
  const { metadata } = await lab.policy(name);
  for (let time = 0; time < 5; time += 1) {
    await lab.change(name, applied);
    await sleep(50);
  }
  const after = await lab.policy(name);
  assert.equal(after.metadata.generation, metadata.generation, 'the spec is not overwritten');
  assert.deepEqual(after.spec['settings'], applied.settings);
  await refuses(lab, name, 'one');
  const { length } = await lab.revisions(name);
  await rollout(lab, 'unpin', `cap/${name}`);
  await servesRevision(lab, name, length, 'three');
}

async function unknownRevision(lab: RolloutLab, name: string): Promise<void> {
  const before = await lab.policy(name);
  await lab.annotate(name, { [ANNOTATIONS.rollbackTo]: '999' });
  await lab.eventually(
    async () => {
      const { metadata } = await lab.policy(name);
      assert.equal(metadata.annotations?.[ANNOTATIONS.rollbackTo], undefined);
    },
    () => 'the annotation to be removed',
  );
  const after = await lab.policy(name);
  assert.deepEqual(after.spec, before.spec);
  await refuses(lab, name, 'three');
}
