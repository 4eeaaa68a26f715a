// The scenarios of the lifecycle, for any API server.
import { after, before, beforeEach, describe, it } from 'node:test';
import { RolloutLab } from './rollout-lab.ts';
import type { LabTarget } from './rollout-lab-target.ts';
import { tenantsNeedCapabilities } from './scenario-capabilities.ts';
import { crashesAtEveryStep, leaderIsReplaced } from './scenario-crashes.ts';
import { exceptsUntilTheSecond } from './scenario-exceptions.ts';
import { mutatesAndCeasesTo } from './scenario-mutating.ts';
import { clusterHasLastWord } from './scenario-order.ts';
import { namesInvalidParameters, seesWhatOthersInject } from './scenario-parameters.ts';
import { refreshesModules } from './scenario-refresh.ts';
import { undoesAndPins } from './scenario-rollback.ts';
import { manyPoliciesAtOnce } from './scenario-scale.ts';
import { monitorInforms, statusIsEnough, tenantsSeeTheirOwn } from './scenario-sight.ts';
import { checksPodTemplates } from './scenario-templates.ts';
import { ANNOTATIONS, OBJECTS, oneTenantStopsNobody } from './scenario-tenants.ts';
import {
  backoffWithoutPeers,
  badUpdatesChangeNothing,
  changesUnderLoad,
  monitorRejectsNothing,
  neverLoads,
  peersServeModules,
  recoversWithoutCache,
  restartsFromDisk,
} from './scenario-updates.ts';

/** Enough policies to measure the cost of one in the time of a test; bench/rollout.ts takes a thousand. */
const MANY = { thorough: 200, quick: 100 };

export interface ScenarioOptions {
  readonly skip?: string | false;
  /** Whether to crash each part at each step on either side of its write. Default: false. */
  readonly isThorough?: boolean;
}

export function describeScenarios(
  title: string,
  open: () => Promise<LabTarget>,
  { skip = false, isThorough = false }: ScenarioOptions = {},
): void {
  describe(title, { skip }, () => {
    let lab: RolloutLab;
    before(async () => {
      lab = await RolloutLab.start(open);
    });
    beforeEach(({ signal }) => {
      lab.signal = signal;
    });
    after(async () => {
      // Undefined if the start failed.
      await (lab as RolloutLab | undefined)?.[Symbol.asyncDispose]();
    });

    it('1: invalid updates change nothing, and the status says why', async () => {
      await badUpdatesChangeNothing(lab);
    });
    it('2: a policy that can never load is in Error, and is not enforced', () => neverLoads(lab));
    it('3: a replica that cannot reach the source fetches modules from its peer', () => peersServeModules(lab));
    it('3: without a peer it retries until it can', () => backoffWithoutPeers(lab));
    it('4: a change under load fails no review, and verdicts mix only while the status says so', () =>
      changesUnderLoad(lab));
    it('an exception has every replica admit an object until its second, and not after', () =>
      exceptsUntilTheSecond(lab));
    it('6: undo, pin and unpin serve a revision unchanged, wherever its module address leads now', () =>
      undoesAndPins(lab));
    it('6: a module that has changed at its address is used after a refresh, as a revision of its own', () =>
      refreshesModules(lab));
    it('7: a user with read access to a policy learns from describe why it fails', () => statusIsEnough(lab));
    it('7: a policy in monitor mode says what it would have rejected', () => monitorInforms(lab));
    it('7: tenants see only their own policies', () => tenantsSeeTheirOwn(lab));
    it('9: with all sources and the API server down, the serving revisions serve after a restart', () =>
      restartsFromDisk(lab));
    it('9: with an empty cache the policy is in Error, and recovers on its own', () => recoversWithoutCache(lab));
    it('9: with all replicas gone, a policy in monitor mode rejects nothing', () => monitorRejectsNothing(lab));
    it('10: a policy with its own webhook starts and stops mutating, and no request fails', () =>
      mutatesAndCeasesTo(lab));
    it('11: policies of the cluster have the last word over those of namespaces', () => clusterHasLastWord(lab));
    it('12: a policy of a namespace without a host capability that it needs says which line to add', () =>
      tenantsNeedCapabilities(lab));
    it('13: what another webhook injects after ours is mutated and validated as well', () => seesWhatOthersInject(lab));
    it('13: parameters that turn invalid are refused, and the status names their namespaces until they are valid', () =>
      namesInvalidParameters(lab));
    for (const [title, source] of Object.entries({ annotations: ANNOTATIONS, objects: OBJECTS })) {
      it(`15: a tenant with invalid ${title} stops no change, and one that is corrected lets it go on`, () =>
        oneTenantStopsNobody(lab, source));
    }
    it('14: policies for pods check the pod templates of workloads that are written', () => checksPodTemplates(lab));
    it('8: many policies at once cost a few writes each, and no requests afterwards', async () => {
      await manyPoliciesAtOnce(lab, isThorough ? MANY.thorough : MANY.quick);
    });
    it('5: a crash at any step of a rollout never ends enforcement, and the rollout completes', () =>
      crashesAtEveryStep(lab, { isThorough }));
    it('5: a leader that is killed during a rollout is replaced', () => leaderIsReplaced(lab));
  });
}
