// Flags of commands that fetch modules. Loads nothing of src/modules, which the main thread of a policy server does not need.
import { type Command, Option } from 'commander';

export interface SourceFlags {
  readonly sourcesPath?: string;
  readonly dockerConfigJsonPath?: string;
}

export const SOURCES_FLAG = '--sources-path <file>';
export const SOURCES_HELP = 'sources.yml: insecure sources, authorities, proxies, mirrors';
export const DOCKER_CONFIG_FLAG = '--docker-config-json-path <file>';
export const DOCKER_CONFIG_HELP = 'Docker config file with credentials for registries';

/** Adds the flags that kwctl has, too. */
export function addSourceFlags(command: Command): Command {
  return command
    .option(SOURCES_FLAG, SOURCES_HELP)
    .addOption(new Option(DOCKER_CONFIG_FLAG, `${DOCKER_CONFIG_HELP} (default: that of docker login)`));
}
