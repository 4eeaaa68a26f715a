// Warnings about PersistentVolumes, their claims and StorageClasses.
import { valueAt } from '../../../values/index.ts';
import { listAt, placedItems } from './fields.ts';
import { deprecatedNodeLabel, nodeTermsWarnings } from './node-label-warnings.ts';
import { fractionalWarnings } from './quantity-warnings.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const STORAGE = ['storage'];

/** Volumes whose drivers are gone, or will be. Keys are fields of a volume. */
const DEPRECATED_VOLUMES: Readonly<Record<string, string>> = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};
/** API servers name this field as their types do. */
const NAMES: Readonly<Record<string, string>> = { storageos: 'storageOS' };

/** Of a volume of a pod, or the spec of a PersistentVolume. */
export function volumeWarnings(volume: unknown, path: string): readonly string[] {
  return Object.entries(DEPRECATED_VOLUMES).flatMap(([field, text]) =>
    valueAt(volume, field) === undefined ? [] : [`${path}.${NAMES[field] ?? field}: ${text}`],
  );
}

export function claimSpecWarnings(spec: unknown, path: string): readonly string[] {
  return ['requests', 'limits'].flatMap((kind) =>
    fractionalWarnings(valueAt(spec, 'resources', kind), `${path}.resources.${kind}`, STORAGE),
  );
}

export function claimWarnings(claim: unknown): readonly string[] {
  return [...classWarnings(claim), ...claimSpecWarnings(valueAt(claim, 'spec'), 'spec')];
}

export function persistentVolumeWarnings(volume: unknown): readonly string[] {
  const spec = valueAt(volume, 'spec');
  const terms = ['nodeAffinity', 'required', 'nodeSelectorTerms'];
  return [
    ...classWarnings(volume),
    ...(valueAt(spec, 'persistentVolumeReclaimPolicy') === 'Recycle' ? [RECYCLE] : []),
    ...nodeTermsWarnings(listAt(spec, ...terms), (index) => `spec.${terms.join('.')}[${index}]`),
    ...volumeWarnings(spec, 'spec'),
  ];
}

const RECYCLE =
  'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.';

export function storageClassWarnings(storageClass: unknown): readonly string[] {
  return placedItems(valueAt(storageClass, 'allowedTopologies'), 'allowedTopologies').flatMap(({ path, value }) =>
    placedItems(value['matchLabelExpressions'], `${path}.matchLabelExpressions`).flatMap(
      ({ path: field, value: one }) => {
        const advice = deprecatedNodeLabel(one['key']);
        return advice === undefined ? [] : [`${field}.key: ${advice}`];
      },
    ),
  );
}

function classWarnings(object: unknown): readonly string[] {
  return valueAt(object, 'metadata', 'annotations', CLASS_ANNOTATION) === undefined
    ? []
    : [`metadata.annotations[${CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead`];
}
