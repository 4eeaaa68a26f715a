// Go's `filepath.Match`, with which namespace selectors are defined.
import { CodedError } from '../../values/index.ts';

/** Maximum length of a pattern: names of namespaces have at most 63 characters. */
const MAX_GLOB_LENGTH = 1_024;

/** A pattern that cannot be used; for a malformed one the message is Go's. */
class GlobError extends CodedError<'malformed' | 'too-long'> {
  override readonly name = 'GlobError';
}

type Range = readonly [first: string, last: string];

/** One character of a name, or `*`. */
type Token =
  | { readonly type: 'any-run' }
  | { readonly type: 'any' }
  | { readonly type: 'literal'; readonly character: string }
  | { readonly type: 'class'; readonly isNegated: boolean; readonly ranges: readonly Range[] };

const SEPARATOR = '/';

/** A pattern of Go: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` before a character that is meant literally. */
export class Glob {
  readonly #tokens: readonly Token[];

  /** @throws GlobError */
  constructor(pattern: string) {
    if (pattern.length > MAX_GLOB_LENGTH) {
      throw new GlobError(
        'too-long',
        `expected a pattern of at most ${MAX_GLOB_LENGTH} characters, got ${pattern.length}`,
      );
    }
    this.#tokens = new GlobParser(pattern).parse();
  }

  /**
   * Whether the pattern matches the whole name.
   * @param spend called with the steps that it took
   */
  matches(name: string, spend: (steps: number) => void = () => undefined): boolean {
    const characters = Array.from(name);
    let steps = 1 + characters.length;
    const result = this.#matches(characters, () => (steps += 1));
    spend(steps);
    return result;
  }

  #matches(characters: readonly string[], step: () => void): boolean {
    let token = 0;
    // Where the last `*` is, and where the characters after it begin: only that one needs to be tried again.
    let run = -1;
    let afterRun = 0;
    for (let at = 0; at < characters.length;) {
      step();
      const next = this.#tokens[token];
      if (next?.type === 'any-run') {
        [run, afterRun, token] = [token, at, token + 1];
      } else if (next !== undefined && matchesCharacter(next, characters[at] ?? '')) {
        [token, at] = [token + 1, at + 1];
      } else if (run !== -1 && characters[afterRun] !== SEPARATOR) {
        afterRun += 1;
        [token, at] = [run + 1, afterRun];
      } else {
        return false;
      }
    }
    while (this.#tokens[token]?.type === 'any-run') {
      token += 1;
    }
    return token === this.#tokens.length;
  }
}

function matchesCharacter(token: Token, character: string): boolean {
  switch (token.type) {
    case 'literal':
      return token.character === character;
    case 'any':
      return character !== SEPARATOR;
    case 'class':
      return token.ranges.some((range) => isInRange(character, range)) !== token.isNegated;
    case 'any-run':
      return false;
    default:
      return token satisfies never;
  }
}

function isInRange(character: string, [first, last]: Range): boolean {
  const [code = 0, low = 0, high = 0] = [character, first, last].map((one) => one.codePointAt(0));
  return low <= code && code <= high;
}

class GlobParser {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#characters = Array.from(pattern);
  }

  parse(): readonly Token[] {
    const tokens: Token[] = [];
    while (this.#at < this.#characters.length) {
      tokens.push(this.#token());
    }
    return tokens;
  }

  #token(): Token {
    const character = this.#next();
    switch (character) {
      case '*':
        return { type: 'any-run' };
      case '?':
        return { type: 'any' };
      case '[':
        return this.#class();
      case '\\':
        return { type: 'literal', character: this.#next() };
      default:
        return { type: 'literal', character };
    }
  }

  #class(): Token {
    const isNegated = this.#skip('^');
    const ranges: Range[] = [];
    while (ranges.length === 0 || !this.#skip(']')) {
      const first = this.#classCharacter();
      ranges.push([first, this.#skip('-') ? this.#classCharacter() : first]);
    }
    return { type: 'class', isNegated, ranges };
  }

  #classCharacter(): string {
    const character = this.#next();
    if (character === '-' || character === ']') {
      throw malformed();
    }
    return character === '\\' ? this.#next() : character;
  }

  #skip(character: string): boolean {
    const isThere = this.#characters[this.#at] === character;
    this.#at += isThere ? 1 : 0;
    return isThere;
  }

  #next(): string {
    const character = this.#characters[this.#at];
    if (character === undefined) {
      throw malformed();
    }
    this.#at += 1;
    return character;
  }
}

function malformed(): GlobError {
  return new GlobError('malformed', 'syntax error in pattern');
}
