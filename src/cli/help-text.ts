// The layout of help on a terminal.
import { Help } from 'commander';

/** Width of help that is not printed on a terminal. Characters. */
const DEFAULT_WIDTH = 80;
/** Narrowest column for descriptions that are wrapped. Characters. */
const MIN_DESCRIPTION_WIDTH = 24;
/** Terms that are wider stand on a line of their own. Characters. */
const MAX_TERM_WIDTH = 32;

/** Settings for `Command.configureHelp`. */
export const HELP_LAYOUT: Partial<Help> = {
  minWidthToWrap: MIN_DESCRIPTION_WIDTH,
  padWidth: (command, help) => Math.min(MAX_TERM_WIDTH, Help.prototype.padWidth.call(help, command, help)),
  formatItem,
};

/** As Commander does, with a wide term on a line of its own. */
function formatItem(term: string, termWidth: number, description: string, help: Help): string {
  const format = (shown: string): string => Help.prototype.formatItem.call(help, shown, termWidth, description, help);
  return description === '' || help.displayWidth(term) <= termWidth ? format(term) : `  ${term}\n${format('')}`;
}

/** Wraps paragraphs that are too wide. Indented lines, such as examples, stay as they are. */
export function wrapParagraphs(text: string, width = process.stdout.columns ?? DEFAULT_WIDTH): string {
  return text
    .split('\n\n')
    .map((paragraph) => (isTooWide(paragraph, width) ? wrapped(paragraph, width) : paragraph))
    .join('\n\n');
}

function isTooWide(paragraph: string, width: number): boolean {
  const lines = paragraph.split('\n');
  return lines.some((line) => line.length > width) && lines.every((line) => !/^\s/.test(line));
}

function wrapped(paragraph: string, width: number): string {
  const [, start = '', prose = '', end = ''] = /^(\n*)(.*?)(\n*)$/s.exec(paragraph) ?? [];
  return `${start}${new Help().boxWrap(prose.replaceAll('\n', ' '), width)}${end}`;
}
