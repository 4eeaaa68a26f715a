import { type Digest, digestOf } from '../reference/digest.ts';
import type { TrustRoot } from './trust-root.ts';
import type { VerificationConfig } from './verification-config.ts';

/** What is verified, and with which trust root. Plain data. */
export interface Verification {
  readonly config: VerificationConfig;
  /** Needed for keyless signatures only. */
  readonly trustRoot?: TrustRoot;
  /** The digest of config and trust root: what was verified under one id need not be verified again. */
  readonly id: Digest;
}

/** Part of each id: raised when the rules of verification change, so that everything is verified again. */
const RULES_VERSION = 1;

/** A verification and its id. */
export function verificationOf(config: VerificationConfig, trustRoot?: TrustRoot): Verification {
  const id = digestOf(Buffer.from(canonicalJson([RULES_VERSION, config, trustRoot?.trustedRoot ?? null])));
  return { config, ...(trustRoot === undefined ? {} : { trustRoot }), id };
}

/** JSON with sorted keys, so that equal values have equal text. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
