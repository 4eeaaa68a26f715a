// Rights to kinds, as rights to resources.
import type { NeededRight } from '../../governance/index.ts';
import { apiVersionOf, guessedKind, type ResourceType } from '../../resources/index.ts';
import { type Right, rightText } from './rights.ts';

/** Finds kinds: of a cluster, or of manifests. */
export interface KindFinder {
  find(apiVersion: string, kind: string): Promise<ResourceType | undefined>;
}

export interface ResolvedRights {
  /** Each right once. */
  readonly rights: readonly Right[];
  /** Kinds that are not known, with the resources that are taken for theirs. */
  readonly guessed: readonly ResourceType[];
}

/** @throws ApiError, ClusterError */
export async function resolveRights(needed: readonly NeededRight[], kinds: KindFinder): Promise<ResolvedRights> {
  const types = new Map<string, ResourceType>();
  const guessed: ResourceType[] = [];
  for (const { apiVersion, kind } of needed) {
    const id = `${apiVersion} ${kind}`;
    if (!types.has(id)) {
      const found = await kinds.find(apiVersion, kind);
      const type = found ?? guessedKind({ apiVersion, kind, metadata: { namespace: '' } });
      types.set(id, type);
      guessed.push(...(found === undefined ? [type] : []));
    }
  }
  const rights = needed.flatMap(({ apiVersion, kind, verb, namespace }): readonly Right[] => {
    const type = types.get(`${apiVersion} ${kind}`);
    return type === undefined
      ? []
      : [
          {
            verb,
            group: type.group,
            resource: type.resource,
            ...(type.namespaced && namespace !== undefined ? { namespace } : {}),
          },
        ];
  });
  return { rights: [...new Map(rights.map((right) => [rightText(right), right])).values()], guessed };
}

/** `Kafka of kafka.strimzi.io/v1beta2` */
export function kindText(type: ResourceType): string {
  return `${type.kind} of ${apiVersionOf(type)}`;
}
