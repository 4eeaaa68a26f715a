/**
 * Answers host capabilities, synchronously: a guest's call cannot wait for a promise. In a server's worker thread it
 * blocks on another thread, which runs {@link AsyncCapabilities} with a limit of its own.
 */
export interface HostPort {
  /**
   * `capability` is `<namespace>/<operation>` of contract 4.4, such as `net/v1/dns_lookup_host`; `payloadJson` is its
   * payload, already known to be JSON. Returns the answer as JSON. Throws an Error whose message the guest gets.
   */
  request(capability: string, payloadJson: string): string;
}

/** A line that a policy logged, through the tracing capability or on its console. */
export interface PolicyLogEntry {
  readonly policy: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** What else the policy said, as it said it; shortened. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type PolicyLog = (entry: PolicyLogEntry) => void;
