// What becomes of a CA by one step of a plan.
import { randomBytes } from 'node:crypto';
import { createAuthority } from '../../https/index.ts';
import type { Authority, SigningAuthority } from './authority-secret.ts';
import type { AuthorityAction } from './certificate-plan.ts';
import { BACKDATED_MS, type CertificateSettings } from './certificate-settings.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

export interface AuthorityChange {
  /** As it is; undefined: there is none. */
  readonly authority: Authority | undefined;
  /** The wish for another CA that this answers. */
  readonly asked: string | undefined;
  /** CAs that certificates in use come from, newest first. */
  readonly survivors: readonly ParsedCertificate[];
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly settings: CertificateSettings;
}

/** The CA after a step. */
export async function changedAuthority(
  action: AuthorityAction,
  { authority, asked: rotated, survivors, now, settings }: AuthorityChange,
): Promise<Authority> {
  if (action === 'create' || authority === undefined) {
    const made = await makeAuthority(now, settings);
    const [current, ...previous] = survivors;
    return current === undefined
      ? { current: made, previous: [], rotated }
      : { current: { certificate: current, key: undefined }, next: made, previous, rotated };
  }
  const { current, next, previous } = authority;
  switch (action) {
    case 'introduce':
      return { current, next: await makeAuthority(now, settings), previous, rotated };
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

async function makeAuthority(now: number, { authorityLifetimeMs }: CertificateSettings): Promise<SigningAuthority> {
  const { cert, key } = await createAuthority({
    // A name of its own: some look for a CA by its name first.
    commonName: `Portcullis CA ${randomBytes(4).toString('hex')}`,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + authorityLifetimeMs),
  });
  const [certificate] = parseCertificates(cert);
  if (certificate === undefined) {
    throw new Error('a CA was made that cannot be read');
  }
  return { certificate, key };
}
