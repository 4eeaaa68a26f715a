import type { SignatureRequirement } from '../sources/verification-config.ts';
import type { TrustRoot } from '../sources/trust-root.ts';
import { isSignedByCertificate } from './certificate-key.ts';
import type { CertificateIdentity } from './certificate-identity.ts';
import { isSignedBy } from './public-key.ts';
import type { Signature } from './signature.ts';

/** The issuer of identities of GitHub Actions. */
const GITHUB_ISSUER = 'https://token.actions.githubusercontent.com';

/** A signature, and who signed it if it is keyless and trusted. */
export interface IdentifiedSignature {
  readonly signature: Signature;
  readonly identity: CertificateIdentity | undefined;
}

/** Whether a signature satisfies a requirement. */
export function satisfies(
  requirement: SignatureRequirement,
  { signature, identity }: IdentifiedSignature,
  trustRoot: TrustRoot | undefined,
): boolean {
  const required = Object.entries(requirement.annotations ?? {});
  if (!required.every(([name, value]) => signature.annotations.get(name) === value)) {
    return false;
  }
  switch (requirement.kind) {
    case 'pubKey':
      return isSignedBy(requirement.key, signature);
    case 'certificate':
      return isSignedByCertificate(requirement, signature, trustRoot);
    default:
      return identity !== undefined && isIdentity(requirement, identity);
  }
}

function isIdentity(
  requirement: Exclude<SignatureRequirement, { kind: 'pubKey' | 'certificate' }>,
  { issuer, subject }: CertificateIdentity,
): boolean {
  if (requirement.kind === 'githubAction') {
    const { owner, repo } = requirement;
    const prefix = `https://github.com/${owner}/${repo === undefined ? '' : `${repo}/`}`;
    return issuer === GITHUB_ISSUER && isBelow(subject, prefix);
  }
  return (
    issuer === requirement.issuer &&
    ('equal' in requirement.subject
      ? subject === requirement.subject.equal
      : isBelow(subject, requirement.subject.urlPrefix))
  );
}

/** Whether a URL is below a prefix that ends with a slash, also after dot segments are resolved. */
function isBelow(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && url.length > prefix.length && !/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)/i.test(url);
}
