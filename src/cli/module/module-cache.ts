import { join } from 'node:path';
import { DEFAULT_MAX_MODULE_BYTES, ModuleCache } from '../../modules/index.ts';
import { cacheFolder } from '../cache-folder.ts';

/** The modules that commands of the user share. */
export function moduleCache(): ModuleCache {
  return new ModuleCache(join(cacheFolder(), 'modules'), { maxModuleBytes: DEFAULT_MAX_MODULE_BYTES });
}
