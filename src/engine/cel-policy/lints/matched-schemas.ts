import {
  builtinKind,
  builtinKinds,
  kubernetesSchema,
  type RequestRule,
  splitResource,
} from '../../../resources/index.ts';
import { type MergeType, mergeTypeOf } from '../../../resources/structured-merge/index.ts';

/** A kind of objects that a policy changes. */
export interface MatchedSchema {
  /** `Pod`; undefined for kinds whose fields are not known, besides metadata. */
  readonly kind: string | undefined;
  readonly type: MergeType;
  /** Whether the rules match updates of whole objects of this kind. */
  readonly isUpdated: boolean;
}

/** Subresources whose requests contain the object itself. */
const SAME_OBJECT: ReadonlySet<string> = new Set(['', 'status', 'ephemeralcontainers', 'resize']);
/** Kinds that are compared; the others count as unknown. */
const MAX_KINDS = 20;
/** Any object: only metadata are known. */
const ANY_OBJECT = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/** The kinds that rules match: those of Kubernetes with their fields, and one for all others. */
export function matchedSchemas(rules: readonly RequestRule[]): readonly MatchedSchema[] {
  const matched = new Map<string, MatchedSchema>();
  for (const rule of rules) {
    for (const text of rule.resources) {
      for (const kind of kindsOf(rule, text)) {
        const name = matched.size < MAX_KINDS ? kind : undefined;
        const isUpdated = isForUpdates(rule) && splitResource(text)[1] === '';
        const before = matched.get(name ?? '');
        matched.set(name ?? '', { ...schemaOf(name), isUpdated: isUpdated || before?.isUpdated === true });
      }
    }
  }
  return [...matched.values()];
}

function isForUpdates({ operations = [] }: RequestRule): boolean {
  return operations.includes('UPDATE') || operations.includes('*');
}

/** `apps/Deployment` of each kind; undefined for one that is not known. */
function kindsOf({ apiGroups = [], apiVersions }: RequestRule, text: string): readonly (string | undefined)[] {
  const [name, subresource] = splitResource(text);
  if (!SAME_OBJECT.has(subresource)) {
    return [undefined];
  }
  return apiGroups.map((group) => {
    const found = builtinKinds(group).find(({ resource }) => resource === name);
    const isServed = found !== undefined && (apiVersions.includes('*') || apiVersions.includes(found.version));
    return isServed ? `${group}/${found.kind}` : undefined;
  });
}

function schemaOf(name: string | undefined): Pick<MatchedSchema, 'kind' | 'type'> {
  const [group = '', kind = ''] = name?.split('/') ?? [];
  const version = builtinKind(group, kind)?.version ?? '';
  const schema =
    name === undefined ? undefined : kubernetesSchema(group === '' ? version : `${group}/${version}`, kind);
  return { kind: schema === undefined ? undefined : kind, type: mergeTypeOf(schema ?? ANY_OBJECT) };
}
