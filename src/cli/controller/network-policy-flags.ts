// The status of NetworkPolicies: the administrator's choice, on a controller and on `start`.
import { type Command, Option } from 'commander';
import { ANNOTATION_MODES, type AnnotationMode } from '../../network-policy/index.ts';
import { isEnabled } from './governance-flags.ts';

export interface NetworkPolicyFlags {
  readonly networkPolicyStatus: boolean;
  readonly networkPolicyAnnotation: AnnotationMode;
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
    );
}
