// Reads files that come from outside: whole, up to a size, and without waiting for ever.
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError, errorText } from '../values/index.ts';

/** Largest text file that is read: above the limits of reviews (7 MiB), and as large as a policies file may be. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** What a shell gives for `<(command)`, and standard input by name: pipes that were open when the process started. */
const INHERITED = /^\/(?:dev\/(?:fd\/\d+|stdin)|proc\/self\/fd\/\d+)$/;
/** What users name for "no file". */
const NULL_DEVICE = '/dev/null';
/** Without O_NONBLOCK, opening a named pipe waits until something writes to it. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;
/** Read at once. Bytes. */
const CHUNK_BYTES = 64 * 1024;

/** Why a file is not read, beside the errors of the system. */
export class FileError extends CodedError<'not-a-file' | 'file-too-large'> {
  override readonly name = 'FileError';
}

/**
 * Opens a file that is none of a named pipe, a device, a socket and a folder. `/dev/null` is an empty file.
 * @throws FileError, and the errors of the system
 */
export async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, READ_ONLY);
  try {
    requireFile(await file.stat(), path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a whole file, or a pipe that the process was started with (`/dev/fd/63`, as `<(command)` of a shell is). Pipes are
 * waited for as standard input is.
 * @throws FileError, and the errors of the system
 */
export async function readWholeFile(path: string, maxBytes: number = MAX_FILE_BYTES): Promise<Buffer> {
  if (INHERITED.test(path)) {
    return await readWholeStream(createReadStream(path), maxBytes);
  }
  await using file = await openFile(path);
  return await readWholeStream(file.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES }), maxBytes);
}

/** As {@link readWholeFile}, of a stream. */
export async function readWholeStream(stream: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length;
    requireSize(bytes, maxBytes);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks, bytes);
}

/** As {@link readWholeFile}, for those that must not wait; no pipes. */
export function readWholeFileSync(path: string, maxBytes: number = MAX_FILE_BYTES): Buffer {
  const file = openSync(path, READ_ONLY);
  try {
    requireFile(fstatSync(file), path);
    const chunks: Buffer[] = [];
    for (let bytes = 0; ;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const length = readSync(file, chunk);
      if (length === 0) {
        return Buffer.concat(chunks, bytes);
      }
      bytes += length;
      requireSize(bytes, maxBytes);
      chunks.push(chunk.subarray(0, length));
    }
  } finally {
    closeSync(file);
  }
}

/** Why a file cannot be read, in words. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return WORDS[code] ?? errorText(error);
}

const WORDS: Readonly<Record<string, string | undefined>> = {
  ENOENT: 'there is no such file or folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'part of the path is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left',
  ELOOP: 'its symbolic links form a circle',
  // Sockets, and devices that are not there.
  ENXIO: 'it is a socket or a device: expected a file',
};

function requireFile(status: Stats, path: string): void {
  if (!status.isFile() && path !== NULL_DEVICE) {
    throw new FileError('not-a-file', kindProblem(status));
  }
}

function kindProblem(status: Stats): string {
  if (status.isDirectory()) {
    return 'it is a folder';
  }
  return status.isFIFO() ? 'it is a named pipe: expected a file' : 'it is a socket or a device: expected a file';
}

function requireSize(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) {
    throw new FileError('file-too-large', `it is too large: expected at most ${maxBytes} bytes`);
  }
}
