// RBAC rules for the kinds that context-aware policies declare, and for those of parameters.
import type { ApiResource, Discovery } from '../../cluster/index.ts';
import { isGroupSpec, policyId, snapshotOf } from '../../resources/index.ts';
import type {
  AccessRule,
  AdmissionPolicyObject,
  AdmissionPolicySpec,
  ContextAwareResource,
  PolicyParameters,
  PolicyRevision,
} from '../../resources/index.ts';

/** A declared kind, with the policies that declare it. */
export interface DeclaredKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly policies: readonly string[];
}

const READ: readonly string[] = ['get', 'list', 'watch'];
/** The resource of access reviews, which can only be created (`kubernetes/can_i`). */
const ACCESS_REVIEWS = { group: 'authorization.k8s.io', resource: 'subjectaccessreviews' } as const;
const ACCESS_REVIEW_RULE: AccessRule = {
  apiGroups: [ACCESS_REVIEWS.group],
  resources: [ACCESS_REVIEWS.resource],
  verbs: ['create'],
};

/**
 * The only rule that lets policies create objects. Granted where it is declared, if an administrator allows the
 * controller to grant it.
 */
export const ACCESS_REVIEW_RULES: readonly AccessRule[] = [ACCESS_REVIEW_RULE];

/** States in which a replica may evaluate the revision, now or later. */
const ACTIVE_STATES: ReadonlySet<string> = new Set(['Candidate', 'Validated', 'Staged', 'Serving']);

/** The kinds that a policy may read, and that of its parameters; none for namespaced policies. */
export function kindsOfPolicy({ metadata, spec }: AdmissionPolicyObject): readonly ContextAwareResource[] {
  return metadata.namespace === undefined ? kindsOfSpec(spec) : [];
}

/** The kinds that a revision may read in its state. */
export function kindsOfRevision(revision: PolicyRevision): readonly ContextAwareResource[] {
  const { spec, status } = revision;
  return spec.policy.namespace === undefined && ACTIVE_STATES.has(status?.state ?? 'Candidate')
    ? kindsOfSpec(snapshotOf(revision))
    : [];
}

function kindsOfSpec(spec: AdmissionPolicySpec): readonly ContextAwareResource[] {
  // Kinds of policies without context awareness lack this field.
  const uses: readonly object[] = isGroupSpec(spec) ? Object.values(spec.policies) : [spec];
  return uses.flatMap((use) => {
    const { contextAwareResources = [], parameters } = use as ContextAwareUse;
    const { resource } = parameters?.from ?? {};
    return resource === undefined
      ? contextAwareResources
      : [...contextAwareResources, { apiVersion: resource.apiVersion, kind: resource.kind }];
  });
}

interface ContextAwareUse {
  readonly contextAwareResources?: readonly ContextAwareResource[];
  readonly parameters?: PolicyParameters;
}

/** The kinds of policies and revisions, without duplicates and in a fixed order. */
export function declaredKinds(
  policies: readonly AdmissionPolicyObject[],
  revisions: readonly PolicyRevision[],
): readonly DeclaredKind[] {
  const kinds = new Map<string, { readonly resource: ContextAwareResource; readonly policies: Set<string> }>();
  const declare = (id: string, resources: readonly ContextAwareResource[]): void => {
    for (const resource of resources) {
      const text = `${resource.apiVersion} ${resource.kind}`;
      const known = kinds.get(text) ?? { resource, policies: new Set() };
      known.policies.add(id);
      kinds.set(text, known);
    }
  };
  for (const policy of policies) {
    declare(policyId(policy), kindsOfPolicy(policy));
  }
  for (const revision of revisions) {
    declare(revision.spec.policyId, kindsOfRevision(revision));
  }
  return [...kinds]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([
        ,
        {
          resource: { apiVersion, kind },
          policies: ids,
        },
      ]) => ({ apiVersion, kind, policies: [...ids].toSorted() }),
    );
}

/** A declared kind, with the rule that grants access to it. */
export interface KindAccess {
  readonly declared: DeclaredKind;
  readonly rule: AccessRule;
}

export interface ContextAwareAccess {
  readonly known: readonly KindAccess[];
  /** Kinds that the cluster does not serve. */
  readonly unknown: readonly DeclaredKind[];
}

/** Resolves kinds to resources of the cluster. @throws ApiError, ClusterError */
export async function contextAwareAccess(
  declared: readonly DeclaredKind[],
  discovery: Pick<Discovery, 'find'>,
  signal: AbortSignal,
): Promise<ContextAwareAccess> {
  const known: KindAccess[] = [];
  const unknown: DeclaredKind[] = [];
  for (const kind of declared) {
    const resource = await discovery.find(kind.apiVersion, kind.kind, { signal });
    if (resource === undefined) {
      unknown.push(kind);
    } else {
      known.push({ declared: kind, rule: ruleOf(resource) });
    }
  }
  return { known, unknown };
}

function ruleOf({ group, resource }: ApiResource): AccessRule {
  const isAccessReview = group === ACCESS_REVIEWS.group && resource === ACCESS_REVIEWS.resource;
  return isAccessReview ? ACCESS_REVIEW_RULE : { apiGroups: [group], resources: [resource], verbs: READ };
}

/** One rule for all resources of a group with the same verbs, in a fixed order. */
export function contextAwareRules(access: readonly KindAccess[]): readonly AccessRule[] {
  const rules = new Map<
    string,
    { readonly group: string; readonly verbs: readonly string[]; readonly resources: Set<string> }
  >();
  for (const { rule } of access) {
    const [group = ''] = rule.apiGroups;
    const key = `${group} ${rule.verbs.join(',')}`;
    const known = rules.get(key) ?? { group, verbs: rule.verbs, resources: new Set() };
    for (const resource of rule.resources) {
      known.resources.add(resource);
    }
    rules.set(key, known);
  }
  return [...rules]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { group, verbs, resources }]) => ({ apiGroups: [group], resources: [...resources].toSorted(), verbs }));
}
