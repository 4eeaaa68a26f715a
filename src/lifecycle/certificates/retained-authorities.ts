// Retains CAs of another issuer for as long as a process may present a certificate of theirs.
import type { ParsedCertificate } from './parsed-certificate.ts';

/** The Secret of a certificate and the CAs in it. */
export interface InspectedSecret {
  readonly secret: string;
  readonly authorities: readonly ParsedCertificate[];
  /** Whether processes can load it. While they cannot, they keep its earlier content. */
  readonly isUsable: boolean;
}

interface RetainedAuthority {
  readonly authority: ParsedCertificate;
  /** Secrets that contain it, or did when they were last usable. */
  secrets: ReadonlySet<string>;
  /** The end of trust once no Secret contains it. Milliseconds since 1970. */
  until: number;
}

/**
 * An issuer replaces a certificate and its CA at once, but pods present the old certificate until their kubelet updates the
 * files. So a CA stays trusted for an overlap after the last Secret contained it, and while a Secret that contained it is
 * missing or unusable: the deletion of a Secret must not break a webhook that still serves with its content.
 */
export class RetainedAuthorities {
  readonly #overlapMs: number;
  /** By id of the CA. */
  readonly #retained = new Map<string, RetainedAuthority>();
  #hasPublished = false;

  constructor(overlapMs: number) {
    this.#overlapMs = overlapMs;
  }

  /** Forgets all CAs when leadership ends. */
  forget(): void {
    this.#retained.clear();
    this.#hasPublished = false;
  }

  /**
   * @param secrets the current Secrets
   * @param published the CAs in webhook configurations, among them those that the former leader retained; called once
   * @param now milliseconds since 1970
   * @returns all trusted CAs, and when one may end without a change of a Secret
   */
  update(
    secrets: readonly InspectedSecret[],
    published: () => readonly ParsedCertificate[],
    now: number,
  ): { readonly trusted: readonly ParsedCertificate[]; readonly nextChangeMs: number | undefined } {
    const until = now + this.#overlapMs;
    const unusable = new Set(secrets.filter(({ isUsable }) => !isUsable).map(({ secret }) => secret));
    if (!this.#hasPublished) {
      this.#hasPublished = true;
      for (const authority of published()) {
        // Any unusable Secret may have contained it.
        this.#retained.set(authority.id, { authority, secrets: unusable, until });
      }
    }
    for (const retained of this.#retained.values()) {
      retained.secrets = retained.secrets.intersection(unusable);
    }
    for (const { secret, authorities } of secrets) {
      for (const authority of authorities) {
        const others = this.#retained.get(authority.id)?.secrets ?? new Set();
        this.#retained.set(authority.id, { authority, secrets: others.union(new Set([secret])), until });
      }
    }
    const waits: number[] = [];
    for (const [id, retained] of this.#retained) {
      if (retained.secrets.size > 0) {
        retained.until = until;
      } else if (retained.until <= now || retained.authority.notAfter <= now) {
        this.#retained.delete(id);
      } else {
        waits.push(retained.until - now);
      }
    }
    return {
      trusted: [...this.#retained.values()].map(({ authority }) => authority),
      nextChangeMs: waits.length === 0 ? undefined : Math.min(...waits),
    };
  }
}
