import { compilePolicy } from '../compiled-policy.ts';
import type { FieldProblem } from '../../values/field-problem.ts';
import type { JsonObject } from '../../values/json-text.ts';
import type { PolicyManifestOptions } from '../manifests.ts';
import { PolicyEnvironments } from '../policy-environment.ts';
import { readPolicy } from '../read-policy.ts';
import type { LintFinding } from './lint-finding.ts';
import { type LintContext, lintPolicy } from './lint-policy.ts';

/** Possible mistakes in a ValidatingAdmissionPolicy or MutatingAdmissionPolicy; none where it does not compile. */
export function lintManifest(
  manifest: JsonObject,
  { customKinds = [], ...options }: PolicyManifestOptions & Pick<LintContext, 'customKinds'> = {},
): readonly LintFinding[] {
  const problems: FieldProblem[] = [];
  const environments = new PolicyEnvironments({ ...options, hasWholeRequest: false });
  const spec = readPolicy(manifest, problems);
  const policy = compilePolicy(spec, environments, problems);
  const { resourceRules: rules = [] } = spec.matchConstraints ?? {};
  return problems.length > 0 ? [] : lintPolicy(policy, environments, { rules, customKinds });
}
