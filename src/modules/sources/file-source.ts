import type { FileHandle } from 'node:fs/promises';

import { FileError, openFile } from '../../files/index.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import type { FileReference } from '../reference/module-reference.ts';
import { assertModulePreamble, SNIFF_BYTES } from '../reference/wasm-bytes.ts';

/**
 * Reads a module from a file.
 * @throws ModuleError `file-unreadable`, `module-too-large`, `not-wasm`
 */
export async function readModuleFile(reference: FileReference, maxBytes: number): Promise<Uint8Array> {
  try {
    await using file = await openFile(reference.path);
    const bytes = await readModule(file, reference, maxBytes);
    assertModulePreamble(bytes.subarray(0, SNIFF_BYTES), reference.path);
    return bytes;
  } catch (error) {
    throw error instanceof ModuleError ? error : unreadable(reference, error);
  }
}

async function readModule(file: FileHandle, reference: FileReference, maxBytes: number): Promise<Uint8Array> {
  const status = await file.stat();
  if (status.size > maxBytes) {
    throw new ModuleError(
      'module-too-large',
      `${reference.path} is too large: expected at most ${maxBytes} bytes, got ${status.size}`,
    );
  }
  // The limit holds even when the file grows meanwhile.
  const buffer = new Uint8Array(status.size);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) {
      break;
    }
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function unreadable(reference: FileReference, error: unknown): ModuleError {
  if (error instanceof FileError) {
    return new ModuleError('file-unreadable', `${reference.path} is not a module: ${error.message}`, { cause: error });
  }
  const code = systemCode(error) ?? 'unknown error';
  const advice = code === 'ENOENT' ? 'there is no such file: check the path' : `${code}: check the permissions`;
  return new ModuleError('file-unreadable', `${reference.path} cannot be read, ${advice}`, { cause: error });
}
