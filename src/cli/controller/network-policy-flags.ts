// The status of NetworkPolicies: the administrator's choice, on a controller and on `start`.
import { type Command, Option } from 'commander';
import type { Logger } from '../../log/index.ts';
import type { Verification } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import type { LoadCatalogue } from '../../network-policy/index.ts';
import { ANNOTATION_MODES, type AnnotationMode } from '../../network-policy/settings/index.ts';
import { isEnabled } from './governance-flags.ts';

export interface NetworkPolicyFlags {
  readonly networkPolicyStatus: boolean;
  readonly networkPolicyAnnotation: AnnotationMode;
  readonly networkPolicyCatalogue?: string;
}

export function addNetworkPolicyFlags(command: Command): Command {
  return command
    .addOption(
      // Charts write the value.
      new Option('--network-policy-status [enabled]', 'report what the network provider does with each NetworkPolicy')
        .default(true)
        .preset('true')
        .argParser(isEnabled),
    )
    .option('--no-network-policy-status', 'remove these statuses')
    .addOption(
      new Option(
        '--network-policy-annotation <mode>',
        'repeat the status in an annotation of each NetworkPolicy, or remove these annotations',
      )
        .choices(ANNOTATION_MODES)
        .default('none'),
    )
    .option(
      '--network-policy-catalogue <name>',
      'add providers, or change what is known of them: a file, a folder, or registry://HOST/REPOSITORY@sha256:…',
    );
}

export interface CatalogueConfiguration {
  readonly sources: () => Promise<SourcesConfig>;
  readonly verification: () => Promise<Verification | undefined>;
  readonly log: Logger;
}

/** How the catalogue of the flags is loaded; undefined without one. Charts write an empty name. */
export function catalogueLoader(
  { networkPolicyCatalogue: name = '' }: Pick<NetworkPolicyFlags, 'networkPolicyCatalogue'>,
  { sources, verification, log }: CatalogueConfiguration,
): LoadCatalogue | undefined {
  const note = (text: string): void => log.warn({ catalogue: name, note: text }, 'catalogue of network providers');
  return name === ''
    ? undefined
    : async (signal) => {
        // Loaded lazily: `start` only passes the flag on.
        const { loadCatalogue } = await import('../netpol/load-catalogue.ts');
        return await loadCatalogue([name], { sources, verification, note, signal });
      };
}
