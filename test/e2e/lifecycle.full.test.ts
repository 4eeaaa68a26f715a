// The scenarios of the lifecycle on a real API server with etcd.
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { realTarget } from '../lifecycle/rollout-lab-target.ts';
import { describeScenarios } from '../lifecycle/scenario-suite.ts';

describeScenarios('the lifecycle of policies on a real API server', realTarget, {
  skip: skipWithoutCluster(),
  isThorough: true,
});
