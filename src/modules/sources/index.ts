// An entry of its own for who reads what administrators say of modules, and fetches none.
export { DEFAULT_MAX_MODULE_BYTES, LARGEST_MODULE_BYTES } from './module-sizes.ts';
export { DEFAULT_SOURCES, isCertificate, parseSources, sourcesText } from './sources.ts';
export type { SourcesConfig } from './sources.ts';
export { ALL_MODULES } from './tenant-modules.ts';
