// Completions for `kubectl portcullis`: kubectl runs `kubectl_complete-portcullis` with the words of the line, and reads
// one completion a line, with a description after a tab, and a directive in the last line (cobra's `__complete`).
import type { Command, Option } from 'commander';
import { COMMAND_GROUPS, isCommand, loadCommand } from './commands.ts';
import { optionNames, takesPath, takesValue } from '../option-words.ts';

/** The word that makes this program complete a line. */
export const COMPLETE = '__complete';

/** Directives of cobra: the shell completes names of files, or nothing more. */
const FILES = ':0';
const NOTHING_MORE = ':4';

interface Completions {
  /** Words with their descriptions. */
  readonly words: readonly (readonly [word: string, description: string])[];
  readonly directive: typeof FILES | typeof NOTHING_MORE;
}

/** The answer to kubectl. @param line the words after the name of the plugin; the last one is being typed */
export async function pluginCompletion(line: readonly string[]): Promise<string> {
  const typed = line.at(-1) ?? '';
  const { words, directive } = await completionsFor(line.slice(0, -1), typed);
  const lines = words
    .filter(([word]) => word.startsWith(typed))
    .map(([word, description]) => `${word}\t${description.replaceAll(/\s+/g, ' ')}\n`);
  return `${lines.join('')}${directive}\n`;
}

async function completionsFor(before: readonly string[], typed: string): Promise<Completions> {
  const [name, ...rest] = before;
  if (name === undefined) {
    const commands = Object.values(COMMAND_GROUPS).flatMap(Object.entries);
    return { words: commands.map(([command, { summary }]) => [command, summary]), directive: NOTHING_MORE };
  }
  return isCommand(name) ? inCommand(await loadCommand(name), rest, typed) : { words: [], directive: NOTHING_MORE };
}

function inCommand(command: Command, before: readonly string[], typed: string): Completions {
  const [first = '', ...rest] = before;
  const below = command.commands.find((one) => one.name() === first || one.aliases().includes(first));
  if (below !== undefined) {
    return inCommand(below, rest, typed);
  }
  const previous = command.options.find((option) => optionNames(option).includes(before.at(-1) ?? ''));
  if (previous !== undefined && takesValue(previous)) {
    return valuesOf(previous);
  }
  if (typed.startsWith('-')) {
    return { words: flagsOf(command), directive: NOTHING_MORE };
  }
  if (command.commands.length > 0) {
    return { words: command.commands.map((one) => [one.name(), one.description()]), directive: NOTHING_MORE };
  }
  const [argument] = command.registeredArguments;
  const choices = argument?.argChoices ?? [];
  const isFile = argument !== undefined && choices.length === 0;
  return { words: choices.map((word) => [word, '']), directive: isFile ? FILES : NOTHING_MORE };
}

function valuesOf(option: Option): Completions {
  const words = (option.argChoices ?? []).map((word) => [word, ''] as const);
  return { words, directive: takesPath(option) ? FILES : NOTHING_MORE };
}

function flagsOf(command: Command): Completions['words'] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .flatMap((option) => optionNames(option).map((name) => [name, option.description] as const));
}
