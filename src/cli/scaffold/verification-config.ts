// `portcullis scaffold verification-config`: a verification.yml, as `kwctl scaffold verification-config`.
import { Command } from 'commander';
import { addRequirementFlags, readRequirementFlags, type RequirementFlags } from '../module/signature-flags.ts';
import { dataText } from '../output.ts';

/** That of kwctl: signatures of Kubewarden's own workflows. */
const DEFAULT = [{ kind: 'githubAction', owner: 'kubewarden' }] as const;

export function verificationConfigCommand(): Command {
  return addRequirementFlags(
    new Command('verification-config').description(
      'print a verification.yml: the signatures that modules must have (default: those of Kubewarden)',
    ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis scaffold verification-config > verification.yml
  portcullis scaffold verification-config -k cosign.pub > verification.yml
  portcullis scaffold verification-config --github-owner example --github-repo policies > verification.yml`,
    )
    .action(scaffoldVerificationConfig);
}

async function scaffoldVerificationConfig(flags: RequirementFlags): Promise<void> {
  const given = await readRequirementFlags(flags);
  const config = { apiVersion: 'v1', allOf: given.length === 0 ? DEFAULT : given };
  process.stdout.write(`# Signatures that modules must have: each of allOf.\n${dataText(config, 'yaml')}`);
}
