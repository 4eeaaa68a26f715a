import { homedir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_SOURCES, parseSources, type SourcesConfig } from '../../modules/sources/index.ts';
import { readText } from '../document.ts';
import { proxiesOf } from './proxy-environment.ts';
import type { SourceFlags } from './source-flags.ts';

/** The sources of a command, by default with the credentials of `docker login`. @throws CliError, ModuleError */
export async function readSources(flags: SourceFlags): Promise<SourcesConfig> {
  return { dockerConfig: dockerLoginFile(), ...(await readServerSources(flags)) };
}

/**
 * The sources of a policy server, which uses no credentials of its user. Proxies of the environment count if the file names none.
 * @throws CliError, ModuleError
 */
export async function readServerSources({ sourcesPath, dockerConfigJsonPath }: SourceFlags): Promise<SourcesConfig> {
  const sources = sourcesPath === undefined ? DEFAULT_SOURCES : parseSources(await readText(sourcesPath), sourcesPath);
  const hasProxies = Object.keys(sources.proxies).length > 0;
  return {
    ...sources,
    proxies: hasProxies ? sources.proxies : (proxiesOf(process.env) ?? {}),
    ...(dockerConfigJsonPath === undefined ? {} : { dockerConfig: dockerConfigJsonPath }),
  };
}

/** Where `docker login` keeps credentials. */
function dockerLoginFile(): string {
  const folder = process.env['DOCKER_CONFIG'] ?? '';
  return join(folder === '' ? join(homedir(), '.docker') : folder, 'config.json');
}
