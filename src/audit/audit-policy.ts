import { policyEntry } from '../engine/definition/index.ts';
import { type PolicyDefinition, readPolicyDefinition } from '../engine/index.ts';
import type { ProvidedModule } from '../evaluation/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  outsideExemptNamespaces,
  policyId,
  policyMatch,
  type PolicyMatch,
} from '../resources/index.ts';

/** A policy, as an audit judges objects by it. */
export interface AuditPolicy {
  readonly id: string;
  /** The `metadata.uid` of a policy in a cluster. */
  readonly uid?: string;
  /** As users write it: `cap/pinned-images`, `ap/shop/pinned-images`. */
  readonly name: string;
  readonly definition: PolicyDefinition;
  /** Undefined: the policy has no rules, and judges whatever it is given. */
  readonly match: PolicyMatch | undefined;
  /** Whether its author wants existing objects to be audited. */
  readonly backgroundAudit: boolean;
  /** Whether the policy is of a namespace, whose author may be a tenant. */
  readonly isForTenant?: boolean;
  /** Modules that are not fetched, by reference. Default: all are. */
  readonly provided?: Readonly<Record<string, ProvidedModule>>;
}

/** What an installation says about the policies of its cluster. */
export interface AuditedInstallation {
  /** See MatchOptions. */
  readonly productNamespace: string;
  /** Namespaces that policies of the cluster never cover. */
  readonly exemptNamespaces: readonly string[];
  /** Folder that `file://./…` is relative to. Default: such modules cannot be loaded. */
  readonly modulesUrl?: URL;
  /** Patterns of host capabilities that policies of namespaces may use. Default: none. */
  readonly tenantCapabilities?: readonly string[];
}

/** A policy that cannot be read, and why. */
export interface UnreadablePolicy {
  readonly name: string;
  readonly problems: readonly string[];
}

/** The policy of an object; of a spec that only another version understands why not. */
export function auditPolicy(
  policy: AdmissionPolicyObject,
  { productNamespace, exemptNamespaces, modulesUrl, tenantCapabilities = [] }: AuditedInstallation,
): AuditPolicy | UnreadablePolicy {
  const id = policyId(policy);
  const name = auditPolicyName(policy);
  const { uid } = policy.metadata;
  const isForTenant = policy.metadata.namespace !== undefined;
  // Absent in manifests, which have no defaults yet.
  const { backgroundAudit = true } = policy.spec as { readonly backgroundAudit?: boolean };
  try {
    const entry = policyEntry(policy, {
      hostCapabilities: isForTenant ? tenantCapabilities : ['*'],
      ...(modulesUrl === undefined ? {} : { modulesUrl }),
    });
    const { definition, faults = [] } = readPolicyDefinition(id, entry);
    if (definition === undefined) {
      return { name, problems: faults.map(({ path, message }) => `${['spec', ...path].join('.')}: ${message}`) };
    }
    const ownWebhook = policy.metadata.annotations?.[ANNOTATIONS.webhook] === 'Own';
    const match = policyMatch(policy, { productNamespace, ownWebhook });
    return {
      id,
      ...(uid === undefined ? {} : { uid }),
      name,
      definition,
      match: isForTenant
        ? match
        : { ...match, namespaceSelector: outsideExemptNamespaces(match.namespaceSelector, exemptNamespaces) },
      backgroundAudit,
      isForTenant,
    };
  } catch {
    // Stored before its schema was: rules that are no list, and the like.
    return { name, problems: ['spec: expected that of an admission policy'] };
  }
}

/** As users write it. The prefix of an id is the short name of its kind. */
export function auditPolicyName(policy: AdmissionPolicyObject): string {
  const id = policyId(policy);
  const { namespace } = policy.metadata;
  const [, short = ''] = id.split('.', 2);
  const rest = id.slice(`kw.${short}.`.length);
  return namespace === undefined ? `${short}/${rest}` : `${short}/${namespace}/${rest.slice(namespace.length + 1)}`;
}
