// Disasters, for any API server.
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Disaster, POLICIES_OF_DISASTERS } from './disaster-cases.ts';
import { RolloutLab } from './rollout-lab.ts';
import type { LabTarget } from './rollout-lab-target.ts';
import { recovers } from './scenario-disaster.ts';
import type { ScenarioOptions } from './scenario-suite.ts';

export function describeDisasters(
  title: string,
  open: () => Promise<LabTarget>,
  disasters: readonly Disaster[],
  { skip = false }: ScenarioOptions = {},
): void {
  describe(title, { skip }, () => {
    let lab: RolloutLab;
    before(async () => {
      lab = await RolloutLab.start(open, { controllers: 0 });
    });
    beforeEach(({ signal }) => {
      lab.signal = signal;
    });
    after(async () => {
      // Undefined if the start failed.
      await (lab as RolloutLab | undefined)?.[Symbol.asyncDispose]();
    });

    for (const [index, disaster] of disasters.entries()) {
      const { order, left, degraded } = disaster;
      it(`${order}, ${left} left, degraded policies ${degraded}: the status says what requests get`, () =>
        recovers(lab, disaster, POLICIES_OF_DISASTERS, String(index)));
    }
  });
}
