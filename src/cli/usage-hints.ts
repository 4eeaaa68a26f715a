// What is probably meant by a wrong command line, where commander does not say it.
import type { Command } from 'commander';
import { nearestKey } from '../values/index.ts';

const REQUIRED = "error: required option '";
const CHOICE = /argument '([^']*)' is invalid\. Allowed choices are (.+)\.$/m;

/** An error of commander with what is probably meant. @param text as commander prints it */
export function withUsageHints(command: Command, text: string): string {
  if (text.startsWith(REQUIRED)) {
    const flag = command.args.find((argument) => /^--?[a-z]/u.test(argument));
    return flag === undefined ? text : unknownOption(command, flag);
  }
  const [, given = '', choices = ''] = CHOICE.exec(text) ?? [];
  const meant = nearestKey(given, choices.split(', '));
  return meant === undefined ? text : `${text.trimEnd()}\n(Did you mean ${meant}?)\n`;
}

/** A mistake in a flag comes before a flag that is missing: it may be the one that is meant. */
function unknownOption({ options }: Command, given: string): string {
  const flag = given.replace(/=.*$/su, '');
  const known = options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]));
  // Of a longer one, the beginning may be given: --settings for --settings-path.
  const meant =
    nearestKey(flag, known) ??
    known.find((long) => nearestKey(flag, [long.slice(0, long.indexOf('-', 2))]) !== undefined);
  const hint = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
  return `error: unknown option '${flag}'${hint}\n`;
}
