import { homedir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_SOURCES, parseSources, type SourcesConfig } from '../../modules/index.ts';
import { readText } from '../document.ts';
import type { SourceFlags } from './source-flags.ts';

/** @throws CliError, ModuleError */
export async function readSources({ sourcesPath, dockerConfigJsonPath }: SourceFlags): Promise<SourcesConfig> {
  const sources = sourcesPath === undefined ? DEFAULT_SOURCES : parseSources(await readText(sourcesPath), sourcesPath);
  return { ...sources, dockerConfig: dockerConfigJsonPath ?? dockerLoginFile() };
}

/** Where `docker login` keeps credentials. */
function dockerLoginFile(): string {
  const folder = process.env['DOCKER_CONFIG'] ?? '';
  return join(folder === '' ? join(homedir(), '.docker') : folder, 'config.json');
}
