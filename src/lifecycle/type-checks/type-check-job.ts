import { checkPolicyTypes, deniesAlways, describeTypeWarning } from '../../engine/type-check/index.ts';
import { subjectOfSpec } from '../../engine/type-check/subject/index.ts';
import {
  type AdmissionPolicySpec,
  impossibleRules,
  isGroupSpec,
  type OpenApiComponents,
  OpenApiSchemas,
  type ServedResource,
  unservedRules,
} from '../../resources/index.ts';
import type { TypeCheckReport, TypeProblem } from './type-check-report.ts';

/** A policy, and what the cluster serves. */
export interface TypeCheckJob {
  readonly spec: AdmissionPolicySpec;
  readonly served: readonly ServedResource[];
  /** OpenAPI documents of the kinds that it matches. */
  readonly documents: readonly { readonly text: string; readonly hash: string }[];
}

/** @param components of each document */
export function runTypeCheck(
  { spec, served }: TypeCheckJob,
  components: readonly OpenApiComponents[],
): TypeCheckReport {
  const { warnings, expressions, kinds } = checkPolicyTypes(subjectOfSpec(spec), {
    served,
    schemas: new OpenApiSchemas(components),
  });
  const isDecisive = !isGroupSpec(spec) || deniesAlways(spec, warnings);
  return {
    unserved: problemsOfRules(spec, served),
    warnings: warnings.map((warning) => ({
      field: warning.field,
      message: describeTypeWarning(warning),
      ...(warning.isCertain && isDecisive ? { isCertain: true } : {}),
    })),
    expressions,
    kinds,
  };
}

/** Rules that match nothing in any cluster, and others that match nothing in this one. */
function problemsOfRules({ rules }: AdmissionPolicySpec, served: readonly ServedResource[]): readonly TypeProblem[] {
  const impossible = impossibleRules(rules, served);
  const unserved = unservedRules(rules, served).filter(({ field }) => !isAmong(field, impossible));
  return [...impossible.map((one) => ({ ...one, isCertain: true as const })), ...unserved];
}

/** Whether problems include one of a field, or of an entry of it. */
function isAmong(field: string, problems: readonly TypeProblem[]): boolean {
  return problems.some((one) => one.field === field || one.field.startsWith(`${field}[`));
}
