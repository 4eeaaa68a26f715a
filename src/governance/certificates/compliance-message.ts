import { formatDuration } from '../../go/index.ts';
import type { CertificateRequirements } from './certificate-requirements.ts';
import type { CertificateViolation } from './violations.ts';
import { listed } from '../../values/index.ts';

/** Certificates that one sentence names: more than fit into a message. */
const MAX_NAMED = 100;

/**
 * The message of an evaluation, in upstream's format: each sentence ends with a line break, and each but the first of all
 * kinds begins with a space. Unreadable certificates and an invalid spec, which upstream ignores, come last.
 *
 * @param violations in the order in which they are to be named
 */
export function complianceMessage(
  violations: readonly CertificateViolation[],
  requirements: CertificateRequirements,
  hasNamespaces: boolean,
): string {
  if (violations.length + requirements.problems.length === 0) {
    return hasNamespaces
      ? 'Compliant; All evaluated certificates are compliant'
      : 'Compliant; No namespaces matched the namespace selector.';
  }
  const { minimum, minimumCa = 0n, maximum = 0n, maximumCa = 0n, patterns } = requirements;
  const [expiring, ...others] = [
    sentence(
      violations,
      ({ verdict }) => verdict?.expiring === 'certificate',
      `certificates expire in less than ${formatDuration(minimum)}`,
    ),
    sentence(
      violations,
      ({ verdict }) => verdict?.expiring === 'ca',
      `CA certificates expire in less than ${formatDuration(minimumCa)}`,
    ),
    sentence(
      violations,
      ({ verdict }) => verdict?.tooLong === 'certificate',
      `certificates exceed the maximum duration of ${formatDuration(maximum)}`,
    ),
    sentence(
      violations,
      ({ verdict }) => verdict?.tooLong === 'ca',
      `CA certificates exceed the maximum duration of ${formatDuration(maximumCa)}`,
    ),
    sentence(
      violations,
      ({ verdict }) => verdict?.isSanMismatch === true,
      `certificates defined SAN entries do not match pattern ${patterns}`,
    ),
    sentence(violations, ({ problem }) => problem !== undefined, 'certificates cannot be checked'),
    ...requirements.problems.map((problem) => `${problem}\n`),
  ];
  const further = others.filter((text) => text !== '').map((text) => ` ${text}`);
  return `NonCompliant; ${[expiring, ...further].join('')}`;
}

/** `2 certificates …: ns:a, ns:b`; empty for none. */
function sentence(
  violations: readonly CertificateViolation[],
  isMeant: (violation: CertificateViolation) => boolean,
  what: string,
): string {
  const meant = violations.filter(isMeant);
  if (meant.length === 0) {
    return '';
  }
  const names = meant.map(({ namespace, secret }) => `${namespace}:${secret}`);
  return `${meant.length} ${what}: ${listed(names, MAX_NAMED)}\n`;
}
