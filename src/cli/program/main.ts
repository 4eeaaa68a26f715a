// The `portcullis` program: its commands, and how it reports errors.
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { errorText, styled } from '../../values/index.ts';
import { cacheFolder } from '../cache-folder.ts';
import { withDryRunMode } from '../cluster/dry-run-arguments.ts';
import { COMMAND_GROUPS, isCommand, loadCommand } from './commands.ts';
import { guardOutput } from '../guard-output.ts';
import { HELP_LAYOUT, wrapParagraphs } from '../help-text.ts';
import { packageVersion } from '../package-version.ts';
import { COMPLETE, pluginCompletion } from './plugin-completion.ts';
import { asTyped } from '../program-name.ts';
import { CliError, EXIT } from '../errors.ts';
import { isSupervised, report as reportToSupervisor } from '../supervised.ts';
import { withUsageHints } from '../usage-hints.ts';

const FIRST_STEPS = `
Examples:
  portcullis start --examples              a cluster here, with policies to try
  portcullis test examples/                run tests of policies
  portcullis apply -f policy.yaml          apply a policy
  portcullis get                           policies, policy servers, status
  portcullis rollout undo pinned-images    restore the revision before

portcullis COMMAND --help shows the options of a command, with examples.`;

// Compiled code starts in a tenth of the time. Has no effect without a writable folder.
enableCompileCache(join(cacheFolder(), 'node'));
guardOutput([process.stdout, process.stderr]);
// A closed pipe (`| head`) ends the command without an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') {
    throw error;
  }
  process.exit();
});

try {
  if (process.argv[2] === COMPLETE) {
    process.stdout.write(await pluginCompletion(process.argv.slice(3)));
  } else {
    const program = await createProgram(commandNamed(process.argv));
    await program.parseAsync(withDryRunMode(process.argv));
  }
} catch (error) {
  process.exitCode = report(error);
}

/** The command to load: none for the list of commands, and for an unknown word. */
function commandNamed([, , first = '', second = '']: readonly string[]): string | undefined {
  const word = first === 'help' ? second : first;
  return isCommand(word) ? word : undefined;
}

async function createProgram(name: string | undefined): Promise<Command> {
  const program = new Command('portcullis')
    .description('A Kubernetes policy engine whose policies have a status, versions and a way back')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .showSuggestionAfterError()
    .showHelpAfterError(asTyped('(portcullis --help lists the commands, portcullis COMMAND --help the options of one)'))
    .configureHelp({
      styleTitle: (title) => styled('bold', title),
      ...HELP_LAYOUT,
    })
    .configureOutput({ writeOut: (text) => process.stdout.write(wrapParagraphs(asTyped(text))) })
    .commandsGroup('Try it:')
    .exitOverride();
  if (name !== undefined) {
    program.addCommand(inheriting(await loadCommand(name), program));
    return program;
  }
  for (const [heading, entries] of Object.entries(COMMAND_GROUPS)) {
    for (const [command, { summary }] of Object.entries(entries)) {
      program.addCommand(new Command(command).description(summary).helpGroup(heading));
    }
  }
  return program.addHelpText('after', FIRST_STEPS);
}

/** Copies the settings of a command to another one and its subcommands. */
function inheriting(command: Command, above: Command): Command {
  command.copyInheritedSettings(above);
  command.configureOutput({ outputError: (text, write) => write(withUsageHints(command, text)) });
  for (const below of command.commands) {
    inheriting(below, command);
  }
  return command;
}

/** Prints an error; returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has printed its message. Help and version exit with 0.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  if (isSupervised()) {
    const { exitCode, hint }: Partial<CliError> = error instanceof CliError ? error : {};
    reportToSupervisor({
      refusal: {
        message: errorText(error),
        exitCode: exitCode ?? EXIT.failed,
        ...(hint === undefined ? {} : { hint }),
      },
    });
    return exitCode ?? EXIT.failed;
  }
  process.stderr.write(`${styled('red', 'error:', { stream: process.stderr })} ${errorText(error)}\n`);
  if (error instanceof CliError && error.hint !== undefined) {
    process.stderr.write(`${asTyped(error.hint)}\n`);
  }
  if (process.env['PORTCULLIS_DEBUG'] !== undefined && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ''}\n`);
  }
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}
