// Finds what an earlier installation created and this one does not want: what a value turned off, or a version removed.
import { type KubernetesCluster, listAll, unlessGone } from '../../cluster/index.ts';
import {
  apiVersionOf,
  keyOf,
  type KubernetesObject,
  labelsText,
  MANAGED_BY,
  productKind,
  type ResourceType,
} from '../../resources/index.ts';
import {
  CRDS,
  INSTALL_PARTS,
  type InstallContext,
  NAMESPACES,
  PRODUCT_LABELS,
  type Right,
  rightsTo,
} from '../../installation/index.ts';
import { GOVERNANCE_ROLES } from '../../installation/objects/index.ts';

/** An object with its type. */
interface Found {
  readonly type: ResourceType;
  readonly object: KubernetesObject;
}

const INSTALLED = labelsText({ 'app.kubernetes.io/part-of': PRODUCT_LABELS['app.kubernetes.io/part-of'] });
/** Never deleted by an installation: with them go objects of users. */
const KEPT: readonly string[] = [CRDS.kind, NAMESPACES.kind];

/**
 * The objects that have the label of an installation, that this command applied or a part of this version is about, and that are
 * not wanted: never those that only have the label.
 */
export async function formerObjects(
  cluster: KubernetesCluster,
  context: InstallContext,
  wanted: readonly KubernetesObject[],
  fieldManager: string,
): Promise<readonly Found[]> {
  const known = knownObjects(context);
  const [names, kept] = [known, wanted].map((objects) => new Set(objects.map(idOf)));
  const former: Found[] = [];
  for (const type of await typesOf(cluster, known)) {
    const namespace = type.namespaced ? { namespace: context.namespace } : {};
    const list = await unlessGone(listAll(cluster, type, { ...namespace, labelSelector: INSTALLED }));
    const items = (list?.items ?? []).map((object) => ({ ...object, apiVersion: apiVersionOf(type), kind: type.kind }));
    const found = items.filter(
      (object) =>
        !isManaged(object) &&
        kept?.has(idOf(object)) !== true &&
        (names?.has(idOf(object)) === true || isGrant(object) || isAppliedBy(object, fieldManager)),
    );
    former.push(...found.map((object) => ({ type, object })));
  }
  return former;
}

/** The rights to find and delete them. */
export async function rightsToRemoveFormer(
  cluster: KubernetesCluster,
  context: InstallContext,
): Promise<readonly Right[]> {
  const types = await typesOf(cluster, knownObjects(context));
  return types.flatMap((type) => rightsTo(['list', 'delete'], type, type.namespaced ? context.namespace : undefined));
}

/** The objects of all parts, whatever the values say. */
function knownObjects(context: InstallContext): readonly KubernetesObject[] {
  return INSTALL_PARTS.flatMap(({ objects }) => objects(context)).filter(({ kind }) => !KEPT.includes(kind));
}

/** The types that the cluster serves, each once. */
export async function typesOf(
  cluster: KubernetesCluster,
  objects: readonly KubernetesObject[],
): Promise<readonly ResourceType[]> {
  const kinds = new Map(objects.map((object) => [`${object.apiVersion}/${object.kind}`, object]));
  const types = await Promise.all(
    [...kinds.values()].map(
      async ({ apiVersion, kind }) => productKind(apiVersion, kind) ?? (await cluster.discovery.find(apiVersion, kind)),
    ),
  );
  return types.filter((type) => type !== undefined);
}

function idOf(object: KubernetesObject): string {
  const { namespace = '', name } = keyOf(object);
  return `${object.apiVersion}/${object.kind}/${namespace}/${name}`;
}

/** Whether the controller made it. */
function isManaged({ metadata }: KubernetesObject): boolean {
  return Object.entries(MANAGED_BY).every(([key, value]) => metadata.labels?.[key] === value);
}

/** Whether an installation granted a role to Policies. */
function isGrant({ metadata }: KubernetesObject): boolean {
  return metadata.labels?.['app.kubernetes.io/component'] === GOVERNANCE_ROLES;
}

function isAppliedBy({ metadata }: KubernetesObject, fieldManager: string): boolean {
  const fields = metadata.managedFields ?? [];
  return fields.some(({ manager, operation }) => manager === fieldManager && operation === 'Apply');
}
