import type { ContextAwareResource } from './policy-definition.ts';

/**
 * Answers host capabilities, synchronously: a guest's call cannot wait for a promise. In a server's worker thread it
 * blocks on another thread, which runs {@link AsyncCapabilities} with a limit of its own.
 */
export interface HostPort {
  /**
   * `capability` is `<namespace>/<operation>` as Kubewarden names it, such as `net/v1/dns_lookup_host`; `payloadJson` is its
   * payload, already known to be JSON. Returns the answer as JSON. Throws an Error whose message the guest gets.
   */
  request(capability: string, payloadJson: string): string;

  /**
   * What changes whenever an object of these kinds does, so that what was made of them can be kept; undefined when nobody
   * knows. Absent: nobody ever does.
   */
  revisionOf?(resources: readonly ContextAwareResource[]): string | undefined;

  /** The objects of these kinds as Rego policies of a mode find them, as JSON. Absent: whoever needs it asks for the objects. */
  inventory?(mode: InventoryMode, resources: readonly ContextAwareResource[]): string;
}

/** Modes of policies that are given all objects of the kinds that they declare. */
export type InventoryMode = 'opa' | 'gatekeeper';

/** A line that a policy logged, through the tracing capability or on its console. */
export interface PolicyLogEntry {
  readonly policy: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** What else the policy said, as it said it; shortened. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type PolicyLog = (entry: PolicyLogEntry) => void;
