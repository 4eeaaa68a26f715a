// What an installation applies: the values that it is told, over those of the installation before.
import type { KubernetesCluster } from '../../cluster/index.ts';
import { isJsonObject, type JsonObject, type KubernetesObject } from '../../resources/index.ts';
import {
  type InstalledObjects,
  keptValues,
  mergedValues,
  recordOf,
  recordText,
  VALUES_ANNOTATION,
  withImageSetByHand,
} from './kept-values.ts';
import { CONTROLLER, defaultValues, type InstallContext } from '../../installation/index.ts';
import { givenValues } from './given-values.ts';
import { readInstalled } from './read-installed.ts';

/** Values that a user names, with the name of their source for messages. */
export interface ToldValues {
  readonly values: JsonObject;
  readonly source: string;
}

export interface InstallationPlan {
  readonly context: InstallContext;
  /** The values that this installation is told. */
  readonly told: JsonObject;
  /** Those of the installation before, which it is not told. */
  readonly kept: JsonObject;
  /** What is in the cluster; undefined for a first installation, and where values are reset. */
  readonly installed?: InstalledObjects;
}

/** @throws CliError when a value is not valid, or the record of the last installation was changed; ApiError, ClusterError */
export async function planInstallation(
  cluster: KubernetesCluster,
  namespace: string,
  { values: told, source }: ToldValues,
  { version, resetsValues }: { readonly version: string; readonly resetsValues: boolean },
): Promise<InstallationPlan> {
  // Refuses a mistake before the cluster is read.
  const alone = givenValues(told, version, source, { isPart: true });
  const installed = resetsValues ? undefined : await readInstalled(cluster, { namespace, values: alone });
  if (installed === undefined) {
    return { context: { namespace, values: givenValues(told, version, source) }, told, kept: {} };
  }
  const kept = keptValues(installed, defaultValues(version), version);
  const values = givenValues(mergedValues(kept, told), version, `${source}, over those of the last installation`);
  return { context: { namespace, values }, told, kept: without(kept, told), installed };
}

/** An object as it is applied: with what somebody changed by hand, and the record of the values. */
export function withKept(object: KubernetesObject, plan: InstallationPlan): KubernetesObject {
  const { context, installed, kept, told } = plan;
  const isController = object.kind === 'Deployment' && object.metadata.name === CONTROLLER;
  const live = isController
    ? installed?.deployment
    : object.kind === 'PolicyServer'
      ? installed?.policyServer
      : undefined;
  const record = installed === undefined ? undefined : recordOf(installed.deployment);
  const kindly = Object.hasOwn(told, 'image') ? object : withImageSetByHand(object, live, record);
  if (!isController) {
    return kindly;
  }
  const annotations = { [VALUES_ANNOTATION]: recordText(mergedValues(kept, told), context.values) };
  return { ...kindly, metadata: { ...kindly.metadata, annotations } };
}

/** The values but those that others replace. */
function without(values: JsonObject, others: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const other = Object.hasOwn(others, name) ? others[name] : undefined;
      if (other === undefined) {
        return [[name, value]];
      }
      const left = isJsonObject(value) && isJsonObject(other) ? without(value, other) : {};
      return Object.keys(left).length === 0 ? [] : [[name, left]];
    }),
  );
}
