// The scenarios that the lifecycle is proven by, whatever the API server is.
import { after, before, describe, it } from 'node:test';
import { RolloutLab } from './rollout-lab.ts';
import type { LabTarget } from './rollout-lab-target.ts';
import { crashesAtEveryStep, leaderIsReplaced } from './scenario-crashes.ts';
import { mutatesAndCeasesTo } from './scenario-mutating.ts';
import { undoesAndPins } from './scenario-rollback.ts';
import { manyPoliciesAtOnce } from './scenario-scale.ts';
import { statusIsEnough, tenantsSeeTheirOwn } from './scenario-sight.ts';
import {
  backoffWithoutPeers,
  badUpdatesChangeNothing,
  changesUnderLoad,
  neverLoads,
  peersServeModules,
  recoversWithoutCache,
  restartsFromDisk,
} from './scenario-updates.ts';

/** As many as show what a policy costs, in the time that a test has; bench/rollout.ts takes a thousand. */
const MANY = 200;

export function describeScenarios(
  title: string,
  open: () => Promise<LabTarget>,
  options: { readonly skip?: string | false } = {},
): void {
  describe(title, options, () => {
    let lab: RolloutLab;
    before(async () => {
      lab = await RolloutLab.start(open);
    });
    after(async () => {
      // Undefined when the start failed.
      await (lab as RolloutLab | undefined)?.[Symbol.asyncDispose]();
    });

    it('1: updates that cannot be served change nothing for anybody, and say why', async () => {
      await badUpdatesChangeNothing(lab);
    });
    it('2: a policy that can never load is an error, answered by its failurePolicy', () => neverLoads(lab));
    it('3: a replica that cannot reach the source gets modules from its peer', () => peersServeModules(lab));
    it('3: without a peer it tries again until it can', () => backoffWithoutPeers(lab));
    it('4: a change under load fails no review, and verdicts mix only while the status says so', () =>
      changesUnderLoad(lab));
    it('6: undo, pin and unpin serve what a revision was, whatever its address leads to now', () => undoesAndPins(lab));
    it('7: whoever may only get a policy learns from describe why it fails', () => statusIsEnough(lab));
    it('7: tenants see nothing of each other', () => tenantsSeeTheirOwn(lab));
    it('9: with every source and the API server down, what served serves after a restart', () => restartsFromDisk(lab));
    it('9: with an empty cache it is an error, and recovers by itself', () => recoversWithoutCache(lab));
    it('10: a policy with a webhook of its own begins to mutate, and ceases to, and no request fails', () =>
      mutatesAndCeasesTo(lab));
    it('8: many policies at once cost a few writes each, and nothing afterwards', async () => {
      await manyPoliciesAtOnce(lab, MANY);
    });
    it('5: whoever dies at whichever step, enforcement never drops and the rollout finishes', () =>
      crashesAtEveryStep(lab));
    it('5: a leader that is killed is replaced in the middle of a rollout', () => leaderIsReplaced(lab));
  });
}
