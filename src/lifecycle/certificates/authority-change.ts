// Applies one step of a plan to a CA.
import { randomBytes } from 'node:crypto';
import { createAuthority } from '../../https/index.ts';
import type { Authority, SigningAuthority } from './authority-secret.ts';
import type { AuthorityAction } from './certificate-plan.ts';
import { BACKDATED_MS, type CertificateSettings } from './certificate-settings.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

export interface AuthorityChange {
  /** The CA before the step; undefined if there is none. */
  readonly authority: Authority | undefined;
  /** The value of the annotation that requests a rotation, recorded when one starts. */
  readonly request: string | undefined;
  /** CAs that have issued certificates in use, newest first. */
  readonly survivors: readonly ParsedCertificate[];
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly settings: CertificateSettings;
}

/** The CA after a step. */
export async function changedAuthority(
  action: AuthorityAction,
  { authority, request: rotated, survivors, now, settings }: AuthorityChange,
): Promise<Authority> {
  if (action === 'create' || authority === undefined) {
    const created = await newAuthority(now, settings);
    const [current, ...previous] = survivors;
    return current === undefined
      ? { current: created, previous: [], rotated }
      : { current: { certificate: current, key: undefined }, next: created, previous, rotated };
  }
  const { current, next, previous } = authority;
  switch (action) {
    case 'introduce':
      return { current, next: await newAuthority(now, settings), previous, rotated };
    case 'spread':
      return { ...authority, spreadAt: now };
    case 'promote':
      return next === undefined
        ? authority
        : {
            current: next,
            previous: [current.certificate, ...previous].filter(({ notAfter }) => notAfter > now),
            rotated: authority.rotated,
          };
    case 'retire':
      return { current, previous: [], rotated: authority.rotated };
    default:
      return action satisfies never;
  }
}

async function newAuthority(now: number, { authorityLifetimeMs }: CertificateSettings): Promise<SigningAuthority> {
  const { cert, key } = await createAuthority({
    // A unique name, because some TLS libraries select CAs by name first.
    commonName: `Portcullis CA ${randomBytes(4).toString('hex')}`,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + authorityLifetimeMs),
  });
  const [certificate] = parseCertificates(cert);
  if (certificate === undefined) {
    throw new Error('the new CA certificate cannot be parsed');
  }
  return { certificate, key };
}
