import type { InstallContext } from '../objects/naming.ts';
import {
  checkController,
  checkAccessGuard,
  checkDefinitions,
  checkLeader,
  checkNamespace,
  checkRoles,
  checkVersion,
} from './check-installation.ts';
import { checkGovernance } from './check-governance.ts';
import { checkKubewarden } from './check-kubewarden.ts';
import { checkNetworkProviders } from './check-network-providers.ts';
import { checkPolicies, checkPolicyServers } from './check-policies.ts';
import { checkReplicas } from './check-replicas.ts';
import { checkCertificates, checkWebhooks } from './check-webhooks.ts';
import { type Finding, finding, inOrder } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

/** All findings for a cluster, errors first. @param context an installation with default values */
export function diagnose(snapshot: Snapshot, context: InstallContext): readonly Finding[] {
  return inOrder([
    ...checkVersion(snapshot),
    ...checkDefinitions(snapshot, context),
    ...checkNamespace(snapshot),
    ...checkController(snapshot),
    ...checkLeader(snapshot),
    ...checkRoles(snapshot),
    ...checkAccessGuard(snapshot, context),
    ...checkWebhooks(snapshot),
    ...checkCertificates(snapshot),
    ...checkPolicyServers(snapshot),
    ...checkPolicies(snapshot),
    ...checkReplicas(snapshot),
    ...checkGovernance(snapshot),
    ...checkNetworkProviders(snapshot),
    ...checkKubewarden(snapshot),
    ...snapshot.unread.map(({ what, why }) =>
      finding('NotLookedAt', what, why, 'Run this as a user who may list them.'),
    ),
  ]);
}
