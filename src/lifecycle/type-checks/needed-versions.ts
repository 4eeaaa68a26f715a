import { subjectOfSpec } from '../../engine/type-check/subject/index.ts';
import {
  type AdmissionPolicySpec,
  groupVersionOf,
  matchedKinds,
  type ServedResource,
  textOf,
  valueAt,
} from '../../resources/index.ts';

/** The groups and versions whose documents a check needs; empty if the policy has no expressions. */
export function neededVersions(spec: AdmissionPolicySpec, served: readonly ServedResource[], limit: number): string[] {
  const { rules, conditions, uses, parameters = [] } = subjectOfSpec(spec);
  const hasObjects = conditions.length > 0 || uses.length > 0;
  const { kinds } = hasObjects ? matchedKinds(rules, served, limit) : { kinds: [] };
  const versions = [
    ...kinds.map(({ group, version }) => (group === '' ? version : `${group}/${version}`)),
    ...uses.map(({ settings }) => textOf(valueAt(settings, 'paramKind', 'apiVersion'))),
    ...parameters.map(({ apiVersion }) => apiVersion),
  ];
  return [...new Set(versions)].filter((one) => one !== '' && groupVersionOf(one).version !== '').slice(0, limit);
}
