import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Most output of a program that is read: the files of a Debian package, uncompressed. Bytes. */
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

/** The output of a program, as text. @throws Error with its error output */
export async function output(program: string, args: readonly string[], cwd?: string): Promise<string> {
  return (await outputBytes(program, args, cwd)).toString();
}

/** The output of a program. @throws Error with its error output */
export async function outputBytes(program: string, args: readonly string[], cwd?: string): Promise<Buffer> {
  const options = { encoding: 'buffer', maxBuffer: MAX_OUTPUT_BYTES, ...(cwd === undefined ? {} : { cwd }) } as const;
  return (await promisify(execFile)(program, args, options)).stdout;
}
