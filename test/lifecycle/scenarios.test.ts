// The scenarios of the lifecycle on an embedded cluster, with the processes that users run.
// test/e2e/lifecycle.full.test.ts runs them on a real API server, with more crashes.
import { describeScenarios } from './scenario-suite.ts';
import { embeddedTarget } from './rollout-lab-target.ts';

describeScenarios('the lifecycle of policies on an embedded cluster', embeddedTarget);
