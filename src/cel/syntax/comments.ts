import { Lexer } from './lexer.ts';
import { Token } from './token.ts';

/** A comment, from its `//` to the end of its line. UTF-16 offsets. */
export interface Comment {
  readonly start: number;
  readonly end: number;
}

/** What a comment has in common with expressions, and sentences rarely have. */
const CODE = /&&|\|\||[=!<>]=|\b(?:has|all|exists|object|oldObject|request|params|variables)\s*[.(]/u;

/** The comments of an expression. Those in texts are none. */
export function commentsOf(text: string): readonly Comment[] {
  const comments: Comment[] = [];
  const lexer = new Lexer(text, () => undefined);
  let from = 0;
  do {
    lexer.next();
    for (const { index, 0: comment } of text.slice(from, lexer.start).matchAll(/\/\/[^\n]*/gu)) {
      comments.push({ start: from + index, end: from + index + comment.length });
    }
    from = lexer.end;
  } while (lexer.kind !== Token.End);
  return comments;
}

/**
 * A hint for a syntax error: a comment before it may have taken a part of the expression. YAML joins the lines of a folded
 * block, so that a comment does not end where its line ended.
 */
export function commentHint(text: string, error: number): string | undefined {
  if (text.startsWith('/*', error)) {
    return 'a comment begins with //, and ends with its line';
  }
  const comments = commentsOf(text).filter(({ start }) => start <= error);
  const isOnlyComments = comments.reduce((rest, { start, end }) => rest - (end - start), text.trim().length) <= 0;
  // A comment at the end, where more of the expression is expected.
  const isLast = (comments.at(-1)?.end ?? 0) >= text.trimEnd().length;
  const hasCode = isLast || comments.some(({ start, end }) => CODE.test(text.slice(start, end)));
  return comments.length > 0 && (hasCode || isOnlyComments)
    ? `a comment takes ${isOnlyComments ? 'the whole expression' : 'a part of the expression'}: it ends with its line, and YAML joins the lines of a folded block (>), so write the block with |`
    : undefined;
}
