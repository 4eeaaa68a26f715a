import { compareStrings } from '../../go/index.ts';
import type { Labels } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import type { CertificateRequirements, CertificateSpec } from './certificate-requirements.ts';
import { type CertificateFaults, isNonCompliant, judgeCertificate } from './judge-certificate.ts';
import type { CertificateSecret, SecretCertificate } from './secret-certificates.ts';

/** Length of the reason why a certificate cannot be read. Characters. */
const MAX_PROBLEM_LENGTH = 200;

const PATTERNS_TOO_SLOW = 'the patterns for its names take too long: use shorter ones, or split the policy';

/** The Secrets of a namespace that the policy selects. */
export interface NamespaceSecrets {
  readonly namespace: string;
  readonly secrets: readonly CertificateSecret[];
}

/** A certificate that is not compliant, or a Secret that cannot be read. */
export interface CertificateViolation {
  readonly namespace: string;
  readonly secret: string;
  readonly name: string;
  /** Undefined if it could not be read, for the reason `problem`. */
  readonly certificate: SecretCertificate | undefined;
  readonly verdict: CertificateFaults | undefined;
  readonly problem: string | undefined;
}

/** The violations of a namespace by name. Adds when certificates change. */
export function violationsIn(
  { namespace, secrets }: NamespaceSecrets,
  { labelSelector = {} }: CertificateSpec,
  requirements: CertificateRequirements,
  now: number,
  changes: number[],
): readonly CertificateViolation[] {
  const violations = secrets
    .filter((secret) => hasLabels(secret, labelSelector))
    .flatMap(({ found }): readonly CertificateViolation[] => {
      if (found === undefined) {
        return [];
      }
      const { secret, name } = found;
      const judged = found.certificates.map((certificate) => {
        const verdict = judgeCertificate(certificate, requirements, now);
        changes.push(...(verdict.nextChange === undefined ? [] : [verdict.nextChange]));
        const position = certificate.index === 0 ? '' : `[${certificate.index}]`;
        return { namespace, secret, name: `${name}${position}`, certificate, verdict, problem: undefined };
      });
      const isUnchecked = judged.some(({ verdict }) => verdict.isSanMismatch === undefined);
      const problems = isUnchecked ? [...found.problems, PATTERNS_TOO_SLOW] : found.problems;
      const problem = shortened(problems.join('; '), MAX_PROBLEM_LENGTH);
      const unreadable = { namespace, secret, name, certificate: undefined, verdict: undefined, problem };
      const violating = judged.filter(({ verdict }) => isNonCompliant(verdict));
      return problems.length === 0 ? violating : [...violating, unreadable];
    });
  return withUniqueNames(violations).toSorted((left, right) => compareStrings(left.name, right.name));
}

/** Labels may give several Secrets one name, and a chain may be unreadable in part: then the Secret is named as well. */
function withUniqueNames(violations: readonly CertificateViolation[]): readonly CertificateViolation[] {
  const taken = new Set<string>();
  return violations.map((violation) => {
    const candidates = [violation.name, `${violation.name} (${violation.secret})`];
    const free = candidates.find((name) => !taken.has(name)) ?? `${violation.name} (${violation.secret}, unreadable)`;
    taken.add(free);
    return { ...violation, name: free };
  });
}

/** Whether a Secret has all labels. */
function hasLabels({ labels }: Pick<CertificateSecret, 'labels'>, selector: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}
