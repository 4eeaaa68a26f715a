// The Lease by which auditors know of each other.
import { type Lease, LEASES } from '../../runtime/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import { REPORT_LABELS } from '../access-rules/report-labels.ts';

/** Names of Leases begin with it. */
const NAME_PREFIX = 'portcullis-auditor-';

interface MemberLease {
  readonly namespace: string;
  /** Of the member. */
  readonly id: string;
  readonly holder: string;
  readonly leaseDurationMs: number;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly renewedAt: number;
}

/** A Lease as a member writes it. @param before as it is stored */
export function memberLease(member: MemberLease, before: Lease | undefined): Lease {
  const { namespace, id, holder, leaseDurationMs, annotations, renewedAt } = member;
  const renewTime = `${new Date(renewedAt).toISOString().slice(0, -1)}000Z`;
  return {
    apiVersion: apiVersionOf(LEASES),
    kind: LEASES.kind,
    metadata: {
      ...(before?.metadata ?? { namespace, name: `${NAME_PREFIX}${id}` }),
      labels: REPORT_LABELS,
      annotations,
    },
    spec: {
      acquireTime: renewTime,
      ...before?.spec,
      holderIdentity: holder,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      renewTime,
    },
  };
}

/** The Lease of a member that ends: others need not wait. */
export function releasedLease(lease: Lease): Lease {
  return { ...lease, spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1 } };
}

/** Whether the member of a Lease ended in order. */
export function isReleased({ spec }: Lease): boolean {
  return (spec?.holderIdentity ?? '') === '';
}

/** The id of the member that a Lease is of; undefined: it is another Lease. */
export function memberIdOf({ metadata: { name = '' } }: Lease): string | undefined {
  return name.startsWith(NAME_PREFIX) ? name.slice(NAME_PREFIX.length) : undefined;
}
