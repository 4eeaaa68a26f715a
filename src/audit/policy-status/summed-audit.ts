// What the auditors of a cluster know together: each tells the others of its share, and the one that writes a status sums.
import type { PolicyOrigin } from '../auditor/policy-version.ts';
import { MAX_AUDIT_MESSAGE, namespaceOfPolicyId } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import type { AuditorMembers } from '../members/auditor-members.ts';
import type { Coverage } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { newestOf, type StatusFinding } from './audit-status.ts';
import type { AuditedPolicies } from './audit-status-controller.ts';
import {
  kindKey,
  type MemberSummary,
  policyKey,
  type PolicySummary,
  readSummary,
  SUMMARY_ANNOTATION,
  summaryText,
} from './member-summary.ts';
import { type OtherPart, summedCoverage } from './summed-coverage.ts';

/** What this process knows, of its share. */
export interface OwnAudit {
  coverage(policyId: string): readonly Coverage[] | undefined;
  originOf(policyId: string): PolicyOrigin | undefined;
  ofPolicy(policyId: string): Iterable<AuditFinding>;
  policyIds(): Iterable<string>;
  onCoverage(listener: (policyId: string) => void): () => void;
}

type Members = Pick<AuditorMembers, 'members' | 'others' | 'mayWrite' | 'onChange' | 'onOthers'>;

/**
 * Policies of a namespace are only asked about its objects, so its auditor knows all of it. What is known by policies of the cluster is
 * summed by the auditor of objects without a namespace.
 */
export class SummedAudit implements AuditedPolicies {
  readonly #own: OwnAudit;
  readonly #members: Members;
  /** Ids of policies whose summaries are out of date. */
  readonly #changed = new Set<string>();
  /** By id of the policy. */
  readonly #summaries = new Map<string, readonly [string, PolicySummary]>();
  /** By id of the auditor. */
  readonly #others = new Map<string, { readonly text: string; readonly summary: MemberSummary | undefined }>();
  #written: { readonly members: string; readonly text: string } | undefined;

  constructor(own: OwnAudit, members: Members) {
    this.#own = own;
    this.#members = members;
    own.onCoverage((id) => this.#changed.add(id));
    members.onChange(() => this.#others.clear());
  }

  /** What others have to know. Nothing if there are none. */
  annotations(): Readonly<Record<string, string>> {
    const { members } = this.#members;
    if (members.length < 2) {
      return {};
    }
    const all = members.join();
    if (this.#changed.size > 0 || this.#written?.members !== all) {
      this.#changed.forEach((id) => this.#summarize(id));
      this.#changed.clear();
      const text = summaryText({ members: all, policies: new Map(this.#summaries.values()) });
      this.#written = { members: all, text };
    }
    return { [SUMMARY_ANNOTATION]: this.#written.text };
  }

  coverage(policyId: string): readonly Coverage[] | undefined {
    const namespace = namespaceOfPolicyId(policyId);
    if (!this.#members.mayWrite(namespace ?? '')) {
      return undefined;
    }
    const own = this.#own.coverage(policyId);
    if (own === undefined || namespace !== undefined) {
      return own;
    }
    const parts = this.#partsOf(policyId);
    return own.map((entry) =>
      summedCoverage(
        entry,
        parts.map((part) => partOfKind(part, entry)),
      ),
    );
  }

  generationOf(policyId: string): number | undefined {
    return this.#own.originOf(policyId)?.generation;
  }

  *ofPolicy(policyId: string): Generator<StatusFinding> {
    yield* this.#own.ofPolicy(policyId);
    if (namespaceOfPolicyId(policyId) === undefined) {
      for (const part of this.#partsOf(policyId)) {
        yield* typeof part === 'string' ? [] : part.newest;
      }
    }
  }

  onCoverage(listener: (policyId: string) => void): () => void {
    const all = (): void => [...this.#own.policyIds()].forEach(listener);
    const ends = [this.#own.onCoverage(listener), this.#members.onChange(all), this.#members.onOthers(all)];
    return () => ends.forEach((end) => end());
  }

  #summarize(id: string): void {
    const [origin, coverage] = [this.#own.originOf(id), this.#own.coverage(id)];
    if (origin === undefined || coverage === undefined || namespaceOfPolicyId(id) !== undefined) {
      this.#summaries.delete(id);
      return;
    }
    const kinds = coverage.flatMap(({ kind, state, scannedAt, counts, unlisted = 0 }) =>
      kind === undefined
        ? []
        : [[kindKey(kind), { state, counts, unlisted, ...(scannedAt === undefined ? {} : { scannedAt }) }] as const],
    );
    const newest = newestOf(this.#own.ofPolicy(id)).map(told);
    this.#summaries.set(id, [policyKey(origin.uid, origin.generation), { kinds: new Map(kinds), newest }]);
  }

  /** What each other auditor says of a policy as it is now, if all agree on who is there. */
  #partsOf(policyId: string): readonly (PolicySummary | 'unknown' | 'omitted')[] {
    const origin = this.#own.originOf(policyId);
    const members = this.#members.members.join();
    return this.#members.others.map(({ id, annotations }) => {
      const summary = this.#summaryOf(id, annotations[SUMMARY_ANNOTATION] ?? '');
      if (origin === undefined || summary?.members !== members) {
        return 'unknown';
      }
      const part = summary.policies.get(policyKey(origin.uid, origin.generation));
      return part ?? (summary.omitted > 0 ? 'omitted' : 'unknown');
    });
  }

  #summaryOf(id: string, text: string): MemberSummary | undefined {
    let known = this.#others.get(id);
    if (known?.text !== text) {
      known = { text, summary: readSummary(text) };
      this.#others.set(id, known);
    }
    return known.summary;
  }
}

function partOfKind(part: PolicySummary | 'unknown' | 'omitted', { kind }: Coverage): OtherPart {
  return typeof part === 'string' ? part : ((kind && part.kinds.get(kindKey(kind))) ?? 'unknown');
}

function told({ result, object, objectVersion, message }: StatusFinding): StatusFinding {
  const { apiVersion, kind, namespace, name } = object;
  return {
    result,
    object: { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) },
    ...(objectVersion === undefined ? {} : { objectVersion }),
    ...(message === undefined ? {} : { message: shortened(message, MAX_AUDIT_MESSAGE) }),
  };
}
