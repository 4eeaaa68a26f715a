// Warnings about policies, as they are printed and reported.
import type { UnservedRule } from '../../resources/index.ts';
import type { FilePlace } from './source-places.ts';

/** A warning at a field of a policy. */
export interface PolicyWarning extends UnservedRule {
  /** The code of the rule in the webhook for our kinds. */
  readonly rule: string;
  /** The kind and name of its manifest, or the id in a policies file. Absent for a policy without either. */
  readonly policy?: string;
  /** Of an expression: where the mistake is in it. Absent where the policy is in no file. */
  readonly place?: FilePlace;
}

/**
 * `policy.yaml:9:58 ClusterAdmissionPolicy volumes: spec.settings.validations[0].expression: undefined field 'hostpath' at
 * 1:32, in v1 Pod`
 */
export function warningText({ policy, field, message, place }: PolicyWarning): string {
  const text = [...(policy === undefined ? [] : [policy]), field, message].join(': ');
  return place === undefined ? text : `${place.file}:${place.line}:${place.column} ${text}`;
}

/** Descriptions of rules, for the formats of CI systems. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  'type-check': 'an expression does not fit the schemas of the kinds that its policy matches',
  'message-expression': 'a messageExpression gives no message',
  'rule-not-served': 'a rule of a policy matches no resource of Kubernetes',
};

/** The rules of warnings, each once. Those without a description here are in docs/policy-validation.md. */
export function warningRules(
  warnings: readonly PolicyWarning[],
): readonly { readonly id: string; readonly description: string }[] {
  return [...new Set(warnings.map(({ rule }) => rule))].map((id) => ({
    id,
    description: DESCRIPTIONS[id] ?? `a possible mistake in a policy: ${id} of docs/policy-validation.md`,
  }));
}
