// The objects that parameters of policies need, from specs that are not validated in this thread.
import { isJsonObject, type JsonObject, own, textOf, textsOf, objectIn } from '../../values/index.ts';
import type { WantedPolicy } from '../policies/wanted-policy.ts';

/** A kind of parameters, and the name of its objects. */
export interface ParameterKindName {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

export interface ParameterNeeds {
  readonly kinds: readonly ParameterKindName[];
  /** Whether labels or annotations of namespaces are needed. */
  readonly readsNamespaces: boolean;
  /** Keys of the annotations. */
  readonly annotations: readonly string[];
}

export const NO_NEEDS: ParameterNeeds = { kinds: [], readsNamespaces: false, annotations: [] };

/** The needs of all revisions of a policy that serve, may serve soon, or wait for other parameters. */
export function parameterNeeds({ serving, staged, waiting }: WantedPolicy): ParameterNeeds {
  const revisions = [serving, ...staged, waiting].filter((one) => one !== undefined);
  const all = revisions.flatMap(({ snapshot }) => specParameters(snapshot));
  return all.length === 0 ? NO_NEEDS : needsOf(all);
}

/** The needs of the spec of a policy. */
export function specNeeds(spec: unknown): ParameterNeeds {
  return needsOf(specParameters(spec));
}

function needsOf(parameters: readonly JsonObject[]): ParameterNeeds {
  const sources = parameters.map((one) => objectIn(one, 'from'));
  const namespaces = sources.map((from) => own(from, 'namespace')).filter(isJsonObject);
  return {
    kinds: sources.flatMap((from) => kindOf(own(from, 'resource')) ?? []),
    readsNamespaces: namespaces.length > 0 || parameters.some(mayReadNamespace),
    annotations: namespaces.flatMap((keys) => textsOf(own(keys, 'annotations'))),
  };
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
