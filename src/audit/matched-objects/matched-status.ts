// How many existing objects an exception is for, as an auditor knows it (pure).
import { exceptedPolicyId, groupResourceOf, MAX_AUDIT_MESSAGE, type PolicyException } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { type Coverage, isIncomplete } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';

export type MatchedStatus = NonNullable<NonNullable<PolicyException['status']>['matched']>;

/** What an auditor knows about the objects of an exception. */
export interface KnownObjects {
  /** Findings of its namespace. */
  readonly findings: Iterable<AuditFinding>;
  /** By policy id; undefined: the policy is not known, or not yet. */
  readonly coverage: (policyId: string) => readonly Coverage[] | undefined;
}

/** Undefined: it is not known yet, and what the status says may stay. */
export function matchedStatus(
  exception: PolicyException,
  { findings, coverage }: KnownObjects,
): MatchedStatus | undefined {
  const { metadata } = exception;
  const known = policiesOf(exception).map((id) => coverage(id));
  const entries = known.flatMap((one) => one ?? []).filter((entry) => isAbout(exception, entry));
  if (known.includes(undefined) || entries.some(({ state }) => state === 'Pending')) {
    return undefined;
  }
  const count = countOf(findings, `${metadata.namespace}/${metadata.name}`);
  const [gap] = entries.filter((entry) => isIncomplete(entry) || entry.state === 'NotAuditable');
  const observedGeneration = metadata.generation ?? 1;
  if (gap === undefined) {
    return { summary: String(count), count, observedGeneration };
  }
  const subject = gap.kind === undefined ? gap.policy : `${gap.policy}, ${groupResourceOf(gap.kind)}`;
  const message = shortened(`${subject}: ${gap.message ?? gap.reason ?? gap.state}`, MAX_AUDIT_MESSAGE);
  // Zero is no answer while something is not known.
  return { summary: count === 0 ? 'Unknown' : `${count}+`, count, observedGeneration, message };
}

/** Those that it was accepted for. */
function policiesOf({ metadata, status }: PolicyException): readonly string[] {
  return (status?.accepted?.policies ?? []).map((one) => exceptedPolicyId(one, metadata.namespace ?? ''));
}

function isAbout({ metadata, spec }: PolicyException, { kind, namespace }: Coverage): boolean {
  const isOfKind =
    kind === undefined || spec.objects.kinds.some((one) => one.apiGroup === kind.group && one.kind === kind.kind);
  return isOfKind && (namespace === undefined || namespace === metadata.namespace);
}

/** Objects, not findings: several policies may say the same about one. */
function countOf(findings: Iterable<AuditFinding>, exception: string): number {
  const objects = new Set<string>();
  for (const { exception: by, object, result } of findings) {
    if (result === 'skip' && by === exception) {
      objects.add(object.uid ?? `${object.apiVersion} ${object.kind} ${object.name}`);
    }
  }
  return objects.size;
}
