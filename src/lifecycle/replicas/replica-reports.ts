import { isDeepStrictEqual } from 'node:util';
import type { ReplicaMessage, RevisionReport } from '../../control/index.ts';

/**
 * Most revisions of one replica: ten thousand policies with a serving revision and some others each, and room to grow.
 */
export const MAX_REVISIONS = 50_000;
/** Most text in the reports of one replica: ids and names of all, and a message for each tenth. Characters. */
export const MAX_TEXT = 32 * 1024 ** 2;

type Report = Extract<ReplicaMessage, { readonly type: 'report' }>;

/** The reports of a replica, by policy. */
export class ReplicaReports {
  readonly #byName = new Map<string, RevisionReport>();
  readonly #byPolicy = new Map<string, Map<string, RevisionReport>>();
  #text = 0;

  /** The reports on the revisions of a policy. */
  of(policy: string): readonly RevisionReport[] {
    return [...(this.#byPolicy.get(policy)?.values() ?? [])];
  }

  /**
   * Applies a report. Returns the policies whose reports changed.
   * @throws RangeError when the limits are exceeded
   */
  apply({ revisions, gone }: Pick<Report, 'revisions' | 'gone'>): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const name of gone) {
      this.#delete(name, changed);
    }
    for (const report of revisions) {
      const before = this.#byName.get(report.name);
      if (before === undefined || !isSame(before, report)) {
        this.#delete(report.name, changed);
        this.#store(report);
        changed.add(report.policy);
      }
    }
    return changed;
  }

  /** The policies whose reports differ. */
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

  #store(report: RevisionReport): void {
    this.#text += sizeOf(report);
    if (this.#byName.size >= MAX_REVISIONS || this.#text > MAX_TEXT) {
      throw new RangeError(
        `expected at most ${MAX_REVISIONS} revisions with ${MAX_TEXT} characters, got ${this.#byName.size + 1} with ${this.#text}`,
      );
    }
    // Counts are kept until they are written, see MonitoredReports.
    const { monitored: _, ...stored } = report;
    this.#byName.set(report.name, stored);
    const ofPolicy = this.#byPolicy.get(report.policy);
    if (ofPolicy === undefined) {
      this.#byPolicy.set(report.policy, new Map([[report.name, stored]]));
    } else {
      ofPolicy.set(report.name, stored);
    }
  }

  #delete(name: string, changed: Set<string>): void {
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

function sizeOf({ name, uid, policy, reason, message, parameters, refused }: RevisionReport): number {
  const texts = [
    name,
    uid,
    policy,
    reason ?? '',
    message ?? '',
    parameters ?? '',
    ...(refused?.first ?? []).flatMap((one) => Object.values(one)),
  ];
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function isSame(one: RevisionReport, other: RevisionReport): boolean {
  return (
    one.state === other.state &&
    one.answers === other.answers &&
    one.uid === other.uid &&
    one.policy === other.policy &&
    one.revision === other.revision &&
    one.order === other.order &&
    one.reason === other.reason &&
    one.message === other.message &&
    one.nextRetry === other.nextRetry &&
    one.parameters === other.parameters &&
    one.areParametersTried === other.areParametersTried &&
    isDeepStrictEqual(one.refused, other.refused)
  );
}
