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
  const { verificationPath: path } = flags;
  const trustRoot = await readTrustRoot(flags.sigstoreTrustConfig);
  const config = path === undefined ? undefined : parseVerification(await readText(path), path);
  return {
    ...(config === undefined ? {} : { verification: verificationOf(config, trustRoot) }),
    ...(trustRoot === undefined ? {} : { trustRoot }),
  };
}

/** The trust root in a file; undefined without one. @throws CliError, ModuleError `trust-root-invalid` */
export async function readTrustRoot(path: string | undefined): Promise<TrustRoot | undefined> {
  return path === undefined ? undefined : parseTrustRoot(await readText(path), path);
}
