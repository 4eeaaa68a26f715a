import type { InstallContext } from '../objects/naming.ts';
import { checkAuditor } from './check-auditor.ts';
import {
  checkController,
  checkAccessGuard,
  checkDefinitions,
  checkInstalled,
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
import { byCause, type Finding, finding, inOrder } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

/** All findings for a cluster, one for each cause, errors first. @param context an installation with default values */
export function diagnose(snapshot: Snapshot, context: InstallContext): readonly Finding[] {
  const elsewhere = checkInstalled(snapshot);
  return inOrder(
    byCause([
      ...checkVersion(snapshot),
      ...(elsewhere ?? checkParts(snapshot, context)),
      ...checkKubewarden(snapshot),
      ...checkRead(snapshot),
    ]),
  );
}

const OTHERS = 'you may not list these objects in all namespaces, so only those were looked at that are in namespace';

/** Kinds whose objects could not be listed, mostly all for one reason: the user has no rights. */
function checkRead({ unread }: Snapshot): readonly Finding[] {
  const action = 'Run this as a user who may list them. What other findings say was read with your rights.';
  return unread.map(({ what, why, isForbidden, within }) => {
    const problem = isForbidden === true ? 'you may not list these objects, so their problems are not found' : why;
    return finding('NotLookedAt', what, within === undefined ? problem : `${OTHERS} ${within}`, action);
  });
}

function checkParts(snapshot: Snapshot, context: InstallContext): readonly Finding[] {
  return [
    ...checkDefinitions(snapshot, context),
    ...checkNamespace(snapshot),
    ...checkController(snapshot),
    ...checkAuditor(snapshot),
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
  ];
}
