// The disaster on an embedded cluster. test/e2e/disaster.full.test.ts has it on a real API server.
import { embeddedTarget } from './rollout-lab-target.ts';
import { describeDisasters } from './disaster-suite.ts';

describeDisasters('everything is lost on an embedded cluster', embeddedTarget);
