// Revisions that differ from another one only in how the policy is enforced. They evaluate the same, so they need no
// validation of their own, and no load: in a disaster, nothing may be there to load.
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPolicySpec, isGroupSpec } from '../../resources/index.ts';
import { movedModules, type PinnedModule, pinnedSpec } from '../../control/index.ts';
import type { PrevalidatedRevision } from './after-prevalidation.ts';
import { REASONS } from './reasons.ts';
import { handledRefresh, lastGoodRevision, servingRevision } from './revision-choice.ts';
import type { RevisionFacts, RolloutView } from './rollout-view.ts';

/** Fields that say how a policy is enforced, and not what it evaluates. */
const ENFORCEMENT_FIELDS = ['failurePolicy', 'mode', 'timeoutSeconds'] as const;

/** The revision whose modules and validation others inherit: what serves, else the last good one. */
export function validatedBase(view: Pick<RolloutView, 'revisions'>): RevisionFacts | undefined {
  return servingRevision(view) ?? lastGoodRevision(view);
}

/** Whether two revisions differ at most in how the policy is enforced, and have the same modules. */
export function evaluatesAs(revision: RevisionFacts, base: RevisionFacts): boolean {
  const areModulesKnown = revision.modules.length > 0;
  return (
    revision !== base &&
    evaluates(revision.snapshot, base) &&
    (areModulesKnown
      ? movedModules(base.modules, revision.modules).length === 0
      : // A refresh resolves the modules again.
        handledRefresh(revision) === handledRefresh(base))
  );
}

/** Whether a spec differs at most in how the policy is enforced. A reference that was pinned since is the same. */
export function evaluates(spec: AdmissionPolicySpec, { snapshot, modules }: RevisionFacts): boolean {
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
export function inheritedValidation(revision: RevisionFacts, base: RevisionFacts): PrevalidatedRevision {
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
