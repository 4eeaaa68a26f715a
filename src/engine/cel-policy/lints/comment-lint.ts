// Finds comments that take the rest of an expression: in YAML, a folded block (`>`) joins lines, so that a comment does not end
// where its line ended.
import { commentsOf } from '../../../cel/index.ts';
import type { PolicyEnvironments } from '../policy-environment.ts';
import { ANY_SCOPE, issuesOf } from './any-scope.ts';
import type { Variables } from './field-chain.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

/** Longest expression that is looked at, in characters; each attempt parses it. */
const MAX_LENGTH = 2_048;
/** Attempts for all expressions of a policy: at most 0.4 s, with errors everywhere. */
const MAX_ATTEMPTS = 50;

/** Comments that contain a continuation of their expression. */
export function commentLint(
  programs: Programs,
  variables: Variables,
  environments: PolicyEnvironments,
): readonly LintFinding[] {
  let attempts = MAX_ATTEMPTS;
  return [...programs].flatMap(([field, program]) => {
    const { text } = program;
    if (!text.includes('//') || text.length > MAX_LENGTH) {
      return [];
    }
    for (const { start, end } of commentsOf(text)) {
      for (const from of continuations(text, start, end)) {
        attempts -= 1;
        const restored = `${text.slice(0, start)}\n${text.slice(from)}`;
        if (attempts < 0) {
          return [];
        }
        if (compiles(restored, variables, environments)) {
          const lost = text.slice(from, end).trim();
          const message = `the comment takes "${lost}", which looks like a part of the expression. YAML joins the lines of a folded block (>): write the block with |, or remove the comment`;
          return [findingAt('comment', field, program, start, message)];
        }
      }
    }
    return [];
  });
}

/**
 * Where an expression may go on in a comment: at an operator after the words of the comment. One that begins with the operator is
 * code that was commented out.
 */
function continuations(text: string, start: number, end: number): readonly number[] {
  const comment = text.slice(start, end);
  if (/^\/\/\s*(?:&&|\|\||[=!<>?:+*-])/u.test(comment)) {
    return [];
  }
  return [...comment.matchAll(/(?<=[^\s/]\s+)(?:(?:&&|\|\||[=!<>]=|[?:+*<>]|in\b)(?=\s)|\.(?=[a-z]\w*\())/gu)].map(
    ({ index }) => start + index,
  );
}

function compiles(text: string, variables: Variables, environments: PolicyEnvironments): boolean {
  const inferred = issuesOf(text, ANY_SCOPE, variables, environments);
  return inferred !== undefined && inferred.issues.length === 0;
}
