// Plans the issue and rotation of certificates, from their state and the time. Pure, so that a test can simulate years.
import { authorityRenewalMs, BACKDATED_MS, type CertificateSettings, RENEWAL_SHARE } from './certificate-settings.ts';

/** Longest delay until the next pass, which corrects anything that watches missed. Milliseconds. */
export const MAX_REQUEUE_MS = 3_600_000;
/** Shortest delay until the next pass. Milliseconds. */
const MIN_REQUEUE_MS = 200;
/** A certificate that expires within this many overlaps is urgent: its replacement waits for nothing. */
const URGENT_OVERLAPS = 2;

/** Identity and validity of a certificate. Times in milliseconds since 1970. */
export interface CertificateTimes {
  /** Identifies the certificate. */
  readonly id: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * The CA and its rotation: a next CA is created and trusted (`Introducing`); then it replaces the current one, which is still
 * trusted (`Retiring`); then the old one is not trusted any more (`Stable`).
 */
export interface AuthorityState {
  /** The CA that issues certificates, if it has its key. */
  readonly current: CertificateTimes & { readonly hasKey: boolean };
  /** The CA that will issue certificates. It has its key. */
  readonly next?: CertificateTimes | undefined;
  /** CAs that issued certificates before. */
  readonly previous: readonly CertificateTimes[];
  /** When all Secrets and webhook configurations had the CAs of the phase; undefined if they do not yet. */
  readonly spreadAt?: number | undefined;
  readonly isRotationRequested: boolean;
}

/** The Secret of a certificate. */
export interface LeafState {
  readonly secret: string;
  /** Undefined if there is no certificate, or an unusable one; see `fault`. */
  readonly certificate?: (Omit<CertificateTimes, 'id'> & { readonly issuer: string | undefined }) | undefined;
  /** A message why its content is unusable. */
  readonly fault?: string | undefined;
  /** The CAs in the Secret, which its users trust. */
  readonly trusts: readonly string[];
}

export interface CertificatesState {
  readonly authority: AuthorityState | 'absent' | 'unusable';
  /** Our Secrets, without foreign ones of the same names. */
  readonly leaves: readonly LeafState[];
  /** Whether webhook configurations have all trusted CAs. */
  readonly isPublished: boolean;
  /** Whether this process leads. Others only repair what is missing or unusable. */
  readonly isLeading: boolean;
}

/**
 * - `create`: create a CA, and keep trusting the CAs of certificates in use.
 * - `introduce`: create a next CA.
 * - `spread`: record that all Secrets and webhook configurations have the CAs of the phase.
 * - `promote`: make the next CA the current one.
 * - `retire`: stop trusting previous CAs.
 */
export type AuthorityAction = 'create' | 'introduce' | 'spread' | 'promote' | 'retire';

export interface AuthorityStep {
  readonly action: AuthorityAction;
  /** For messages. */
  readonly reason: string;
}

/** `issue`: issue a new certificate. `trust`: change only the CAs in the Secret. */
export interface LeafStep {
  readonly secret: string;
  readonly action: 'issue' | 'trust';
  readonly reason: string;
}

export interface CertificatePlan {
  /** To be done before `leaves`; another plan follows. */
  readonly step?: AuthorityStep;
  readonly leaves: readonly LeafStep[];
  /** Delay until the next pass. Milliseconds. */
  readonly requeueAfterMs: number;
}

export type RotationPhase = 'Stable' | 'Introducing' | 'Retiring';

export function phaseOf({
  next,
  previous,
}: Pick<AuthorityState, 'next'> & { previous: readonly unknown[] }): RotationPhase {
  return next !== undefined ? 'Introducing' : previous.length > 0 ? 'Retiring' : 'Stable';
}

/** @param now milliseconds since 1970 */
export function planCertificates(
  state: CertificatesState,
  now: number,
  settings: CertificateSettings,
): CertificatePlan {
  const step = authorityStep(state, now, settings);
  const { authority } = state;
  if (step !== undefined || typeof authority === 'string') {
    return { ...(step === undefined ? {} : { step }), leaves: [], requeueAfterMs: MIN_REQUEUE_MS };
  }
  const leaves = state.leaves.flatMap((leaf) => leafStep(leaf, authority, now, settings) ?? []);
  const due = [
    ...state.leaves.flatMap(({ certificate }) =>
      certificate === undefined ? [] : [renewalOf(certificate), urgentTimeOf(certificate, settings)],
    ),
    authority.current.notAfter - authorityRenewalMs(settings, lifetimeOf(authority.current)),
    authority.current.notAfter,
    ...(authority.spreadAt === undefined ? [] : [authority.spreadAt + settings.overlapMs]),
  ].filter((at) => at > now);
  const requeueAfterMs = Math.max(Math.min(...due.map((at) => at - now), MAX_REQUEUE_MS), MIN_REQUEUE_MS);
  return { leaves, requeueAfterMs };
}

function authorityStep(
  state: CertificatesState,
  now: number,
  settings: CertificateSettings,
): AuthorityStep | undefined {
  const { authority } = state;
  if (typeof authority === 'string') {
    return { action: 'create', reason: authority === 'absent' ? 'there was none' : 'the old one is unusable' };
  }
  const { current, next, previous } = authority;
  if (current.notAfter <= now) {
    return next !== undefined && next.notAfter > now
      ? { action: 'promote', reason: 'the current one has expired' }
      : { action: 'create', reason: 'the old one has expired' };
  }
  if (!state.isLeading) {
    return undefined;
  }
  const reason = reasonToRotate(authority, now, settings);
  if (next !== undefined) {
    return next.notAfter <= now
      ? { action: 'introduce', reason: 'the next one has expired' }
      : spreadStep(state, authority, now, settings, { action: 'promote', reason: 'it is trusted everywhere' });
  }
  if (reason !== undefined) {
    return { action: 'introduce', reason };
  }
  if (previous.length > 0) {
    const retire: AuthorityStep = { action: 'retire', reason: 'none of its certificates is in use' };
    return previous.every(({ notAfter }) => notAfter <= now)
      ? retire
      : spreadStep(state, authority, now, settings, retire);
  }
  return authority.isRotationRequested ? { action: 'introduce', reason: 'it was requested' } : undefined;
}

/** Why the CA must be rotated; undefined if it need not. */
function reasonToRotate({ current }: AuthorityState, now: number, settings: CertificateSettings): string | undefined {
  if (!current.hasKey) {
    return 'the key of the current one is lost';
  }
  if (current.notBefore > now) {
    return 'the current one is not valid yet: clocks of controllers differ';
  }
  return current.notAfter - now <= authorityRenewalMs(settings, lifetimeOf(current))
    ? `the current one expires at ${new Date(current.notAfter).toISOString()}`
    : undefined;
}

/** Waits until all Secrets and webhook configurations have the CAs of the phase, and then for the overlap. */
function spreadStep(
  state: CertificatesState,
  authority: AuthorityState,
  now: number,
  { overlapMs }: CertificateSettings,
  after: AuthorityStep,
): AuthorityStep | undefined {
  const { current, spreadAt } = authority;
  // A time far in the future was recorded by a wrong clock.
  if (spreadAt !== undefined && spreadAt - now <= BACKDATED_MS) {
    return now - spreadAt >= overlapMs ? after : undefined;
  }
  const isUrgent = current.notAfter - now <= URGENT_OVERLAPS * overlapMs;
  return isUrgent || isSpread(state, authority)
    ? { action: 'spread', reason: isUrgent ? 'the current one expires soon' : 'it is trusted everywhere' }
    : undefined;
}

function isSpread({ leaves, isPublished }: CertificatesState, authority: AuthorityState): boolean {
  const trusted = trustedBy(authority);
  const isRetiring = phaseOf(authority) === 'Retiring';
  return (
    isPublished &&
    leaves.every(
      ({ certificate, trusts }) =>
        certificate !== undefined &&
        isSameSet(trusts, trusted) &&
        (!isRetiring || certificate.issuer === authority.current.id),
    )
  );
}

function leafStep(
  leaf: LeafState,
  authority: AuthorityState,
  now: number,
  settings: CertificateSettings,
): LeafStep | undefined {
  const { secret } = leaf;
  const reason = reasonToIssue(leaf, authority, now, settings);
  if (reason !== undefined) {
    return { secret, action: 'issue', reason };
  }
  return isSameSet(leaf.trusts, trustedBy(authority))
    ? undefined
    : { secret, action: 'trust', reason: 'other CAs are trusted' };
}

function reasonToIssue(
  { certificate, fault }: LeafState,
  authority: AuthorityState,
  now: number,
  settings: CertificateSettings,
): string | undefined {
  const signer = signerOf(authority);
  if (signer === undefined) {
    return undefined;
  }
  if (certificate === undefined) {
    return fault ?? 'there was none';
  }
  if (certificate.issuer !== signer.id && certificate.issuer !== authority.current.id) {
    return 'another CA has issued it';
  }
  if (certificate.notBefore > now) {
    return 'it is not valid yet: clocks of controllers differ';
  }
  // A certificate cannot outlive its CA.
  const canBeLonger = certificate.issuer !== signer.id || certificate.notAfter < signer.notAfter;
  // Certificates of the next CA are not trusted everywhere before it is the current one.
  const canWait = signer.id !== authority.current.id && now < urgentTimeOf(certificate, settings);
  return certificate.notAfter <= now || (renewalOf(certificate) <= now && canBeLonger && !canWait)
    ? `it expires at ${new Date(certificate.notAfter).toISOString()}`
    : undefined;
}

/** The CA that issues certificates: the current one, or the next one if the key of the current one was lost. */
export function signerOf({ current, next }: AuthorityState): CertificateTimes | undefined {
  return current.hasKey ? current : next;
}

/** The ids of all trusted CAs. */
function trustedBy({ current, next, previous }: AuthorityState): readonly string[] {
  return [current, ...(next === undefined ? [] : [next]), ...previous].map(({ id }) => id);
}

/** When a certificate should be renewed. */
function renewalOf(times: Omit<CertificateTimes, 'id'>): number {
  return times.notAfter - lifetimeOf(times) * RENEWAL_SHARE;
}

/** When the renewal of a certificate becomes urgent. */
function urgentTimeOf({ notAfter }: Omit<CertificateTimes, 'id'>, { overlapMs }: CertificateSettings): number {
  return notAfter - URGENT_OVERLAPS * overlapMs;
}

/** The lifetime by the certificate itself, so that a controller with other settings does not replace it. */
function lifetimeOf({ notBefore, notAfter }: Omit<CertificateTimes, 'id'>): number {
  return Math.max(notAfter - notBefore - BACKDATED_MS, 0);
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.symmetricDifference(other).size === 0;
}
