import { compareStrings } from '../go/index.ts';
import { SelectorError } from './selectors.ts';
import type { Labels } from './selectors.ts';

/** One requirement of a {@link FieldSelector}. */
export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** Selects by fields such as `metadata.name`: all requirements must hold. A missing field is empty. */
export class FieldSelector {
  readonly requirements: readonly FieldRequirement[];

  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements;
  }

  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }

  matches(fields: Labels): boolean {
    return this.requirements.every(({ field, operator, value }) => {
      const actual = Object.hasOwn(fields, field) ? fields[field] : '';
      return (actual === value) === (operator === '=');
    });
  }

  /** The value that the selector requires of a field, if any. */
  exactValueOf(field: string): string | undefined {
    return this.requirements.find((one) => one.field === field && one.operator === '=')?.value;
  }

  /** The selector in the format of queries. */
  toString(): string {
    return this.requirements
      .map(({ field, operator, value }) => `${field}${operator}${value.replaceAll(/[\\,=]/gu, String.raw`\$&`)}`)
      .join(',');
  }
}

/**
 * Parses a field selector of a query: `metadata.name=a,spec.nodeName!=b`. `\\` escapes `,`, `=` and itself.
 *
 * @throws SelectorError with the message of an API server.
 */
export function parseFieldSelector(text: string): FieldSelector {
  const terms = splitTerms(text)
    .filter((term) => term !== '')
    .toSorted(compareStrings);
  return new FieldSelector(
    terms.map((term) => {
      const at = term.search(/!=|=/u);
      if (at === -1) {
        throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`);
      }
      const sign = ['!=', '=='].find((one) => term.startsWith(one, at)) ?? '=';
      const value = unescapeValue(term.slice(at + sign.length));
      return { field: term.slice(0, at), operator: sign === '!=' ? '!=' : '=', value };
    }),
  );
}

/** The parts between unescaped commas. */
function splitTerms(text: string): readonly string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') {
      at += 1;
    } else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...terms, text.slice(start)];
}

function unescapeValue(text: string): string {
  let value = '';
  const letters = Array.from(text);
  for (let at = 0; at < letters.length; at += 1) {
    let letter = letters[at] ?? '';
    if (letter === '\\') {
      at += 1;
      letter = letters[at] ?? '';
      if (letter !== '\\' && letter !== ',' && letter !== '=') {
        throw new SelectorError(`invalid field selector: invalid escape sequence: \\${letter}`);
      }
    } else if (letter === ',' || letter === '=') {
      throw new SelectorError(`invalid field selector: unescaped character in value: ${String(letter.codePointAt(0))}`);
    }
    value += letter;
  }
  return value;
}
