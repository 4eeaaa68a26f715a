import type { Credentials, CredentialSource } from './connection.ts';

/** Credentials that are read when they are needed and kept for a while: a token file that something else renews. */
export class KeptCredentials implements CredentialSource {
  readonly description: string;
  readonly #read: () => Promise<Credentials>;
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  #kept: { readonly credentials: Promise<Credentials>; readonly at: number } | undefined;

  /**
   * @param maxAgeMs after this they are read again
   * @param now milliseconds of a clock that does not go back
   */
  constructor(
    description: string,
    read: () => Promise<Credentials>,
    maxAgeMs: number,
    now: () => number = () => performance.now(),
  ) {
    this.description = description;
    this.#read = read;
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  current(): Promise<Credentials> {
    const known = this.#kept;
    if (known !== undefined && this.#now() - known.at < this.#maxAgeMs) {
      return known.credentials;
    }
    const kept = { credentials: this.#read(), at: this.#now() };
    this.#kept = kept;
    kept.credentials.catch(() => {
      // Failures are not kept: the file may be there the next time.
      if (this.#kept === kept) {
        this.#kept = undefined;
      }
    });
    return kept.credentials;
  }

  refused(): boolean {
    this.#kept = undefined;
    return true;
  }
}
