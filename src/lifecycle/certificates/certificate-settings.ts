// Lifetimes of certificates, and the duration of a rotation.

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Settings for mode `own`. Milliseconds. */
export interface CertificateSettings {
  /** Lifetime of a CA. */
  readonly authorityLifetimeMs: number;
  /** Lifetime of other certificates. They never outlive their CA. */
  readonly leafLifetimeMs: number;
  /**
   * Delay between the phases of a rotation, after all Secrets and webhook configurations were written. Within it, all
   * processes must have loaded them.
   */
  readonly overlapMs: number;
}

/**
 * A kubelet updates mounted Secrets within its sync period and the lifetime of its cache, a minute each, and somewhat later
 * under load; a server reads its files every 5 s; API servers see webhook configurations within seconds. Five times that, for
 * nodes that were offline.
 */
const DEFAULT_OVERLAP_MS = 15 * MINUTE_MS;

/** The CA needs no attention for two years, yet is rotated often enough to be routine. */
export const DEFAULT_CERTIFICATE_SETTINGS: CertificateSettings = {
  authorityLifetimeMs: 730 * DAY_MS,
  // Renewed when a third is left, so the controller may be down for a month.
  leafLifetimeMs: 90 * DAY_MS,
  overlapMs: DEFAULT_OVERLAP_MS,
};

/** Certificates are valid from this long before they are issued, for verifiers whose clocks are behind. Milliseconds. */
export const BACKDATED_MS = 5 * MINUTE_MS;

/** The share of its lifetime that is left when a certificate is renewed. */
export const RENEWAL_SHARE = 1 / 3;

/** A shorter lifetime would cause constant renewals, because certificates have whole seconds. Milliseconds. */
const MIN_LEAF_LIFETIME_MS = 6_000;

/** Overlaps reserved for a rotation: one for each of its two phases, and one in reserve. */
const OVERLAPS_OF_A_ROTATION = 3;

/**
 * The remaining lifetime of a CA when its rotation starts: certificates that it issues until the end of the rotation get their
 * full lifetime. At most half of the CA's lifetime.
 */
export function authorityRenewalMs({ leafLifetimeMs, overlapMs }: CertificateSettings, lifetimeMs: number): number {
  return Math.min(leafLifetimeMs + OVERLAPS_OF_A_ROTATION * overlapMs, lifetimeMs / 2);
}

/** A message about invalid settings; undefined if they are valid. */
export function settingsProblem(settings: CertificateSettings): string | undefined {
  const { authorityLifetimeMs, leafLifetimeMs, overlapMs } = settings;
  if (!(overlapMs > 0)) {
    return 'the overlap: expected a duration above 0';
  }
  if (!(leafLifetimeMs >= Math.max(MIN_LEAF_LIFETIME_MS, OVERLAPS_OF_A_ROTATION * overlapMs))) {
    return (
      `the lifetime of certificates: expected at least ${MIN_LEAF_LIFETIME_MS / 1000} s, and at least ` +
      `${OVERLAPS_OF_A_ROTATION} times the overlap, so that a renewed one arrives before the old one ends`
    );
  }
  return authorityLifetimeMs >= 2 * (leafLifetimeMs + OVERLAPS_OF_A_ROTATION * overlapMs)
    ? undefined
    : `the lifetime of the CA: expected at least twice that of certificates and ${OVERLAPS_OF_A_ROTATION} overlaps`;
}
