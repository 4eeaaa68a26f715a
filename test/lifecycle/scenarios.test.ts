// The scenarios of the lifecycle on an embedded cluster, with processes as its users run them. test/e2e/lifecycle.full.test.ts
// has the same on a real API server.
import { describeScenarios } from './scenario-suite.ts';
import { embeddedTarget } from './rollout-lab-target.ts';

describeScenarios('the lifecycle of policies on an embedded cluster', embeddedTarget);
