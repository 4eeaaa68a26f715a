// What is probably meant by a wrong command line, where commander does not say it.
import type { Command } from 'commander';
import { nearestKey } from '../values/index.ts';

const REQUIRED = "error: required option '";
const UNKNOWN = /^error: unknown option '([^']*)'$/m;
const CHOICE = /argument '([^']*)' is invalid\. Allowed choices are (.+)\.$/m;

/** An error of commander with what is probably meant. @param text as commander prints it */
export function withUsageHints(command: Command, text: string): string {
  if (text.includes('\n(Did you mean ')) {
    return text;
  }
  // A mistake in a flag comes before a flag that is missing: it may be the one that is meant.
  const flag = text.startsWith(REQUIRED)
    ? command.args.find((argument) => /^--?[a-z]/u.test(argument))
    : UNKNOWN.exec(text)?.[1];
  if (flag !== undefined) {
    return unknownOption(command, flag);
  }
  const [, given, choices = ''] = CHOICE.exec(text) ?? [];
  return given === undefined ? text : `${text.trimEnd()}${hint(nearestKey(given, choices.split(', ')))}\n`;
}

function unknownOption({ options }: Command, given: string): string {
  const flag = given.replace(/=.*$/su, '');
  const known = options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]));
  const begun = known.find((long) => long.startsWith(flag));
  return `error: unknown option '${flag}'${hint(nearestKey(flag, known) ?? begun ?? longerFlag(flag, known))}\n`;
}

/** A flag of more words, whose beginning is nearly given: --settings-path for --setings. */
function longerFlag(flag: string, known: readonly string[]): string | undefined {
  const words = flag.split('-').length;
  return known.find((long) => {
    const beginning = long.split('-').slice(0, words).join('-');
    return flag.startsWith('--') && beginning !== long && nearestKey(flag, [beginning]) !== undefined;
  });
}

function hint(meant: string | undefined): string {
  return meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
}
