// What context-aware policies of a PolicyServer read of the cluster: exactly what they declare, and nothing else.
import type { ApiResource, Discovery } from '../../cluster/index.ts';
import { isGroupSpec, policyId } from '../../resources/index.ts';
import type { AccessRule, AdmissionPolicyObject, AdmissionPolicySpec, PolicyRevision } from '../../resources/index.ts';

/** A kind that policies declare, and who they are. */
export interface DeclaredKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly policies: readonly string[];
}

interface ContextAwareResource {
  readonly apiVersion: string;
  readonly kind: string;
}

const READ: readonly string[] = ['get', 'list', 'watch'];
/** What asks for a verdict and cannot be read (`kubernetes/can_i`). */
const ASKED_ONLY = { group: 'authorization.k8s.io', resource: 'subjectaccessreviews' } as const;
const ACCESS_REVIEW_RULE: AccessRule = {
  apiGroups: [ASKED_ONLY.group],
  resources: [ASKED_ONLY.resource],
  verbs: ['create'],
};

/** All that policies ever get rights to create. Who declares it gets it where an administrator lets it be passed on. */
export const ACCESS_REVIEW_RULES: readonly AccessRule[] = [ACCESS_REVIEW_RULE];

/** States of revisions that may be asked on some replica, now or later. */
const ALIVE: ReadonlySet<string> = new Set(['Candidate', 'Validated', 'Staged', 'Serving']);

/** The kinds that a policy may read. Those of a namespace may read none. */
export function kindsOfPolicy({ metadata, spec }: AdmissionPolicyObject): readonly ContextAwareResource[] {
  return metadata.namespace === undefined ? kindsOfSpec(spec) : [];
}

/** The kinds that a revision may read, for as long as it may be asked. */
export function kindsOfRevision({ spec, status }: PolicyRevision): readonly ContextAwareResource[] {
  const { policy, snapshot } = spec;
  return policy.namespace === undefined && ALIVE.has(status?.state ?? 'Candidate')
    ? kindsOfSpec(snapshot as unknown as AdmissionPolicySpec)
    : [];
}

function kindsOfSpec(spec: AdmissionPolicySpec): readonly ContextAwareResource[] {
  // Kinds of policies that read nothing have no such field.
  const uses: readonly object[] = isGroupSpec(spec) ? Object.values(spec.policies) : [spec];
  return uses.flatMap((use) => (use as ContextAwareUse).contextAwareResources ?? []);
}

interface ContextAwareUse {
  readonly contextAwareResources?: readonly ContextAwareResource[];
}

/** The kinds of policies, and of their revisions, each once and in a fixed order. */
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

/** A kind that is declared, and what it takes to read it. */
export interface KindAccess {
  readonly declared: DeclaredKind;
  readonly rule: AccessRule;
}

export interface ContextAwareAccess {
  readonly known: readonly KindAccess[];
  /** Kinds that the cluster does not have. */
  readonly unknown: readonly DeclaredKind[];
}

/** What the cluster calls the kinds. @throws ApiError, ClusterError */
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
  const isAsked = group === ASKED_ONLY.group && resource === ASKED_ONLY.resource;
  return isAsked ? ACCESS_REVIEW_RULE : { apiGroups: [group], resources: [resource], verbs: READ };
}

/** One rule for all resources of a group that are read alike, in a fixed order. */
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
