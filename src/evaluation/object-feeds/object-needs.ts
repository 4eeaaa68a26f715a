// The objects that evaluation looks up for a policy before it runs, from specs that are not validated in this thread.
import { NAMESPACE_NAME_LABEL, type PolicyMatch } from '../../resources/index.ts';
import { isJsonObject, type JsonObject, own, textOf, textsOf, objectIn } from '../../values/index.ts';

/** A kind of parameters, and the name of its objects. */
export interface ParameterKindName {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** What evaluation looks up for a policy. */
export interface ObjectNeeds {
  readonly kinds: readonly ParameterKindName[];
  /** Whether labels or annotations of namespaces are needed. */
  readonly readsNamespaces: boolean;
  /** Keys of the annotations. */
  readonly annotations: readonly string[];
}

/** Needs by policy; undefined when the policy was removed. */
export type ChangedNeeds = ReadonlyMap<string, ObjectNeeds | undefined>;

/**
 * The needs of a policy.
 * @param specs of its versions, or of its parts, each with `parameters`
 * @param matches the requests that these match, where that is known
 */
export function objectNeeds(
  specs: readonly unknown[],
  matches: readonly (PolicyMatch | undefined)[] = [],
): ObjectNeeds {
  const parameters = specs.flatMap(specParameters);
  const sources = parameters.map((one) => objectIn(one, 'from'));
  const namespaces = sources.map((from) => own(from, 'namespace')).filter(isJsonObject);
  return {
    kinds: sources.flatMap((from) => kindOf(own(from, 'resource')) ?? []),
    readsNamespaces:
      namespaces.length > 0 ||
      parameters.some(mayReadNamespace) ||
      matches.some((match) => match !== undefined && selectsByLabels(match)),
    annotations: namespaces.flatMap((keys) => textsOf(own(keys, 'annotations'))),
  };
}

/** Whether a policy selects namespaces by other labels than their name. */
function selectsByLabels({ namespaceSelector: { matchLabels = {}, matchExpressions = [] } }: PolicyMatch): boolean {
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  return keys.some((key) => key !== NAMESPACE_NAME_LABEL);
}

/** The `parameters` of a spec: of a policy, or of the members of a group. */
export function specParameters(spec: unknown): readonly JsonObject[] {
  if (!isJsonObject(spec)) {
    return [];
  }
  const uses = [spec, ...Object.values(objectIn(spec, 'policies'))].filter(isJsonObject);
  return uses.map((use) => own(use, 'parameters')).filter((one) => isJsonObject(one));
}

/** Not parsed: CEL is not loaded in this thread. */
export function mayReadNamespace(parameters: JsonObject): boolean {
  return textOf(own(parameters, 'settingsExpression')).includes('namespaceObject');
}

function kindOf(resource: unknown): ParameterKindName | undefined {
  if (!isJsonObject(resource)) {
    return undefined;
  }
  const [apiVersion, kind, name] = ['apiVersion', 'kind', 'name'].map((field) => textOf(own(resource, field)));
  return apiVersion && kind && name ? { apiVersion, kind, name } : undefined;
}
