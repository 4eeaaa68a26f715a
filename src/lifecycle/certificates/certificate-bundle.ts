/** The CAs that API servers are told to trust, as they are now. */
export interface CertificateBundle {
  /** PEM; undefined while it is not known: then nothing is written that says whom to trust. */
  bundle(): string | undefined;
  /** Tells of every change. Returns what ends it. */
  subscribe(listener: () => void): () => void;
}

/** A bundle that stays as it is. */
export function fixedBundle(pem: string): CertificateBundle {
  return { bundle: () => pem, subscribe: () => () => undefined };
}
