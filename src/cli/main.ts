// The `portcullis` command: which commands there are, and how errors reach the user.
import { readFileSync } from 'node:fs';
import { styleText } from 'node:util';
import { Command, CommanderError } from 'commander';
import { CliError, EXIT } from './errors.ts';
import { resetCommand } from './reset.ts';
import { serveCommand } from './serve.ts';
import { startCommand } from './start.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

const program = new Command('portcullis')
  .description('A Kubernetes policy engine whose policies have a status, versions and a way back')
  .version(version, '-V, --version', 'print the version')
  .helpOption('-h, --help', 'print help')
  .showSuggestionAfterError()
  .showHelpAfterError('(portcullis --help lists the commands, portcullis COMMAND --help the options of one)')
  .exitOverride()
  .addCommand(startCommand())
  .addCommand(serveCommand())
  .addCommand(resetCommand());

for (const command of program.commands) {
  command.exitOverride();
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}

/** Tells the user what went wrong; the exit code that follows from it. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // Commander has written its message already; asking for help or the version is no error.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${styleText('red', 'error:', { stream: process.stderr })} ${message}\n`);
  if (error instanceof CliError && error.hint !== undefined) {
    process.stderr.write(`${error.hint}\n`);
  }
  if (process.env['PORTCULLIS_DEBUG'] !== undefined && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ''}\n`);
  }
  return error instanceof CliError ? error.exitCode : EXIT.failed;
}
