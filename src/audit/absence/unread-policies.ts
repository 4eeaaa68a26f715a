// What an auditor says in its Lease about kinds of policies that it cannot read: it does not know the policies whose statuses should
// say so.
import type { KubernetesObject } from '../../resources/index.ts';
import type { Coverage } from '../coverage.ts';

const UNREAD_POLICIES = 'portcullis.dev/unread-policies';

/** The annotation of the Lease. @param kinds see Auditor.unreadKinds */
export function unreadAnnotation(kinds: readonly Coverage[]): Readonly<Record<string, string>> {
  return { [UNREAD_POLICIES]: kinds.map(({ kind, reason }) => `${kind?.resource}=${reason}`).join() };
}

/** The reason by the resource of a kind of policies. */
export function unreadReasons(leases: readonly KubernetesObject[]): ReadonlyMap<string, string> {
  const entries = leases.flatMap(({ metadata }) => (metadata.annotations?.[UNREAD_POLICIES] ?? '').split(','));
  return new Map(
    entries.flatMap((entry) => {
      const [resource = '', reason = ''] = entry.split('=', 2);
      return reason === '' ? [] : [[resource, reason] as const];
    }),
  );
}
