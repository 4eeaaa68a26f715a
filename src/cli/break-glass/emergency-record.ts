// Who disarmed what, why and when: an event of the policy or PolicyServer, because no controller may run that would write one.
import type { Cluster, KubernetesCluster } from '../../cluster/index.ts';
import { EVENTS } from '../../runtime/index.ts';
import { keyOf } from '../../resources/index.ts';
import { inertText } from '../../values/index.ts';
import { reviewedUsername } from '../controller/username.ts';
import type { DisarmTarget } from './disarm-target.ts';

/** The `source` of the events. */
const COMPONENT = 'portcullis-break-glass';

/** Writes the event. @throws ApiError when the user may not */
export async function recordEmergency(
  cluster: Cluster & Pick<KubernetesCluster, 'request'>,
  { object }: DisarmTarget,
  reason: 'Disarmed' | 'Rearmed',
  why: string,
): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace } = keyOf(object);
  const user = await reviewedUsername(cluster, AbortSignal.timeout(USER_MS));
  const now = new Date().toISOString();
  await cluster.create(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    // Events about cluster-scoped objects are in namespace default.
    metadata: { generateName: `${name.slice(0, MAX_NAME_PART)}-`, namespace: namespace ?? 'default' },
    involvedObject: {
      apiVersion,
      kind,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: metadata.uid ?? '',
    },
    type: reason === 'Disarmed' ? 'Warning' : 'Normal',
    reason,
    message: inertText(
      `${reason === 'Disarmed' ? 'disarmed' : 'armed again'} by ${user}${why === '' ? '' : `: ${why}`}`,
    ),
    source: { component: COMPONENT },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  });
}

/** Time to learn the user. Milliseconds. */
const USER_MS = 10_000;
/** The part of a name that leaves room for a generated suffix. Characters. */
const MAX_NAME_PART = 240;
