// The compliance of the certificates in Secrets with a CertificatePolicy. Pure.
import { compareStrings, formatDuration } from '../../go/index.ts';
import { type NamespaceCertificates, type NonCompliantCertificate, timeText } from '../../resources/index.ts';
import {
  certificateRequirements,
  type CertificateRequirements,
  type CertificateSpec,
} from './certificate-requirements.ts';
import { complianceMessage } from './compliance-message.ts';
import type { SecretCertificate } from './secret-certificates.ts';
import { type NamespaceSecrets, type CertificateViolation, violationsIn } from './violations.ts';

/** Length of all lists in the status together: a third of the largest object of a cluster. Characters. */
const MAX_DETAILS_LENGTH = 512 * 1024;
/** Names of one certificate in the status. */
const MAX_LISTED_NAMES = 100;
/** `status.compliancyDetails`, by namespace. */
export type CompliancyDetails = Readonly<Record<string, NamespaceCertificates>>;

export interface CertificateEvaluation {
  readonly compliant: 'Compliant' | 'NonCompliant';
  /** For the history and the event, with the state in front. */
  readonly message: string;
  readonly compliancyDetails: CompliancyDetails;
  /** When the evaluation changes without a change of an object: milliseconds since 1970. */
  readonly nextChange: number | undefined;
}

/**
 * Evaluates all Secrets of the selected namespaces.
 *
 * @param before the details in the status, whose `expiry` stays: it would change with every evaluation. It is the time
 *   that remained when the certificate was first listed
 * @param now milliseconds since 1970
 */
export function evaluateCertificates(
  spec: CertificateSpec,
  selected: readonly NamespaceSecrets[],
  now: number,
  before: CompliancyDetails = {},
): CertificateEvaluation {
  const requirements = certificateRequirements(spec);
  const changes: number[] = [];
  const namespaces = selected
    .toSorted((left, right) => compareStrings(left.namespace, right.namespace))
    .map((each) => ({
      namespace: each.namespace,
      violations: violationsIn(each, spec, requirements, now, changes),
    }));
  const violations = namespaces.flatMap((each) => each.violations);
  const isCompliant = violations.length + requirements.problems.length === 0;
  return {
    compliant: isCompliant ? 'Compliant' : 'NonCompliant',
    message: complianceMessage(violations, requirements, selected.length > 0),
    compliancyDetails: detailsOf(namespaces, requirements, now, before),
    nextChange: changes.length === 0 ? undefined : changes.reduce((first, change) => Math.min(first, change)),
  };
}

function detailsOf(
  namespaces: readonly { readonly namespace: string; readonly violations: readonly CertificateViolation[] }[],
  requirements: CertificateRequirements,
  now: number,
  before: CompliancyDetails,
): CompliancyDetails {
  if (namespaces.length === 0) {
    const message = 'Found 0 non compliant certificates, no namespaces were selected.\n';
    return { '': { nonCompliantCertificates: 0, nonCompliantCertificatesList: {}, message } };
  }
  let room = MAX_DETAILS_LENGTH;
  return Object.fromEntries(
    namespaces.map(({ namespace, violations }) => {
      const known = Object.hasOwn(before, namespace) ? before[namespace]?.nonCompliantCertificatesList : undefined;
      const listed: [string, NonCompliantCertificate][] = [];
      const lines: string[] = [];
      for (const violation of violations) {
        const entry = listedCertificate(violation, now, known);
        const text = detailLines(violation, requirements);
        room -= JSON.stringify(entry).length + violation.name.length + text.length;
        if (room < 0) {
          lines.push(`… and ${violations.length - listed.length} more\n`);
          break;
        }
        listed.push([violation.name, entry]);
        lines.push(text);
      }
      const details: NamespaceCertificates = {
        nonCompliantCertificates: violations.length,
        nonCompliantCertificatesList: Object.fromEntries(listed),
        message: namespaceMessage(namespace, violations.length, lines),
      };
      return [namespace, details];
    }),
  );
}

function namespaceMessage(namespace: string, count: number, lines: readonly string[]): string {
  const head = `Found ${count} non compliant certificates in the namespace ${namespace}.\n`;
  return count === 0 ? head : [head, 'List of non compliant certificates:\n', ...lines].join('');
}

/** Upstream's lines, except that what has expired is told apart, and that certificates may be unreadable. */
function detailLines(
  { name, certificate, verdict, problem }: CertificateViolation,
  { patterns }: CertificateRequirements,
): string {
  if (certificate === undefined || verdict === undefined) {
    return `${name} cannot be checked: ${problem ?? ''}\n`;
  }
  const { expiring, isExpired, tooLong, isSanMismatch } = verdict;
  const expires = `${name} ${isExpired ? 'expired' : 'expires'} on ${timeText(certificate.notAfter)}\n`;
  return [
    expiring === undefined ? '' : expires,
    tooLong === undefined ? '' : `${name} duration too long ${formatDuration(durationOf(certificate))}\n`,
    isSanMismatch === true ? `${name} SAN entry found not matching pattern ${patterns}\n` : '',
  ].join('');
}

function listedCertificate(
  { secret, name, certificate }: CertificateViolation,
  now: number,
  known: NamespaceCertificates['nonCompliantCertificatesList'],
): NonCompliantCertificate {
  if (certificate === undefined) {
    return { secretName: secret };
  }
  const { notAfter, isCa, sans } = certificate;
  const expiration = timeText(notAfter);
  const earlier = known !== undefined && Object.hasOwn(known, name) ? known[name] : undefined;
  const isSame = earlier?.secretName === secret && earlier.expiration === expiration;
  return {
    secretName: secret,
    expiration,
    expiry: (isSame ? earlier.expiry : undefined) ?? (notAfter - now) * 1e6,
    ca: isCa,
    duration: Number(durationOf(certificate)),
    ...(sans.length === 0 ? {} : { sans: sans.slice(0, MAX_LISTED_NAMES) }),
  };
}

function durationOf({ notBefore, notAfter }: SecretCertificate): bigint {
  return BigInt(notAfter - notBefore) * 1_000_000n;
}
