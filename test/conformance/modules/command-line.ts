// A build of a guest, through the commands of its author.
import { copyFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { type CommandResult, portcullis } from '../../cli/command.ts';
import { builtFile } from './built-files.ts';
import { guestFolder } from './compilers.ts';
import type { CorpusGuest } from './guests.ts';

/**
 * The module with the metadata that the guest's author writes into it, or as it is when that is refused: `inspect` refuses it as
 * well. Examples have their metadata, which optimizers keep.
 */
export async function annotated(guest: CorpusGuest, module: string): Promise<string> {
  if (guest.folder.startsWith('examples/')) {
    return module;
  }
  const metadata = join(guestFolder(guest.folder), 'metadata.yml');
  try {
    return await builtFile(['annotate', basename(module), guest.name], async (output) => {
      const { code, stderr } = await portcullis(['annotate', '-m', metadata, '-o', output, module]);
      if (code !== 0) {
        throw new Error(stderr);
      }
    });
  } catch {
    return module;
  }
}

/** What `portcullis inspect` says against the module; undefined when it would be served. */
export async function refusalOf(module: string): Promise<string | undefined> {
  const { code, stderr } = await portcullis(['inspect', module]);
  return code === 0 ? undefined : stderr.trim();
}

/** What `portcullis test` prints about the guest's cases when they fail with the module. */
export async function failedCases(guest: CorpusGuest, module: string): Promise<string | undefined> {
  const scratch = mkdtempSync(join(tmpdir(), 'module-corpus-'));
  try {
    const folder = join(scratch, basename(guest.folder));
    cpSync(guestFolder(guest.folder), folder, {
      recursive: true,
      filter: (source) => ['', '.yml', '.yaml', '.json'].includes(extname(source)),
    });
    copyFileSync(module, join(folder, 'policy.wasm'));
    const result: CommandResult = await portcullis(['test', folder]);
    return result.code === 0 ? undefined : `${result.stdout}${result.stderr}`.trim();
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
