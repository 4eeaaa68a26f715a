// Revisions that differ from another one only in how the policy is enforced. They evaluate the same, so they need no
// validation of their own, and no load: in a disaster, nothing may be there to load.
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPolicySpec, effectiveFailurePolicy, isGroupSpec } from '../../resources/index.ts';
import { type PinnedModule, pinnedSpec } from '../../control/index.ts';
import { type PrevalidatedRevision, REASONS, type RolloutRules } from '../../rollout/index.ts';
import type { AdmissionRevision } from './admission-rollout-view.ts';

/** Fields that say how a policy is enforced, and not what it evaluates. */
const ENFORCEMENT_FIELDS = ['failurePolicy', 'mode', 'timeoutSeconds'] as const;

/** What the planner needs to know of admission policies. */
export const ADMISSION_RULES: RolloutRules<AdmissionPolicySpec> = {
  evaluates,
  admitsFailures: (spec) => effectiveFailurePolicy(spec) === 'Ignore',
};

/** Whether a spec differs at most in how the policy is enforced. A reference that was pinned since is the same. */
function evaluates(spec: AdmissionPolicySpec, { snapshot, modules }: AdmissionRevision): boolean {
  return modules.length > 0 && isDeepStrictEqual(evaluatedPart(spec, modules), evaluatedPart(snapshot, modules));
}

function evaluatedPart(spec: AdmissionPolicySpec, modules: readonly PinnedModule[]): object {
  const left: Partial<AdmissionPolicySpec> = { ...pinnedSpec(spec, modules) };
  for (const field of ENFORCEMENT_FIELDS) {
    delete left[field];
  }
  return left;
}

/** The validation that a revision inherits. */
export function inheritedValidation(revision: AdmissionRevision, base: AdmissionRevision): PrevalidatedRevision {
  const { attempts, snapshot } = revision;
  return {
    state: 'Validated',
    reason: REASONS.inherited,
    message: `revision ${base.number} has the same modules and settings: its validation holds, and nothing is fetched`,
    modules: base.modules.map((module) => ({ ...module, module: referenceOf(snapshot, module.name) ?? module.module })),
    warnings: base.warnings,
    attempts,
    nextRetry: undefined,
  };
}

function referenceOf(spec: AdmissionPolicySpec, member: string): string | undefined {
  return isGroupSpec(spec) ? spec.policies[member]?.module : spec.module;
}
