// What an audit has to list for which policies, and what it cannot look at.
import type { ApiResource } from '../cluster/index.ts';
import type { HostedPolicy } from '../evaluation/index.ts';
import { groupResourceOf, groupVersionOf, hasOrAll, type MatchRule, unservedRules } from '../resources/index.ts';
import type { AuditPolicy } from './audit-policy.ts';
import { auditability } from './auditability.ts';
import { type Coverage, NO_COUNTS } from './coverage.ts';
import { kindsOfRules } from './kinds-of-rules.ts';

/** The part of a cluster that is audited. */
export interface AuditScope {
  /** Default: all, and objects of the cluster. */
  readonly namespace?: string;
  /** Default: all kinds. */
  readonly includesKind?: (type: ApiResource) => boolean;
  /** Whether Secrets are read. Default: no. */
  readonly includesSecrets?: boolean;
  /** Whether policies can read a cluster. Default: yes. */
  readonly hasCluster?: boolean;
  /** `group/version` of APIs whose kinds are not known now, see Discovery. Default: none. */
  readonly unavailable?: readonly string[];
  /** Whether `served` is all that there is, so that other kinds are not served. Default: yes. */
  readonly knowsAllKinds?: boolean;
}

/** A policy that judges the objects of a kind. */
export interface KindPolicy {
  readonly id: string;
  readonly name: string;
  /** The namespace of a policy that is for one. */
  readonly namespace?: string;
  readonly assumes?: string;
}

/** The objects of a kind that are listed at once, with the policies that judge them. */
export interface KindListing {
  readonly type: ApiResource;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly policies: readonly KindPolicy[];
}

export interface AuditPlan {
  readonly hosted: readonly HostedPolicy[];
  /** In the order of `served`. */
  readonly listings: readonly KindListing[];
  /** Of what is not listed. */
  readonly coverage: readonly Coverage[];
}

/** @param served what can be listed; the preferred version of a group comes first */
export function planAudit(
  policies: readonly AuditPolicy[],
  served: readonly ApiResource[],
  scope: AuditScope = {},
): AuditPlan {
  const planned = policies.map((policy) => planPolicy(policy, served, scope));
  const kinds = new Map<string, { readonly type: ApiResource; readonly policies: KindPolicy[] }>();
  for (const { policy, types } of planned) {
    for (const type of types) {
      const key = `${groupResourceOf(type)}/${type.version}`;
      const kind = kinds.get(key) ?? { type, policies: [] };
      kinds.set(key, kind);
      kind.policies.push(policy);
    }
  }
  const sorted = [...kinds.values()].toSorted((one, other) => served.indexOf(one.type) - served.indexOf(other.type));
  return {
    hosted: planned.flatMap(({ hosted }) => hosted ?? []),
    listings: sorted.flatMap(({ type, policies: judging }) => listingsOf(type, judging, scope)),
    coverage: planned.flatMap(({ coverage }) => coverage),
  };
}

interface PolicyPlan {
  readonly policy: KindPolicy;
  readonly hosted?: HostedPolicy;
  readonly types: readonly ApiResource[];
  readonly coverage: readonly Coverage[];
}

function planPolicy(audited: AuditPolicy, served: readonly ApiResource[], scope: AuditScope): PolicyPlan {
  const { id, name, definition, isForTenant, provided } = audited;
  const { hasCluster = true, knowsAllKinds = true, includesKind = () => true, includesSecrets = false } = scope;
  const found = auditability(audited, hasCluster);
  const entry = (rest: Omit<Coverage, 'policy' | 'counts'>): Coverage => ({ policy: name, ...rest, counts: NO_COUNTS });
  if ('refusal' in found) {
    return { policy: { id, name }, types: [], coverage: [entry({ state: 'NotAuditable', ...found.refusal })] };
  }
  const { match, refusals, assumes } = found;
  const { namespace } = match;
  const { kinds, unlistable } = kindsOfRules(match, served);
  const isInScope = (type: ApiResource): boolean =>
    includesKind(type) && (scope.namespace === undefined || (type.namespaced && isOf(namespace, scope.namespace)));
  const inScope = kinds.filter(isInScope);
  const isRead = (type: ApiResource): boolean => includesSecrets || type.group !== '' || type.resource !== 'secrets';
  return {
    policy: {
      id,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(assumes === undefined ? {} : { assumes }),
    },
    hosted: {
      id,
      definition,
      match,
      ...(isForTenant === true ? { isForTenant } : {}),
      ...(namespace === undefined ? {} : { namespace }),
      ...(provided === undefined ? {} : { provided }),
    },
    types: inScope.filter(isRead),
    coverage: [
      ...refusals.map((refusal) => entry({ state: 'NotAuditable', ...refusal })),
      ...(knowsAllKinds ? kindsNotServed(match.rules, served, scope) : []).map(entry),
      ...unlistable
        .filter(isInScope)
        .map((kind) => entry({ kind, state: 'NotAuditable', reason: 'NotListable', message: UNLISTABLE })),
      ...inScope
        .filter((type) => !isRead(type))
        .map((kind) => entry({ kind, state: 'NotRead', reason: 'Secrets', message: SECRETS })),
    ],
  };
}

/** What no kind is known of: kinds that the cluster does not serve, and those of an API that does not answer. */
function kindsNotServed(
  rules: readonly MatchRule[],
  served: readonly ApiResource[],
  { unavailable = [], includesKind }: AuditScope,
): readonly Omit<Coverage, 'policy' | 'counts'>[] {
  const names = ({ apiGroups, apiVersions }: MatchRule, api: string): boolean => {
    const { group, version } = groupVersionOf(api);
    return hasOrAll(apiGroups, group) && hasOrAll(apiVersions, version);
  };
  const unknown = unavailable.filter((api) => rules.some((rule) => names(rule, api)));
  // Rules for an API that does not answer keep their place, for messages.
  const others = rules.map((rule) => (unknown.some((api) => names(rule, api)) ? { ...rule, resources: [] } : rule));
  return [
    // Kinds that the user names are known.
    ...(includesKind === undefined ? unknown : []).map(
      (api) =>
        ({
          state: 'Failed',
          reason: 'NotDiscovered',
          message: `${api} does not answer: its kinds are not known`,
        }) as const,
    ),
    ...unservedRules(others, served).map(
      ({ field, message }) => ({ state: 'NotServed', reason: 'NotServed', message: `${field}: ${message}` }) as const,
    ),
  ];
}

const UNLISTABLE = 'objects of this kind are not stored, or cannot be listed';
const SECRETS = 'Secrets are read on demand only';

function isOf(policyNamespace: string | undefined, namespace: string): boolean {
  return policyNamespace === undefined || policyNamespace === namespace;
}

/** One list for all, unless only policies of namespaces are for the kind: then one of each of these. */
function listingsOf(type: ApiResource, policies: readonly KindPolicy[], scope: AuditScope): readonly KindListing[] {
  if (scope.namespace !== undefined) {
    return [{ type, namespace: scope.namespace, policies }];
  }
  if (policies.some(({ namespace }) => namespace === undefined)) {
    return [{ type, policies }];
  }
  const byNamespace = Map.groupBy(policies, ({ namespace = '' }) => namespace);
  return [...byNamespace].map(([namespace, own]) => ({ type, namespace, policies: own }));
}
