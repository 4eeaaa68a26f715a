// CustomResourceDefinitions: their defaults, and the kinds that they define.
import { jsonText, numberText, typeOf } from '../../go/index.ts';
import { invalid, isJsonObject, withObjectMeta, valueAt } from '../../resources/index.ts';
import type {
  CustomColumn,
  FieldError,
  JsonObject,
  JsonValue,
  KubernetesObject,
  MutableObject,
  Schema,
} from '../../resources/index.ts';
import { parseJsonPath } from '../../values/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { customPrinter } from './custom-columns.ts';

/** The names of a kind (`CustomResourceDefinitionNames`). */
export interface KindNames {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

/** A version in a CustomResourceDefinition. */
interface DeclaredVersion {
  readonly name: string;
  readonly served: boolean;
  readonly isDeprecated: boolean;
  /** Empty: that of API servers. */
  readonly deprecationWarning: string;
  readonly storage: boolean;
  readonly schema: Schema;
  readonly columns: readonly CustomColumn[];
  readonly hasStatus: boolean;
  readonly scale: ResourceDefinition['scale'];
  readonly selectableFields: readonly string[];
}

/** Sets the defaults of a CustomResourceDefinition in place. */
export function applyCustomResourceDefaults(crd: MutableObject): void {
  const spec = objectAt(crd, 'spec');
  if (spec === undefined) {
    return;
  }
  const names = objectAt(spec, 'names');
  const kind = textAt(names, 'kind');
  if (names !== undefined && kind !== '') {
    if (textAt(names, 'singular') === '') {
      names['singular'] = kind.toLowerCase();
    }
    if (textAt(names, 'listKind') === '') {
      names['listKind'] = `${kind}List`;
    }
  }
  if (objectAt(spec, 'conversion') === undefined) {
    spec['conversion'] = { strategy: 'None' };
  }
  const status = (crd['status'] = isJsonObject(crd['status']) ? crd['status'] : {});
  if (!Array.isArray(status['storedVersions']) || status['storedVersions'].length === 0) {
    const stored = listAt(spec, 'versions').find((version) => isJsonObject(version) && version['storage'] === true);
    status['storedVersions'] = isJsonObject(stored) ? [textAt(stored, 'name')] : [];
  }
}

/** The requested names (`spec.names`) or the accepted names (`status.acceptedNames`) of a CustomResourceDefinition. */
export function namesOf(crd: KubernetesObject, part: 'spec' | 'status' = 'spec'): KindNames {
  const names =
    part === 'spec' ? objectAt(objectAt(crd, 'spec'), 'names') : objectAt(objectAt(crd, 'status'), 'acceptedNames');
  return {
    plural: textAt(names, 'plural'),
    singular: textAt(names, 'singular'),
    kind: textAt(names, 'kind'),
    listKind: textAt(names, 'listKind'),
    shortNames: textsAt(names, 'shortNames'),
    categories: textsAt(names, 'categories'),
  };
}

/**
 * The definitions of a CustomResourceDefinition's kind, one per served version, with its requested names. Invalid parts are
 * ignored.
 */
export function definitionsOfCustomResource(crd: KubernetesObject): ResourceDefinition[] {
  const spec = objectAt(crd, 'spec');
  const group = textAt(spec, 'group');
  const names = namesOf(crd);
  return listAt(spec, 'versions')
    .flatMap((version) => (isJsonObject(version) ? [readVersion(version)] : []))
    .filter(({ served }) => served)
    .map((version) => definitionOf(group, names, textAt(spec, 'scope') === 'Namespaced', version));
}

function definitionOf(
  group: string,
  names: KindNames,
  namespaced: boolean,
  version: DeclaredVersion,
): ResourceDefinition {
  const { scale, hasStatus, selectableFields } = version;
  const printer = customPrinter(version.columns);
  const gvk = { group, version: version.name, kind: names.kind };
  let schema: Schema | undefined;
  return {
    group,
    version: version.name,
    resource: names.plural,
    kind: names.kind,
    namespaced,
    singular: names.singular === '' ? names.kind.toLowerCase() : names.singular,
    shortNames: names.shortNames,
    categories: names.categories,
    schema: () => (schema ??= { ...withObjectMeta(version.schema), 'x-kubernetes-group-version-kind': [gvk] }),
    hasStatus,
    ...(scale === undefined ? {} : { scale, validate: (object) => scaleErrors(object, scale) }),
    printer,
    origin: 'custom',
    countsGenerations: true,
    ...(selectableFields.length === 0 ? {} : { selectableFields }),
    ...(version.isDeprecated
      ? { deprecation: version.deprecationWarning || `${group}/${version.name} ${names.kind} is deprecated` }
      : {}),
  };
}

function readVersion(version: JsonObject): DeclaredVersion {
  const subresources = objectAt(version, 'subresources');
  const scale = objectAt(subresources, 'scale');
  const labelSelectorPath = textAt(scale, 'labelSelectorPath');
  return {
    name: textAt(version, 'name'),
    served: version['served'] === true,
    isDeprecated: version['deprecated'] === true,
    deprecationWarning: textAt(version, 'deprecationWarning'),
    storage: version['storage'] === true,
    schema: (objectAt(objectAt(version, 'schema'), 'openAPIV3Schema') as Schema | undefined) ?? {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
    },
    columns: listAt(version, 'additionalPrinterColumns').filter(isJsonObject) as unknown as readonly CustomColumn[],
    hasStatus: objectAt(subresources, 'status') !== undefined,
    scale:
      scale === undefined
        ? undefined
        : {
            specReplicasPath: textAt(scale, 'specReplicasPath'),
            statusReplicasPath: textAt(scale, 'statusReplicasPath'),
            ...(labelSelectorPath === '' ? {} : { labelSelectorPath }),
          },
    selectableFields: listAt(version, 'selectableFields').map((field) =>
      isJsonObject(field) ? textAt(field, 'jsonPath').replace(/^\./u, '') : '',
    ),
  };
}

/** Validates the fields of the scale subresource (apiextensions, `ValidateScaleSpec` and `ValidateScaleStatus`). */
function scaleErrors(object: KubernetesObject, scale: NonNullable<ResourceDefinition['scale']>): FieldError[] {
  return [scale.specReplicasPath, scale.statusReplicasPath].flatMap((path) => replicasErrors(object, path));
}

const MAX_INT32 = 2 ** 31 - 1;

function replicasErrors(object: KubernetesObject, path: string): FieldError[] {
  const replicas = parseJsonPath(path)?.find(object)[0];
  if (replicas === undefined) {
    return [];
  }
  if (typeof replicas !== 'number' || !Number.isInteger(replicas)) {
    return [
      invalid(
        path,
        0,
        `${path} accessor error: ${printed(replicas)} is of the type ${typeOf(replicas as JsonValue)}, expected int64`,
      ),
    ];
  }
  if (replicas < 0) {
    return [invalid(path, replicas, 'should be a non-negative integer')];
  }
  return replicas > MAX_INT32 ? [invalid(path, replicas, `should be less than or equal to ${MAX_INT32}`)] : [];
}

/** A scalar as Go's `%v` prints it. */
function printed(value: unknown): string {
  if (typeof value === 'number') {
    return numberText(value);
  }
  return value === null ? '<nil>' : typeof value === 'object' ? jsonText(value) : `${value as string | boolean}`;
}

function objectAt(object: unknown, name: string): JsonObject | undefined {
  const value = valueAt(object, name);
  return isJsonObject(value) ? value : undefined;
}

function textAt(object: unknown, name: string): string {
  const value = valueAt(object, name);
  return typeof value === 'string' ? value : '';
}

function listAt(object: unknown, name: string): readonly JsonValue[] {
  const value = valueAt(object, name);
  return Array.isArray(value) ? value : [];
}

function textsAt(object: unknown, name: string): readonly string[] {
  return listAt(object, name).filter((value) => typeof value === 'string');
}
