import type { KubernetesObject } from '../../resources/index.ts';

/** An event of a cluster, whose fields may all be missing. */
export interface EventObject extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string;
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
  readonly source?: { readonly component?: string };
  readonly reportingComponent?: string;
  readonly involvedObject?: { readonly kind?: string; readonly name?: string };
}

/** The time of its last occurrence. */
export function timeOf(event: EventObject): string {
  return event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '';
}
