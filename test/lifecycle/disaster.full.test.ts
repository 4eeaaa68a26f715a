// All disasters on an embedded cluster.
import { DISASTERS } from './disaster-cases.ts';
import { describeDisasters } from './disaster-suite.ts';
import { embeddedTarget } from './rollout-lab-target.ts';

describeDisasters('everything is lost on an embedded cluster', embeddedTarget, DISASTERS);
