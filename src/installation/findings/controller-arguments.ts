// The Deployment of the controller, and the flags in it.
import { type KubernetesObject, textsOf } from '../../resources/index.ts';
import { CONTROLLER } from '../objects/naming.ts';
import type { Snapshot } from './snapshot.ts';

export function controllerOf({ deployments, namespace }: Snapshot): KubernetesObject | undefined {
  return deployments.find(({ metadata }) => metadata.namespace === namespace && metadata.name === CONTROLLER);
}

/** Whether a pod of the Deployment is available. Without one of the controller, what it writes is missing or old. */
export function hasAvailablePods({ status }: KubernetesObject): boolean {
  const { availableReplicas = 0 } = (status ?? {}) as { availableReplicas?: number };
  return availableReplicas > 0;
}

/** The value of a flag of the controller. The last one counts: extra arguments come after those of the values. */
export function argumentOf(deployment: KubernetesObject, flag: string): string | undefined {
  const { template } = (deployment['spec'] ?? {}) as {
    template?: { spec?: { containers?: readonly { args?: unknown }[] } };
  };
  const given = (template?.spec?.containers ?? []).flatMap(({ args }) => [...textsOf(args)]);
  const last = given.findLastIndex((argument) => argument === flag || argument.startsWith(`${flag}=`));
  return given[last] === flag ? given[last + 1] : given[last]?.slice(flag.length + 1);
}
