// `portcullis reset`: removes the data folder of `portcullis start`.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { CliError } from '../errors.ts';
import { DATA_DIR, DATA_MARKER } from './start-flags.ts';

export function resetCommand(): Command {
  return new Command('reset')
    .description('remove the data of `portcullis start`: cluster, certificates, module cache')
    .option('--data-dir <folder>', 'the folder to remove', DATA_DIR)
    .addHelpText(
      'after',
      `
Example:
  portcullis reset --data-dir /tmp/portcullis`,
    )
    .action(({ dataDir }: { dataDir: string }) => {
      const folder = resolve(dataDir);
      if (!existsSync(folder)) {
        process.stdout.write(`Nothing to remove: ${folder} does not exist.\n`);
        return;
      }
      if (!existsSync(join(folder, DATA_MARKER)) && readdirSync(folder).length > 0) {
        throw new CliError(`${folder} was not created by \`portcullis start\` and is not removed`, {
          hint: 'Remove it by hand if it is what you mean.',
        });
      }
      rmSync(folder, { recursive: true });
      process.stdout.write(`Removed ${folder}.\n`);
    });
}
