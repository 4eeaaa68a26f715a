// Disarms policies and PolicyServers, or arms them again: by a controller that runs, else directly.
import type { KubernetesCluster } from '../../cluster/index.ts';
import { type AdmissionPolicyObject, ANNOTATIONS } from '../../resources/index.ts';
import { connect } from '../cluster/cluster-flags.ts';
import { durationMs } from '../cluster/duration.ts';
import { Progress } from '../progress.ts';
import { changePolicy, changeServer, despiteOwnKinds } from './direct-change.ts';
import { type BreakGlassFlags, type DisarmTarget, disarmTargets } from './disarm-target.ts';
import { recordEmergency } from './emergency-record.ts';
import { isHandled } from './handled.ts';

/**
 * Sets the annotation of each target, records it, and sees that webhooks follow. @param reason why they are disarmed;
 * undefined: armed again
 */
export async function changeEnforcement(
  args: readonly string[],
  flags: BreakGlassFlags,
  reason: string | undefined,
): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const isArmed = reason === undefined;
  const said = isArmed ? 'armed again' : 'disarmed';
  for (const target of await disarmTargets(cluster, namespace, args, flags)) {
    if (isArmed && target.object.metadata.annotations?.[ANNOTATIONS.disarmed] === undefined) {
      process.stdout.write(`${target.name} is not disarmed\n`);
      continue;
    }
    const body = { metadata: { annotations: { [ANNOTATIONS.disarmed]: reason ?? null } } };
    await despiteOwnKinds(cluster, () => cluster.patch(target.type, target.key, { type: 'merge', body }));
    await recordEmergency(cluster, target, isArmed ? 'Rearmed' : 'Disarmed', reason ?? '');
    const isDone = await new Progress().during(`${target.name}: waiting for a controller`, () =>
      isHandled(cluster, target, isArmed, timeoutMs),
    );
    const names = isDone ? undefined : await changedDirectly(cluster, target, isArmed, flags);
    process.stdout.write(`${target.name} ${said}${names === undefined ? '' : directText(names, isArmed)}\n`);
  }
}

async function changedDirectly(
  cluster: KubernetesCluster,
  { isServer, key, object }: DisarmTarget,
  isArmed: boolean,
  { productNamespace }: BreakGlassFlags,
): Promise<readonly string[]> {
  return isServer
    ? await changeServer(cluster, key.name, isArmed)
    : await changePolicy(cluster, object as AdmissionPolicyObject, isArmed, productNamespace);
}

function directText(names: readonly string[], isArmed: boolean): string {
  const what =
    names.length > 0
      ? `changed ${names.join(', ')}`
      : isArmed
        ? 'its webhooks are written once a controller runs'
        : 'no webhook was for it';
  return `; no controller answered: ${what}`;
}
