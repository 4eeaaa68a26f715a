// Places of fields, and of parts of their texts, in YAML and JSON files.
import type { KeyPath } from '../../engine/index.ts';
import { textPosition, type TextPosition } from '../../values/index.ts';
import { YamlPositions } from '../../values/yaml/index.ts';
import { LineNumbers } from '../line-numbers.ts';

/** A place in a file, counted from 1. */
export interface FilePlace {
  /** The file as users name it. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * Finds the place of a field, or of its innermost existing parent.
 * @param beginning of the field's text, after which the place is. Default: the place of its key
 */
export type PlaceOf = (path: KeyPath, beginning?: string) => FilePlace;

/** The text of an expression before a place in it. Lines and columns are counted from 1, columns in code points. */
export function textBefore(
  expression: string,
  { line, column }: { readonly line: number; readonly column: number },
): string {
  const lines = expression.split('\n').slice(0, line);
  const last = Array.from(lines.pop() ?? '').slice(0, column - 1);
  return [...lines, last.join('')].join('\n');
}

/** Places of the settings of a policy in a file of their own, by their paths in the policy. */
export function placesOfSettings(text: string, file: string): PlaceOf {
  const places = new SourcePlaces(text, file);
  return ([, ...path], beginning) => places.placeOf(path, beginning);
}

/** Places in a text, which is parsed when the first is wanted. */
export class SourcePlaces {
  readonly #text: string;
  readonly #file: string;
  #parsed: { readonly positions: YamlPositions; readonly lines: LineNumbers } | undefined;

  /** @param text valid YAML */
  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
  }

  /** With an excerpt. */
  positionOf(path: KeyPath, beginning?: string, document = 0): TextPosition {
    return textPosition(this.#text, this.#offsetOf(path, beginning, document));
  }

  /** As {@link PlaceOf}. */
  placeOf(path: KeyPath, beginning: string | undefined, document = 0): FilePlace {
    const { lines } = this.#read();
    const offset = this.#offsetOf(path, beginning, document);
    return { file: this.#file, line: lines.at(offset), column: lines.columnAt(offset) };
  }

  /** The places of fields below a path. */
  below(above: KeyPath): PlaceOf {
    return (path, beginning) => this.placeOf([...above, ...path], beginning);
  }

  #offsetOf(path: KeyPath, beginning: string | undefined, document: number): number {
    const { positions } = this.#read();
    return beginning === undefined
      ? positions.offsetOf(path, document)
      : positions.offsetInText(path, beginning, document);
  }

  #read(): { readonly positions: YamlPositions; readonly lines: LineNumbers } {
    this.#parsed ??= { positions: new YamlPositions(this.#text), lines: new LineNumbers(this.#text) };
    return this.#parsed;
  }
}
