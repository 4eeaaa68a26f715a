import type { ReplicaMessage, RevisionReport } from '../../control/index.ts';

/** Most revisions of one replica: ten thousand policies, each with one that serves and some beside, and room to grow. */
export const MAX_REVISIONS = 50_000;
/** Most text of the reports of one replica: ids and names of all of them, and a message for each tenth. Characters. */
export const MAX_TEXT = 32 * 1024 ** 2;

type Report = Extract<ReplicaMessage, { readonly type: 'report' }>;

/** What a replica says of its revisions, by policy. */
export class ReplicaReports {
  readonly #byName = new Map<string, RevisionReport>();
  readonly #byPolicy = new Map<string, Map<string, RevisionReport>>();
  #text = 0;

  /** What is said of the revisions of a policy. */
  of(policy: string): readonly RevisionReport[] {
    return [...(this.#byPolicy.get(policy)?.values() ?? [])];
  }

  /**
   * Takes a report in. Returns the policies of which something else is said now.
   * @throws RangeError when a replica says more than is kept
   */
  apply({ revisions, gone }: Pick<Report, 'revisions' | 'gone'>): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const name of gone) {
      this.#forget(name, changed);
    }
    for (const report of revisions) {
      const before = this.#byName.get(report.name);
      if (before === undefined || !isSame(before, report)) {
        this.#forget(report.name, changed);
        this.#keep(report);
        changed.add(report.policy);
      }
    }
    return changed;
  }

  /** The policies of which other reports say something else. */
  differences(others: ReplicaReports): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const [one, two] of [
      [this, others],
      [others, this],
    ] as const) {
      for (const [name, report] of one.#byName) {
        const other = two.#byName.get(name);
        if (other === undefined || !isSame(other, report)) {
          changed.add(report.policy);
        }
      }
    }
    return changed;
  }

  #keep(report: RevisionReport): void {
    this.#text += sizeOf(report);
    if (this.#byName.size >= MAX_REVISIONS || this.#text > MAX_TEXT) {
      throw new RangeError(
        `expected at most ${MAX_REVISIONS} revisions with ${MAX_TEXT} characters, got ${this.#byName.size + 1} with ${this.#text}`,
      );
    }
    this.#byName.set(report.name, report);
    const ofPolicy = this.#byPolicy.get(report.policy);
    if (ofPolicy === undefined) {
      this.#byPolicy.set(report.policy, new Map([[report.name, report]]));
    } else {
      ofPolicy.set(report.name, report);
    }
  }

  #forget(name: string, changed: Set<string>): void {
    const report = this.#byName.get(name);
    if (report === undefined) {
      return;
    }
    this.#byName.delete(name);
    this.#text -= sizeOf(report);
    const ofPolicy = this.#byPolicy.get(report.policy);
    ofPolicy?.delete(name);
    if (ofPolicy?.size === 0) {
      this.#byPolicy.delete(report.policy);
    }
    changed.add(report.policy);
  }
}

function sizeOf({ name, uid, policy, reason, message }: RevisionReport): number {
  return name.length + uid.length + policy.length + (reason?.length ?? 0) + (message?.length ?? 0);
}

function isSame(one: RevisionReport, other: RevisionReport): boolean {
  return (
    one.state === other.state &&
    one.uid === other.uid &&
    one.policy === other.policy &&
    one.revision === other.revision &&
    one.order === other.order &&
    one.reason === other.reason &&
    one.message === other.message &&
    one.nextRetry === other.nextRetry
  );
}
