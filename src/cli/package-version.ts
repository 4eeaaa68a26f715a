import { readFileSync } from 'node:fs';
import { parseJson } from '../values/index.ts';

/** The version of this program. */
export function packageVersion(): string {
  const { version } = parseJson(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}
