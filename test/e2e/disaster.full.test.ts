// The disaster on a real API server with etcd.
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { realTarget } from '../lifecycle/rollout-lab-target.ts';
import { describeDisasters } from '../lifecycle/disaster-suite.ts';

describeDisasters('everything is lost on a real API server', realTarget, { skip: skipWithoutCluster() });
