// The object of a policy template, as it is applied to the cluster.
import { createHash } from 'node:crypto';
import {
  apiVersionOf,
  GOVERNANCE_GROUP,
  GOVERNANCE_LABELS,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubernetesObject,
  own,
  POLICIES,
  type Policy,
  textOf,
  valueAt,
} from '../../../resources/index.ts';

/** The hash of what was applied last, by which fields that left a template are noticed. */
export const APPLIED_ANNOTATION = 'portcullis.dev/applied';
/** On a template whose dependency is no longer met: it is not evaluated. The value says why. */
export const SUSPENDED_ANNOTATION = 'portcullis.dev/suspended';

/** The copy that a cluster-scoped object was applied by: such an object cannot be owned by one with a namespace. */
export const POLICY_ANNOTATION = 'portcullis.dev/policy';
/** Annotations of this controller: a definition cannot set them. */
const OWN_ANNOTATIONS = 'portcullis.dev/';

const CONSTRAINTS_GROUP = 'constraints.gatekeeper.sh';
/** The enforcement of a Gatekeeper constraint by the remediation of its Policy. */
const ENFORCEMENT_ACTIONS: Readonly<Record<string, string>> = { inform: 'warn', enforce: 'deny' };

/** An object that is to be applied. */
export interface TemplateObject extends KubernetesObject {
  readonly spec?: JsonObject;
}

/**
 * The object of a template.
 * @param namespaced whether its kind has namespaces; it is then in that of the copy
 */
export function templateObject(copy: Policy, definition: JsonObject, namespaced: boolean): TemplateObject {
  const metadata = own(definition, 'metadata');
  const { name = '', namespace = '' } = copy.metadata;
  const spec = withRemediation(copy, definition);
  const rest = Object.fromEntries(
    Object.entries(definition).filter(([key]) => key !== 'metadata' && key !== 'spec' && key !== 'status'),
  );
  const object: TemplateObject = {
    ...rest,
    apiVersion: textOf(own(definition, 'apiVersion')),
    kind: textOf(own(definition, 'kind')),
    metadata: {
      name: textOf(valueAt(metadata, 'name')),
      ...(namespaced ? { namespace } : {}),
      labels: {
        ...textsIn(metadata, 'labels'),
        [GOVERNANCE_LABELS.clusterName]: namespace,
        [GOVERNANCE_LABELS.clusterNamespace]: namespace,
      },
      annotations: {
        ...withoutOwnAnnotations(textsIn(metadata, 'annotations')),
        ...(namespaced ? {} : { [POLICY_ANNOTATION]: name }),
      },
      ...(namespaced
        ? {
            ownerReferences: [
              {
                apiVersion: apiVersionOf(POLICIES),
                kind: POLICIES.kind,
                name,
                uid: copy.metadata.uid ?? '',
                controller: true,
                blockOwnerDeletion: true,
              },
            ],
          }
        : {}),
    },
    ...(spec === undefined ? {} : { spec }),
  };
  const { labels, annotations } = object.metadata;
  const applied = hashOf({ labels, annotations, spec: spec ?? null, rest });
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...annotations, [APPLIED_ANNOTATION]: applied } },
  };
}

/**
 * Whether a stored object is as it was last applied.
 * @param withDefaults adds the defaults of its kind; undefined if they are unknown, then further fields are no difference
 */
export function isApplied(
  stored: TemplateObject,
  wanted: TemplateObject,
  withDefaults?: (object: TemplateObject) => TemplateObject,
): boolean {
  const { annotations = {}, labels = {}, ownerReferences = [] } = stored.metadata;
  return (
    annotations[APPLIED_ANNOTATION] === wanted.metadata.annotations?.[APPLIED_ANNOTATION] &&
    annotations[SUSPENDED_ANNOTATION] === undefined &&
    hasAll(annotations, wanted.metadata.annotations) &&
    hasAll(labels, wanted.metadata.labels) &&
    (wanted.metadata.ownerReferences ?? []).every(({ uid }) => ownerReferences.some((one) => one.uid === uid)) &&
    (withDefaults === undefined
      ? contains(stored.spec, wanted.spec)
      : equals(stored.spec ?? {}, withDefaults(wanted).spec ?? {}))
  );
}

/** The stored object with the wanted fields; labels and annotations of others stay. */
export function updatedTemplate(stored: TemplateObject, wanted: TemplateObject): TemplateObject {
  const { [SUSPENDED_ANNOTATION]: _, ...annotations } = stored.metadata.annotations ?? {};
  return {
    ...stored,
    ...wanted,
    metadata: {
      ...stored.metadata,
      labels: { ...stored.metadata.labels, ...wanted.metadata.labels },
      annotations: { ...annotations, ...wanted.metadata.annotations },
      ownerReferences: wanted.metadata.ownerReferences ?? stored.metadata.ownerReferences ?? [],
    },
  };
}

/** The spec with the remediation of the Policy, unless the template is `informonly`. */
function withRemediation(copy: Policy, definition: JsonObject): JsonObject | undefined {
  const spec = own(definition, 'spec');
  if (spec !== undefined && !isJsonObject(spec)) {
    return undefined;
  }
  const { group } = groupVersionOf(textOf(own(definition, 'apiVersion')));
  const remediation = copy.spec.remediationAction?.toLowerCase();
  if (group === CONSTRAINTS_GROUP) {
    const action = ENFORCEMENT_ACTIONS[remediation ?? ''];
    return action === undefined ? spec : { ...spec, enforcementAction: action };
  }
  if (group !== GOVERNANCE_GROUP) {
    return spec;
  }
  const ownAction = textOf(spec === undefined ? undefined : own(spec, 'remediationAction'));
  const action = ownAction.toLowerCase() === 'informonly' ? 'inform' : (copy.spec.remediationAction ?? ownAction);
  return action === '' ? spec : { ...spec, remediationAction: action };
}

function textsIn(metadata: JsonValue | undefined, field: string): Readonly<Record<string, string>> {
  const values = valueAt(metadata, field);
  const entries = isJsonObject(values) ? Object.entries(values) : [];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function withoutOwnAnnotations(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith(OWN_ANNOTATIONS)));
}

/** Whether two values contain each other: cached objects have other prototypes. */
function equals(left: JsonValue, right: JsonValue): boolean {
  return contains(left, right) && contains(right, left);
}

function hashOf(value: JsonValue | object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

function hasAll(
  stored: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>> | undefined,
): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) => stored[key] === value);
}

/** Whether a value has all fields of another one; lists must have the same length. */
function contains(stored: JsonValue | undefined, wanted: JsonValue | undefined): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(stored) &&
      stored.length === wanted.length &&
      wanted.every((item, index) => contains(stored[index], item))
    );
  }
  if (isJsonObject(wanted)) {
    return isJsonObject(stored) && Object.keys(wanted).every((key) => contains(own(stored, key), own(wanted, key)));
  }
  return stored === wanted || (wanted === undefined && stored === undefined);
}
