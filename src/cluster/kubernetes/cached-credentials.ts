import type { ClientCredentials, CredentialSource } from './connection.ts';

/** Credentials that are read on demand and cached, such as a token file that is renewed. */
export class CachedCredentials implements CredentialSource {
  readonly description: string;
  readonly #read: () => Promise<ClientCredentials>;
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  #cached: { readonly credentials: Promise<ClientCredentials>; readonly at: number } | undefined;

  /**
   * @param maxAgeMs how long they are cached
   * @param now milliseconds of a clock that does not go back
   */
  constructor(
    description: string,
    read: () => Promise<ClientCredentials>,
    maxAgeMs: number,
    now: () => number = () => performance.now(),
  ) {
    this.description = description;
    this.#read = read;
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  current(): Promise<ClientCredentials> {
    const known = this.#cached;
    if (known !== undefined && this.#now() - known.at < this.#maxAgeMs) {
      return known.credentials;
    }
    const cached = { credentials: this.#read(), at: this.#now() };
    this.#cached = cached;
    cached.credentials.catch(() => {
      // Failures are not cached: the file may appear.
      if (this.#cached === cached) {
        this.#cached = undefined;
      }
    });
    return cached.credentials;
  }

  dropRefused(): boolean {
    this.#cached = undefined;
    return true;
  }
}
