import type { RequestRule, Schema } from '../../../resources/index.ts';
import type { CompiledPolicy } from '../compiled-policy.ts';
import type { PolicyEnvironments } from '../policy-environment.ts';
import { commentLint } from './comment-lint.ts';
import { immutableFieldLint } from './immutable-field-lint.ts';
import type { LintFinding, Programs } from './lint-finding.ts';
import { type KindSchema, type MatchedSchema, matchedSchemas } from './matched-schemas.ts';
import { messageLint } from './message-lint.ts';
import type { FailurePolicyType } from '../policy-spec.ts';
import { mutationLint } from './mutation-lint.ts';
import { namespaceObjectLint } from './namespace-object-lint.ts';
import { plainReceivers } from './plain-receivers.ts';
import { podSubresourceLint } from './pod-subresource-lint.ts';
import { quantityLint } from './quantity-lint.ts';
import { requestValueLint } from './request-value-lint.ts';

const NO_VARIABLES: CompiledPolicy['variables'] = new Map();

/** Which requests reach the expressions of a policy. */
export interface LintContext {
  /** The rules of the policy, of which requests match one. */
  readonly rules: readonly RequestRule[];
  /** Kinds of CustomResourceDefinitions with their schemas. Default: none are known. */
  readonly customKinds?: readonly KindSchema[];
  /** Match conditions of its webhook. Default: none. */
  readonly conditions?: readonly string[];
}

/** Possible mistakes in a policy that compiles: what it can never do, and what is probably not meant. */
export function lintPolicy(
  policy: CompiledPolicy,
  environments: PolicyEnvironments,
  { rules, customKinds = [], conditions: webhookConditions = [] }: LintContext,
): readonly LintFinding[] {
  const { programs, variables, spec } = policy;
  const root = spec.name === undefined ? '' : 'spec.';
  const conditions = new Map([...programs].filter(([field]) => field.startsWith(`${root}matchConditions[`)));
  const kinds = matchedSchemas(rules, customKinds);
  const selector = `${root}matchConstraints.namespaceSelector`;
  return [
    ...namespaceObjectLint(conditions, spec.failurePolicy, selector),
    ...lintExpressions(programs, variables, environments, schemasOf(kinds)),
    ...mutationLint(policy, kinds, root),
    ...immutableFieldLint(policy, kinds, webhookConditions, root),
    ...(spec.kind === 'validating' ? podSubresourceLint(programs, variables, rules) : []),
    ...messageLint(spec.validations, variables, environments, root),
  ];
}

/** Possible mistakes in match conditions of a webhook, by their fields. */
export function lintConditions(
  programs: Programs,
  failurePolicy: FailurePolicyType,
  environments: PolicyEnvironments,
): readonly LintFinding[] {
  return [
    ...namespaceObjectLint(programs, failurePolicy, 'spec.namespaceSelector'),
    ...lintExpressions(programs, NO_VARIABLES, environments),
  ];
}

function schemasOf(kinds: readonly MatchedSchema[]): readonly Schema[] {
  return kinds.flatMap(({ schema }) => schema?.node ?? []);
}

function lintExpressions(
  programs: Programs,
  variables: CompiledPolicy['variables'],
  environments: PolicyEnvironments,
  schemas: readonly Schema[] = [],
): readonly LintFinding[] {
  return [
    ...plainReceivers(programs),
    ...commentLint(programs, variables, environments),
    ...quantityLint(programs, variables, schemas),
    ...requestValueLint(programs, variables),
  ];
}
