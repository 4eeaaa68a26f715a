// matchConstraints and match conditions in settings of builtin:cel: requests that they exclude are skipped, as in API servers.
import { type JsonObject, type PolicyDefinition, type Review, settingsMatch } from '../../engine/index.ts';
import { own, parseJson, valueAt } from '../../values/index.ts';
import type { PolicyMismatch } from './file-policy.ts';
import { once } from './policy-findings.ts';

const CEL = 'builtin:cel';

/**
 * What keeps the settings of a policy from a review; undefined where they apply, or only an evaluation says it.
 * @param objects among which are namespaces
 */
export function settingsFilter(
  definition: PolicyDefinition,
  objects: readonly JsonObject[],
): (review: Review) => PolicyMismatch | undefined {
  const isFiltered =
    definition.kind === 'policy' &&
    definition.module === CEL &&
    definition.parameters === undefined &&
    definition.podTemplates === undefined;
  if (!isFiltered) {
    return () => undefined;
  }
  const namespaceOf = (name: string): JsonObject | undefined =>
    objects.find((one) => own(one, 'kind') === 'Namespace' && valueAt(one, 'metadata', 'name') === name);
  const match = once(() => settingsMatch(parseJson(definition.settingsJson), namespaceOf));
  return ({ requestJson }) => {
    const detail = match()(requestJson);
    return detail === undefined ? undefined : { isMatch: false, excludedBy: 'settings', detail };
  };
}
