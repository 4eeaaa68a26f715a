// Webhooks, spread over as few objects as can be stored.
import { createHash } from 'node:crypto';
import type { Webhook } from './webhook-object.ts';

/**
 * Bytes of the webhooks of one object. etcd takes requests of 1.5 MiB (`--max-request-bytes`), and an API server notes in
 * `managedFields` who owns each field, which for small webhooks is as much again: less than half.
 */
export const MAX_CONFIGURATION_BYTES = 700_000;

/** What the configuration for our own kinds has taken: a PolicyServer may be called `own-kinds`. */
const TAKEN_NAMES: ReadonlySet<string> = new Set(['portcullis-own-kinds']);

/** One object's. */
export interface ConfigurationPart {
  readonly name: string;
  readonly webhooks: readonly Webhook[];
}

/** In the order in which they are given. Nothing for no webhooks. */
export function packed(policyServer: string, webhooks: readonly Webhook[]): readonly ConfigurationPart[] {
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
  return parts.map((part, index) => ({ name: configurationName(policyServer, index), webhooks: part }));
}

/** `portcullis-default`. What follows on the first has a name that no PolicyServer gives to another one by chance. */
export function configurationName(policyServer: string, part = 0): string {
  const name = `portcullis-${policyServer}`;
  if (part === 0 && !TAKEN_NAMES.has(name)) {
    return name;
  }
  return `${name}.${createHash('sha256').update(policyServer).digest('hex').slice(0, 8)}-${part}`;
}

/** What a webhook takes of {@link MAX_CONFIGURATION_BYTES}. */
export function bytesOf(webhook: object): number {
  return Buffer.byteLength(JSON.stringify(webhook));
}
