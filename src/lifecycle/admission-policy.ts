// What controllers read of an admission policy, whichever of its four kinds it has.
import type { JsonObject, KubernetesObject } from '../resources/index.ts';

/** A module, and what it may use: the spec of a policy, or a member of a group. */
export interface ModuleSpec {
  readonly module: string;
  readonly settings?: JsonObject | null;
  readonly timeoutEvalSeconds?: number;
  readonly contextAwareResources?: readonly { readonly apiVersion: string; readonly kind: string }[];
}

/** What all four kinds have in their spec. */
interface CommonSpec {
  readonly policyServer?: string;
  readonly mode?: 'protect' | 'monitor';
  readonly rules: readonly JsonObject[];
  readonly failurePolicy?: 'Fail' | 'Ignore';
  readonly matchPolicy?: string;
  readonly matchConditions?: readonly JsonObject[];
  readonly objectSelector?: JsonObject;
  readonly namespaceSelector?: JsonObject;
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly message?: string;
}

export interface PolicySpec extends CommonSpec, ModuleSpec {
  readonly mutating: boolean;
}

export interface PolicyGroupSpec extends CommonSpec {
  readonly message: string;
  readonly expression: string;
  readonly policies: Readonly<Record<string, ModuleSpec>>;
}

/** An admission policy of any kind. */
export type AdmissionPolicyObject = KubernetesObject & { readonly spec: PolicySpec | PolicyGroupSpec };

export function isGroup(spec: PolicySpec | PolicyGroupSpec): spec is PolicyGroupSpec {
  return 'policies' in spec;
}

/** What ids begin with, by kind. Upstream's names since 1.37; earlier ones could collide (GHSA-m5vp-9g65-pv6v). */
const PREFIXES: Readonly<Record<string, string>> = {
  ClusterAdmissionPolicy: 'kw.cap',
  AdmissionPolicy: 'kw.ap',
  ClusterAdmissionPolicyGroup: 'kw.capg',
  AdmissionPolicyGroup: 'kw.apg',
};

/**
 * The id of a policy: its entry in the policies file, its path on the policy server, and the name of its webhook
 * configuration. A namespace has no dots, so no two policies share one.
 */
export function policyId({ kind, metadata }: Pick<KubernetesObject, 'kind' | 'metadata'>): string {
  const { namespace, name = '' } = metadata;
  return [PREFIXES[kind], ...(namespace === undefined ? [] : [namespace]), name].join('.');
}
