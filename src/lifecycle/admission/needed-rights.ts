// Rights that the author of a namespaced policy needs.
import {
  isJsonObject,
  isPrivileged,
  type JsonObject,
  own,
  podTemplatesAction,
  splitResource,
  textsOf,
  NAMESPACED_WORKLOADS,
} from '../../resources/index.ts';
import { parameterObjects, type ReadObject } from './parameter-objects.ts';

/** Resources that the rules of one policy may match: each takes one or two access reviews. */
export const MAX_REVIEWED_RESOURCES = 64;
/** All groups, resources or subresources. */
export const ALL = '*';

/** A resource that the rules of a policy match. `*` stands for all, so only users with a wildcard in their rights have it. */
export interface MatchedResource {
  /** The field of the rule that names it. */
  readonly field: string;
  readonly group: string;
  readonly resource: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
}

/** Rights that the author of a policy needs in its namespace. */
export interface AuthorRightsNeeded {
  readonly verbs: readonly string[];
  /** At most {@link MAX_REVIEWED_RESOURCES}, and one more if there are more. */
  readonly resources: readonly MatchedResource[];
  readonly parameters: readonly ReadObject[];
  /** Of a revision that an annotation restores: the field to name instead of those of the spec, and what is added to messages. */
  readonly at?: { readonly field: string; readonly hint: string };
}

/** The rights needed for the spec of a namespaced policy or group. */
export function neededRights(spec: JsonObject): AuthorRightsNeeded {
  const isMutating = own(spec, 'policies') === undefined && own(spec, 'mutating') !== false;
  const resources = new Map<string, MatchedResource>();
  for (const matched of matchedResources(spec)) {
    const { group, resource, subresource } = matched;
    const key = JSON.stringify([group, resource, subresource]);
    // Policies never see requests for privileged kinds.
    if (!resources.has(key) && !isPrivileged(matched, subresource)) {
      resources.set(key, matched);
    }
    if (resources.size > MAX_REVIEWED_RESOURCES) {
      break;
    }
  }
  return {
    verbs: isMutating ? ['create', 'update'] : ['get'],
    resources: [...resources.values()],
    parameters: parameterObjects(spec),
  };
}

/** The workloads whose pod templates the policy checks, whatever its rules are. */
function workloads(spec: JsonObject): readonly MatchedResource[] {
  return podTemplatesAction(spec) === undefined
    ? []
    : NAMESPACED_WORKLOADS.map(({ group, resource }) => ({
        field: 'spec.podTemplates',
        group,
        resource,
        subresource: '',
      }));
}

function* matchedResources(spec: JsonObject): Generator<MatchedResource> {
  const rules = own(spec, 'rules');
  for (const [index, rule] of (Array.isArray(rules) ? rules : []).entries()) {
    const { apiGroups, resources } = isJsonObject(rule) ? rule : {};
    const names = [...new Set(textsOf(resources))];
    for (const group of new Set(textsOf(apiGroups))) {
      for (const name of names) {
        const field = `spec.rules[${index}].resources[${textsOf(resources).indexOf(name)}]`;
        const [resource, subresource] = splitResource(name);
        yield { field, group, resource, subresource };
        if (subresource === ALL) {
          // `pods/*` matches pods as well.
          yield { field, group, resource, subresource: '' };
        }
      }
    }
  }
  yield* workloads(spec);
}
