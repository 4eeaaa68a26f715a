// Whether governance works: controllers beside ours, its namespace, and the rights of policies.
import { isRunning, RIGHTS_ROLE } from '../../governance/index.ts';
import { GOVERNANCE_ACCOUNT, OTHER_CONTROLLERS } from '../../governance/access-rules/index.ts';
import { isJsonObject, MANAGED_BY, textsOf } from '../../resources/index.ts';
import { accountOf, reportedRights, rightTexts } from '../rights/account-rights.ts';
import { DEPLOYMENTS } from '../kinds.ts';
import { argumentOf, controllerOf } from './controller-arguments.ts';
import { type Finding, finding } from './finding.ts';
import { isUnread, type Snapshot } from './snapshot.ts';
import { listed } from '../../values/index.ts';

/** Rights that one finding names. */
const MAX_NAMED_RIGHTS = 100;

export function checkGovernance(snapshot: Snapshot): readonly Finding[] {
  if (!isGoverning(snapshot)) {
    return [...checkUngoverned(snapshot), ...(isUnread(snapshot, DEPLOYMENTS) ? checkPolicyRights(snapshot) : [])];
  }
  return [
    ...checkAccount(snapshot),
    ...checkOtherControllers(snapshot),
    ...checkClusterNamespace(snapshot),
    ...checkPolicyRights(snapshot),
  ];
}

/** Whether a controller runs governance; without a controller nothing is known. */
function isGoverning(snapshot: Snapshot): boolean {
  const controller = controllerOf(snapshot);
  return controller !== undefined && argumentOf(controller, '--governance') !== 'false';
}

/** An installation lets the controller impersonate the default account only. */
function checkAccount(snapshot: Snapshot): readonly Finding[] {
  const controller = controllerOf(snapshot);
  const account = (controller && argumentOf(controller, '--governance-account')) ?? GOVERNANCE_ACCOUNT;
  const isUnread = snapshot.unread.some(({ what }) => /role/.test(what));
  const mayImpersonate = snapshot.roles.some(
    ({ kind, rules }) => kind === 'Role' && grantsImpersonation(rules, account),
  );
  return account === GOVERNANCE_ACCOUNT || isUnread || mayImpersonate
    ? []
    : [
        finding(
          'GovernanceAccountRights',
          `serviceaccount/${account} -n ${snapshot.namespace}`,
          'the controller has --governance-account with this name, and no Role lets it impersonate the account, so Policies can read and write nothing',
          'An installation grants that for the default account only. Bind a Role with the verb impersonate on this service account to the controller, or remove the flag.',
        ),
      ];
}

function grantsImpersonation(rules: unknown, account: string): boolean {
  const list: readonly unknown[] = Array.isArray(rules) ? rules : [];
  return list
    .filter(isJsonObject)
    .some(
      (rule) =>
        textsOf(rule['resources']).includes('serviceaccounts') &&
        textsOf(rule['verbs']).includes('impersonate') &&
        (!Object.hasOwn(rule, 'resourceNames') || textsOf(rule['resourceNames']).includes(account)),
    );
}

function checkUngoverned(snapshot: Snapshot): readonly Finding[] {
  const { policies } = snapshot.governance;
  if (controllerOf(snapshot) === undefined || policies.length === 0 || otherControllers(snapshot).length > 0) {
    return [];
  }
  const message = `governance is off, and there are ${policies.length} Policies: nothing applies them`;
  return [finding('GovernanceOff', 'policies', message, 'Set the value governance.enabled, or delete them.')];
}

function checkOtherControllers(snapshot: Snapshot): readonly Finding[] {
  return otherControllers(snapshot).map(({ metadata: { namespace = '', name = '' } }) =>
    finding(
      'GovernanceStopped',
      `deployment/${name} -n ${namespace}`,
      'it is of Open Cluster Management, and reconciles the same kinds: the governance of Portcullis does nothing',
      `Either set the value governance.enabled to false, or stop it: kubectl -n ${namespace} scale deployment ${name} --replicas=0`,
    ),
  );
}

function otherControllers({ deployments }: Snapshot): Snapshot['deployments'] {
  return deployments.filter((one) => OTHER_CONTROLLERS.includes(one.metadata.name ?? '') && isRunning(one));
}

/** The controller never takes over a namespace that somebody else created. */
function checkClusterNamespace(snapshot: Snapshot): readonly Finding[] {
  const controller = controllerOf(snapshot);
  const name = (controller && argumentOf(controller, '--cluster-name')) ?? 'local-cluster';
  const found = snapshot.namespaces.find(({ metadata }) => metadata.name === name);
  const isOurs = Object.entries(MANAGED_BY).every(([key, value]) => found?.metadata.labels?.[key] === value);
  return found === undefined || isOurs
    ? []
    : [
        finding(
          'ClusterNamespaceForeign',
          `namespace/${name}`,
          'it was not created by Portcullis, so Policies are not applied: whoever may write in it would have their rights',
          'Name another one with the value governance.clusterName. Or, if only administrators write in it, add the label app.kubernetes.io/managed-by=portcullis.',
        ),
      ];
}

/** By policy, the rights that the governance account lacks for it. */
function checkPolicyRights({ governance, namespace }: Snapshot): readonly Finding[] {
  const { policies, templates, denied } = governance;
  const reported = [...policies, ...templates].flatMap((one) => reportedRights(accountOf(namespace), one));
  return [...Map.groupBy([...denied, ...reported], ({ policy }) => policy)].map(([policy, rights]) => {
    const [policyNamespace, name] = policy.split('/', 2);
    return finding(
      'PolicyRightsMissing',
      `policy ${name} -n ${policyNamespace}`,
      `the governance account may not: ${listed(rightTexts(rights), MAX_NAMED_RIGHTS, '; ')}`,
      `If Policies should have these rights: portcullis governance rights | kubectl apply -f -, then portcullis install --governance-role ${RIGHTS_ROLE}, with those granted before.`,
    );
  });
}
