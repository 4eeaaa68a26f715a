import { unknownKeyHint } from '../../values/index.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { ALLOWED_VOLUMES, RESTRICTED_VOLUMES } from '../pods/pod.ts';
import { readHostPaths } from './host-path.ts';
import type { AllowedHostPath } from './host-path.ts';
import { readMappings, readTexts } from './read-list.ts';

/** The volumes that pods may use. */
export interface VolumeRule {
  /** Undefined: any type. */
  readonly types: ReadonlySet<string> | undefined;
  /** Undefined: any path. */
  readonly hostPaths: readonly AllowedHostPath[] | undefined;
  /** Undefined: any driver. */
  readonly flexDrivers: ReadonlySet<string> | undefined;
  readonly csiDrivers: ReadonlySet<string> | undefined;
}

const ANY_TYPE = '*';
const VOLUME_TYPES: readonly string[] = [...ALLOWED_VOLUMES, ...RESTRICTED_VOLUMES].toSorted();

/** Without the list of types, none is allowed. Without a list of paths or drivers, all are. */
export function readVolumeRule(fields: FieldReader): VolumeRule {
  const types = readTexts(fields, 'volumes', (text) =>
    text === ANY_TYPE || VOLUME_TYPES.includes(text)
      ? undefined
      : `unknown type of volumes ${describeValue(text)}: ${unknownKeyHint(text, [ANY_TYPE, ...VOLUME_TYPES])}`,
  );
  return {
    types: types?.includes(ANY_TYPE) === true ? undefined : new Set(types),
    hostPaths: readHostPaths(fields),
    flexDrivers: readDrivers(fields, 'allowedFlexVolumes', 'driver'),
    csiDrivers: readDrivers(fields, 'allowedCSIDrivers', 'name'),
  };
}

function readDrivers(fields: FieldReader, key: string, nameKey: string): ReadonlySet<string> | undefined {
  const drivers = readMappings(fields, key, [nameKey])?.map((mapping) => mapping.requiredText(nameKey));
  return drivers === undefined ? undefined : new Set(drivers);
}
