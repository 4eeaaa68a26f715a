// Certificates that others keep: cert-manager, or whoever writes the same Secrets. Only looked at.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { type WantedCertificate, wantedCertificates } from './certificate-names.ts';
import type { CertificateProblem, CertificatesReport } from './certificates-report.ts';
import type { KeptAuthorities } from './kept-authorities.ts';
import { type FoundLeaf, readLeaf } from './leaf-secret.ts';
import { bundleOf, type ParsedCertificate } from './parsed-certificate.ts';
import { SECRETS } from './secret.ts';

/** Certificates end without anybody telling. Milliseconds. */
const LOOK_AGAIN_MS = 600_000;

export interface ExternalCertificatesOptions {
  readonly cluster: Pick<Cluster, 'get'>;
  readonly namespace: string;
  /** CAs of earlier looks that are still to be trusted. */
  readonly kept: KeptAuthorities;
  /** The CAs that API servers trust, as they were told. */
  readonly told: () => readonly ParsedCertificate[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Looks at the Secrets of the controller and of PolicyServers. All CAs beside certificates are to be trusted, and for a while
 * those that were.
 * @throws ApiError, ClusterError when the cluster cannot be looked at
 */
export async function lookAtCertificates(
  { cluster, namespace, kept, told, now }: ExternalCertificatesOptions,
  policyServers: readonly string[],
  signal: AbortSignal,
): Promise<CertificatesReport> {
  const leaves: FoundLeaf[] = [];
  for (const wanted of wantedCertificates(namespace, policyServers)) {
    const object = await unlessGone(cluster.get(SECRETS, { namespace, name: wanted.secret }, { signal }));
    leaves.push(readLeaf(object, essential(wanted)));
  }
  const problems = leaves.flatMap((leaf) => problemOf(leaf, now()) ?? []);
  const faulty = new Set(problems.map(({ secret }) => secret));
  const seen = leaves.map(({ secret, authorities }) => ({ secret, authorities, isUsable: !faulty.has(secret) }));
  const { trusted, nextChangeMs = LOOK_AGAIN_MS } = kept.look(seen, told, now());
  const bundle = bundleOf(trusted);
  return {
    bundle: bundle === '' ? undefined : bundle,
    phase: 'Stable',
    expiries: new Map(leaves.flatMap(({ secret, held }) => (held ? [[secret, held.notAfter] as const] : []))),
    problems,
    notices: [],
    failures: [],
    lookAgainMs: Math.min(nextChangeMs, LOOK_AGAIN_MS),
  };
}

/** What an API server calls a Service by is enough. */
function essential(wanted: WantedCertificate): WantedCertificate {
  return { ...wanted, dnsNames: wanted.dnsNames.slice(0, 1) };
}

function problemOf(
  { secret, object, wanted, held, fault, issuedBy }: FoundLeaf,
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
  if (fault !== undefined || held === undefined) {
    return invalid(fault ?? 'tls.crt holds no certificate');
  }
  if (held.notAfter <= now) {
    return invalid(`the certificate has ended, at ${new Date(held.notAfter).toISOString()}`);
  }
  return issuedBy === undefined ? invalid('ca.crt does not hold the CA that the certificate comes from') : undefined;
}
