// Inspects certificates of another issuer, such as cert-manager, and never writes them.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { CONTROLLER_CONTROL_SECRET, type WantedCertificate, wantedCertificates } from './certificate-names.ts';
import type { CertificateProblem, CertificatesReport } from './certificates-report.ts';
import type { RetainedAuthorities } from './retained-authorities.ts';
import { type FoundLeaf, readLeaf } from './leaf-secret.ts';
import { bundleOf, type ParsedCertificate } from './parsed-certificate.ts';
import { SECRETS } from './secret.ts';

/** Delay until the next pass, because no watch reports that a certificate expired. Milliseconds. */
const REQUEUE_MS = 600_000;

export interface ExternalCertificatesOptions {
  readonly cluster: Pick<Cluster, 'get'>;
  readonly namespace: string;
  /** CAs of earlier passes that are still trusted. */
  readonly retained: RetainedAuthorities;
  /** The CAs in webhook configurations. */
  readonly published: () => readonly ParsedCertificate[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Inspects the Secrets of the controller and of PolicyServers. All CAs in them are trusted, and earlier ones for a while.
 * @throws ApiError, ClusterError when Secrets cannot be read
 */
export async function inspectCertificates(
  { cluster, namespace, retained, published, now }: ExternalCertificatesOptions,
  policyServers: readonly string[],
  signal: AbortSignal,
): Promise<CertificatesReport> {
  const found: FoundLeaf[] = [];
  for (const wanted of wantedCertificates(namespace, policyServers)) {
    const object = await unlessGone(cluster.get(SECRETS, { namespace, name: wanted.secret }, { signal }));
    found.push(readLeaf(object, wanted));
  }
  const leaves = found.map(({ object, wanted }) => readLeaf(object, required(wanted, found)));
  const problems = leaves.flatMap((leaf) => problemOf(leaf, now()) ?? []);
  const faulty = new Set(problems.map(({ secret }) => secret));
  const secrets = leaves.map(({ secret, authorities }) => ({ secret, authorities, isUsable: !faulty.has(secret) }));
  const { trusted, nextChangeMs = REQUEUE_MS } = retained.update(secrets, published, now());
  const bundle = bundleOf(trusted);
  return {
    bundle: bundle === '' ? undefined : bundle,
    phase: 'Stable',
    expiries: new Map(
      leaves.flatMap(({ secret, certificate }) => (certificate ? [[secret, certificate.notAfter] as const] : [])),
    ),
    problems,
    events: [],
    failures: [],
    requeueAfterMs: Math.min(nextChangeMs, REQUEUE_MS),
  };
}

/**
 * Requires only the DNS name that API servers use, and of the controller that of controllers where a PolicyServer's certificate says
 * whose it is: its pods would refuse the controller.
 */
function required(wanted: WantedCertificate, found: readonly FoundLeaf[]): WantedCertificate {
  const isNamed = ({ certificate, wanted: { policyServer, usages } }: FoundLeaf): boolean =>
    policyServer !== undefined && usages.length > 1 && certificate !== undefined;
  return wanted.secret === CONTROLLER_CONTROL_SECRET && found.some(isNamed)
    ? wanted
    : { ...wanted, dnsNames: wanted.dnsNames.slice(0, 1) };
}

function problemOf(
  { secret, object, wanted, certificate, fault, issuedBy }: FoundLeaf,
  now: number,
): CertificateProblem | undefined {
  const { policyServer, dnsNames, usages } = wanted;
  const what = `a certificate for ${dnsNames.join(', ')}, for use as ${usages.length > 1 ? 'server and client' : 'server'}`;
  const invalid = (message: string): CertificateProblem => ({
    secret,
    policyServer,
    reason: 'CertificateInvalid',
    message: `Secret ${secret}: ${message}. Expected ${what}, its key, and its CA as ca.crt.`,
  });
  if (object === undefined) {
    const message = `Secret ${secret} is missing: expected ${what}. Create it, for instance by a Certificate of cert-manager.`;
    return { secret, policyServer, reason: 'CertificateMissing', message };
  }
  if (fault !== undefined || certificate === undefined) {
    return invalid(fault ?? 'tls.crt contains no certificate');
  }
  if (certificate.notAfter <= now) {
    return invalid(`the certificate expired at ${new Date(certificate.notAfter).toISOString()}`);
  }
  return issuedBy === undefined ? invalid('ca.crt does not contain the CA that issued the certificate') : undefined;
}
