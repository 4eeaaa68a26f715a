// How long certificates last, and how long a change of the CA takes.

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Times of own certificates. Milliseconds. */
export interface CertificateSettings {
  /** From when a CA is made until it ends. */
  readonly authorityLifetimeMs: number;
  /** From when another certificate is made until it ends; the CA's end cuts it short. */
  readonly leafLifetimeMs: number;
  /**
   * How long, while the CA changes, everything stays as it is once it is everywhere in the API: what brings it from there
   * to processes must be done with it by then.
   */
  readonly overlapMs: number;
}

/**
 * A kubelet renews mounted Secrets within its sync period and its cache's lifetime, a minute each, and somewhat later when it
 * has much to do; a server reads its files every 5 s; API servers learn of webhook configurations within seconds. Five times
 * that, for nodes that were away.
 */
const DEFAULT_OVERLAP_MS = 15 * MINUTE_MS;

/** A CA lasts long enough to need no attention, and ends soon enough for its change to be nothing special. */
export const DEFAULT_CERTIFICATE_SETTINGS: CertificateSettings = {
  authorityLifetimeMs: 730 * DAY_MS,
  // A third of it is left when a certificate is renewed: a controller may be away for a month.
  leafLifetimeMs: 90 * DAY_MS,
  overlapMs: DEFAULT_OVERLAP_MS,
};

/** Certificates are valid from before they are made: clocks of those who check them may be behind. Milliseconds. */
export const BACKDATED_MS = 5 * MINUTE_MS;

/** What is left of a certificate's time when it is renewed, at the latest. */
export const RENEWAL_SHARE = 1 / 3;

/** Shorter ones are renewed all the time: certificates count whole seconds. Milliseconds. */
export const MIN_LEAF_LIFETIME_MS = 6_000;

/** How long a CA must be good for when it is made, in overlaps besides a leaf's lifetime: two phases, and one in reserve. */
const OVERLAPS_OF_A_CHANGE = 3;

/**
 * How much of a CA's time is left when it is changed: what it signs lasts as long as it should, until another one signs.
 * Never more than half of what it had.
 */
export function authorityRenewalMs({ leafLifetimeMs, overlapMs }: CertificateSettings, lifetimeMs: number): number {
  return Math.min(leafLifetimeMs + OVERLAPS_OF_A_CHANGE * overlapMs, lifetimeMs / 2);
}

/** What is wrong with settings, in words; undefined when nothing is. */
export function settingsProblem(settings: CertificateSettings): string | undefined {
  const { authorityLifetimeMs, leafLifetimeMs, overlapMs } = settings;
  if (!(overlapMs > 0)) {
    return 'the overlap: expected a time of more than 0';
  }
  if (!(leafLifetimeMs >= Math.max(MIN_LEAF_LIFETIME_MS, OVERLAPS_OF_A_CHANGE * overlapMs))) {
    return (
      `the lifetime of certificates: expected at least ${MIN_LEAF_LIFETIME_MS / 1000} s, and at least ` +
      `${OVERLAPS_OF_A_CHANGE} times the overlap, so that a renewed one arrives before the old one ends`
    );
  }
  return authorityLifetimeMs >= 2 * (leafLifetimeMs + OVERLAPS_OF_A_CHANGE * overlapMs)
    ? undefined
    : `the lifetime of the CA: expected at least twice that of certificates and ${OVERLAPS_OF_A_CHANGE} overlaps`;
}
