// The shortest chapters of the walk; walk.full.test.ts has all.
import { BAD_POLICY } from './chapters/bad-policy.ts';
import { INSTALLATION } from './chapters/installation.ts';
import { NETWORK_POLICIES } from './chapters/network-policies.ts';
import { describeWalk } from './walk-suite.ts';

describeWalk('two sources, walked by users who may only read policies', [INSTALLATION, BAD_POLICY, NETWORK_POLICIES]);
