import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import type { PolicyServerObject } from '../../resources/index.ts';

/** The most that `spec.maxModuleSize` may be. MiB. */
export const LARGEST_MODULE_MEBIBYTES = LARGEST_MODULE_BYTES / 2 ** 20;

/** Size of the largest module that a PolicyServer allows, in MiB; undefined: that of the module store. */
export function maxModuleMebibytes({ spec }: Pick<PolicyServerObject, 'spec'>): number | undefined {
  return spec.maxModuleSize === undefined
    ? undefined
    : Math.min(Number.parseInt(spec.maxModuleSize, 10), LARGEST_MODULE_MEBIBYTES);
}
