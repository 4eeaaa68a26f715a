// The volume for the module cache and the record of serving revisions.
import type { JsonObject, PolicyServerObject } from '../../resources/index.ts';

/** The type of the volume. An emptyDir is lost when all pods are deleted at once. */
export type ModuleCacheKind = 'emptyDir' | 'persistentVolumeClaim' | 'hostPath';

/** The fsGroup of a claim, so that a user other than root can write. An arbitrary unprivileged group. */
const CLAIM_GROUP = 65_532;

export interface ModuleCacheVolume {
  readonly kind: ModuleCacheKind;
  /** `core/v1` Volume without its name. */
  readonly volume: JsonObject;
  /** A folder in the volume: several PolicyServers may share a claim. */
  readonly subPath?: string;
  readonly fsGroup?: number;
}

export function moduleCacheOf(
  { moduleCache = {} }: PolicyServerObject['spec'],
  policyServer: string,
): ModuleCacheVolume {
  const { emptyDir = {}, persistentVolumeClaim, hostPath } = moduleCache;
  if (persistentVolumeClaim !== undefined) {
    const { claimName } = persistentVolumeClaim;
    const volume = { persistentVolumeClaim: { claimName } };
    return { kind: 'persistentVolumeClaim', volume, subPath: policyServer, fsGroup: CLAIM_GROUP };
  }
  if (hostPath !== undefined) {
    // The folder must exist: Kubernetes would create it for root, and the pods could not write.
    return { kind: 'hostPath', volume: { hostPath: { path: hostPath.path, type: 'Directory' } } };
  }
  const { sizeLimit } = emptyDir;
  return { kind: 'emptyDir', volume: { emptyDir: sizeLimit === undefined ? {} : { sizeLimit } } };
}
