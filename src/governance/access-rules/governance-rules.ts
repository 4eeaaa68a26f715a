// Access rules of the governance controllers and of the governance account.
import {
  type AccessRule,
  GOVERNANCE_GROUP,
  POLICIES_GROUP,
  POLICY_KINDS,
  POLICY_SERVERS,
} from '../../resources/index.ts';

/** The names of the Deployments of Open Cluster Management that reconcile governance kinds. */
export const OTHER_CONTROLLERS: readonly string[] = [
  'governance-policy-propagator',
  'governance-policy-framework',
  'governance-policy-addon-controller',
  'config-policy-controller',
  'cert-policy-controller',
];

/** The default service account that reads and writes the objects of policies. */
export const GOVERNANCE_ACCOUNT = 'portcullis-governance';

/** For owner references that block the deletion of a Policy, where API servers check that (OwnerReferencesPermissionEnforcement). */
const OWNERSHIP: AccessRule = { apiGroups: [GOVERNANCE_GROUP], resources: ['policies/finalizers'], verbs: ['update'] };

/** Verbs for kinds whose objects the controllers create. Suspensions and finalizers are patches. */
const OWNED = ['list', 'watch', 'create', 'update', 'patch', 'delete'];

/** Cluster-wide access rules of the controllers. None of them is a right to objects of policies. */
export const GOVERNANCE_CONTROLLER_RULES: readonly AccessRule[] = [
  { apiGroups: [GOVERNANCE_GROUP], resources: ['policies'], verbs: OWNED },
  {
    apiGroups: [GOVERNANCE_GROUP],
    resources: ['configurationpolicies', 'certificatepolicies'],
    verbs: OWNED,
  },
  { apiGroups: [GOVERNANCE_GROUP], resources: ['policysets'], verbs: ['list', 'watch'] },
  {
    apiGroups: [GOVERNANCE_GROUP],
    resources: ['policies/status', 'configurationpolicies/status', 'certificatepolicies/status', 'policysets/status'],
    verbs: ['update'],
  },
  OWNERSHIP,
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch', 'create'] },
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['list', 'watch'] },
  { apiGroups: ['apps'], resources: ['deployments'], resourceNames: OTHER_CONTROLLERS, verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Access rules of the controllers in the namespace of the governance account. @param account its name */
export function governanceNamespaceRules(account: string): readonly AccessRule[] {
  return [{ apiGroups: [''], resources: ['serviceaccounts'], resourceNames: [account], verbs: ['impersonate'] }];
}

/**
 * Cluster-wide access rules of the governance account: the kinds that a policy may depend on without a grant. Administrators
 * grant everything else.
 */
export const GOVERNANCE_ACCOUNT_RULES: readonly AccessRule[] = [
  {
    apiGroups: [POLICIES_GROUP],
    resources: [...POLICY_KINDS, POLICY_SERVERS].map(({ resource }) => resource),
    verbs: ['get', 'list', 'watch'],
  },
  OWNERSHIP,
];
