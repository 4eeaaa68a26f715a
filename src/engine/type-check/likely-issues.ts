// Tells errors of expressions from parts that are meant for objects of another kind. A warning must be right: an error that may
// be none is left out.
import type { CelIssue } from '../../cel/index.ts';
import { PolicyEnvironments } from '../cel-policy/policy-environment.ts';
import { type InferredExpression, inferAll } from './infer-types.ts';
import type { TypedExpression } from './typed-expressions.ts';

/** The expressions of a policy, checked for objects of one kind. */
export interface CheckedKind {
  readonly name: string;
  /** In the order of the policy. */
  readonly expressions: readonly InferredExpression[];
}

/** An issue, and the kinds that have it. */
export interface KindIssue {
  readonly expression: TypedExpression;
  readonly issue: CelIssue;
  readonly kinds: readonly string[];
}

/** What is known of the requests of a policy. */
interface Surroundings {
  /** Whether the checked kinds are all kinds of objects. */
  readonly isWhole: boolean;
  /** Whether conditions of the webhook may keep some kinds away. */
  readonly isGuarded: boolean;
}

/** The issues of expressions that are evaluated for the kinds which have them, without those that may never occur. */
export function likelyIssues(
  expressions: readonly TypedExpression[],
  kinds: readonly CheckedKind[],
  { isWhole, isGuarded }: Surroundings,
): readonly KindIssue[] {
  if (kinds.every((kind) => kind.expressions.every(({ issues }) => issues.length === 0))) {
    return [];
  }
  const broken = new Set(brokenFields(expressions));
  const guards = new Guards(expressions, isGuarded);
  return expressions
    .flatMap((expression, index) => issuesOf(expression, index, kinds))
    .filter(({ expression, issue, isChosen, isTest, isFineElsewhere }) => {
      if (broken.has(expression.field)) {
        return false;
      }
      const isCertain = isWhole && !isFineElsewhere;
      if (isChosen && expression.variable === undefined) {
        return !(isTest && isFineElsewhere);
      }
      // An expression for objects of another kind, which the rules do not match, has no misspelled field.
      return isCertain ? issue.hints.length > 0 || !guards.comparesKinds(expression) : !guards.mayGuard(expression);
    });
}

/** Expressions that decide about a request; messages and audit annotations do not. */
const DECIDING = /(?:^|\.)(?<list>matchConditions|validations|mutations)\[\d+\]\.(?:\w+\.)?expression$/;

/** The fields of expressions that succeed for no object of any of the kinds, and of the variables that they fail for. */
export function certainFields(
  expressions: readonly TypedExpression[],
  kinds: readonly CheckedKind[],
): ReadonlySet<string> {
  const isForAll = (index: number, test: (one: InferredExpression) => boolean): boolean =>
    kinds.length > 0 && kinds.every(({ expressions: checked }) => checked[index] !== undefined && test(checked[index]));
  const decided = expressions.filter(({ field }, index) => {
    const list = DECIDING.exec(field)?.groups?.list;
    const isFailing = isForAll(index, (one) => one.isFailing);
    return list !== undefined && (isFailing || (list !== 'mutations' && isForAll(index, (one) => one.isNeverTrue)));
  });
  const variables = expressions.filter(
    ({ variable }, index) => variable !== undefined && isForAll(index, (one) => one.isFailing),
  );
  return new Set([...decided, ...(decided.length === 0 ? [] : variables)].map(({ field }) => field));
}

/** An issue with what tells whether it may occur. */
interface JudgedIssue extends KindIssue {
  /** Whether the expression compares the kind, and has the issue where it does so. */
  readonly isChosen: boolean;
  /** Whether it is a test for a field. */
  readonly isTest: boolean;
  /** Whether the same place is evaluated without an issue for another kind. */
  readonly isFineElsewhere: boolean;
}

function issuesOf(expression: TypedExpression, index: number, kinds: readonly CheckedKind[]): readonly JudgedIssue[] {
  const live = kinds.flatMap(({ name, expressions }) => {
    const { issues, reach } = expressions[index] ?? {};
    return issues === undefined || reach === undefined
      ? []
      : [{ name, reach, issues: issues.filter(({ expressionId = 0 }) => !reach.dead.has(expressionId)) }];
  });
  const distinct = new Map(
    live.flatMap(({ issues }) => issues.map((issue) => [`${issue.start} ${issue.message}`, issue])),
  );
  return [...distinct.values()].map((issue) => {
    const { expressionId = 0 } = issue;
    const isSame = (other: CelIssue): boolean => other.start === issue.start && other.message === issue.message;
    const failing = live.filter(({ issues }) => issues.some(isSame));
    return {
      expression,
      issue,
      kinds: failing.map(({ name }) => name),
      isChosen: failing.some(({ reach }) => reach.chosen.has(expressionId)),
      isTest: failing.some(({ reach }) => reach.tests.has(expressionId)),
      isFineElsewhere: live.some(
        ({ issues, reach }) =>
          !reach.dead.has(expressionId) && !issues.some((other) => other.expressionId === expressionId),
      ),
    };
  });
}

/** The expressions that have errors for objects of any kind. */
function brokenFields(expressions: readonly TypedExpression[]): readonly string[] {
  const environments = new PolicyEnvironments({ hasWholeRequest: true });
  return inferAll(expressions, environments).flatMap(({ expression, issues }) =>
    issues.length === 0 ? [] : [expression.field],
  );
}

/** Names by which expressions tell kinds apart. */
const KINDS = /\b(?:kind|apiVersion|resource|subResource|requestKind|requestResource)\b/;
/**
 * What an expression may use to tell objects of different kinds apart. It is found in the text: an expression that is taken for a
 * guard hides warnings, one that is overlooked causes a wrong one.
 */
const GUARD = /\bhas\s*\(|\.\?|\[\?|\b(?:operation|in)\b/;

export function isGuard({ text }: TypedExpression): boolean {
  return GUARD.test(text) || KINDS.test(text);
}

/** Finds expressions that may fail for some kinds only because they are never evaluated for these. */
class Guards {
  readonly #isGuarded: boolean;
  readonly #guards: ReadonlyMap<string, TypedExpression>;

  constructor(expressions: readonly TypedExpression[], isGuarded: boolean) {
    this.#isGuarded = isGuarded || expressions.some((one) => one.field.includes('matchConditions[') && isGuard(one));
    this.#guards = new Map(
      expressions.flatMap((one) => (one.variable !== undefined && isGuard(one) ? [[one.variable, one]] : [])),
    );
  }

  /** Whether the expression, or a variable that it uses, names what tells kinds apart. */
  comparesKinds(expression: TypedExpression): boolean {
    return [expression, ...this.#guardsOf(expression)].some(({ text }) => KINDS.test(text));
  }

  /** Variables are evaluated where they are used, so any expression may protect them. */
  mayGuard(expression: TypedExpression): boolean {
    return (
      this.#isGuarded ||
      expression.variable !== undefined ||
      isGuard(expression) ||
      this.#guardsOf(expression).length > 0
    );
  }

  #guardsOf({ text }: TypedExpression): readonly TypedExpression[] {
    const names = [...text.matchAll(/\bvariables\s*\.\s*(\w+)/g)].map(([, name = '']) => name);
    return names.flatMap((name) => this.#guards.get(name) ?? []);
  }
}
