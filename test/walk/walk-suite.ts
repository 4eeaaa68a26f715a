// Walks through chapters on a real API server where Portcullis was installed with the command. The admin changes things; what happens is
// asserted by what people see who may only read policies, and by requests at the same moment. The steps depend on each other.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { assertStep } from '../steps/step.ts';
import { WalkLab } from './walk-lab.ts';
import { creation, type WalkChapter, type WalkStep } from './walk-step.ts';
import { Witness } from './witness.ts';

/** The policy that rejects config maps in the namespace of the tenant. */
const GUARD = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/guard';
/** Whether to print commands and their outputs, for people: `WALK=print npm test -- test/walk`. */
const PRINTS = process.env['WALK'] === 'print';
/** Time limit for what takes seconds, and ten times as long on a machine under load. Milliseconds. */
const TIMEOUT_MS = 60_000;

/** @param chapters with the policy {@link GUARD} in one of them */
export function describeWalk(title: string, chapters: readonly WalkChapter[]): void {
  describe(title, { skip: skipWithoutCluster() }, () => {
    let walk: WalkLab;
    let witness: Witness;
    before(async () => {
      walk = await WalkLab.start();
      const { path, object } = creation('configmaps', /rule/);
      witness = new Witness(walk.lab, { policy: GUARD, path, object });
    });
    after(() => (walk as WalkLab | undefined)?.[Symbol.asyncDispose]());

    async function attempt(step: WalkStep): Promise<void> {
      const ended = await walk.sh(step.by, step.sh);
      assertStep(step, ended);
      if (PRINTS) {
        process.stdout.write(`\n${step.by}: ${step.shows}\n$ ${step.sh}\n${ended.output}`);
      }
      for (const { path, object, gets } of step.probes ?? []) {
        assert.match(await walk.lab.answer(path, object), gets, `what is created at ${path}`);
      }
    }

    const take = async (step: WalkStep): Promise<void> =>
      step.by === 'admin' ? await attempt(step) : await eventually(() => attempt(step), { timeoutMs: TIMEOUT_MS });

    for (const chapter of chapters) {
      describe(chapter.title, () => {
        for (const step of chapter.steps) {
          it(`${step.by}: ${step.shows}`, () => take(step));
        }
      });
    }

    it('the reader was at no moment shown something else than what requests got', () => witness.end());
  });
}
