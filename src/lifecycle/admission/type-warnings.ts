// Warnings about the kinds that a policy matches, when it is written. They need the cluster, so the rules do not give them.
import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdmissionPolicySpec, own, POLICY_KINDS } from '../../resources/index.ts';
import type { PolicyTypeChecks } from '../type-checks/policy-type-checks.ts';
import type { TypeCheckReport } from '../type-checks/type-check-report.ts';
import { Findings } from './findings.ts';
import { objectAt, type OwnKindsReview } from './own-kinds-review.ts';

/**
 * How long a write waits for the check. It follows the rules, which take up to 5 s of the webhook's 10 s; what comes later is in
 * the status of the policy. Milliseconds.
 */
const WAIT_MS = 2_500;

export class TypeWarnings {
  readonly #checks: Pick<PolicyTypeChecks, 'check'>;
  readonly #waitMs: number;

  /** @param waitMs default: {@link WAIT_MS} */
  constructor(checks: Pick<PolicyTypeChecks, 'check'>, waitMs: number = WAIT_MS) {
    this.#checks = checks;
    this.#waitMs = waitMs;
  }

  /**
   * The warnings with those about the kinds of the cluster, if the spec is new. Never rejects: no policy is refused for a failed
   * check.
   * @param warnings of the rules about the same object
   */
  async add(review: OwnKindsReview, warnings: readonly string[]): Promise<readonly string[]> {
    try {
      const spec = newSpecOf(review);
      const report = spec === undefined ? undefined : await this.#reportOn(spec, review.namespace);
      return report === undefined ? warnings : withReport(warnings, report);
    } catch {
      // Such as a stack overflow by a deeply nested spec.
      return warnings;
    }
  }

  async #reportOn(spec: AdmissionPolicySpec, owner: string): Promise<TypeCheckReport | undefined> {
    return await Promise.race([this.#checks.check(spec, owner), sleep(this.#waitMs, undefined, { ref: false })]);
  }
}

function newSpecOf({ kind, operation, object, oldObject }: OwnKindsReview): AdmissionPolicySpec | undefined {
  const isPolicy = POLICY_KINDS.some((one) => one.kind === kind);
  const isWrite = operation === 'CREATE' || operation === 'UPDATE';
  if (!isPolicy || !isWrite || object === undefined || isBeingDeleted(object)) {
    return undefined;
  }
  const spec = own(object, 'spec');
  const isNew = oldObject === undefined || !isDeepStrictEqual(spec, own(oldObject, 'spec'));
  // The rules have checked it against the schema.
  return isNew ? (spec as AdmissionPolicySpec | undefined) : undefined;
}

function isBeingDeleted(object: NonNullable<OwnKindsReview['object']>): boolean {
  return own(objectAt(object, 'metadata') ?? {}, 'deletionTimestamp') !== undefined;
}

/** A rule that cannot match in any cluster has a warning already. */
function withReport(warnings: readonly string[], report: TypeCheckReport): readonly string[] {
  const findings = new Findings(warnings);
  const isKnown = (field: string): boolean => warnings.some((text) => text.startsWith(`${field}: `));
  for (const { field, message } of report.unserved.filter((one) => !isKnown(one.field))) {
    findings.warn('rule-not-served', field, message);
  }
  for (const { field, message } of report.warnings) {
    findings.warn('type-check', field, message);
  }
  return findings.warnings;
}
