// `portcullis scaffold`: first versions of files that users write, with the subcommands and flags of `kwctl scaffold`.
import { Command } from 'commander';
import { artifactHubCommand } from './artifact-hub.ts';
import { manifestCommand } from './manifest.ts';
import { policyCommand } from './policy.ts';
import { requestCommand } from './request.ts';
import { vapCommand } from './vap.ts';
import { verificationConfigCommand } from './verification-config.ts';

export function scaffoldCommand(): Command {
  return new Command('scaffold')
    .description('write a new policy with its tests; print a manifest, a request, or other files that it needs')
    .addHelpText(
      'after',
      `
Examples:
  portcullis scaffold policy owner-label
  portcullis scaffold manifest policy.wasm --type ClusterAdmissionPolicy
  portcullis scaffold request pod.yaml
  portcullis scaffold vap policy.yaml
  portcullis scaffold artifacthub --version 1.2.3 -o artifacthub-pkg.yml
  portcullis scaffold verification-config -k cosign.pub`,
    )
    .addCommand(policyCommand())
    .addCommand(manifestCommand())
    .addCommand(requestCommand())
    .addCommand(vapCommand())
    .addCommand(artifactHubCommand())
    .addCommand(verificationConfigCommand());
}
