// What became of the last refresh of a policy's modules.
import type { AdmissionPolicyStatus, RefreshedStatus } from '../../resources/index.ts';
import { movedModules } from '../../control/index.ts';
import { cannotServe, handledRefresh } from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';

/** Modules that a message names; further ones are counted. */
const MAX_NAMED = 5;

/** `status.refreshed`: about the newest revision, once its modules are resolved or could not be. */
export function refreshedStatus(
  { revisions }: Pick<AdmissionRolloutView, 'revisions'>,
  before: AdmissionPolicyStatus | undefined,
): RefreshedStatus | undefined {
  const newest = revisions.at(-1);
  const value = newest && handledRefresh(newest);
  if (newest === undefined || value === undefined) {
    return undefined;
  }
  const { number, refreshed, state, reason } = newest;
  if (refreshed !== undefined) {
    return { value, result: 'Unchanged', message: `the modules of revision ${number} have not changed` };
  }
  if (cannotServe(newest)) {
    return { value, result: 'Unresolved', message: `revision ${number} cannot serve: ${reason}` };
  }
  if (state === 'Candidate') {
    return before?.refreshed;
  }
  return { value, result: 'Changed', message: `revision ${number} has ${modulesText(newest, revisions.at(-2))}` };
}

function modulesText({ modules, refresh }: AdmissionRevision, previous: AdmissionRevision | undefined): string {
  if (previous === undefined || previous.refresh === refresh || previous.modules.length === 0) {
    return 'the modules that its references lead to';
  }
  const moved = movedModules(previous.modules, modules);
  const named = moved
    .slice(0, MAX_NAMED)
    .map(({ name, from, to }) => `${name}: ${to}${from === undefined ? '' : ` instead of ${from}`}`);
  const more = moved.length > MAX_NAMED ? [`${moved.length - MAX_NAMED} more`] : [];
  return moved.length === 0
    ? `the modules of revision ${previous.number}`
    : `new modules: ${[...named, ...more].join(', ')}`;
}
