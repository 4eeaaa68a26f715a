import { codePointCount } from '../model/code-point-count.ts';
import type { CelIssue } from '../model/errors.ts';
import { MAX_EXCERPT_LENGTH } from './limits.ts';

const LINE_FEED = 10;
const LAST_ASCII = 0x7f;

/** The text of an expression, with line and column positions. */
export class Source {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Line and column of an offset, both from 1; columns count code points. */
  positionOf(offset: number): { readonly line: number; readonly column: number } {
    let line = 1;
    let lineStart = 0;
    const end = Math.min(offset, this.text.length);
    for (let index = 0; index < end; index += 1) {
      if (this.text.charCodeAt(index) === LINE_FEED) {
        line += 1;
        lineStart = index + 1;
      }
    }
    return { line, column: codePointCount(this.text.slice(lineStart, end)) + 1 };
  }

  /** An issue for a range of the text. */
  issue(
    message: string,
    range: { readonly start: number; readonly end: number },
    options: { readonly hints?: readonly string[]; readonly expressionId?: number | undefined } = {},
  ): CelIssue {
    const { line, column } = this.positionOf(range.start);
    return {
      message,
      hints: options.hints ?? [],
      expressionId: options.expressionId,
      start: range.start,
      end: Math.max(range.start, range.end),
      line,
      column,
      excerpt: this.#excerpt(range.start, column),
    };
  }

  /** The line with a caret below the column. Below wide characters, the dots are wide, as API servers print them. */
  #excerpt(offset: number, column: number): string {
    const lineStart = offset === 0 ? 0 : this.text.lastIndexOf('\n', offset - 1) + 1;
    const lineFeed = this.text.indexOf('\n', lineStart);
    const line = this.text.slice(lineStart, lineFeed === -1 ? undefined : lineFeed);
    if (line.length > 2 * MAX_EXCERPT_LENGTH) {
      return '';
    }
    const characters = Array.from(line.replaceAll('\t', ' '));
    if (characters.length > MAX_EXCERPT_LENGTH) {
      return '';
    }
    const dots = characters.slice(0, column - 1).map((character) => (isWide(character) ? '\uff0e' : '.'));
    const at = characters[column - 1];
    const caret = at !== undefined && isWide(at) ? '\uff3e' : '^';
    return `\n | ${characters.join('')}\n | ${dots.join('')}${caret}`;
  }
}

function isWide(character: string): boolean {
  return (character.codePointAt(0) ?? 0) > LAST_ASCII;
}
