// Disasters on an embedded cluster. The full run has all of them, on a real API server, too.
import { REPRESENTATIVE_DISASTERS } from './disaster-cases.ts';
import { describeDisasters } from './disaster-suite.ts';
import { embeddedTarget } from './rollout-lab-target.ts';

describeDisasters('everything is lost on an embedded cluster', embeddedTarget, REPRESENTATIVE_DISASTERS);
