import {
  apiVersionOf,
  builtinKind,
  builtinKinds,
  kubernetesSchema,
  type RequestRule,
  type ResourceType,
  type Schema,
  splitResource,
} from '../../../resources/index.ts';
import { type MergeType, mergeTypeOf } from '../../../resources/structured-merge/index.ts';

/** A kind of objects that a policy changes. */
export interface MatchedSchema {
  /** `Pod`; undefined for kinds that are not Kubernetes'. */
  readonly kind: string | undefined;
  readonly type: MergeType;
  /** The schema of its objects; undefined where it is not known. */
  readonly schema: KindSchema | undefined;
  /** Whether the rules match updates of whole objects of this kind. */
  readonly isUpdated: boolean;
}

/** A kind with its schema. */
export interface KindSchema extends Pick<ResourceType, 'group' | 'version' | 'kind' | 'resource'> {
  readonly node: Schema;
}

/** Subresources whose requests contain the object itself. */
const SAME_OBJECT: ReadonlySet<string> = new Set(['', 'status', 'ephemeralcontainers', 'resize']);
/** Kinds that are compared; the others count as unknown. */
const MAX_KINDS = 20;
/** Any object: only metadata are known. */
const ANY_OBJECT = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/**
 * The kinds that rules match: those of Kubernetes and of CustomResourceDefinitions with their fields, and one for all others.
 * @param custom kinds of CustomResourceDefinitions
 */
export function matchedSchemas(
  rules: readonly RequestRule[],
  custom: readonly KindSchema[] = [],
): readonly MatchedSchema[] {
  const matched = new Map<string, MatchedSchema>();
  for (const rule of rules) {
    for (const text of rule.resources) {
      for (const kind of kindsOf(rule, text, custom)) {
        const name = matched.size < MAX_KINDS ? kind : undefined;
        const isUpdated = isForUpdates(rule) && splitResource(text)[1] === '';
        const before = matched.get(name ?? '');
        matched.set(name ?? '', { ...schemaOf(name, custom), isUpdated: isUpdated || before?.isUpdated === true });
      }
    }
  }
  // An entry of a policies file has no rules.
  return matched.size === 0 ? [{ ...schemaOf(undefined, custom), isUpdated: false }] : [...matched.values()];
}

function isForUpdates({ operations = [] }: RequestRule): boolean {
  return operations.includes('UPDATE') || operations.includes('*');
}

/** `apps/v1/Deployment` of each kind; undefined for one that is not known. */
function kindsOf(
  { apiGroups = [], apiVersions }: RequestRule,
  text: string,
  custom: readonly KindSchema[],
): readonly (string | undefined)[] {
  const [name, subresource] = splitResource(text);
  if (!SAME_OBJECT.has(subresource)) {
    return [undefined];
  }
  return apiGroups.map((group) => {
    const found = [...builtinKinds(group), ...custom.filter((one) => one.group === group)].find(
      ({ resource, version }) => resource === name && (apiVersions.includes('*') || apiVersions.includes(version)),
    );
    return found && `${group}/${found.version}/${found.kind}`;
  });
}

function schemaOf(name: string | undefined, custom: readonly KindSchema[]): Omit<MatchedSchema, 'isUpdated'> {
  const [group = '', version = '', kind = ''] = name?.split('/') ?? [];
  const defined = custom.find((one) => one.group === group && one.version === version && one.kind === kind);
  if (defined !== undefined) {
    return { kind, type: mergeTypeOf(defined.node), schema: defined };
  }
  const found = builtinKind(group, kind);
  const node = found && kubernetesSchema(apiVersionOf(found), kind);
  return found === undefined || node === undefined
    ? { kind: found?.kind, type: mergeTypeOf(ANY_OBJECT), schema: undefined }
    : { kind, type: mergeTypeOf(node), schema: { ...found, node } };
}
