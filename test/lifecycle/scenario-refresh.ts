// Scenario 6: a module whose address leads elsewhere changes nothing until a user asks for a refresh.
import assert from 'node:assert/strict';
import { ANNOTATIONS, type PolicyRevision } from '../../src/resources/index.ts';
import { example, moduleBytes, moduleVariant } from '../server/harness.ts';
import { LabProcess } from './rollout-lab-process.ts';
import { requiresLabel, type RolloutLab } from './rollout-lab.ts';
import { endController } from './scenario-crashes.ts';
import { RELAXED_PAUSE_MS, ReviewStream } from './scenario-stream.ts';
import { enforced } from './scenario-updates.ts';

const FILE = 'moving.wasm';

async function variant(name: string): Promise<Uint8Array> {
  return moduleVariant(await moduleBytes(example('required-labels')), name);
}

async function refresh(lab: RolloutLab, name: string): Promise<LabProcess> {
  const args = ['rollout', 'refresh', `cap/${name}`, '--kubeconfig', await lab.kubeconfig('admin')];
  const command = new LabProcess('refresh', args, lab.folder, { isLogging: false });
  await command.exit;
  return command;
}

function digestOf({ status }: PolicyRevision): string | undefined {
  return status?.modules?.[0]?.digest;
}

/** A refresh makes a revision if the module has changed, also when the controller is killed meanwhile. */
export async function refreshesModules(lab: RolloutLab): Promise<void> {
  const name = 'moving';
  const module = lab.web.put(FILE, { kind: 'serve', bytes: await variant('first') });
  await enforced(lab, requiresLabel(name, module, 'one'), 'one');
  await using stream = new ReviewStream(lab, name, { pauseMs: RELAXED_PAUSE_MS });

  const same = await refresh(lab, name);
  assert.match(same.tail, /moving: the modules of revision 1 have not changed/);
  assert.equal((await lab.revisions(name)).length, 1);

  lab.web.put(FILE, { kind: 'serve', bytes: await variant('second') });
  const changed = await refresh(lab, name);
  const [first, second] = await lab.revisions(name);
  assert.ok(first !== undefined && second !== undefined);
  assert.notEqual(digestOf(first), digestOf(second));
  assert.match(
    changed.tail,
    new RegExp(`revision 2 has new modules: moving: ${digestOf(second)} instead of ${digestOf(first)}`),
  );
  await lab.reaches(name, 'Active', ({ servingRevision }) => servingRevision === 2);

  await controllerIsKilled(lab, name);
  await goesBack(lab, name, digestOf(first));
  const verdicts = await stream.end();
  assert.deepEqual(verdicts.filter(({ what }) => what !== 'one').slice(0, 3), []);
  // Replicas lose their caches in a later scenario.
  lab.web.put(FILE, { kind: 'serve', bytes: await variant('first') });
}

/** The next controller completes a refresh, and does not make a second revision for it. */
async function controllerIsKilled(lab: RolloutLab, name: string): Promise<void> {
  lab.web.put(FILE, { kind: 'serve', bytes: await variant('third') });
  for (const when of ['before', 'after'] as const) {
    const before = (await lab.revisions(name)).length;
    const hold = lab.proxy.hold(
      ({ user, method, path }) => user === 'controller' && method === 'POST' && path.endsWith('/policyrevisions'),
      when,
    );
    await lab.annotate(name, { [ANNOTATIONS.refresh]: `killed ${when}` });
    await lab.event(hold.reached, 'the controller to create a revision');
    await endController(lab);
    hold.drop();
    await lab.addController();
    const handled = ({
      refreshed,
      servingRevision,
    }: {
      refreshed?: { value: string };
      servingRevision?: number;
    }): boolean => refreshed?.value === `killed ${when}` && servingRevision === before + 1;
    await lab.reaches(name, 'Active', handled);
    assert.equal((await lab.revisions(name)).length, before + 1);
    lab.web.put(FILE, { kind: 'serve', bytes: await variant('fourth') });
  }
}

async function goesBack(lab: RolloutLab, name: string, digest: string | undefined): Promise<void> {
  const { length } = await lab.revisions(name);
  await lab.annotate(name, { [ANNOTATIONS.rollbackTo]: '1' });
  await lab.reaches(name, 'Active', ({ servingRevision }) => servingRevision === length + 1);
  assert.equal(digestOf((await lab.revisions(name)).at(-1) as PolicyRevision), digest);
}
