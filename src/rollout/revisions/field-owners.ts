// The field managers of a policy after a rollback (KEP-555). An API server makes the writer of a field its owner. If that were
// the controller, a server-side apply of the policy's manifest would conflict, and would not remove fields that only the
// restored spec has.
import { CONTROLLER_FIELD_MANAGER, type KubernetesObject, type ManagedFieldsEntry } from '../../resources/index.ts';
import { FieldSet, fieldElement, MergeError } from '../../resources/structured-merge/index.ts';

const SPEC = fieldElement('spec');

interface Owner {
  readonly entry: ManagedFieldsEntry;
  readonly fields: FieldSet;
}

/**
 * The managedFields of a policy with the fields that the controller wrote returned to their owners. Fields that had no owner
 * go to the main owner of the spec. They stay with the controller if there is none.
 *
 * @param before the policy before the controller wrote its spec
 * @param written the policy afterwards
 */
export function returnedFields(before: KubernetesObject, written: KubernetesObject): readonly ManagedFieldsEntry[] {
  const { managedFields = [] } = written.metadata;
  const own = managedFields.find(isOwn);
  try {
    return own === undefined ? managedFields : returned(before, written, own);
  } catch (error) {
    // Other API servers may store entries that we cannot read.
    if (error instanceof MergeError) {
      return managedFields;
    }
    throw error;
  }
}

function returned(
  { metadata }: KubernetesObject,
  { apiVersion, metadata: { managedFields = [] } }: KubernetesObject,
  own: ManagedFieldsEntry,
): readonly ManagedFieldsEntry[] {
  const owners = new Map<string, Owner>();
  const others = managedFields.filter((entry) => entry !== own);
  const isOwner = (entry: ManagedFieldsEntry): boolean => isOfObject(entry, apiVersion) && !isOwn(entry);
  for (const entry of others.filter(isOwner)) {
    owners.set(idOf(entry), ownerOf(entry));
  }
  const earlier = (metadata.managedFields ?? []).filter(isOwner).map(ownerOf);
  const main = mainOwner(earlier);
  const written = FieldSet.parse(own.fieldsV1);
  const unowned = earlier.reduce((fields, owner) => fields.difference(owner.fields), written);
  for (const owner of earlier) {
    const returning = owner.fields.intersection(written).union(owner === main ? unowned : new FieldSet());
    const { entry, fields } = owners.get(idOf(owner.entry)) ?? { ...owner, fields: new FieldSet() };
    owners.set(idOf(entry), { entry, fields: fields.union(returning) });
  }
  return [
    ...[...owners.values()].map(({ entry, fields }) => ({ ...entry, fieldsV1: fields.toFieldsV1() })),
    ...others.filter((entry) => !isOwner(entry)),
    ...(main === undefined && !unowned.isEmpty ? [{ ...own, fieldsV1: unowned.toFieldsV1() }] : []),
  ];
}

/** The manager that applies most of the spec; without one that applies, the one that wrote most of it. */
function mainOwner(owners: readonly Owner[]): Owner | undefined {
  const sizeOf = ({ fields }: Owner): number => fields.below(SPEC)?.size ?? 0;
  const ofSpec = owners.filter((owner) => sizeOf(owner) > 0).toSorted((a, b) => sizeOf(b) - sizeOf(a));
  return ofSpec.find(({ entry }) => entry.operation === 'Apply') ?? ofSpec[0];
}

function ownerOf(entry: ManagedFieldsEntry): Owner {
  return { entry, fields: FieldSet.parse(entry.fieldsV1) };
}

/** The entry of the controller's writes of specs. */
function isOwn({ manager, subresource = '' }: ManagedFieldsEntry): boolean {
  return manager === CONTROLLER_FIELD_MANAGER && subresource === '';
}

/** Whether an entry has fields of the object itself, in this version. Sets of other versions cannot be compared. */
function isOfObject(entry: ManagedFieldsEntry, apiVersion: string): boolean {
  return (entry.subresource ?? '') === '' && entry.apiVersion === apiVersion;
}

function idOf({ manager, operation }: ManagedFieldsEntry): string {
  return `${operation ?? ''}/${manager ?? ''}`;
}
