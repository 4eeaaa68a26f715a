// `portcullis completion`: scripts that complete commands, flags and their values in a shell, generated from the commands.
import { Argument, Command, type Option } from 'commander';
import { optionNames as names, takesPath, takesValue } from './option-words.ts';

type Shell = 'bash' | 'zsh' | 'fish';

/** A command as the completion scripts describe it. */
interface CommandWords {
  readonly name: string;
  readonly description: string;
  readonly options: readonly Option[];
  /** Values of its argument; empty when the argument is a file. */
  readonly words: readonly string[];
  readonly takesArgument: boolean;
}

/** @param others loads all other commands */
export function completionCommand(others: () => Promise<readonly Command[]>): Command {
  return new Command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      `
Examples:
  source <(portcullis completion bash)                                   for this session
  portcullis completion bash > ~/.local/share/bash-completion/completions/portcullis
  portcullis completion zsh > "\${fpath[1]}/_portcullis"
  portcullis completion fish > ~/.config/fish/completions/portcullis.fish`,
    )
    .action(async (shell: Shell, _flags: unknown, self: Command) => {
      const commands = [...(await others()), self].map(wordsOf);
      process.stdout.write(SCRIPTS[shell](commands));
    });
}

/** A command with subcommands has their names as words, and all of their options. */
function wordsOf(command: Command): CommandWords {
  const [argument] = command.registeredArguments;
  const below = command.commands.map((sub) => sub.name());
  const options = [command, ...command.commands].flatMap((one) => one.options.filter(({ hidden }) => !hidden));
  const byFlags = new Map(options.map((option) => [option.flags, option]));
  return {
    name: command.name(),
    description: command.description(),
    options: [...byFlags.values(), command.createOption('-h, --help', 'print help')],
    words: below.length > 0 ? below : (argument?.argChoices ?? []),
    takesArgument: below.length > 0 || argument !== undefined,
  };
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CommandWords[]) => string>> = { bash, zsh, fish };

function bash(commands: readonly CommandWords[]): string {
  const flagged = commands.flatMap(({ name, options }) =>
    options.filter(takesValue).map((option) => ({
      patterns: names(option).map((flag) => `"${name} ${flag}"`),
      words: option.argChoices === undefined ? (takesPath(option) ? '-f' : '') : `-W "${option.argChoices.join(' ')}"`,
    })),
  );
  const values = [...Map.groupBy(flagged, (flag) => flag.words)].map(([reply, flags]) => {
    const complete = reply === '' ? '' : `mapfile -t COMPREPLY < <(compgen ${reply} -- "$cur"); `;
    return `    ${flags.flatMap(({ patterns }) => patterns).join(' | ')}) ${complete}return ;;`;
  });
  const words = commands.map(({ name, options, words: choices }) => {
    const flags = options.flatMap(names).join(' ');
    return `    ${name}) flags="${flags}" words="${choices.join(' ')}" ;;`;
  });
  return `# Completion of portcullis for bash. Load it with: source <(portcullis completion bash)
_portcullis() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]} flags words
  compopt -o filenames 2>/dev/null
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "${commands.map(({ name }) => name).join(' ')} help --help --version" -- "$cur")
    return
  fi
  case "$command $prev" in
${values.join('\n')}
  esac
  case $command in
${words.join('\n')}
    *) return ;;
  esac
  case $cur in
    -*) mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur") ;;
    *) if [[ $words ]] && ((COMP_CWORD == 2)); then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur"); else mapfile -t COMPREPLY < <(compgen -f -- "$cur"); fi ;;
  esac
}
complete -F _portcullis portcullis
`;
}

function zsh(commands: readonly CommandWords[]): string {
  const list = commands.map(({ name, description }) => `    ${quoted(`${name}:${description}`)}`);
  const cases = commands.map(({ name, options, words, takesArgument }) => {
    const specs = options.flatMap((option) => {
      const text = option.description.replaceAll(/[[\]:]/g, String.raw`\$&`);
      const action =
        option.argChoices === undefined ? (takesPath(option) ? '_files' : ' ') : `(${option.argChoices.join(' ')})`;
      return names(option).map((flag) => quoted(`${flag}[${text}]${takesValue(option) ? `:value:${action}` : ''}`));
    });
    const argument = !takesArgument
      ? []
      : [quoted(words.length > 0 ? `*:value:(${words.join(' ')})` : '*:file:_files')];
    return `    ${name}) _arguments \\\n      ${[...specs, ...argument].join(' \\\n      ')} ;;`;
  });
  return `#compdef portcullis
# Completion of portcullis for zsh: a file named _portcullis in a folder of $fpath.
_portcullis() {
  local -a commands=(
${list.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${cases.join('\n')}
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _portcullis "$@"; else compdef _portcullis portcullis; fi
`;
}

function fish(commands: readonly CommandWords[]): string {
  const all = commands.map(({ name }) => name).join(' ');
  const lines = commands.flatMap(({ name, description, options, words }) => {
    const inside = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c portcullis -f -n 'not __fish_seen_subcommand_from ${all}' -a ${name} -d ${quoted(description)}`,
      ...(words.length > 0 ? [`complete -c portcullis -f ${inside} -a '${words.join(' ')}'`] : []),
      ...options.map((option) => {
        const flags = names(option).map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        );
        const value = !takesValue(option)
          ? ''
          : option.argChoices !== undefined
            ? ` -x -a '${option.argChoices.join(' ')}'`
            : takesPath(option)
              ? ' -r -F'
              : ' -x';
        return `complete -c portcullis ${inside} ${flags.join(' ')}${value} -d ${quoted(option.description)}`;
      }),
    ];
  });
  return `# Completion of portcullis for fish: ~/.config/fish/completions/portcullis.fish\n${lines.join('\n')}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
