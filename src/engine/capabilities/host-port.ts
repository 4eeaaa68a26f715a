import type { ContextAwareResource } from '../../resources/index.ts';

/**
 * Answers host calls synchronously, because guests cannot wait for a promise. In a server's worker thread it blocks on
 * another thread, which runs {@link AsyncCapabilities} with its own timeout.
 */
export interface HostPort {
  /**
   * `capability` is `<namespace>/<operation>` in Kubewarden, such as `net/v1/dns_lookup_host`; `payloadJson` is valid
   * JSON. Returns the answer as JSON. Throws an Error whose message the guest gets.
   * @param caller default: the engine itself
   */
  request(capability: string, payloadJson: string, caller?: HostCaller): string;

  /** Changes whenever an object of these kinds changes, for caches; undefined when unknown. Absent: always unknown. */
  revisionOf?(resources: readonly ContextAwareResource[]): string | undefined;

  /** The objects of these kinds in the shape of a Rego mode, as JSON. Absent: callers read the objects themselves. */
  inventory?(mode: InventoryMode, resources: readonly ContextAwareResource[]): string;
}

/** The policy that makes a host call. Plain data. */
export interface HostCaller {
  /** The namespace of the policy, whose author may be a tenant; undefined for policies of the cluster. */
  readonly tenant?: string;
  /** Time left for the evaluation. Milliseconds. */
  readonly leftMs: number;
}

/** Modes of policies that get all objects of their declared kinds. */
export type InventoryMode = 'opa' | 'gatekeeper';

/** A line that a policy logged, by the tracing capability or on its console. */
export interface PolicyLogEntry {
  readonly policy: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** Other fields of the line, shortened. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type PolicyLog = (entry: PolicyLogEntry) => void;
