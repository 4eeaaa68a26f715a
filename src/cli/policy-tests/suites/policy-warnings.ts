// Warnings about policies in the reports of `portcullis test`.
import { documentName, STANDARD_INPUT } from '../../document.ts';
import type { PolicyWarning } from '../../policy/policy-warning.ts';
import type { Problem } from '../../problems/problem.ts';
import { oneLine } from '../../table.ts';

/** A warning in `-o json` and `yaml`. */
export interface WarningData extends Pick<PolicyWarning, 'rule' | 'policy' | 'field' | 'message'> {
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

/** @param subject of policies without a name */
export function warningProblem({ rule, policy, field, message, place }: PolicyWarning, subject: string): Problem {
  return {
    rule,
    level: 'warning',
    message: oneLine(`${field}: ${message}`),
    subject: oneLine(policy ?? subject),
    ...(place === undefined || place.file === documentName(STANDARD_INPUT) ? {} : { place }),
  };
}

export function warningData({ rule, policy, field, message, place }: PolicyWarning): WarningData {
  return { rule, ...(policy === undefined ? {} : { policy }), field, message, ...place };
}
