import { setImmediate as nextTurn } from 'node:timers/promises';

import { listed, shortened } from '../../values/index.ts';
import type { Digest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ArtifactSource } from '../oci/artifact-source.ts';
import type { Verification } from '../sources/verification.ts';
import type { SignatureRequirement, VerificationConfig } from '../sources/verification-config.ts';
import { KeylessVerifier } from './certificate-identity.ts';
import { collectSignatures } from './collect-signatures.ts';
import { type IdentifiedSignature, satisfies } from './satisfies.ts';
import type { Signature } from './signature.ts';

/** Most problems in a message. */
const MAX_PROBLEMS_SHOWN = 6;

/** `unknown`: it is a keyless one, and there is no trust root. */
type Outcome = 'satisfied' | 'unsatisfied' | 'unknown';

/**
 * Verifies that the signatures of an artifact satisfy a configuration.
 * @param digest of the manifest, or of the index, that a reference resolved to
 * @param shown the artifact, for messages
 * @param requiredBy where the configuration is, for messages
 * @throws ModuleError `signature-missing`, `signature-invalid`, `trust-root-unavailable`, `trust-root-invalid`; as of {@link
 * ArtifactSource}
 */
export async function verifyArtifact(
  source: ArtifactSource,
  digest: Digest,
  shown: string,
  verification: Verification,
  requiredBy: string = 'verification.yml',
): Promise<void> {
  const { signatures, problems, failure } = await collectSignatures(source, digest, shown);
  const { identified, untrusted } = await identify(signatures, verification);
  const outcome = await outcomeOf(verification.config, async (requirement) => {
    for (const signature of identified) {
      // Hostile keys and signatures take many milliseconds: the thread does other work in between.
      await nextTurn();
      if (satisfies(requirement, signature, verification.trustRoot)) {
        return 'satisfied';
      }
    }
    return !needsTrustRoot(requirement) || verification.trustRoot !== undefined ? 'unsatisfied' : 'unknown';
  });
  if (outcome === 'satisfied') {
    return;
  }
  if (failure !== undefined) {
    throw failure;
  }
  if (signatures.length === 0 && problems.length === 0) {
    throw new ModuleError(
      'signature-missing',
      `${shown} (${digest}) has no signature: expected those of ${requiredBy}. Sign it with cosign, and copy its signatures to mirrors`,
    );
  }
  if (outcome === 'unknown') {
    throw new ModuleError(
      'trust-root-unavailable',
      `the keyless signatures of ${shown} (${digest}) cannot be verified without a trust root: give one`,
    );
  }
  throw new ModuleError(
    'signature-invalid',
    `the signatures of ${shown} (${digest}) do not satisfy ${requiredBy}: ${listedProblems([...signersOf(identified), ...untrusted, ...problems])}`,
  );
}

function needsTrustRoot(requirement: SignatureRequirement): boolean {
  return requirement.kind === 'certificate' ? requirement.isLogRequired : requirement.kind !== 'pubKey';
}

/** Verifies the certificates of signatures, if a requirement and a trust root need that. */
async function identify(
  signatures: readonly Signature[],
  { config, trustRoot }: Verification,
): Promise<{ readonly identified: readonly IdentifiedSignature[]; readonly untrusted: readonly string[] }> {
  const requirements = [...config.allOf, ...(config.anyOf?.signatures ?? [])];
  const isKeyless = requirements.some(({ kind }) => kind === 'genericIssuer' || kind === 'githubAction');
  const verifier = trustRoot !== undefined && isKeyless ? new KeylessVerifier(trustRoot) : undefined;
  const untrusted: string[] = [];
  const identified: IdentifiedSignature[] = [];
  for (const signature of signatures) {
    // Hostile certificates take many milliseconds: the thread does other work in between.
    await nextTurn();
    const identity = signature.bundle === undefined ? undefined : verifier?.identityOf(signature);
    if (typeof identity === 'string') {
      untrusted.push(`${signature.shown} ${identity}`);
    }
    identified.push({ signature, identity: typeof identity === 'string' ? undefined : identity });
  }
  return { identified, untrusted };
}

async function outcomeOf(
  { allOf, anyOf }: VerificationConfig,
  evaluate: (one: SignatureRequirement) => Promise<Outcome>,
): Promise<Outcome> {
  const all = await inTurn(allOf, evaluate);
  const any = await inTurn(anyOf?.signatures ?? [], evaluate);
  const minimum = anyOf?.minimumMatches ?? 0;
  const satisfied = any.filter((one) => one === 'satisfied').length;
  const possible = satisfied + any.filter((one) => one === 'unknown').length;
  if (all.length + any.length === 0 || all.includes('unsatisfied') || possible < minimum) {
    return 'unsatisfied';
  }
  return all.includes('unknown') || satisfied < minimum ? 'unknown' : 'satisfied';
}

/** One after the other: started together, they would all run before other work of the thread. */
async function inTurn(
  requirements: readonly SignatureRequirement[],
  evaluate: (one: SignatureRequirement) => Promise<Outcome>,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const requirement of requirements) {
    outcomes.push(await evaluate(requirement));
  }
  return outcomes;
}

/** Who made the signatures that are not those required, for a message. */
function signersOf(identified: readonly IdentifiedSignature[]): readonly string[] {
  return identified.map(({ signature: { shown, annotations }, identity }) => {
    const signer =
      identity === undefined ? 'is not of a required key' : `is of ${identity.subject}, by ${identity.issuer}`;
    const names = [...annotations].map(([name, value]) => `${name}=${value}`);
    return `${shown} ${signer}${names.length === 0 ? '' : `, with ${shortened(names.join(', '), 200)}`}`;
  });
}

function listedProblems(problems: readonly string[]): string {
  const texts = problems.map((problem) => shortened(problem, 500));
  return listed(texts, MAX_PROBLEMS_SHOWN, '; ');
}
