import { homedir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_SOURCES, parseSources, type SourcesConfig } from '../../modules/index.ts';
import { readText } from '../document.ts';
import type { SourceFlags } from './source-flags.ts';

/** The sources of a command, by default with the credentials of `docker login`. @throws CliError, ModuleError */
export async function readSources(flags: SourceFlags): Promise<SourcesConfig> {
  return { dockerConfig: dockerLoginFile(), ...(await readServerSources(flags)) };
}

/** The sources of a policy server, which uses no credentials of its user. @throws CliError, ModuleError */
export async function readServerSources({ sourcesPath, dockerConfigJsonPath }: SourceFlags): Promise<SourcesConfig> {
  const sources = sourcesPath === undefined ? DEFAULT_SOURCES : parseSources(await readText(sourcesPath), sourcesPath);
  return { ...sources, ...(dockerConfigJsonPath === undefined ? {} : { dockerConfig: dockerConfigJsonPath }) };
}

/** Where `docker login` keeps credentials. */
function dockerLoginFile(): string {
  const folder = process.env['DOCKER_CONFIG'] ?? '';
  return join(folder === '' ? join(homedir(), '.docker') : folder, 'config.json');
}
