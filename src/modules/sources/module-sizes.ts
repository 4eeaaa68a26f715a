/** Largest module by default: the largest policies, built with Go's standard toolchain, have about 20 MiB. */
export const DEFAULT_MAX_MODULE_BYTES = 64 * 1024 * 1024;
/** The most that an administrator can allow. The largest published policy has some 75 MiB. */
export const LARGEST_MODULE_BYTES = 256 * 1024 * 1024;
