// `portcullis verify`: verifies the signatures of a policy in a registry, with the flags of `kwctl verify`.
import { Command } from 'commander';
import { parseReference, verifyReference } from '../../modules/index.ts';
import { usageError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { readSources } from './read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from './signature-flags.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

interface VerifyFlags extends SignatureFlags, SourceFlags {}

export function verifyCommand(): Command {
  const command = new Command('verify')
    .description('verify the signatures of a policy in a registry')
    .argument('<reference>', 'registry://HOST/REPOSITORY:TAG');
  return addSourceFlags(addSignatureFlags(command))
    .addHelpText(
      'after',
      `
Prints the reference with the digest that was verified. Exit code: 0 when all that is asked for holds, otherwise 1.

Examples:
  portcullis verify registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8 --github-owner kubewarden --sigstore-trust-config trust.json
  portcullis verify registry://registry.example.com/policies/pod-privileged:v1.0.0 -k cosign.pub -a env=prod`,
    )
    .action(verify);
}

async function verify(target: string, flags: VerifyFlags): Promise<void> {
  const reference = parseReference(target);
  if (reference.kind !== 'registry') {
    throw usageError(
      `${target} names no policy in a registry`,
      'Only those have signatures: registry://HOST/REPOSITORY:TAG.',
    );
  }
  const [sources, verification] = await Promise.all([readSources(flags), readSignatureFlags(flags)]);
  if (verification === undefined) {
    throw usageError(
      'nothing is said about who must have signed',
      'Use --verification-config-path, --verification-key, --cert-email with --cert-oidc-issuer, or --github-owner.',
    );
  }
  const digest = await new Progress().during(`verifying ${reference.shown}`, () =>
    verifyReference(reference, verification, { sources }),
  );
  process.stdout.write(`Verified registry://${reference.host}/${reference.repository}@${digest}\n`);
}
