// Where the pods of a PolicyServer keep modules, and the record of what serves.
import type { JsonObject, PolicyServer } from '../../resources/index.ts';

/** Where modules are kept. Only the latter two are there after all pods are gone at once. */
export type ModuleCacheKind = 'emptyDir' | 'persistentVolumeClaim' | 'hostPath';

/** The group that a claim's files get, so that a user other than root may write them. That of nobody in particular. */
const CLAIM_GROUP = 65_532;

export interface ModuleCacheVolume {
  readonly kind: ModuleCacheKind;
  /** `core/v1` Volume without its name. */
  readonly volume: JsonObject;
  /** A folder of it: one claim may be that of several PolicyServers. */
  readonly subPath?: string;
  readonly fsGroup?: number;
}

export function moduleCacheOf({ moduleCache = {} }: PolicyServer['spec'], policyServer: string): ModuleCacheVolume {
  const { emptyDir = {}, persistentVolumeClaim, hostPath } = moduleCache;
  if (persistentVolumeClaim !== undefined) {
    const { claimName } = persistentVolumeClaim;
    const volume = { persistentVolumeClaim: { claimName } };
    return { kind: 'persistentVolumeClaim', volume, subPath: policyServer, fsGroup: CLAIM_GROUP };
  }
  if (hostPath !== undefined) {
    // Neither it nor a folder in it is made: that would be root's, and the pods could not write.
    return { kind: 'hostPath', volume: { hostPath: { path: hostPath.path, type: 'Directory' } } };
  }
  const { sizeLimit } = emptyDir;
  return { kind: 'emptyDir', volume: { emptyDir: sizeLimit === undefined ? {} : { sizeLimit } } };
}
