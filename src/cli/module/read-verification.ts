import {
  parseTrustRoot,
  parseVerification,
  type TrustRoot,
  type Verification,
  verificationOf,
} from '../../modules/index.ts';
import { readText } from '../document.ts';
import type { VerificationFlags } from './verification-flags.ts';

/** What a policy server verifies signatures by. */
export interface ServerVerification {
  /** What modules must be signed by. Default: signatures are not verified. */
  readonly verification?: Verification;
  readonly trustRoot?: TrustRoot;
}

/** @throws CliError, ModuleError `verification-invalid`, `trust-root-invalid` */
export async function readVerification(flags: VerificationFlags): Promise<ServerVerification> {
  const { verificationPath: path, sigstoreTrustConfig: trustPath } = flags;
  const trustRoot = trustPath === undefined ? undefined : parseTrustRoot(await readText(trustPath), trustPath);
  const config = path === undefined ? undefined : parseVerification(await readText(path), path);
  return {
    ...(config === undefined ? {} : { verification: verificationOf(config, trustRoot) }),
    ...(trustRoot === undefined ? {} : { trustRoot }),
  };
}
