// Where commands that have no folder of their own keep what can be had again.
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The user's cache folder of Portcullis: modules that were downloaded, and compiled code of this program. */
export function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'] ?? '';
  return join(base === '' ? join(homedir(), '.cache') : base, 'portcullis');
}
