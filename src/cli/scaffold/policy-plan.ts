// A new policy as its author asks for it, checked before anything is written.
import { dnsLabelProblems, dnsSubdomainProblems } from '../../names/index.ts';
import { allBuiltinKinds, privilegedNames } from '../../resources/index.ts';
import { nearestKey } from '../../values/index.ts';
import { usageError } from '../errors.ts';

/** The kinds of admission policies, by their short names. */
export const POLICY_TYPES = {
  cap: 'ClusterAdmissionPolicy',
  ap: 'AdmissionPolicy',
  capg: 'ClusterAdmissionPolicyGroup',
  apg: 'AdmissionPolicyGroup',
} as const;
export type PolicyType = (typeof POLICY_TYPES)[keyof typeof POLICY_TYPES];

/** `rego` answers reviews, as plain policies of OPA do; `gatekeeper` has a rule `violation`. */
export const LANGUAGES = ['cel', 'rego', 'gatekeeper'] as const;
type Language = (typeof LANGUAGES)[number];

type BuiltinKind = ReturnType<typeof allBuiltinKinds>[number];

/** A policy to be written. All texts are safe to stand in YAML without quotes. */
export interface PolicyPlan {
  readonly name: string;
  readonly type: PolicyType;
  readonly language: Language;
  readonly isMutating: boolean;
  /** The kind whose objects it is for. */
  readonly kind: BuiltinKind;
  /** Of the policy itself; undefined for a policy of the cluster. */
  readonly namespace: string | undefined;
}

/** The flags that describe a policy. */
export interface PlanFlags {
  readonly type: PolicyType;
  readonly language: Language;
  readonly mutating?: true;
  readonly resource: string;
  readonly namespace?: string;
}

const DEFAULT_NAMESPACE = 'default';

/** @throws CliError when flags contradict each other, or a cluster would refuse the policy */
export function planPolicy(name: string, flags: PlanFlags): PolicyPlan {
  const { type, language, mutating: isMutating = false } = flags;
  const isNamespaced = type === 'AdmissionPolicy' || type === 'AdmissionPolicyGroup';
  requireName(name);
  if (isGroupType(type) && (isMutating || language !== 'cel')) {
    throw usageError(
      isMutating
        ? 'members of groups cannot change objects'
        : `a new group has members in CEL, got --language ${language}`,
      isMutating
        ? 'Leave --mutating out, or choose --type cap or ap.'
        : 'Leave --language out: a member may name any module afterwards.',
    );
  }
  if (isMutating && language !== 'cel') {
    throw usageError('--mutating is only used with --language cel', 'Policies in Rego can only validate.');
  }
  if (flags.namespace !== undefined && !isNamespaced) {
    throw usageError(`a ${type} is for the whole cluster, and has no namespace`, 'Choose --type ap or apg.');
  }
  const kind = kindNamed(flags.resource);
  if (isNamespaced) {
    requireForNamespaces(kind, type);
  }
  return { name, type, language, isMutating, kind, namespace: isNamespaced ? namespaceOf(flags) : undefined };
}

export function isGroupType(type: PolicyType): boolean {
  return type.endsWith('Group');
}

function requireName(name: string): void {
  const [problem] = dnsSubdomainProblems(name);
  if (problem !== undefined) {
    throw usageError(`${JSON.stringify(name)} cannot be the name of a policy: ${problem}`);
  }
}

function namespaceOf({ namespace = DEFAULT_NAMESPACE }: PlanFlags): string {
  const [problem] = dnsLabelProblems(namespace);
  if (problem !== undefined) {
    throw usageError(`${JSON.stringify(namespace)} cannot be the name of a namespace: ${problem}`);
  }
  return namespace;
}

/** The kind with this plural, singular or short name, or its plural with a group, as in `deployments.apps`. */
function kindNamed(text: string): BuiltinKind {
  const kinds = allBuiltinKinds();
  const wanted = text.toLowerCase();
  const found = kinds.find(({ resource, singular, shortNames, group }) =>
    [resource, singular, `${resource}.${group}`, ...shortNames].includes(wanted),
  );
  if (found === undefined) {
    const nearest = nearestKey(
      text,
      kinds.map(({ resource }) => resource),
    );
    throw usageError(
      `${text} is no resource of Kubernetes${nearest === undefined ? '' : `: did you mean ${nearest}?`}`,
      'For resources of your own, choose pods, and change the rules and the tests of the policy.',
    );
  }
  return found;
}

/** Refuses what policies of namespaces never see. */
function requireForNamespaces({ group, resource, namespaced }: BuiltinKind, type: PolicyType): void {
  const isPrivileged = privilegedNames({ apiGroups: [group], resources: [resource] }).length > 0;
  if (!namespaced || isPrivileged) {
    throw usageError(
      `an ${type} never sees requests for ${resource}, which ${namespaced ? 'decide what users may do' : 'are in no namespace'}`,
      'Choose --type cap or capg.',
    );
  }
}
