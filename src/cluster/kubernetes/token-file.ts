import { fileProblem, readWholeFile } from '../../files/index.ts';
import { ClusterError } from '../errors.ts';

/** Service account tokens are renewed long before they expire, so one read a minute is enough. Milliseconds. */
export const TOKEN_FILE_MAX_AGE_MS = 60_000;

/** The Authorization header for the token in a file. */
export async function bearerOfFile(path: string): Promise<string> {
  let token: string;
  try {
    token = (await readWholeFile(path)).toString('utf8').trim();
  } catch (error) {
    const text = `token file ${path}: expected a file with a token, got none (${fileProblem(error)}); create it, or correct its path`;
    throw new ClusterError('credentials-failed', text, { cause: error });
  }
  if (token === '' || /[^\x21-\x7e]/.test(token)) {
    const got = token === '' ? 'an empty file' : 'other characters than a token has';
    throw new ClusterError(
      'credentials-failed',
      `token file ${path}: expected one token, got ${got}; write the token again`,
    );
  }
  return `Bearer ${token}`;
}
