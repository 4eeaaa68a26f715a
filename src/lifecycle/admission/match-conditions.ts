import {
  callsFunction,
  CelError,
  describeIssue,
  type Environment,
  findCertain,
  formatType,
  type Program,
  readsField,
} from '../../cel/index.ts';
import type { NullRead } from '../../engine/index.ts';
import { forbidden, invalid, required } from '../../resources/index.ts';
import { conditionsProblem, matchConditionEnvironment } from '../../resources/match-conditions/index.ts';
import { MAX_PATTERN_SIZE } from '../../go/index.ts';
import { qualifiedNameProblems } from '../../names/index.ts';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { rejectAccount } from './authorizer-rules.ts';
import type { Findings } from './findings.ts';

export interface CheckedConditions {
  readonly reads: readonly NullRead[];
  readonly programs: ReadonlyMap<string, Program>;
}

type MatchCondition = NonNullable<AdmissionPolicySpec['matchConditions']>[number];

/** Compiles match conditions like an API server those of webhooks. */
export class MatchConditionCompiler {
  /** Created for the first condition, since most policies have none. */
  #environment: Environment | undefined;

  /**
   * Checks `spec.matchConditions`. The schema already checks that names are unique.
   *
   * @returns reads of null that make a single condition fail: where there are more, another one that is false decides; and the
   * conditions that compile, by their fields
   */
  check(conditions: readonly MatchCondition[], isNamespaced: boolean, findings: Findings): CheckedConditions {
    const reads: NullRead[] = [];
    const programs = new Map<string, Program>();
    const problem = conditionsProblem(conditions);
    if (problem !== undefined) {
      findings.reject('condition-expression', forbidden('spec.matchConditions', problem));
      return { reads, programs };
    }
    let patternSize = 0;
    for (const [index, { name, expression }] of conditions.entries()) {
      const path = `spec.matchConditions[${index}]`;
      if (name === '') {
        findings.reject('condition-name', required(`${path}.name`, 'expected a name for messages and metrics'));
      } else {
        const errors = qualifiedNameProblems(name).map((problem) => invalid(`${path}.name`, name, problem));
        findings.rejectAll('condition-name', errors);
      }
      if (expression.trim() === '') {
        const detail =
          'expected an expression in CEL, such as `request.userInfo.username != "admin"`. Omit the condition to match all requests';
        findings.reject('condition-expression', required(`${path}.expression`, detail));
        continue;
      }
      const compiled = this.#compiled(expression);
      patternSize += 'program' in compiled ? compiled.program.patternSize : 0;
      if (patternSize > MAX_PATTERN_SIZE) {
        const detail = `the regular expressions of all conditions are too large together: expected at most ${MAX_PATTERN_SIZE} instructions, got up to ${patternSize}`;
        findings.reject('condition-expression', invalid(`${path}.expression`, expression, detail));
        break;
      }
      if ('problem' in compiled) {
        findings.reject('condition-expression', invalid(`${path}.expression`, expression, compiled.problem));
        continue;
      }
      programs.set(`matchConditions[${index}].expression`, compiled.program);
      if (isNamespaced && callsFunction(compiled.program.checked.expression, 'serviceAccount')) {
        rejectAccount(`${path}.expression`, findings);
      } else if (conditions.length === 1) {
        reads.push(...nullReadsOf(compiled.program, `matchConditions[${index}].expression`));
      }
    }
    return { reads, programs };
  }

  #compiled(expression: string): { readonly program: Program } | { readonly problem: string } {
    this.#environment ??= matchConditionEnvironment();
    try {
      const program = this.#environment.compile(expression);
      const { resultType } = program;
      if (resultType.kind === 'bool') {
        return { program };
      }
      const got =
        resultType.kind === 'dyn'
          ? 'an unknown type: compare it, as in `… == true`'
          : `${formatType(resultType)}: compare it with a value`;
      return { problem: `expected an expression that is true or false, got ${got}` };
    } catch (error) {
      if (error instanceof CelError) {
        const text = error.issues.length === 0 ? error.message : error.issues.map(describeIssue).join('\n');
        return { problem: `the expression does not compile: ${text}` };
      }
      throw error;
    }
  }
}

function nullReadsOf({ checked }: Program, field: string): readonly NullRead[] {
  return (['object', 'oldObject'] as const)
    .filter((variable) => findCertain(checked.expression, (node) => readsField(node, variable)) !== undefined)
    .map((variable) => ({ variable, field }));
}
