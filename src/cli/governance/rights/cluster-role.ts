// The ClusterRole with rights that policies need.
import { GOVERNANCE_ACCOUNT_RULES } from '../../../governance/access-rules/index.ts';
import type { JsonObject } from '../../../resources/index.ts';
import type { Right } from '../../../installation/index.ts';

/** The order of verbs in a rule. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'delete'];

/** Rights to one resource. */
interface ResourceVerbs {
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

/** A ClusterRole without the rights that the account has in any case. People expect `get` with `list` and `watch`. */
export function clusterRole(name: string, needed: readonly Right[]): JsonObject {
  const byResource = Map.groupBy(
    needed.filter((right) => !isGranted(right)),
    ({ group, resource }) => `${group}/${resource}`,
  );
  const resources = [...byResource.values()].flatMap((rights): readonly ResourceVerbs[] => {
    const [first] = rights;
    const verbs = new Set(['get', ...rights.map(({ verb }) => verb)]);
    return first === undefined ? [] : [{ ...first, verbs: VERBS.filter((verb) => verbs.has(verb)) }];
  });
  const byRule = Map.groupBy(resources, ({ group, verbs }) => `${group}/${verbs.join()}`);
  const rules = [...byRule].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: rules.map(([, of]) => ruleOf(of)),
  };
}

/** One rule for resources of one group with the same verbs. */
function ruleOf(of: readonly ResourceVerbs[]): JsonObject {
  return {
    apiGroups: [of[0]?.group ?? ''],
    resources: of.map(({ resource }) => resource).toSorted(),
    verbs: [...(of[0]?.verbs ?? [])],
  };
}

function isGranted({ group, resource, verb }: Right): boolean {
  return GOVERNANCE_ACCOUNT_RULES.some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups.includes(group) && resources.includes(resource) && verbs.includes(verb),
  );
}
