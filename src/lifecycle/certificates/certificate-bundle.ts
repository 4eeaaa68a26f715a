/** The `caBundle` of webhook configurations, which may change. */
export interface CertificateBundle {
  /** PEM. While undefined, no webhook configuration is written. */
  bundle(): string | undefined;
  /** Calls the listener after every change. @returns a function that unsubscribes */
  subscribe(listener: () => void): () => void;
}

/** A bundle that never changes. */
export function fixedBundle(pem: string): CertificateBundle {
  return { bundle: () => pem, subscribe: () => () => undefined };
}
