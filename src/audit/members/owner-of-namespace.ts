import { createHash } from 'node:crypto';

/**
 * The auditor that a namespace belongs to, by rendezvous hashing: when an auditor comes or goes, only its own namespaces move.
 * Auditors of several versions run side by side during an upgrade, so this never changes.
 * @param members their ids, at least one
 */
export function ownerOfNamespace(namespace: string, members: readonly string[]): string {
  return members
    .map((id) => ({ id, weight: createHash('sha256').update(`${id}/${namespace}`).digest('hex') }))
    .reduce((one, other) => (other.weight > one.weight ? other : one)).id;
}
