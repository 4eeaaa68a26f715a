// What an auditor does for the policies of a cluster: like a single audit, but with one list for each kind.
import type { ApiResource } from '../../cluster/index.ts';
import type { HostedPolicy } from '../../evaluation/index.ts';
import { type AdmissionPolicyObject, groupResourceOf, policyId, type PolicyMatch } from '../../resources/index.ts';
import { auditPolicy, type AuditedInstallation } from '../audit-policy.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import { type AuditScope, type KindPolicy, planAudit } from '../plan-audit.ts';
import type { PolicyOrigin } from './policy-version.ts';

/** A policy object, and what follows from it. */
export interface PlannedPolicy {
  readonly id: string;
  /** Of the object. */
  readonly kind: string;
  readonly name: string;
  readonly origin: PolicyOrigin;
  /** Of kinds that are not listed. */
  readonly coverage: readonly Coverage[];
  /** Absent: it is not audited, and the coverage says why. */
  readonly audited?: {
    readonly policy: KindPolicy;
    readonly hosted: HostedPolicy & { readonly match: PolicyMatch };
    /** By the key of the kind. */
    readonly kinds: ReadonlyMap<string, ApiResource>;
  };
}

const SEVERITY = 'io.kubewarden.policy.severity';
const CATEGORY = 'io.kubewarden.policy.category';
const SEVERITIES = ['info', 'low', 'medium', 'high', 'critical'] as const;

/** Plans the audit of policies, each for itself. */
export function planAuditor(
  objects: readonly AdmissionPolicyObject[],
  served: readonly ApiResource[],
  scope: AuditScope,
  installation: AuditedInstallation,
): readonly PlannedPolicy[] {
  return objects.map((object): PlannedPolicy => {
    const read = auditPolicy(object, installation);
    const origin = originOf(object);
    if (!('id' in read)) {
      const message = read.problems.join('; ');
      const entry: Coverage = { policy: read.name, state: 'Failed', reason: 'Invalid', message, counts: NO_COUNTS };
      return { id: policyId(object), kind: object.kind, name: read.name, origin, coverage: [entry] };
    }
    const { hosted, listings, coverage } = planAudit([read], served, scope);
    const [own] = hosted;
    const policy = listings[0]?.policies[0];
    return {
      id: read.id,
      kind: object.kind,
      name: read.name,
      origin,
      coverage,
      ...(own === undefined || policy === undefined || own.match === undefined
        ? {}
        : {
            audited: {
              policy,
              hosted: { ...own, match: own.match },
              kinds: new Map(listings.map(({ type }) => [keyOfKind(type), type])),
            },
          }),
    };
  });
}

/** Tells kinds apart, and their versions. */
export function keyOfKind(type: ApiResource): string {
  return `${groupResourceOf(type)}/${type.version}`;
}

function originOf({ metadata: { uid = '', generation = 0, annotations = {} } }: AdmissionPolicyObject): PolicyOrigin {
  const severity = SEVERITIES.find((one) => one === annotations[SEVERITY]);
  const category = annotations[CATEGORY];
  return {
    uid,
    generation,
    ...(severity === undefined ? {} : { severity }),
    ...(category === undefined ? {} : { category }),
  };
}
