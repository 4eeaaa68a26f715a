// Distributes webhooks over as few configurations as etcd can store.
import { createHash } from 'node:crypto';
import type { Webhook } from './webhook-object.ts';

/**
 * Bytes of the webhooks of one object: less than half of etcd's request limit of 1.5 MiB (`--max-request-bytes`), because
 * `managedFields` are about as large as the webhooks themselves when these are small.
 */
export const MAX_CONFIGURATION_BYTES = 700_000;

const PREFIX = 'portcullis-';
/**
 * Prefix of configurations with the mutating webhooks of namespaced policies. API servers call mutating webhooks in the order
 * of the names of their configurations: it sorts before {@link PREFIX}, so policies of the cluster are called last.
 */
const NAMESPACED_PREFIX = 'namespaced-portcullis-';

/** The name of the configuration for our own kinds, which a PolicyServer called `own-kinds` must not get. */
const RESERVED_NAMES: ReadonlySet<string> = new Set(['portcullis-own-kinds']);

/** The webhooks of one object. */
export interface ConfigurationPart {
  readonly name: string;
  readonly webhooks: readonly Webhook[];
}

/** Keeps the order of the webhooks. */
export function packWebhooks(
  policyServer: string,
  webhooks: readonly Webhook[],
  isOfNamespaces: boolean,
): readonly ConfigurationPart[] {
  const prefix = isOfNamespaces ? NAMESPACED_PREFIX : PREFIX;
  const parts: Webhook[][] = [];
  let free = 0;
  for (const webhook of webhooks) {
    const bytes = bytesOf(webhook);
    const last = parts.at(-1);
    if (last === undefined || bytes > free) {
      parts.push([webhook]);
      free = MAX_CONFIGURATION_BYTES - bytes;
    } else {
      last.push(webhook);
      free -= bytes;
    }
  }
  return parts.map((part, index) => ({ name: configurationName(policyServer, index, prefix), webhooks: part }));
}

/** `portcullis-default` for the first part. The hash keeps names of further parts apart from those of other PolicyServers. */
export function configurationName(policyServer: string, part = 0, prefix = PREFIX): string {
  const name = `${prefix}${policyServer}`;
  if (part === 0 && !RESERVED_NAMES.has(name)) {
    return name;
  }
  return `${name}.${createHash('sha256').update(policyServer).digest('hex').slice(0, 8)}-${part}`;
}

/** Bytes of a webhook as JSON, see {@link MAX_CONFIGURATION_BYTES}. */
export function bytesOf(webhook: object): number {
  return Buffer.byteLength(JSON.stringify(webhook));
}
