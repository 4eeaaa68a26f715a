// An entry of its own for who reads what a PolicyServer grants to its policies.
export { maxModuleMebibytes } from './max-module-size.ts';
export { isTakenOver, tenantCapabilities } from './tenant-capabilities.ts';
