import { join } from 'node:path';
import { ALL_MODULES, type SourcesConfig } from '../../modules/sources/index.ts';
import { readServerSources } from '../module/read-sources.ts';
import type { SourceFlags } from '../module/source-flags.ts';
import { EXAMPLES } from './examples-folder.ts';

/**
 * The sources that the flags name, with the bundled mirror of the registry of the example policies.
 * @throws CliError, ModuleError
 */
export async function startSources(flags: SourceFlags): Promise<SourcesConfig> {
  const sources = await readServerSources(flags);
  const { mirrors } = await readServerSources({ sourcesPath: join(EXAMPLES, 'sources.yml') });
  return {
    ...sources,
    // Its only user is the administrator.
    tenantModules: sources.tenantModules ?? [ALL_MODULES],
    mirrors: new Map([...mirrors, ...sources.mirrors]),
  };
}
