// All disasters on a real API server with etcd.
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { DISASTERS } from '../lifecycle/disaster-cases.ts';
import { describeDisasters } from '../lifecycle/disaster-suite.ts';
import { realTarget } from '../lifecycle/rollout-lab-target.ts';

describeDisasters('everything is lost on a real API server', realTarget, DISASTERS, { skip: skipWithoutCluster() });
