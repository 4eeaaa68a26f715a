// `portcullis reset`: removes the data folder of `portcullis start`.
import { resolve } from 'node:path';
import { Command } from 'commander';
import { DATA_DIR } from '../data-dir.ts';
import { removeDataFolder } from './data-folder.ts';

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
      const wasRemoved = removeDataFolder(folder);
      process.stdout.write(wasRemoved ? `Removed ${folder}.\n` : `Nothing to remove: ${folder} does not exist.\n`);
    });
}
