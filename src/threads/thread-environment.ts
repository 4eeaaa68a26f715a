import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/**
 * The environment of threads that run policies: none of the process's variables, only the folder of compiled code, which threads
 * do not inherit. With it, a worker of a replica starts in 160 ms instead of 450 from the sources, instead of 200 from the
 * built package.
 */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  // Node appends a folder of its own version to the folder that it is given.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
