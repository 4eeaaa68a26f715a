// CAs that somebody else's certificates come from, for as long as one of these may still be presented.
import type { ParsedCertificate } from './parsed-certificate.ts';

/** What is beside a Secret now. */
export interface SeenSecret {
  readonly secret: string;
  readonly authorities: readonly ParsedCertificate[];
  /** Whether processes can have what is in it: while they cannot, they go on with what was in it before. */
  readonly isUsable: boolean;
}

interface KeptAuthority {
  readonly authority: ParsedCertificate;
  /** Secrets that it is beside, or was when they were usable for the last time. */
  besides: ReadonlySet<string>;
  /** Until when it is trusted though it is beside none. Milliseconds since 1970. */
  until: number;
}

/**
 * Whoever keeps Secrets replaces a certificate and its CA at once, and pods present the old one until their kubelet brings the
 * new one. So a CA is trusted on for an overlap after the last Secret had it, and for as long as a Secret that had it is missing
 * or broken: a Secret that is deleted must not take down a webhook that serves with what was in it.
 */
export class KeptAuthorities {
  readonly #overlapMs: number;
  readonly #kept = new Map<string, KeptAuthority>();
  #isBegun = false;

  constructor(overlapMs: number) {
    this.#overlapMs = overlapMs;
  }

  /** For whoever leads next. */
  forget(): void {
    this.#kept.clear();
    this.#isBegun = false;
  }

  /**
   * All CAs that are to be trusted now, and when that may change without a Secret changing.
   * @param told what API servers trust: what the leader before this one kept is known from there. Looked at once.
   * @param now milliseconds since 1970
   */
  look(
    secrets: readonly SeenSecret[],
    told: () => readonly ParsedCertificate[],
    now: number,
  ): { readonly trusted: readonly ParsedCertificate[]; readonly nextChangeMs: number | undefined } {
    const until = now + this.#overlapMs;
    const broken = new Set(secrets.filter(({ isUsable }) => !isUsable).map(({ secret }) => secret));
    if (!this.#isBegun) {
      this.#isBegun = true;
      for (const authority of told()) {
        // Which Secret had it nobody knows any more: any that is broken may have.
        this.#kept.set(authority.id, { authority, besides: broken, until });
      }
    }
    for (const kept of this.#kept.values()) {
      kept.besides = kept.besides.intersection(broken);
    }
    for (const { secret, authorities } of secrets) {
      for (const authority of authorities) {
        const besides = this.#kept.get(authority.id)?.besides ?? new Set();
        this.#kept.set(authority.id, { authority, besides: besides.union(new Set([secret])), until });
      }
    }
    const waits: number[] = [];
    for (const [id, kept] of this.#kept) {
      if (kept.besides.size > 0) {
        kept.until = until;
      } else if (kept.until <= now || kept.authority.notAfter <= now) {
        this.#kept.delete(id);
      } else {
        waits.push(kept.until - now);
      }
    }
    return {
      trusted: [...this.#kept.values()].map(({ authority }) => authority),
      nextChangeMs: waits.length === 0 ? undefined : Math.min(...waits),
    };
  }
}
