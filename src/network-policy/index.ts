export type { LoadCatalogue } from './current-catalogue.ts';
export { providersOfPod } from './detect-providers.ts';
export { NetworkPolicyControllers } from './network-policy-controllers.ts';
export { ReportGuard } from './report-guard.ts';
export { StatusRemoval } from './status-removal.ts';
export { readClusterProviders } from './read-cluster-providers.ts';
