// Writes generated files, or compares them with what is committed.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

interface GeneratedFiles {
  /** Content by path, from the root of the repository. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** Folders without any other files. */
  readonly folders?: readonly string[];
  /** What the files are generated from. */
  readonly source: string;
  /** The tool that generates them. */
  readonly tool: string;
}

/** Writes the files that differ and removes others from the folders. With `--check`, fails instead when there are any. */
export function writeGenerated({ files, folders = [], source, tool }: GeneratedFiles): void {
  const differing = [...files].filter(([file, content]) => contentOf(file)?.equals(Buffer.from(content)) !== true);
  const others = folders.flatMap(listed).filter((file) => !files.has(file));
  const wrong = [...differing.map(([file]) => file), ...others];
  if (process.argv.includes('--check')) {
    if (wrong.length > 0) {
      console.error(`${wrong.join(', ')}: not what ${source} says; run \`node tools/run.mjs ${tool}\``);
      process.exit(1);
    }
    console.log(`what ${tool} generates is what ${source} says`);
    return;
  }
  for (const [file, content] of differing) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
    console.log(file);
  }
  for (const file of others) {
    rmSync(join(root, file));
    console.log(`${file} removed`);
  }
}

/** The text of a page with other content between two marks. */
export function withSection(page: string, begin: string, end: string, content: string): string {
  const [head = '', rest = ''] = readFileSync(join(root, page), 'utf8').split(begin);
  const [, tail = ''] = rest.split(end);
  return `${head}${begin}\n\n${content}\n${end}${tail}`;
}

function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(join(root, file));
  } catch {
    return undefined;
  }
}

/** Paths of all files in a folder, from the root of the repository. */
function listed(folder: string): readonly string[] {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
  } catch {
    return [];
  }
}
