import { join } from 'node:path';
import { ModuleCache } from '../../modules/index.ts';
import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import { cacheFolder } from '../cache-folder.ts';

/** The modules that commands of the user share. */
export function moduleCache(): ModuleCache {
  return new ModuleCache(moduleCacheFolder(), { maxModuleBytes: LARGEST_MODULE_BYTES });
}

export function moduleCacheFolder(): string {
  return join(cacheFolder(), 'modules');
}
