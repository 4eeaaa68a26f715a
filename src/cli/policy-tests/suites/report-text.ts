// Text of reports for people.
import { styled } from '../../../values/index.ts';
import type { DiffLine } from './line-diff.ts';

const MAX_DIFF_LINES = 200;

/** The lines of a difference, of which long ones are cut. */
export function diffLines(diff: readonly DiffLine[], paint: Paint): readonly string[] {
  const shown = diff.slice(0, MAX_DIFF_LINES).map((line) => diffText(line, paint));
  return diff.length > MAX_DIFF_LINES ? [...shown, `… ${diff.length - MAX_DIFF_LINES} more lines`] : shown;
}

function diffText({ kind, text }: DiffLine, paint: Paint): string {
  const line = clean(text);
  switch (kind) {
    case 'expected':
      return paint.red(`- ${line}`);
    case 'actual':
      return paint.green(`+ ${line}`);
    case 'gap':
      return paint.dim('  …');
    case 'same':
      return `  ${line}`;
    default:
      return kind satisfies never;
  }
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function timeText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Untrusted text without control characters other than line breaks. */
export function clean(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, ' ');
}

export function indent(text: string, columns: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(columns));
}

/** Colours, or none. */
export class Paint {
  readonly #isOn: boolean;

  constructor(isOn: boolean) {
    this.#isOn = isOn;
  }

  readonly red = (text: string): string => this.#style('red', text);
  readonly green = (text: string): string => this.#style('green', text);
  readonly dim = (text: string): string => this.#style('gray', text);

  #style(color: 'red' | 'green' | 'gray', text: string): string {
    return this.#isOn ? styled(color, text, { validateStream: false }) : text;
  }
}
