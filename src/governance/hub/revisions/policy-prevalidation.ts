// Whether a revision of a Policy can replace what is applied: by what is known before anything is written.
import { createHash } from 'node:crypto';
import { type JsonObject, type Policy, textOf, valueAt } from '../../../resources/index.ts';
import type { PrevalidationOutcome } from '../../../rollout/index.ts';
import { exactJson, shortened } from '../../../values/index.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { type DependencyWarningsOptions, graphWarnings } from '../admission/dependency-warnings.ts';
import { policyTemplateWarnings } from '../admission/template-warnings.ts';
import type { GovernanceWarning } from '../admission/write-findings.ts';

/** Problems that one message names. */
const MAX_NAMED = 5;
/** Longest text of one: it quotes what authors wrote. Characters. */
const MAX_PROBLEM_LENGTH = 1_000;

/** Codes of problems that another Policy may end: they are tried again. */
const OF_OTHERS: ReadonlySet<GovernanceWarning['code']> = new Set(['dependency-cycle', 'dependency-conflict']);

/**
 * Validates a Policy with the spec of a revision. What may come later, such as a kind or a dependency, is waited for, and is no
 * failure.
 */
export function prevalidatePolicy(policy: Policy, options: DependencyWarningsOptions): PrevalidationOutcome {
  if (policy.spec.disabled) {
    return { ok: true, modules: templateDigests(policy), warnings: [] };
  }
  const templates = policyTemplateWarnings(policy as unknown as JsonObject);
  if (templates.length > 0) {
    return failure(POLICY_REASONS.templateError, templates, false);
  }
  const dependencies = graphWarnings(policy, options).filter(({ code }) => OF_OTHERS.has(code));
  return dependencies.length > 0
    ? failure(POLICY_REASONS.dependenciesInvalid, dependencies, true)
    : { ok: true, modules: templateDigests(policy), warnings: [] };
}

/** The templates of a Policy with a digest of each, as they are declared: what they look up may change, and may be secret. */
export function templateDigests({ spec }: Policy): (PrevalidationOutcome & { readonly ok: true })['modules'] {
  return spec['policy-templates'].map(({ objectDefinition, ...template }) => ({
    name: textOf(valueAt(objectDefinition, 'metadata', 'name')),
    module: textOf(valueAt(objectDefinition, 'kind')),
    digest: `sha256:${createHash('sha256')
      .update(exactJson({ ...template, objectDefinition }))
      .digest('hex')}`,
  }));
}

function failure(reason: string, problems: readonly GovernanceWarning[], isTransient: boolean): PrevalidationOutcome {
  const named = problems
    .slice(0, MAX_NAMED)
    .map(({ field, text }) => shortened(`${field}: ${text}`, MAX_PROBLEM_LENGTH));
  const more = problems.length > MAX_NAMED ? [`and ${problems.length - MAX_NAMED} more`] : [];
  return { ok: false, reason, message: [...named, ...more].join('; '), isTransient };
}
