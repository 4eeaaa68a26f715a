// RBAC rules as a security reviewer reads them: each right once, with the reason why the controller needs it.
import type { AccessRule } from '../../resources/index.ts';
import { commented } from './comments.ts';

const POLICY_SERVER_OBJECTS = 'What a PolicyServer runs with. In this namespace only.';

/** Why the controller has a right, by resource and group. Rights that the manifest shows without a comment only read. */
const REASONS: Readonly<Record<string, string>> = {
  'clusteradmissionpolicies.policies.kubewarden.io':
    'Patches the spec for a rollback that a user requests, by an annotation of the policy. Creates and deletes no policy.',
  'clusteradmissionpolicies/status.policies.kubewarden.io': 'Reports what is enforced, and what failed.',
  'policyservers.policies.kubewarden.io':
    "Removes Kubewarden's finalizer when a PolicyServer that was taken over is deleted.",
  'validatingwebhookconfigurations.admissionregistration.k8s.io':
    "The webhooks of policies, and the one for the product's own kinds. RBAC cannot restrict this to names that begin with portcullis- or namespaced-portcullis-, and API servers call no admission policy for webhook configurations: a thief of the token of this account can change what the cluster admits.",
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': 'The same for mutating policies.',
  events: 'Events about policies, in the namespaces of the policies.',
  'clusterroles.rbac.authorization.k8s.io':
    'Each PolicyServer has a ClusterRole, for the objects that its context-aware policies read, and a binding. RBAC cannot restrict this to a prefix of names: the ValidatingAdmissionPolicy portcullis-cluster-roles does. Without the verbs escalate and bind, API servers let this account grant only rights that it has.',
  'subjectaccessreviews.authorization.k8s.io':
    'Whether the author of a policy of a namespace may read or write there what the policy matches and reads.',
  namespaces: 'To grant it to policy servers, which select policies by the labels of namespaces.',
  'policyrevisions.portcullis.dev': 'Each version of a policy is a revision.',
  'policyrevisions/status.portcullis.dev': 'The state of each revision in its rollout.',
  'policyexceptions/status.portcullis.dev':
    'Accepts exceptions, and says which are in force. Creates, changes and deletes none.',
  'policyserverreplicas.portcullis.dev':
    'Deletes the reports of replicas that are gone. The other verbs are here to grant them to policy servers, which write their reports.',
  'controllerreplicas.portcullis.dev':
    'The address of each controller, which has copies of modules for policy servers.',
  'policyserverreplicas/status.portcullis.dev': 'To grant it to policy servers, which write their reports.',
  'networkpolicystatuses.portcullis.dev':
    'What network providers do with each NetworkPolicy: the NetworkPolicy owns the object. Deleted when that is switched off.',
  'networkpolicyproviders.portcullis.dev': 'The network providers that are detected.',
  'networkpolicystatuses/status.portcullis.dev': 'Reports what network providers support.',
  'leases.coordination.k8s.io': 'Leader election, and leases of replicas outside of the cluster.',
  secrets: 'The CA, and the certificates of the controller and of policy servers. In this namespace only.',
  'deployments.apps': POLICY_SERVER_OBJECTS,
  services: POLICY_SERVER_OBJECTS,
  'poddisruptionbudgets.policy': POLICY_SERVER_OBJECTS,
  'networkpolicies.networking.k8s.io': POLICY_SERVER_OBJECTS,
  'policies.policy.open-cluster-management.io':
    'Copies the Policies of users to the namespace of the cluster, and changes and deletes these copies only.',
  'policies/status.policy.open-cluster-management.io': 'Reports compliance, and why policies are pending.',
  'policies/finalizers.policy.open-cluster-management.io':
    'Objects of policy templates belong to the copy of their Policy, whose deletion waits for them.',
  'configurationpolicies.policy.open-cluster-management.io':
    'Applies the templates of Policies, in the namespace of the cluster.',
  'certificatepolicies.policy.open-cluster-management.io':
    'Applies the templates of Policies, in the namespace of the cluster.',
  'roles.rbac.authorization.k8s.io':
    'Each PolicyServer may read revisions and report. Without the verbs escalate and bind, API servers let this account grant only rights that it has.',
};

/** The same for rights to objects with certain names. */
const REASONS_OF_NAMED: Readonly<Record<string, string>> = {
  serviceaccounts:
    'Policies read and write with the rights of this account only: the controller has no rights to what they are about.',
  'validatingadmissionpolicies.admissionregistration.k8s.io':
    'Accepts only exceptions that were created while API servers asked who may except.',
  'deployments.apps': 'Governance does nothing while these controllers of Open Cluster Management run.',
};

/** The order of verbs in a rule. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];

/** The same rights with each resource in one rule, with reasons as comments. */
export function explainedRules(rules: readonly AccessRule[]): readonly AccessRule[] {
  const verbsOf = new Map<string, Set<string>>();
  for (const { apiGroups, resources, verbs } of rules.filter(({ resourceNames }) => resourceNames === undefined)) {
    for (const key of apiGroups.flatMap((group) => resources.map((resource) => keyOf(group, resource)))) {
      verbsOf.set(key, new Set([...(verbsOf.get(key) ?? []), ...verbs]));
    }
  }
  const merged = Map.groupBy(verbsOf, ([key, verbs]) => JSON.stringify([groupOf(key), sorted(verbs)]));
  const named = rules.filter(({ resourceNames }) => resourceNames !== undefined);
  return [...[...merged.values()].map(ruleOfSame), ...named.map(explainedNames)];
}

/** A rule for some names. Their groups and resources are not merged with those of others. */
function explainedNames(rule: AccessRule): AccessRule {
  const keys = rule.apiGroups.flatMap((group) => rule.resources.map((resource) => keyOf(group, resource)));
  const reasons = keys.flatMap((key) => REASONS_OF_NAMED[key] ?? []);
  return reasons.length === 0 ? rule : commented(reasons.join(' '), rule);
}

/** The rule for resources of one group with the same verbs. */
function ruleOfSame(same: readonly (readonly [key: string, verbs: ReadonlySet<string>])[]): AccessRule {
  const [[first, verbs] = ['', new Set<string>()]] = same;
  const reasons = [...new Set(same.flatMap(([key]) => REASONS[key] ?? []))];
  const rule = {
    apiGroups: [groupOf(first)],
    resources: same.map(([key]) => key.slice(0, key.length - suffix(groupOf(key)).length)),
    verbs: sorted(verbs),
  };
  return reasons.length === 0 ? rule : commented(reasons.join(' '), rule);
}

function sorted(verbs: ReadonlySet<string>): readonly string[] {
  return [...verbs].toSorted((a, b) => VERBS.indexOf(a) - VERBS.indexOf(b));
}

function keyOf(group: string, resource: string): string {
  return `${resource}${suffix(group)}`;
}

function groupOf(key: string): string {
  const dot = key.indexOf('.');
  return dot === -1 ? '' : key.slice(dot + 1);
}

function suffix(group: string): string {
  return group === '' ? '' : `.${group}`;
}
