// Files of a layer by path, and their tarball: the same files give the same bytes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { Header } from 'tar/header';
import { Pax } from 'tar/pax';

export type TreeEntry =
  | { readonly kind: 'file'; readonly content: Uint8Array; readonly isExecutable: boolean }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'folder'; readonly mode: number };

const BLOCK_BYTES = 512;
const FOLDER_MODE = 0o755;
const TAR_TYPES = { file: 'File', link: 'SymbolicLink', folder: 'Directory' } as const;
const NO_BYTES = Buffer.alloc(0);

/** All entries belong to root. Paths are relative, with slashes. */
export class FileTree {
  readonly #entries = new Map<string, TreeEntry>();

  /** The entries by path, sorted. */
  get entries(): readonly (readonly [string, TreeEntry])[] {
    return [...this.#entries].toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  file(path: string, content: Uint8Array | string, isExecutable = false): this {
    return this.add(path, { kind: 'file', content: Buffer.from(content), isExecutable });
  }

  link(path: string, target: string): this {
    return this.add(path, { kind: 'link', target });
  }

  /** Adds an entry, and the folders that contain it. */
  add(path: string, entry: TreeEntry): this {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      const folder = path.slice(0, at);
      this.#entries.set(folder, this.#entries.get(folder) ?? { kind: 'folder', mode: FOLDER_MODE });
    }
    this.#entries.set(path, entry);
    return this;
  }

  /** The uncompressed layer. @param mtime of all entries */
  tarball(mtime: Date): Buffer {
    const parts = this.entries.flatMap(([path, entry]) => tarEntry(path, entry, mtime));
    return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
  }
}

function tarEntry(path: string, entry: TreeEntry, mtime: Date): readonly Uint8Array[] {
  const content = entry.kind === 'file' ? entry.content : NO_BYTES;
  const header = new Header({
    path: entry.kind === 'folder' ? `${path}/` : path,
    type: TAR_TYPES[entry.kind],
    mode: modeOf(entry),
    uid: 0,
    gid: 0,
    size: content.length,
    mtime,
    ...(entry.kind === 'link' ? { linkpath: entry.target } : {}),
  });
  const block = Buffer.alloc(BLOCK_BYTES);
  const extended = header.encode(block) ? [new Pax({ path: header.path ?? path }).encode()] : [];
  return [...extended, block, content, Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES)];
}

function modeOf(entry: TreeEntry): number {
  switch (entry.kind) {
    case 'file':
      return entry.isExecutable ? 0o755 : 0o644;
    case 'link':
      return 0o777;
    case 'folder':
      return entry.mode;
    default:
      return entry satisfies never;
  }
}

/** Compresses with gzip, whose output depends on its input only; that of Node depends on the processor. */
export async function gzip(bytes: Uint8Array): Promise<Buffer> {
  const program = spawn('gzip', ['-n', '-6'], { stdio: ['pipe', 'pipe', 'inherit'] });
  program.stdin.end(bytes);
  const [compressed, [code]] = await Promise.all([buffer(program.stdout), once(program, 'close')]);
  if (code !== 0) {
    throw new Error(`gzip failed: exit code ${String(code)}`);
  }
  return compressed;
}
