// The `portcullis` command: which commands there are, and how errors reach the user.
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { Command, CommanderError } from 'commander';
import { cacheFolder } from './cache-folder.ts';
import { CliError, EXIT } from './errors.ts';
import { manyLines } from './table.ts';

/** Commands by name; only the one that is wanted is loaded, so that none waits for the code of the others. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start/start.ts')).startCommand(),
  serve: async () => (await import('./serve/serve.ts')).serveCommand(),
  controller: async () => (await import('./controller/controller.ts')).controllerCommand(),
  run: async () => (await import('./policy/run.ts')).runCommand(),
  test: async () => (await import('./test/test.ts')).testCommand(),
  inspect: async () => (await import('./module/inspect.ts')).inspectCommand(),
  export: async () => (await import('./policy/export.ts')).exportCommand(),
  annotate: async () => (await import('./module/annotate.ts')).annotateCommand(),
  bench: async () => (await import('./policy/bench.ts')).benchCommand(),
  completion: async () => (await import('./completion.ts')).completionCommand(() => loadCommands(OTHERS)),
  reset: async () => (await import('./start/reset.ts')).resetCommand(),
  get: async () => (await import('./cluster/get.ts')).getCommand(),
  describe: async () => (await import('./cluster/describe.ts')).describeCommand(),
  apply: async () => (await import('./cluster/apply.ts')).applyCommand(),
  delete: async () => (await import('./cluster/delete.ts')).deleteCommand(),
  wait: async () => (await import('./cluster/wait.ts')).waitCommand(),
  rollout: async () => (await import('./rollout/rollout.ts')).rolloutCommand(),
  install: async () => (await import('./install/install.ts')).installCommand(),
  uninstall: async () => (await import('./install/uninstall.ts')).uninstallCommand(),
  doctor: async () => (await import('./install/doctor.ts')).doctorCommand(),
};

const OTHERS = Object.keys(COMMANDS).filter((name) => name !== 'completion');

// Code that was compiled once starts in a tenth of the time. Without a writable folder it does without.
enableCompileCache(join(cacheFolder(), 'node'));
// A reader that has seen enough (`| head`) ends the command, and not with an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') {
    throw error;
  }
  process.exit();
});

try {
  const program = await createProgram(commandsFor(process.argv[2] ?? ''));
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}

/** The commands whose code is needed: for help and for a word that is none, all. */
function commandsFor(word: string): readonly string[] {
  if (Object.hasOwn(COMMANDS, word)) {
    return [word];
  }
  return word === '-V' || word === '--version' ? [] : Object.keys(COMMANDS);
}

async function createProgram(names: readonly string[]): Promise<Command> {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const program = new Command('portcullis')
    .description('A Kubernetes policy engine whose policies have a status, versions and a way back')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .showSuggestionAfterError()
    .showHelpAfterError('(portcullis --help lists the commands, portcullis COMMAND --help the options of one)')
    .configureHelp({ styleTitle: (title) => styleText('bold', title) })
    .exitOverride();
  for (const command of await loadCommands(names)) {
    program.addCommand(inheriting(command, program));
  }
  return program;
}

/** A command and those below it, with the settings of the one above. */
function inheriting(command: Command, above: Command): Command {
  command.copyInheritedSettings(above);
  for (const below of command.commands) {
    inheriting(below, command);
  }
  return command;
}

async function loadCommands(names: readonly string[]): Promise<Command[]> {
  return await Promise.all(
    names.map(async (name) => {
      const load = COMMANDS[name];
      if (load === undefined) {
        throw new CliError(`there is no command ${name}`);
      }
      return await load();
    }),
  );
}

/** Tells the user what went wrong; the exit code that follows from it. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has written its message already; asking for help or the version is no error.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  // Servers and policies have a say in messages: they must not be able to move the cursor.
  const message = manyLines(error instanceof Error ? error.message : String(error));
  process.stderr.write(`${styleText('red', 'error:', { stream: process.stderr })} ${message}\n`);
  if (error instanceof CliError && error.hint !== undefined) {
    process.stderr.write(`${error.hint}\n`);
  }
  if (process.env['PORTCULLIS_DEBUG'] !== undefined && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ''}\n`);
  }
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}
