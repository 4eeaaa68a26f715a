import { homedir } from 'node:os';
import { join } from 'node:path';

/** The cache folder of the user: downloaded modules, and compiled code of this program. */
export function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'] ?? '';
  return join(base === '' ? join(homedir(), '.cache') : base, 'portcullis');
}
