// What serves, in the status of a policy: modules with their settings.
import { isGroupSpec, type ServingStatus, timeText } from '../../resources/index.ts';
import { fitting } from '../../rollout/index.ts';
import { exactJson } from '../../values/index.ts';
import type { AdmissionRevision } from './admission-rollout-view.ts';

/** Size of the modules and settings of the serving revision in a status. UTF-16 units. */
const MAX_SERVING_LENGTH = 8 * 1024;

/** `status.serving`: what answers requests. */
export function servingStatus(serving: AdmissionRevision): ServingStatus {
  const modules = modulesOf(serving);
  const listed = fitting(modules, MAX_SERVING_LENGTH, (module) => {
    const { settings: _, ...rest } = module;
    return [module, rest];
  });
  const omitted = modules.length - listed.length;
  return {
    revision: serving.number,
    ...(serving.servingSince === undefined ? {} : { since: timeText(serving.servingSince) }),
    modules: listed,
    ...(omitted === 0 ? {} : { omittedModules: omitted }),
  };
}

function modulesOf({ snapshot, modules, policy }: AdmissionRevision): readonly ServingStatus['modules'][number][] {
  const named = isGroupSpec(snapshot) ? Object.entries(snapshot.policies) : [[policy, snapshot] as const];
  return named.map(([name, { module, settings }]) => {
    const digest = modules.find((one) => one.name === name)?.digest;
    return {
      name,
      module,
      ...(digest === undefined ? {} : { digest }),
      ...(settings === undefined || settings === null ? {} : { settings: exactJson(settings) }),
    };
  });
}
