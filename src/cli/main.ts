// The `portcullis` program: its commands, and how it reports errors.
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { Command, CommanderError } from 'commander';
import { errorText, parseJson } from '../values/index.ts';
import { cacheFolder } from './cache-folder.ts';
import { CliError, EXIT } from './errors.ts';
import { manyLines } from './table.ts';

/** Commands by name, loaded lazily for a fast start. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start/start.ts')).startCommand(),
  serve: async () => (await import('./serve/serve.ts')).serveCommand(),
  controller: async () => (await import('./controller/controller.ts')).controllerCommand(),
  run: async () => (await import('./policy/run.ts')).runCommand(),
  test: async () => (await import('./test/test.ts')).testCommand(),
  inspect: async () => (await import('./module/inspect.ts')).inspectCommand(),
  pull: async () => (await import('./module/pull.ts')).pullCommand(),
  push: async () => (await import('./module/push.ts')).pushCommand(),
  save: async () => (await import('./module/save.ts')).saveCommand(),
  load: async () => (await import('./module/load.ts')).loadCommand(),
  policies: async () => (await import('./module/policies.ts')).policiesCommand(),
  rm: async () => (await import('./module/rm.ts')).rmCommand(),
  verify: async () => (await import('./module/verify.ts')).verifyCommand(),
  digest: async () => (await import('./module/digest.ts')).digestCommand(),
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
  governance: async () => (await import('./governance/governance.ts')).governanceCommand(),
  dryrun: async () => (await import('./governance/dryrun/dryrun.ts')).dryrunCommand(),
  explain: async () => (await import('./governance/explain.ts')).explainCommand(),
  netpol: async () => (await import('./netpol/netpol.ts')).netpolCommand(),
  install: async () => (await import('./install/install.ts')).installCommand(),
  uninstall: async () => (await import('./install/uninstall.ts')).uninstallCommand(),
  doctor: async () => (await import('./install/doctor.ts')).doctorCommand(),
};

const OTHERS = Object.keys(COMMANDS).filter((name) => name !== 'completion');

// Compiled code starts in a tenth of the time. Has no effect without a writable folder.
enableCompileCache(join(cacheFolder(), 'node'));
// A closed pipe (`| head`) ends the command without an error.
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

/** The commands to load: all of them for help and for an unknown word. */
function commandsFor(word: string): readonly string[] {
  if (Object.hasOwn(COMMANDS, word)) {
    return [word];
  }
  return word === '-V' || word === '--version' ? [] : Object.keys(COMMANDS);
}

async function createProgram(names: readonly string[]): Promise<Command> {
  const { version } = parseJson(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
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

/** Copies the settings of a command to another one and its subcommands. */
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
        throw new CliError(`unknown command ${name}`);
      }
      return await load();
    }),
  );
}

/** Prints an error; returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has printed its message. Help and version exit with 0.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  // Messages may contain text of servers and policies, which must not control the terminal.
  const message = manyLines(errorText(error));
  process.stderr.write(`${styleText('red', 'error:', { stream: process.stderr })} ${message}\n`);
  if (error instanceof CliError && error.hint !== undefined) {
    process.stderr.write(`${error.hint}\n`);
  }
  if (process.env['PORTCULLIS_DEBUG'] !== undefined && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ''}\n`);
  }
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}
