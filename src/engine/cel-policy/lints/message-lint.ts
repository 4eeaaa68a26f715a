// Finds texts of validations that are meant as expressions: users read them as they are written.
import type { PolicyEnvironments } from '../policy-environment.ts';
import type { ValidationSpec } from '../policy-spec.ts';
import { ANY_SCOPE, issuesOf } from './any-scope.ts';
import type { LintFinding } from './lint-finding.ts';
import type { Variables } from './field-chain.ts';

/** Longest message that is parsed, in characters. API servers show messages of one line. */
const MAX_MESSAGE_LENGTH = 4_096;
/** What refers to a value of the request, outside of quotes. */
const REFERENCE = /\b(?:object|oldObject|request|params|variables|namespaceObject)\s*(?:\.|\[)/u;
/** Placeholders of other policy engines and of templates. */
const PLACEHOLDER =
  /%\((?:request|object|oldObject|params|variables)\b[^()]*\)|(?<![{$])\{(?:request|object|oldObject|params|variables|namespaceObject)\.[^{}]*\}|\{\{-?\s*(?:request|object|oldObject|params|variables|namespaceObject|element|input)\b[^{}]*\}\}|\$[{(]\s*(?:request|object|oldObject|params|variables|namespaceObject)\b[^{}]*[})]/u;

/** Calls that read a field. */
const READS: ReadonlySet<string> = new Set(['_[_]', '_?._', '_[?_]']);

/** Messages that are expressions or have placeholders. @param root prefix of fields */
export function messageLint(
  validations: readonly Pick<ValidationSpec, 'message' | 'messageExpression'>[],
  variables: Variables,
  environments: PolicyEnvironments,
  root: string,
): readonly LintFinding[] {
  return validations.flatMap(({ message, messageExpression }, index) => {
    const problem = messageExpression === '' ? problemOf(message, variables, environments) : undefined;
    return problem === undefined
      ? []
      : [{ code: 'message-expression', field: `${root}validations[${index}].message`, message: problem } as const];
  });
}

function problemOf(message: string, variables: Variables, environments: PolicyEnvironments): string | undefined {
  const placeholder = PLACEHOLDER.exec(message)?.[0];
  if (placeholder !== undefined) {
    return `users read ${placeholder} as it is written: nothing is put into a message. Write a messageExpression, such as "'…' + object.metadata.name"`;
  }
  return message.length <= MAX_MESSAGE_LENGTH &&
    REFERENCE.test(message) &&
    isExpression(message, variables, environments)
    ? 'this is an expression, which users would read as it is written: write it as messageExpression'
    : undefined;
}

/** Whether it compiles to a text, by a call such as `'a' + object.kind`: the name of a field alone may be prose. */
function isExpression(message: string, variables: Variables, environments: PolicyEnvironments): boolean {
  const inferred = issuesOf(message, ANY_SCOPE, variables, environments);
  return (
    inferred !== undefined &&
    inferred.issues.length === 0 &&
    inferred.expression.kind === 'call' &&
    !READS.has(inferred.expression.function) &&
    ['string', 'dyn'].includes(inferred.type.kind)
  );
}
