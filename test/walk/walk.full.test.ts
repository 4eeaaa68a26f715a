// The five faults that the product promises to end, as their public sources tell them.
import { BAD_POLICY } from './chapters/bad-policy.ts';
import { DEPENDENCIES } from './chapters/dependencies.ts';
import { INSTALLATION } from './chapters/installation.ts';
import { NETWORK_POLICIES } from './chapters/network-policies.ts';
import { STATUS } from './chapters/status.ts';
import { TENANTS } from './chapters/tenants.ts';
import { describeWalk } from './walk-suite.ts';

describeWalk('the five sources, walked by users who may only read policies', [
  INSTALLATION,
  BAD_POLICY,
  STATUS,
  TENANTS,
  DEPENDENCIES,
  NETWORK_POLICIES,
]);
