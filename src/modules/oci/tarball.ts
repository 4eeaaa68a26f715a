// Tarballs (POSIX.1-2024, pax) as the other form of an OCI layout: read in place, without unpacking, and written.
import type { FileHandle } from 'node:fs/promises';

import { Header } from 'tar/header';
import { Pax } from 'tar/pax';

import { ModuleError } from '../reference/errors.ts';

/** Where the content of a file is in a tarball. Bytes. */
export interface TarballFile {
  readonly offset: number;
  readonly size: number;
}

const BLOCK_BYTES = 512;
/** Most entries: thousands of policies with their signatures. */
const MAX_ENTRIES = 20_000;
/** Largest extended header that is read: it holds a name and times. Bytes. */
const MAX_EXTENDED_BYTES = 64 * 1024;

/** Read at once for headers: small files are beside each other. Bytes. */
const WINDOW_BYTES = 32 * 1024;
/** What compressed files begin with, in hexadecimal, and what decompresses them. */
const COMPRESSED = [
  ['1f8b', 'gunzip'],
  ['425a68', 'bunzip2'],
  ['fd377a585a00', 'unxz'],
  ['28b52ffd', 'unzstd'],
  ['504b0304', 'unzip'],
] as const;
const MAGIC_BYTES = 6;
const FILE_TYPES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);

/** What a header says about the file after it. */
interface Extended {
  readonly path?: string;
  readonly size?: number;
}

/**
 * The regular files of a tarball by name. Names are compared only, never used as paths; links and other entries are left out.
 * @param shown the tarball, for messages
 * @throws ModuleError `file-unreadable`
 */
export async function indexTarball(tarball: FileHandle, shown: string): Promise<ReadonlyMap<string, TarballFile>> {
  const { size: end } = await tarball.stat();
  const files = new Map<string, TarballFile>();
  let extended: Extended | undefined;
  let at = 0;
  let window = { start: 0, bytes: await readAt(tarball, 0, Math.min(end, WINDOW_BYTES)) };
  if (end < BLOCK_BYTES) {
    throw invalid(shown, problemOf(window.bytes));
  }
  for (let entries = 0; at + BLOCK_BYTES <= end; entries++) {
    if (at + BLOCK_BYTES > window.start + window.bytes.length) {
      window = { start: at, bytes: await readAt(tarball, at, Math.min(end - at, WINDOW_BYTES)) };
    }
    const header = headerAt(window.bytes, at - window.start, extended, shown);
    if (header.nullBlock) {
      break;
    }
    const { path = '', type, size, cksumValid } = header;
    const offset = at + BLOCK_BYTES;
    if (!cksumValid || size === undefined) {
      throw invalid(shown, problemOf(window.bytes.subarray(at - window.start)));
    }
    if (entries === MAX_ENTRIES) {
      throw invalid(shown, `expected at most ${MAX_ENTRIES} entries`);
    }
    if (offset + size > end) {
      throw invalid(shown, 'it ends early: copy it again');
    }
    at = offset + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
    if (type === 'ExtendedHeader' || type === 'NextFileHasLongPath') {
      const text = (await readAt(tarball, offset, Math.min(size, MAX_EXTENDED_BYTES))).toString('utf8');
      extended = type === 'ExtendedHeader' ? Pax.parse(text) : { path: text.replace(/\0.*$/s, '') };
      continue;
    }
    if (type === 'GlobalExtendedHeader') {
      continue;
    }
    extended = undefined;
    const name = path.replace(/^(?:\.\/+)+/, '');
    if (FILE_TYPES.has(type)) {
      files.set(name, { offset, size });
    } else {
      files.delete(name);
    }
  }
  return files;
}

/** The parser throws for numbers that are none, as in most other files. */
function headerAt(bytes: Buffer, at: number, extended: Extended | undefined, shown: string): Header {
  try {
    return new Header(bytes, at, extended);
  } catch {
    throw invalid(shown, problemOf(bytes.subarray(at)));
  }
}

/** Reads exactly so many bytes. @throws RangeError at the end of the file */
export async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) {
      throw new RangeError('the file ended early');
    }
    done += bytesRead;
  }
  return bytes;
}

/** Writes a tarball. The same files always give the same bytes, because neither owner nor time is recorded. */
export class TarballWriter {
  readonly #file: FileHandle;

  /** @param file an empty file; the caller closes it */
  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** @param name of at most 100 ASCII characters */
  async add(name: string, bytes: Uint8Array): Promise<void> {
    const header = Buffer.alloc(BLOCK_BYTES);
    new Header({ path: name, type: 'File', mode: 0o644, size: bytes.length, mtime: new Date(0) }).encode(header);
    await this.#file.writeFile(header);
    await this.#file.writeFile(bytes);
    await this.#file.writeFile(Buffer.alloc((BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES));
  }

  /** Writes the end of the archive: two empty blocks. */
  async end(): Promise<void> {
    await this.#file.writeFile(Buffer.alloc(2 * BLOCK_BYTES));
  }
}

/** Why bytes are not the beginning of a tarball. */
function problemOf(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, MAGIC_BYTES)).toString('hex');
  const found = COMPRESSED.find(([magic]) => start.startsWith(magic));
  return found === undefined ? 'it is no tarball, or damaged' : `it is compressed: decompress it ("${found[1]}")`;
}

function invalid(shown: string, problem: string): ModuleError {
  return new ModuleError('file-unreadable', `${shown} is not a tarball with an OCI layout: ${problem}`);
}
