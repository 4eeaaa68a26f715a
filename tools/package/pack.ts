// The npm package, packed in a copy of the work tree: untracked files and an older `dist/` have no effect on it.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { copyWorkTree } from '../work-tree.ts';

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** A packed npm package. */
export interface PackedPackage {
  readonly path: string;
  /** Paths of its files, sorted. */
  readonly files: readonly string[];
}

/** Runs `npm pack`, whose script `prepack` builds the package. @param destination the folder of the tarball */
export async function packPackage(destination: string): Promise<PackedPackage> {
  const copy = await mkdtemp(join(tmpdir(), 'portcullis-pack-'));
  try {
    copyWorkTree(copy);
    const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', destination], {
      cwd: copy,
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    return parsePacked(stdout, destination);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

interface NpmPack {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/** npm 12 prints the packages by name, older ones as a list; the script `prepack` may print before them. */
function parsePacked(output: string, destination: string): PackedPackage {
  const printed = JSON.parse(output.slice(output.search(/^[[{]$/m))) as object;
  const [packed] = Object.values(printed) as NpmPack[];
  if (packed === undefined) {
    throw new Error(`expected npm pack to print a package, got ${output}`);
  }
  return { path: join(destination, packed.filename), files: packed.files.map(({ path }) => path).toSorted() };
}
