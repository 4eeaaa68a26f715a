// The disaster, for any API server.
import { after, before, describe, it } from 'node:test';
import { RolloutLab } from './rollout-lab.ts';
import type { LabTarget } from './rollout-lab-target.ts';
import { DISASTERS, recovers } from './scenario-disaster.ts';
import type { ScenarioOptions } from './scenario-suite.ts';

export function describeDisasters(
  title: string,
  open: () => Promise<LabTarget>,
  { skip = false }: ScenarioOptions = {},
): void {
  describe(title, { skip }, () => {
    let lab: RolloutLab;
    before(async () => {
      lab = await RolloutLab.start(open);
    });
    after(async () => {
      // Undefined if the start failed.
      await (lab as RolloutLab | undefined)?.[Symbol.asyncDispose]();
    });

    for (const disaster of DISASTERS) {
      const changes = JSON.stringify(disaster.whileDown ?? disaster.change ?? disaster.flags);
      it(`${disaster.first} start first, ${changes}: the status says what requests get`, () => recovers(lab, disaster));
    }
  });
}
