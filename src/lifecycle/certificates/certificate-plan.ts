// What is to be done about certificates: from how they are, and the time. Pure, so that years can pass in a test.
import { authorityRenewalMs, BACKDATED_MS, type CertificateSettings, RENEWAL_SHARE } from './certificate-settings.ts';

/** Looked at again after so long even when nothing is due: whatever was missed is made good. Milliseconds. */
export const MAX_LOOK_AGAIN_MS = 3_600_000;
/** What is due is looked at no more often than this. Milliseconds. */
const MIN_LOOK_AGAIN_MS = 200;
/** Nothing is waited for any more that would come when a certificate ends, or within so many overlaps before. */
const HURRY_OVERLAPS = 2;

/** A certificate, as far as plans go. Times in milliseconds since 1970. */
export interface CertificateTimes {
  /** Two of the same id are the same certificate. */
  readonly id: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * A CA and its change: a next one is made and trusted (`Introducing`), then it takes the place of the current one, which is
 * still trusted (`Retiring`), then that is trusted no more (`Stable`).
 */
export interface AuthorityState {
  /** What signs; without its key it is only trusted. */
  readonly current: CertificateTimes & { readonly hasKey: boolean };
  /** What will sign. Its key is there. */
  readonly next?: CertificateTimes | undefined;
  /** What has signed. */
  readonly previous: readonly CertificateTimes[];
  /** Since when the API has everywhere what the phase brings; undefined: not yet, as far as is known. */
  readonly spreadAt?: number | undefined;
  /** Whether somebody asks for another CA. */
  readonly isAsked: boolean;
}

/** The Secret of a certificate. */
export interface LeafState {
  readonly secret: string;
  /** Undefined: there is none, or none that can be used; see `fault`. */
  readonly held?: (Omit<CertificateTimes, 'id'> & { readonly issuer: string | undefined }) | undefined;
  /** Why what is in it cannot be used, in words. */
  readonly fault?: string | undefined;
  /** The CAs that whoever has the Secret trusts. */
  readonly trusts: readonly string[];
}

/** How things are. */
export interface CertificatesState {
  readonly authority: AuthorityState | 'absent' | 'unusable';
  /** Secrets that may be written. */
  readonly leaves: readonly LeafState[];
  /** Whether API servers were told of all CAs that are to be trusted. */
  readonly isTold: boolean;
  /** Whether this process leads: others mend what is broken, and change nothing else. */
  readonly isLeading: boolean;
}

/**
 * `create`: a new CA, beside those that certificates in use come from. `introduce`: a next one. `spread`: note the time. `promote`: the next one becomes
 * the current one. `retire`: the previous ones are trusted no more.
 */
export type AuthorityAction = 'create' | 'introduce' | 'spread' | 'promote' | 'retire';

/** `reason` is for people: why. */
export interface AuthorityStep {
  readonly action: AuthorityAction;
  readonly reason: string;
}

/** `issue`: a new certificate. `trust`: only the CAs beside it change. */
export interface LeafStep {
  readonly secret: string;
  readonly action: 'issue' | 'trust';
  readonly reason: string;
}

export interface CertificatePlan {
  /** Comes before everything else; then there is another plan. */
  readonly step?: AuthorityStep;
  readonly leaves: readonly LeafStep[];
  /** When to look again if nothing happens before. Milliseconds from now. */
  readonly lookAgainMs: number;
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
    return { ...(step === undefined ? {} : { step }), leaves: [], lookAgainMs: MIN_LOOK_AGAIN_MS };
  }
  const leaves = state.leaves.flatMap((leaf) => leafStep(leaf, authority, now, settings) ?? []);
  const due = [
    ...state.leaves.flatMap(({ held }) => (held === undefined ? [] : [renewalOf(held), lastCallOf(held, settings)])),
    authority.current.notAfter - authorityRenewalMs(settings, lifetimeOf(authority.current)),
    authority.current.notAfter,
    ...(authority.spreadAt === undefined ? [] : [authority.spreadAt + settings.overlapMs]),
  ].filter((at) => at > now);
  const lookAgainMs = Math.max(Math.min(...due.map((at) => at - now), MAX_LOOK_AGAIN_MS), MIN_LOOK_AGAIN_MS);
  return { leaves, lookAgainMs };
}

function authorityStep(
  state: CertificatesState,
  now: number,
  settings: CertificateSettings,
): AuthorityStep | undefined {
  const { authority } = state;
  if (typeof authority === 'string') {
    return { action: 'create', reason: authority === 'absent' ? 'there was none' : 'what was there cannot be used' };
  }
  const { current, next, previous } = authority;
  if (current.notAfter <= now) {
    return next !== undefined && next.notAfter > now
      ? { action: 'promote', reason: 'the current one has ended' }
      : { action: 'create', reason: 'the one that was there has ended' };
  }
  if (!state.isLeading) {
    return undefined;
  }
  const need = needOfAnother(authority, now, settings);
  if (next !== undefined) {
    return next.notAfter <= now
      ? { action: 'introduce', reason: 'the next one has ended' }
      : spreadStep(state, authority, now, settings, { action: 'promote', reason: 'it is trusted everywhere' });
  }
  if (need !== undefined) {
    return { action: 'introduce', reason: need };
  }
  if (previous.length > 0) {
    const retire: AuthorityStep = { action: 'retire', reason: 'nothing comes from it any more' };
    return previous.every(({ notAfter }) => notAfter <= now)
      ? retire
      : spreadStep(state, authority, now, settings, retire);
  }
  return authority.isAsked ? { action: 'introduce', reason: 'it was asked for' } : undefined;
}

/** Why there must be another CA, whatever goes on; undefined when there need not. */
function needOfAnother({ current }: AuthorityState, now: number, settings: CertificateSettings): string | undefined {
  if (!current.hasKey) {
    return 'the key of the current one is lost';
  }
  if (current.notBefore > now) {
    return 'the current one is not valid yet: clocks of controllers are apart';
  }
  return current.notAfter - now <= authorityRenewalMs(settings, lifetimeOf(current))
    ? `the current one ends at ${new Date(current.notAfter).toISOString()}`
    : undefined;
}

/** Waits until everything has what the phase brings, and then for the overlap. */
function spreadStep(
  state: CertificatesState,
  authority: AuthorityState,
  now: number,
  { overlapMs }: CertificateSettings,
  after: AuthorityStep,
): AuthorityStep | undefined {
  const { current, spreadAt } = authority;
  // A time far ahead is of a clock that was wrong.
  if (spreadAt !== undefined && spreadAt - now <= BACKDATED_MS) {
    return now - spreadAt >= overlapMs ? after : undefined;
  }
  const isHurried = current.notAfter - now <= HURRY_OVERLAPS * overlapMs;
  return isHurried || isSpread(state, authority)
    ? { action: 'spread', reason: isHurried ? 'the current one ends soon' : 'everything has it' }
    : undefined;
}

function isSpread({ leaves, isTold }: CertificatesState, authority: AuthorityState): boolean {
  const trusted = trustedBy(authority);
  const isRetiring = phaseOf(authority) === 'Retiring';
  return (
    isTold &&
    leaves.every(
      ({ held, trusts }) =>
        held !== undefined && isSameSet(trusts, trusted) && (!isRetiring || held.issuer === authority.current.id),
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
  { held, fault }: LeafState,
  authority: AuthorityState,
  now: number,
  settings: CertificateSettings,
): string | undefined {
  const signer = signerOf(authority);
  if (signer === undefined) {
    return undefined;
  }
  if (held === undefined) {
    return fault ?? 'there was none';
  }
  if (held.issuer !== signer.id && held.issuer !== authority.current.id) {
    return 'it comes from another CA';
  }
  if (held.notBefore > now) {
    return 'it is not valid yet: clocks of controllers are apart';
  }
  // At the end of a CA there is nothing to be gained.
  const isLonger = held.issuer !== signer.id || held.notAfter < signer.notAfter;
  // What comes from a next CA is trusted by few before that is the current one.
  const isPatient = signer.id !== authority.current.id && now < lastCallOf(held, settings);
  return held.notAfter <= now || (renewalOf(held) <= now && isLonger && !isPatient)
    ? `it ends at ${new Date(held.notAfter).toISOString()}`
    : undefined;
}

/** What signs: the current one, or the next one where the current one cannot. */
export function signerOf({ current, next }: AuthorityState): CertificateTimes | undefined {
  return current.hasKey ? current : next;
}

/** The CAs that are to be trusted. */
function trustedBy({ current, next, previous }: AuthorityState): readonly string[] {
  return [current, ...(next === undefined ? [] : [next]), ...previous].map(({ id }) => id);
}

/** When a certificate is renewed. */
function renewalOf(times: Omit<CertificateTimes, 'id'>): number {
  return times.notAfter - lifetimeOf(times) * RENEWAL_SHARE;
}

/** When the renewal of a certificate waits for nothing any more. */
function lastCallOf({ notAfter }: Omit<CertificateTimes, 'id'>, { overlapMs }: CertificateSettings): number {
  return notAfter - HURRY_OVERLAPS * overlapMs;
}

/** What a certificate was made for: by itself, so that controllers with other settings leave it alone. */
function lifetimeOf({ notBefore, notAfter }: Omit<CertificateTimes, 'id'>): number {
  return Math.max(notAfter - notBefore - BACKDATED_MS, 0);
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.symmetricDifference(other).size === 0;
}
