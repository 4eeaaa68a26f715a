// The objects of files, as API servers store them.
import type { GivenObject } from '../../audit/index.ts';
import type { ApiResource } from '../../cluster/index.ts';
import { apiVersionOf, builtinKind, groupVersionOf, type KubernetesObject } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import { readPlacedObjects } from '../cluster/apply-files.ts';
import { STANDARD_INPUT } from '../document.ts';
import { DEFAULT_NAMESPACE } from '../manifest-objects.ts';
import { ServedKinds } from '../policy/served-kinds.ts';
import type { ProblemPlace } from '../problems/problem.ts';
import type { AuditReport } from './audit-report.ts';

/** Objects of files. */
export interface AuditedFiles {
  readonly objects: readonly GivenObject[];
  readonly placeOf: AuditReport['placeOf'];
  /** For the user: what is assumed of kinds that are not known. */
  readonly notes: readonly string[];
}

/** @param namespace of objects that name none @throws CliError when there are none */
export async function objectsOfFiles(
  paths: readonly string[],
  {
    isRecursive,
    namespace = DEFAULT_NAMESPACE,
  }: { readonly isRecursive: boolean; readonly namespace?: string | undefined },
): Promise<AuditedFiles> {
  const read = await readPlacedObjects(paths, isRecursive);
  const kinds = new ServedKinds(read.map(({ object }) => asJson(object)));
  const places = new Map<string, ProblemPlace>();
  const notes = new Set<string>();
  const objects = read.map(({ object, placed }): GivenObject => {
    const { type, note } = typeOf(object, kinds);
    const stored = storedObject(object, type, kinds, namespace);
    if (note !== undefined) {
      notes.add(note);
    }
    const { file, line } = placed.placeOf([]);
    if (file !== STANDARD_INPUT) {
      places.set(placeKey(apiVersionOf(type), type.kind, stored), { file, line });
    }
    return { object: stored, type };
  });
  return {
    objects,
    placeOf: ({ apiVersion, kind, ...key }) => places.get(placeKey(apiVersion, kind, { metadata: key })),
    notes: [...notes],
  };
}

function placeKey(apiVersion: string, kind: string, { metadata }: Pick<KubernetesObject, 'metadata'>): string {
  return [apiVersion, kind, metadata.namespace ?? '', metadata.name].join(' ');
}

function storedObject(
  object: KubernetesObject,
  { namespaced }: ApiResource,
  kinds: ServedKinds,
  namespace: string,
): KubernetesObject {
  const defaulted = kinds.defaulted(asJson(object)).object as unknown as KubernetesObject;
  const { namespace: own, ...metadata } = defaulted.metadata;
  return { ...defaulted, metadata: namespaced ? { ...metadata, namespace: own ?? namespace } : metadata };
}

/** The resource of an object as discovery would describe it. */
function typeOf(object: KubernetesObject, kinds: ServedKinds): { readonly type: ApiResource; readonly note?: string } {
  const { apiVersion, kind } = object;
  const { group, version } = groupVersionOf(apiVersion);
  const builtin = builtinKind(group, kind);
  const { details, note } = kinds.kindOf(asJson(object));
  const type = {
    group,
    version,
    kind,
    resource: builtin?.resource ?? details.resource ?? '',
    namespaced: builtin?.namespaced ?? details.scope === 'Namespaced',
    singular: kind.toLowerCase(),
    shortNames: builtin?.shortNames ?? [],
    categories: [],
    verbs: ['create', 'list'],
    // All builtin kinds that have a status have it as a subresource.
    subresources: builtin === undefined ? [] : ['status'],
  };
  return note === undefined ? { type } : { type, note };
}
